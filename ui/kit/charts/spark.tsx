// A small line over time, with its area. Its values are shown at the pointer, by the arrow keys, and in a table.

import { useEffect, useRef, useState } from "preact/hooks";
import { AsTable } from "./astable";
import { Spoken, Tip } from "./tip";

interface Props {
  /** Time in milliseconds and value, oldest first. */
  points: readonly (readonly [number, number])[];
  /** The value at the top; higher values are also drawn at the top. */
  most: number;
  /** Milliseconds from the left edge to the right. */
  span: number;
  until: number;
  label: string;
  /** The unit of a value, for the tip and the table. */
  unit: string;
}

const WIDTH = 240;
const HEIGHT = 48;

const timeOf = (at: number): string => `${new Date(at).toISOString().slice(11, 19)} UTC`;

export function Spark({ points, most, span, until, label, unit }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(WIDTH);
  const [current, setCurrent] = useState<number | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const x = (at: number) => (WIDTH * (at - (until - span))) / span;
  const y = (value: number) => HEIGHT - 1 - (HEIGHT - 2) * Math.min(1, value / (most || 1));
  const shown = points.filter(([at]) => at >= until - span);
  const line = shown.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  const [first, last] = [shown[0], shown.at(-1)];
  const found = shown.find(([at]) => at === current);
  const tip = found ? { x: (x(found[0]) * width) / WIDTH, y: 0, lines: [`${found[1].toFixed(2)} ${unit}`, timeOf(found[0])] } : null;
  const pointed = (event: PointerEvent) => {
    const at = until - span + (span * (event.clientX - (box.current?.getBoundingClientRect().left ?? 0))) / (width || 1);
    const near = shown.reduce<number | null>((best, [each]) => (best === null || Math.abs(each - at) < Math.abs(best - at) ? each : best), null);
    setCurrent(near);
  };
  const keys = (event: KeyboardEvent) => {
    const index = shown.findIndex(([at]) => at === current);
    const end = shown.length - 1;
    const next = { ArrowLeft: index < 0 ? end : Math.max(0, index - 1), ArrowRight: Math.min(end, index + 1), Home: 0, End: end }[event.key];
    if (next !== undefined) setCurrent(shown[next]?.[0] ?? null);
    else if (event.key === "Escape" && found) setCurrent(null);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div
        class="plot"
        ref={box}
        role="group"
        aria-label={label}
        tabIndex={0}
        onKeyDown={keys}
        onBlur={() => setCurrent(null)}
        onPointerMove={pointed}
        onPointerLeave={() => setCurrent(null)}
      >
        <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <line class="spark-base" x1="0" y1={HEIGHT - 1} x2={WIDTH} y2={HEIGHT - 1} />
          {first && last && (
            <>
              <polygon points={`${x(first[0])},${HEIGHT} ${line.join(" ")} ${x(last[0])},${HEIGHT}`} />
              <polyline points={line.join(" ")} />
            </>
          )}
          {found && <line class="spark-at" x1={x(found[0])} y1="0" x2={x(found[0])} y2={HEIGHT} />}
        </svg>
        <Tip at={tip} width={width} />
        <Spoken at={tip} />
      </div>
      <AsTable caption={label} head={["Time", unit]} rows={() => [...shown].reverse().map(([at, value]) => [timeOf(at), value])} />
    </>
  );
}
