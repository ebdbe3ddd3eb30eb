// Complexity against coverage: where the functions are, the curves of equal CRAP values, and a frame that chooses some of them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { riskStep } from "../../kit/treemap";
import { count } from "../names";
import type { FunctionEntry } from "../types";
import type { Range } from "./risk";

interface Props {
  entries: readonly FunctionEntry[];
  threshold: number;
  complexity: Range | null;
  coverage: Range | null;
  onChoose: (complexity: Range | null, coverage: Range | null) => void;
}

const LEFT = 36;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 32;
const HEIGHT = 300;
const LEAST = 0.8;

interface Dot {
  cyclomatic: number;
  coverage: number;
  count: number;
  crap: number;
}

/** Functions at the same place are one dot, the larger the more they are. */
function dotsOf(entries: readonly FunctionEntry[]): Dot[] {
  const dots = new Map<string, Dot>();
  for (const { cyclomatic, coverage, crap } of entries) {
    const covered = Math.round(coverage ?? 0);
    const key = `${cyclomatic} ${covered}`;
    const dot = dots.get(key);
    if (dot) dot.count += 1;
    else dots.set(key, { cyclomatic, coverage: covered, count: 1, crap });
  }
  return [...dots.values()].sort((a, b) => b.count - a.count);
}

/** From values to places and back. Complexity goes by its logarithm: most functions are simple, the others are looked for. */
function scales(width: number, most: number) {
  const span = width - LEFT - RIGHT;
  const rise = (HEIGHT - TOP - BOTTOM) / Math.log((most * 1.3) / LEAST);
  return {
    x: (covered: number) => LEFT + (span * covered) / 100,
    y: (cyclomatic: number) => HEIGHT - BOTTOM - rise * Math.log(Math.max(cyclomatic, LEAST) / LEAST),
    covered: (place: number) => Math.max(0, Math.min(100, (100 * (place - LEFT)) / span)),
    cyclomatic: (place: number) => LEAST * Math.exp((HEIGHT - BOTTOM - place) / rise),
  };
}

type Scales = ReturnType<typeof scales>;
type Point = readonly [number, number];

export function Scatter({ entries, threshold, complexity, coverage, onChoose }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  const [drawn, setDrawn] = useState<readonly [Point, Point] | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const dots = useMemo(() => dotsOf(entries), [entries]);
  const most = useMemo(() => dots.reduce((largest, dot) => Math.max(largest, dot.cyclomatic), 10), [dots]);
  const at = useMemo(() => scales(width, most), [width, most]);
  const paths = useMemo(() => [1, 2, 3, 4, 5].map((step) => circles(dots.filter((dot) => riskStep(dot.crap) === step), at)), [dots, at]);
  const risky = useMemo(() => entries.filter((entry) => entry.crap > threshold).length, [entries, threshold]);
  const place = (event: PointerEvent): Point => {
    const rect = (event.currentTarget as Element).getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  const done = () => {
    if (!drawn) return;
    const { left, top, right, bottom } = cornersOf(drawn);
    setDrawn(null);
    if (right - left < 4 && bottom - top < 4) return onChoose(null, null);
    const least = Math.max(1, Math.ceil(at.cyclomatic(bottom)));
    onChoose([least, Math.max(least, Math.floor(at.cyclomatic(top)))], [Math.round(at.covered(left)), Math.round(at.covered(right))]);
  };
  const frame = drawn ? cornersOf(drawn) : complexity || coverage ? frameOf(complexity ?? [1, most], coverage ?? [0, 100], at) : null;
  return (
    <div class="scatter" ref={box}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-label={`${count(entries.length)} functions by complexity and coverage, ${count(risky)} above the curve of ${threshold}. The fields below choose what the table shows.`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrawn([place(event), place(event)]);
        }}
        onPointerMove={(event) => drawn && setDrawn([drawn[0], place(event)])}
        onPointerUp={done}
        onPointerCancel={() => setDrawn(null)}
      >
        <Axes at={at} width={width} most={most} />
        {paths.map((path, index) => (
          <path key={index} class={`dots dots-${index + 1}`} d={path} />
        ))}
        {[...new Set([8, threshold, 100])].map((crap) => (
          <Curve key={crap} crap={crap} isLimit={crap === threshold} most={most} at={at} />
        ))}
        {frame && <rect class="frame" x={frame.left} y={frame.top} width={frame.right - frame.left} height={frame.bottom - frame.top} />}
      </svg>
    </div>
  );
}

function Axes({ at, width, most }: { at: Scales; width: number; most: number }) {
  return (
    <g class="axes">
      {[0, 25, 50, 75, 100].map((tick) => (
        <g key={tick}>
          <line x1={at.x(tick)} x2={at.x(tick)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text x={at.x(tick)} y={HEIGHT - BOTTOM + 14} text-anchor={tick === 100 ? "end" : "middle"}>
            {tick} %
          </text>
        </g>
      ))}
      {[1, 2, 5, 10, 20, 50, 100, 200, 500]
        .filter((tick) => tick <= most * 1.3)
        .map((tick) => (
          <g key={tick}>
            <line x1={LEFT} x2={width - RIGHT} y1={at.y(tick)} y2={at.y(tick)} />
            <text x={LEFT - 6} y={at.y(tick) + 4} text-anchor="end">
              {tick}
            </text>
          </g>
        ))}
      <text class="name" x={width - RIGHT} y={HEIGHT - 4} text-anchor="end">
        coverage
      </text>
      <text class="name" x={width - RIGHT} y={TOP - 2} text-anchor="end">
        complexity upwards
      </text>
    </g>
  );
}

/** Where complexity and coverage give one CRAP value. */
function Curve({ crap, isLimit, most, at }: { crap: number; isLimit: boolean; most: number; at: Scales }) {
  const least = (Math.sqrt(1 + 4 * crap) - 1) / 2; // without coverage the value is c * c + c
  const highest = Math.min(crap, most * 1.3);
  const points = Array.from({ length: 61 }, (_, step): Point => {
    const cyclomatic = least + ((highest - least) * step) / 60;
    const covered = 100 * (1 - Math.cbrt((crap - cyclomatic) / cyclomatic ** 2));
    return [at.x(Math.max(0, Math.min(100, covered))), at.y(cyclomatic)];
  });
  const [left, top] = points[6] ?? [0, 0];
  return highest <= least ? null : (
    <g class={isLimit ? "iso limit" : "iso"}>
      <path d={points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")} />
      <text x={left + 4} y={Math.max(TOP + 10, top - 5)}>
        {crap}
      </text>
    </g>
  );
}

function cornersOf([one, other]: readonly [Point, Point]) {
  return { left: Math.min(one[0], other[0]), right: Math.max(one[0], other[0]), top: Math.min(one[1], other[1]), bottom: Math.max(one[1], other[1]) };
}

function frameOf(complexity: Range, coverage: Range, at: Scales) {
  return { left: at.x(coverage[0]) - 3, right: at.x(coverage[1]) + 3, top: Math.max(0, at.y(complexity[1] + 0.49)), bottom: at.y(complexity[0] - 0.2) };
}

function circles(dots: readonly Dot[], at: Scales): string {
  return dots
    .map(({ cyclomatic, coverage, count: times }) => {
      const radius = Math.min(9, 3 + Math.log2(times));
      const left = (at.x(coverage) - radius).toFixed(1);
      return `M${left} ${at.y(cyclomatic).toFixed(1)}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
    })
    .join("");
}
