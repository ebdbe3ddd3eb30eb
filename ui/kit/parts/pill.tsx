// A state as an icon and a word, never as a colour alone.

/** Lines in a square of 12. */
const SHAPES: Readonly<Record<string, string>> = {
  circle: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9",
  clock: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M6 3.5V6l2 1",
  half: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M5.5 2v8M4 3v6M2.8 4.5v3",
  check: "M2 6.5L5 9.5L10 3",
  cross: "M2.5 2.5l7 7M9.5 2.5l-7 7",
  glass: "M2.5 1.5h7M2.5 10.5h7M3.5 1.5C3.5 4.5 8.5 7.5 8.5 10.5M8.5 1.5C8.5 4.5 3.5 7.5 3.5 10.5",
  slash: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M3 9L9 3",
  bars: "M4 2.5v7M8 2.5v7",
  down: "M6 2v8M2.5 6.5L6 10l3.5-3.5",
};

const ICONS: Readonly<Record<string, string>> = {
  pending: "circle",
  queued: "clock",
  running: "half",
  completed: "check",
  failed: "cross",
  expired: "glass",
  lost: "glass",
  cancelled: "slash",
  registering: "half",
  ready: "check",
  error: "cross",
  idle: "circle",
  busy: "half",
  paused: "bars",
  draining: "clock",
  full: "cross",
  gone: "cross",
  low: "down",
  unknown: "slash",
};

const TONES: Readonly<Record<string, string>> = {
  lost: "expired",
  cancelled: "failed",
  registering: "running",
  ready: "completed",
  error: "failed",
  idle: "completed",
  busy: "running",
  paused: "queued",
  draining: "expired",
  full: "failed",
  gone: "pending",
  low: "failed",
  unknown: "expired",
};

export function Pill({ state, word = state }: { state: string; word?: string }) {
  return (
    <span class={`pill tone-${TONES[state] ?? state}`}>
      <svg class="pill-icon" data-state={state} viewBox="0 0 12 12" aria-hidden="true">
        <path d={SHAPES[ICONS[state] ?? "circle"]} />
      </svg>
      {word}
    </span>
  );
}
