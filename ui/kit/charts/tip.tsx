// The text for the point of a figure at the pointer or the focus.

import { useEffect, useState } from "preact/hooks";

export interface Tipped {
  /** Where the point is, from the top left of the figure, in pixels. */
  x: number;
  y: number;
  lines: readonly string[];
}

const WIDTH = 240;

/** A box at the point, on the side with room. `width` is the width of the figure. */
export function Tip({ at, width }: { at: Tipped | null; width: number }) {
  if (!at) return null;
  const isLeft = at.x > width / 2;
  const left = isLeft ? Math.max(0, at.x - WIDTH - 12) : Math.min(at.x + 12, Math.max(0, width - WIDTH));
  return (
    <div class={`tip${isLeft ? " at-left" : ""}`} style={{ left: `${left}px`, top: `${Math.max(0, at.y - 8)}px`, width: `${WIDTH}px` }} aria-hidden="true">
      <div class="tip-box">
        {at.lines.map((line, index) => (
          <p key={index}>{line}</p>
        ))}
      </div>
    </div>
  );
}

const PAUSE = 500;

/** The same for screen readers: announced once the point has stayed for a moment. */
export function Spoken({ at }: { at: Tipped | null }) {
  const text = at?.lines.join(", ") ?? "";
  const [said, say] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => say(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span class="hidden-text" role="status">
      {said}
    </span>
  );
}
