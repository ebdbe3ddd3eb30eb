// Lines and bars over time or from step to step, by uPlot, which is read when the first is drawn. The values of a point are shown
// at the pointer, and by the arrow keys.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { AsTable } from "./astable";
import { useCell } from "../data/cell";
import { optionsOf } from "./chartoptions";
import type { Along, Series } from "./series";
import { textOf } from "../data/http";
import { theme } from "../page/theme";
import { Spoken, Tip, type Tipped } from "./tip";

interface Props {
  /** The content in words, for readers who do not see it. */
  label: string;
  along: Along;
  /** The name of a point in the tip and the table, by its index. */
  nameOf: (index: number) => string;
  /** The kind of names of `nameOf`, for the head of the table. */
  pointName: string;
  series: readonly Series[];
  height?: number;
  /** Indexes at which a dashed line is drawn. */
  breaks?: readonly number[];
  /** A note below the axis. */
  note?: string;
  onPick?: (index: number) => void;
}

const shownOf = (series: Series, value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : (series.show?.(value) ?? value.toLocaleString("en", { maximumFractionDigits: 2 }));

/** The columns that are drawn: bars as sums, the highest first, so that each is stacked on the bars before; then the lines. */
function columnsOf(series: readonly Series[]): { series: Series; values: readonly (number | null)[] }[] {
  const bars = series.filter((each) => each.bars);
  const sums = bars.map((each, last) => ({
    series: each,
    values: each.values.map((_, index) => bars.slice(0, last + 1).reduce((sum, one) => sum + (one.values[index] ?? 0), 0)),
  }));
  return [...sums.reverse(), ...series.filter((each) => !each.bars).map((each) => ({ series: each, values: each.values }))];
}

const placesOf = (along: Along): readonly number[] => ("at" in along ? along.at : along.steps.map((_, index) => index));

export function Chart({ label, along, nameOf, pointName, series, height = 180, breaks = [], note, onPick }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [problem, setProblem] = useState("");
  const [tip, setTip] = useState<{ index: number; x: number; y: number } | null>(null);
  const chosen = useCell(theme);
  const [dark, setDark] = useState(0);
  useEffect(() => theme.follow(() => setDark((count) => count + 1)), []);
  const columns = useMemo(() => columnsOf(series), [series]);
  const places = placesOf(along);
  const shape = columns.map(({ series: each }) => `${each.label} ${each.colour}`).join("; ") + ("at" in along);
  const data = useMemo(() => [places, ...columns.map(({ values }) => values)] as unknown as uPlot.AlignedData, [columns, along]);
  const latest = useRef({ data, along, breaks });
  latest.current = { data, along, breaks };
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let isThere = true;
    let observer: ResizeObserver | null = null;
    Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]).then(
      ([{ default: Plot }]) => {
        if (!isThere) return;
        const options = optionsOf(Plot, {
          width: element.clientWidth,
          height,
          columns: columns.map((column) => column.series),
          along: () => latest.current.along,
          breaks: () => latest.current.breaks,
          isWhole: columns.every(({ values }) => values.every((value) => value === null || Number.isInteger(value))),
          onPoint: (index, x, y) => setTip(index === null ? null : { index, x, y }),
        });
        const made = new Plot(options, latest.current.data, element);
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
  const keys = (event: KeyboardEvent) => {
    const last = places.length - 1;
    const at = tip?.index ?? (event.key === "ArrowLeft" ? last + 1 : -1);
    const next = { ArrowRight: Math.min(last, at + 1), ArrowLeft: Math.max(0, at - 1), Home: 0, End: last }[event.key];
    if (next !== undefined) {
      const left = plot.current?.valToPos(places[next] ?? 0, "x") ?? 0;
      plot.current?.setCursor({ left, top: 0 });
    } else if (event.key === "Enter" && tip && onPick) onPick(tip.index);
    else if (event.key === "Escape" && tip) plot.current?.setCursor({ left: -10, top: -10 });
    else return;
    event.preventDefault();
  };
  if (problem) return <p class="bad">{problem}</p>;
  const said: Tipped | null = tip && {
    x: tip.x,
    y: tip.y,
    lines: [nameOf(tip.index), ...series.flatMap((each) => (each.values[tip.index] === null && series.length > 2 ? [] : [`${each.label}: ${shownOf(each, each.values[tip.index])}`]))],
  };
  return (
    <figure class="chart">
      <div
        class={`plot${onPick ? " picks" : ""}`}
        role="group"
        aria-label={`${label} The arrow keys go from point to point.`}
        tabIndex={0}
        onKeyDown={keys}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
        onClick={() => tip && onPick?.(tip.index)}
      >
        <div ref={box} style={{ minHeight: `${height}px` }} />
        <Tip at={said} width={box.current?.clientWidth ?? 0} />
        <Spoken at={said} />
      </div>
      <figcaption>
        {series.map((each) => (
          <span key={each.label}>
            <span class={`key${each.dashed ? " dashed" : ""}`} style={{ "--key": `var(--${each.colour})` }} aria-hidden="true" />
            {each.label}
          </span>
        ))}
        {note && <span class="note">{note}</span>}
      </figcaption>
      <AsTable
        caption={label}
        head={[pointName, ...series.map((each) => each.label)]}
        rows={() => places.map((_, index) => [nameOf(index), ...series.map((each) => shownOf(each, each.values[index]))])}
      />
    </figure>
  );
}
