// Complexity against coverage: where the functions are, the curves of equal CRAP values, and a frame that chooses some of them.
// A mouse draws the frame at once; a finger scrolls the page until "Select an area" is chosen.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { AsTable } from "../../kit/charts/astable";
import { ValueLegend, valueStep } from "../../kit/charts/scale";
import { Spoken, Tip } from "../../kit/charts/tip";
import { go } from "../../kit/page/router";
import { count, plural } from "../data/names";
import { isMeasured, isRisky } from "../data/risky";
import type { FunctionEntry } from "../data/types";
import { BOTTOM, circles, dotsOf, type Dot, HEIGHT, LEFT, linesOf, nearest, type Point, RIGHT, radiusOf, type Scales, scales, TOP } from "./dots";
import type { Range } from "./risk";

interface Props {
  /** Functions that were not measured have no place, and are left out. */
  entries: readonly FunctionEntry[];
  threshold: number;
  complexity: Range | null;
  coverage: Range | null;
  onChoose: (complexity: Range | null, coverage: Range | null) => void;
  /** The address of a function's page. */
  at: (entry: FunctionEntry) => string;
}

const NEAR = 12;
const FINGER = 24;

export function Scatter({ entries: all, threshold, complexity, coverage, onChoose, at: pageOf }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [drawn, setDrawn] = useState<readonly [Point, Point] | null>(null);
  const [current, setCurrent] = useState<Dot | null>(null);
  const [selecting, setSelecting] = useState(false);
  const wasDrawn = useRef(false);
  const entries = useMemo(() => all.filter(isMeasured), [all]);
  const dots = useMemo(() => dotsOf(entries), [entries]);
  const most = useMemo(() => dots.reduce((largest, dot) => Math.max(largest, dot.cyclomatic), 10), [dots]);
  const at = useMemo(() => scales(width, most), [width, most]);
  const paths = useMemo(() => [1, 2, 3, 4, 5].map((step) => circles(dots.filter((dot) => valueStep(dot.crap, threshold) === step), at)), [dots, at, threshold]);
  const risky = useMemo(() => entries.filter((entry) => isRisky(entry, threshold)).length, [entries, threshold]);
  useEffect(() => setCurrent(null), [dots]);
  const place = (event: PointerEvent | MouseEvent): Point => {
    const rect = (event.currentTarget as Element).getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  /** A dot of one function opens its page, a dot of several shows them in the table. */
  const open = (dot: Dot) => {
    const [first, ...others] = dot.entries;
    if (first && others.length === 0) go(pageOf(first));
    else choose(dot);
  };
  const choose = (dot: Dot) => onChoose([dot.cyclomatic, dot.cyclomatic], [Math.max(0, dot.coverage - 0.5), Math.min(100, dot.coverage + 0.5)]);
  const frameEnds = () => {
    if (!drawn) return;
    const { left, top, right, bottom } = cornersOf(drawn);
    setDrawn(null);
    wasDrawn.current = right - left >= 4 || bottom - top >= 4;
    if (!wasDrawn.current) return; // no frame: the click says the rest
    setSelecting(false);
    const least = Math.max(1, Math.ceil(at.cyclomatic(bottom)));
    onChoose([least, Math.max(least, Math.floor(at.cyclomatic(top)))], [Math.round(at.covered(left)), Math.round(at.covered(right))]);
  };
  const pressed = (event: PointerEvent) => {
    if (event.pointerType === "touch" && !selecting) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    setDrawn([place(event), place(event)]);
  };
  const moved = (event: PointerEvent) => {
    if (drawn) setDrawn([drawn[0], place(event)]);
    else if (event.pointerType !== "touch") setCurrent(nearest(dots, place(event), at, NEAR));
  };
  /** A mouse chooses the dot at once; a finger first sees its names. */
  const clicked = (event: MouseEvent) => {
    if (wasDrawn.current) {
      wasDrawn.current = false;
      return;
    }
    const isFinger = (event as PointerEvent).pointerType === "touch";
    const found = nearest(dots, place(event), at, isFinger ? FINGER : NEAR);
    setCurrent(found);
    if (found && (!isFinger || found === current)) open(found);
    else if (!found && !selecting && (complexity || coverage)) onChoose(null, null);
  };
  const keys = (event: KeyboardEvent) => {
    const index = current ? dots.indexOf(current) : dots.length;
    const next = { ArrowRight: index - 1, ArrowDown: index - 1, ArrowLeft: index + 1, ArrowUp: index + 1, Home: dots.length - 1, End: 0 }[event.key];
    if (next !== undefined) setCurrent(dots[Math.max(0, Math.min(dots.length - 1, next))] ?? null);
    else if (event.key === "Enter" && current) open(current);
    else if (event.key === "Escape" && current) setCurrent(null);
    else return;
    event.preventDefault();
  };
  const frame = drawn ? cornersOf(drawn) : complexity || coverage ? frameOf(complexity ?? [1, most], coverage ?? [0, 100], at) : null;
  const tip = current && !drawn ? { x: at.x(current.coverage), y: at.y(current.cyclomatic), lines: linesOf(current) } : null;
  const said = `${plural(entries.length, "function")} by complexity and coverage, ${count(risky)} of them risky. The arrow keys go from function to function, the highest CRAP value first; Enter opens it.`;
  return (
    <div class={`scatter${selecting ? " selecting" : ""}`} ref={box}>
      <div class="plot" role="group" aria-label={said} tabIndex={0} onKeyDown={keys} onBlur={() => setCurrent(null)}>
        <svg
          width={width}
          height={HEIGHT}
          aria-hidden="true"
          onPointerDown={pressed}
          onPointerMove={moved}
          onPointerUp={frameEnds}
          onPointerCancel={() => setDrawn(null)}
          onPointerLeave={(event) => event.pointerType !== "touch" && setCurrent(null)}
          onClick={clicked}
        >
          <Axes at={at} width={width} most={most} />
          {paths.map((path, index) => (
            <path key={index} class={`dots dots-${index + 1}`} d={path} />
          ))}
          {[...new Set([8, threshold, 100])].map((crap) => (
            <Curve key={crap} crap={crap} isThreshold={crap === threshold} most={most} at={at} />
          ))}
          {current && <circle class="ring" cx={at.x(current.coverage)} cy={at.y(current.cyclomatic)} r={radiusOf(current) + 3} />}
          {frame && <rect class="frame" x={frame.left} y={frame.top} width={frame.right - frame.left} height={frame.bottom - frame.top} />}
        </svg>
        <Tip at={tip} width={width} />
        <Spoken at={tip} />
      </div>
      <div class="line">
        <ValueLegend threshold={threshold} />
        <button type="button" class="small touch-only" aria-pressed={selecting} onClick={() => setSelecting(!selecting)}>
          {selecting ? "Draw the area with a finger" : "Select an area"}
        </button>
      </div>
      <AsTable
        caption={`${plural(entries.length, "function")} by complexity and coverage, the highest CRAP value first`}
        head={["Functions", "Complexity", "Coverage, %", "Highest CRAP"]}
        rows={() => [...dots].reverse().map((dot) => [namesOf(dot), dot.cyclomatic, dot.coverage, dot.crap])}
        onOpen={(index) => {
          const dot = dots[dots.length - 1 - index];
          if (dot) open(dot);
        }}
      />
    </div>
  );
}

const namesOf = ({ entries: [first, ...others] }: Dot): string => (others.length ? `${first?.function ?? ""} and ${count(others.length)} more` : (first?.function ?? ""));

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(480);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
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
            <text x={LEFT - 14} y={at.y(tick) + 4} text-anchor="end">
              {tick}
            </text>
          </g>
        ))}
      <text class="name" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">
        coverage
      </text>
      <text class="name" x={4} y={TOP - 8}>
        complexity
      </text>
    </g>
  );
}

/** Where complexity and coverage give one CRAP value. */
function Curve({ crap, isThreshold, most, at }: { crap: number; isThreshold: boolean; most: number; at: Scales }) {
  const least = (Math.sqrt(1 + 4 * crap) - 1) / 2; // without coverage the value is c * c + c
  const highest = Math.min(crap, most * 1.3);
  const points = Array.from({ length: 61 }, (_, step): Point => {
    const cyclomatic = least + ((highest - least) * step) / 60;
    const covered = 100 * (1 - Math.cbrt((crap - cyclomatic) / cyclomatic ** 2));
    return [at.x(Math.max(0, Math.min(100, covered))), at.y(cyclomatic)];
  });
  const [left, top] = points[6] ?? [0, 0];
  return highest <= least ? null : (
    <g class={isThreshold ? "iso limit" : "iso"}>
      <path d={points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")} />
      <text x={left + 4} y={Math.max(TOP + 10, top - 8)}>
        CRAP {crap}
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
