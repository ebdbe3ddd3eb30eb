// A treemap: area is how much, colour is how risky. One stop of the Tab key; arrows go from tile to tile, Enter opens.

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

export interface Tile {
  key: string;
  label: string;
  /** How large; tiles of size 0 are left out. */
  size: number;
  /** A CRAP value. */
  risk: number;
  /** All that is to be said of it: shown where the pointer rests, and read. */
  about: string;
  /** Tiles of a group stand together. */
  group?: string;
}

/** Up to which CRAP value each colour goes; the last goes on. */
export const STEPS: readonly number[] = [5, 15, 30, 60];

export function riskStep(crap: number): number {
  const found = STEPS.findIndex((step) => crap <= step);
  return found < 0 ? STEPS.length + 1 : found + 1;
}

interface Props {
  label: string;
  tiles: readonly Tile[];
  height?: number;
  onOpen?: (key: string) => void;
}

interface Node {
  tile?: Tile;
  children?: Node[];
}

export function Treemap({ label, tiles, height = 220, onOpen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  const [current, setCurrent] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(120, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const leaves = useMemo(() => laidOut(tiles, width, height), [tiles, width, height]);
  const active = Math.min(current, leaves.length - 1);
  const go = (index: number) => {
    setCurrent(index);
    box.current?.querySelectorAll<SVGGElement>("g[data-tile]")[index]?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const step = steps[event.key];
    const leaf = leaves[active];
    if (step) go(Math.max(0, Math.min(leaves.length - 1, active + step)));
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(leaves.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && leaf) onOpen?.(leaf.tile.key);
    else return;
    event.preventDefault();
  };
  return (
    <div class="treemap" ref={box}>
      <svg width={width} height={height} role="group" aria-label={label} onKeyDown={keys}>
        {leaves.map(({ tile, x, y, w, h }, index) => (
          <g
            key={tile.key}
            data-tile={tile.key}
            role={onOpen ? "button" : "img"}
            tabindex={index === active ? 0 : -1}
            onClick={() => onOpen?.(tile.key)}
            onFocus={() => setCurrent(index)}
            class={`risk-${riskStep(tile.risk)}`}
          >
            <title>{`${tile.label}: ${tile.about}`}</title>
            <rect x={x} y={y} width={w} height={h} rx="3" />
            {w > 44 && h > 20 && (
              <text x={x + 6} y={y + 16} aria-hidden="true">
                {fit(tile.label, w)}
              </text>
            )}
            {w > 44 && h > 38 && (
              <text x={x + 6} y={y + 32} class="value" aria-hidden="true">
                {tile.risk.toFixed(1)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <Legend />
    </div>
  );
}

/** What the colours mean, in numbers. */
export function Legend() {
  return (
    <p class="legend">
      <span class="muted">CRAP</span>
      {[...STEPS, null].map((step, index) => (
        <span key={index}>
          <span class={`key risk-${index + 1}`} aria-hidden="true" />
          {step === null ? `over ${STEPS.at(-1)}` : `to ${step}`}
        </span>
      ))}
    </p>
  );
}

function laidOut(tiles: readonly Tile[], width: number, height: number) {
  const groups = new Map<string, Node[]>();
  for (const tile of tiles) {
    if (tile.size <= 0) continue;
    const group = groups.get(tile.group ?? "") ?? [];
    group.push({ tile });
    groups.set(tile.group ?? "", group);
  }
  const root = hierarchy<Node>({ children: [...groups.values()].map((children) => ({ children })) })
    .sum((node) => node.tile?.size ?? 0)
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const placed = treemap<Node>().size([width, height]).tile(treemapSquarify).paddingInner(2).round(true)(root);
  return placed.leaves().flatMap((leaf) =>
    leaf.data.tile ? [{ tile: leaf.data.tile, x: leaf.x0, y: leaf.y0, w: leaf.x1 - leaf.x0, h: leaf.y1 - leaf.y0 }] : [],
  );
}

const CHARACTER = 7;

function fit(text: string, width: number): string {
  const room = Math.floor((width - 12) / CHARACTER);
  return text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}…`;
}
