// A small line over time, with its area; the words beside it say what it shows.

interface Props {
  /** Time in milliseconds and value, oldest first. */
  points: readonly (readonly [number, number])[];
  /** The value at the top; more is drawn at the top, too. */
  most: number;
  /** Milliseconds from the left edge to the right. */
  span: number;
  until: number;
  label: string;
}

const WIDTH = 240;
const HEIGHT = 48;

export function Spark({ points, most, span, until, label }: Props) {
  const x = (at: number) => (WIDTH * (at - (until - span))) / span;
  const y = (value: number) => HEIGHT - 1 - (HEIGHT - 2) * Math.min(1, value / (most || 1));
  const shown = points.filter(([at]) => at >= until - span);
  const line = shown.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  const [first] = shown;
  const last = shown.at(-1);
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <line class="spark-base" x1="0" y1={HEIGHT - 1} x2={WIDTH} y2={HEIGHT - 1} />
      {first && last && (
        <>
          <polygon points={`${x(first[0])},${HEIGHT} ${line.join(" ")} ${x(last[0])},${HEIGHT}`} />
          <polyline points={line.join(" ")} />
        </>
      )}
    </svg>
  );
}
