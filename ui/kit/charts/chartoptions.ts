// How uPlot draws a chart: scales, axes in UTC or by steps, marks, the point that somebody is at.

import type uPlot from "uplot";
import type { Along, Series } from "./series";
import { colour } from "../page/theme";

interface Wanted {
  width: number;
  height: number;
  columns: readonly Series[];
  along: () => Along;
  breaks: () => readonly number[];
  isWhole: boolean;
  /** Called with the point at the pointer or the focus, and its place in the figure; null: none. */
  onPoint: (index: number | null, x: number, y: number) => void;
}

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000];
/** A label has minutes, so two ticks of one minute would be the same. */
const TIMES = [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, ...[1, 2, 3, 7, 14, 28, 60, 120, 365].map((days) => days * 86_400)];
const DAY = 86_400;
const HOUR = 3_600;
/** Up to this number of points are marked each; of more only points without a neighbour. */
const MARKED = 50;
const CHARACTER = 7;
const STEP = 68;

const pad = (number: number): string => String(number).padStart(2, "0");

/** The tick of a time, in UTC: the day at its beginning, else hours and minutes. */
function timeText(second: number, increment: number): string {
  const date = new Date(second * 1000);
  const day = `${date.getUTCDate()} ${date.toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
  if (increment >= DAY) return day;
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return time === "00:00" ? day : time;
}

function valueText(value: number, increment: number): string {
  const digits = Math.max(0, Math.ceil(-Math.log10(increment) - 1e-9));
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Half a step of room at both ends, so that bars are whole and a single point is in the middle. */
function rangeAlong(data: ArrayLike<number>, isTime: boolean): [number, number] {
  const [first = 0, second] = [data[0], data[1]];
  const last = data[data.length - 1] ?? first;
  const room = !isTime ? 0.5 : second === undefined ? HOUR : Math.min((second - first) / 2, DAY);
  return [first - room, last + room];
}

/** The indexes of the points that are marked. */
function marked(values: ArrayLike<number | null | undefined>): number[] {
  const has = (index: number) => values[index] !== null && values[index] !== undefined;
  const all = Array.from(values, (_, index) => index).filter(has);
  return values.length < MARKED ? all : all.filter((index) => !has(index - 1) && !has(index + 1));
}

function drawBreaks(plot: uPlot, indexes: readonly number[], stroke: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.setLineDash([4, 4]);
  for (const index of indexes) {
    const left = Math.round(plot.valToPos(plot.data[0][index] ?? 0, "x", true));
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function pointed(plot: uPlot, onPoint: Wanted["onPoint"]): void {
  const { idx, left = -1 } = plot.cursor;
  if (idx === null || idx === undefined || left < 0) return onPoint(null, 0, 0);
  const ratio = devicePixelRatio;
  onPoint(idx, plot.bbox.left / ratio + plot.valToPos(plot.data[0][idx] ?? 0, "x"), plot.bbox.top / ratio + 16);
}

function seriesOf(Plot: typeof uPlot, each: Series): uPlot.Series {
  const stroke = colour(each.colour);
  const bars = each.bars && Plot.paths.bars?.({ size: [0.7, 24] });
  const fill = each.bars ? stroke : each.fill ? stroke.replace("rgb(", "rgba(").replace(")", ", 0.15)") : "";
  return {
    label: each.label,
    stroke,
    width: each.bars ? 0 : 1.5,
    points: each.bars ? { show: false } : { show: true, size: 6, fill: stroke, filter: (plot, index) => marked(plot.data[index] ?? []) },
    ...(each.dashed ? { dash: [6, 4] } : {}),
    ...(fill ? { fill } : {}),
    ...(bars ? { paths: bars } : {}),
  };
}

/** An axis with the names of steps, as many as there is room for. */
function stepAxis(along: () => Along): Partial<uPlot.Axis> {
  const names = () => {
    const now = along();
    return "steps" in now ? now.steps : [];
  };
  return {
    splits: (plot) => {
      const every = Math.max(1, Math.ceil((names().length * STEP) / Math.max(STEP, plot.width - 60)));
      return names().flatMap((_, index) => (index % every ? [] : [index]));
    },
    values: (_, splits) => splits.map((index) => names()[index] ?? ""),
  };
}

export function optionsOf(Plot: typeof uPlot, { width, height, columns, along, breaks, isWhole, onPoint }: Wanted): uPlot.Options {
  const [muted, line] = [colour("muted"), colour("line")];
  const axis: uPlot.Axis = { stroke: muted, font: "11px system-ui", grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } };
  const isTime = "at" in along();
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    padding: [8, 16, 0, 0],
    tzDate: (second) => Plot.tzDate(new Date(second * 1000), "Etc/UTC"),
    scales: {
      x: { time: isTime, range: (plot) => rangeAlong(plot.data[0], isTime) },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    hooks: { drawAxes: [(plot) => drawBreaks(plot, breaks(), muted)], setCursor: [(plot) => pointed(plot, onPoint)] },
    axes: [
      {
        ...axis,
        size: 28,
        ...(isTime ? { incrs: TIMES, space: 60, values: (_, splits, __, ___, increment) => splits.map((second) => timeText(second, increment)) } : stepAxis(along)),
      },
      {
        ...axis,
        size: (_, values) => 16 + CHARACTER * (values ?? []).reduce((most, text) => Math.max(most, text.length), 2),
        values: (_, splits, __, ___, increment) => splits.map((value) => valueText(value, increment)),
        ...(isWhole ? { incrs: WHOLE } : {}),
      },
    ],
    series: [{}, ...columns.map((each) => seriesOf(Plot, each))],
  };
}
