// Lines and bars over time, by uPlot, which is read when the first is drawn.

import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { useCell } from "./cell";
import { textOf } from "./http";
import { colour, theme } from "./theme";

export interface Series {
  label: string;
  /** A variable of the style sheet, such as `accent`. */
  colour: string;
  values: readonly (number | null)[];
  bars?: boolean;
  fill?: boolean;
  show?: (value: number) => string;
}

interface Props {
  /** What it shows, in words that say the same to somebody who does not see it. */
  label: string;
  /** Seconds since 1970, ascending. */
  at: readonly number[];
  series: readonly Series[];
  height?: number;
  /** Drawn under the lines: marks, breaks. */
  underlay?: (plot: uPlot) => void;
}

export function Chart({ label, at, series, height = 180, underlay }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [problem, setProblem] = useState("");
  const chosen = useCell(theme);
  const [dark, setDark] = useState(0);
  useEffect(() => theme.follow(() => setDark((count) => count + 1)), []);
  const shape = series.map((each) => `${each.label} ${each.colour}`).join("; ");
  const data = [at, ...series.map((each) => each.values)] as unknown as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const under = useRef(underlay);
  under.current = underlay;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let isThere = true;
    let observer: ResizeObserver | null = null;
    Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(
      ([{ default: Plot }]) => {
        if (!isThere) return;
        const made = new Plot(options(Plot, element.clientWidth, height, series, (each) => under.current?.(each)), latest.current, element);
        plot.current = made;
        observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
        observer.observe(element);
      },
      (error) => isThere && setProblem(textOf(error)),
    );
    return () => {
      isThere = false;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, height, chosen, dark]);
  useEffect(() => plot.current?.setData(data), [data]);
  if (problem) return <p class="bad">{problem}</p>;
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} style={{ minHeight: `${height}px` }} />
      <figcaption>
        {series.map((each) => (
          <span key={each.label}>
            <span class="key" style={{ background: `var(--${each.colour})` }} aria-hidden="true" />
            {each.label}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000];

const isWhole = (series: readonly Series[]): boolean => series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));

function room(at: ArrayLike<number>): number {
  const [first, second] = [at[0], at[1]];
  return first !== undefined && second !== undefined ? (second - first) / 2 : 0;
}

function options(
  Plot: typeof uPlot,
  width: number,
  height: number,
  series: readonly Series[],
  under: (plot: uPlot) => void,
): uPlot.Options {
  const muted = colour("muted");
  const line = colour("line");
  const axis: uPlot.Axis = { stroke: muted, font: "11px system-ui", grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } };
  const pad = (number: number) => String(number).padStart(2, "0");
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    padding: [8, 8, 0, 0],
    scales: {
      // half a step of room at both ends, so that bars are whole
      x: { range: (plot, from, to) => (room(plot.data[0]) ? [from - room(plot.data[0]), to + room(plot.data[0])] : [from, to]) },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    hooks: { drawAxes: [under] },
    axes: [
      {
        ...axis,
        size: 28,
        values: (_, splits, __, ___, increment) =>
          splits.map((second) => {
            const date = new Date(second * 1000);
            if (increment >= 86_400) return `${date.getDate()} ${date.toLocaleString("en", { month: "short" })}`;
            return `${pad(date.getHours())}:${pad(date.getMinutes())}`;
          }),
      },
      { ...axis, size: 40, ...(isWhole(series) ? { incrs: WHOLE } : {}) },
    ],
    series: [
      {},
      ...series.map((each): uPlot.Series => {
        const stroke = colour(each.colour);
        const bars = each.bars && Plot.paths.bars?.({ size: [0.7, 24] });
        const fill = each.bars || each.fill ? stroke.replace("rgb(", "rgba(").replace(")", each.bars ? ", 0.7)" : ", 0.15)") : "";
        return {
          label: each.label,
          stroke,
          width: each.bars ? 0 : 1.5,
          points: { show: false },
          ...(fill ? { fill } : {}),
          ...(bars ? { paths: bars } : {}),
        };
      }),
    ],
  };
}
