// A treemap: area is the amount, colour is the risky share. One stop of the Tab key; arrows go from tile to tile, Enter opens.

import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { AsTable } from "./astable";
import { ShareLegend, shareStep } from "./scale";
import { Tip, type Tipped } from "./tip";

export interface Tile {
  key: string;
  /** In the tile, and all of the name. */
  label: string;
  name: string;
  /** How large; tiles of size 0 are left out. */
  size: number;
  /** How many functions it has, and how many of them are risky. */
  functions: number;
  risky: number;
  /** More that is to be said of it: shown where the pointer is, and read. */
  about: readonly string[];
  /** Tiles of a group are adjacent. */
  group?: string;
}

interface Props {
  label: string;
  /** The kind of a tile, for the head of the table. */
  tileName: string;
  /** The things that `size` counts. */
  sizeName: string;
  tiles: readonly Tile[];
  height?: number;
  onOpen?: (key: string) => void;
}

interface Node {
  tile?: Tile;
  children?: Node[];
}

/** A tile that is smaller (pixels) has no text, and the keyboard passes it over: the table has it. */
const LEAST = 24;

const sharedText = ({ risky, functions }: Tile): string => `${risky.toLocaleString("en")} of ${functions.toLocaleString("en")}`;
const riskOf = ({ risky, functions }: Tile): string => `risk-${shareStep(risky / (functions || 1))}`;
const linesOf = (tile: Tile): string[] => [tile.name, `${sharedText(tile)} functions risky`, ...tile.about];

export function Treemap({ label, tileName, sizeName, tiles, height = 220, onOpen }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(480);
  const [current, setCurrent] = useState(0);
  const [tip, setTip] = useState<Tipped | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(120, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const placed = useMemo(() => laidOut(tiles, width, height), [tiles, width, height]);
  const leaves = useMemo(() => placed.filter(({ w, h }) => w >= LEAST && h >= LEAST), [placed]);
  const small = useMemo(() => placed.filter(({ w, h }) => w < LEAST || h < LEAST), [placed]);
  const active = Math.min(current, leaves.length - 1);
  const point = ({ tile, x, y, w, h }: (typeof leaves)[number]) => setTip({ x: x + w / 2, y: y + h / 2, lines: linesOf(tile) });
  const go = (index: number) => {
    setCurrent(index);
    box.current?.querySelectorAll<SVGGElement>("g[data-tile][tabindex]")[index]?.focus();
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
      <svg width={width} height={height} role="group" aria-label={label} onKeyDown={keys} onPointerLeave={() => setTip(null)}>
        {leaves.map((leaf, index) => (
          <g
            key={leaf.tile.key}
            data-tile={leaf.tile.key}
            role={onOpen ? "link" : "img"}
            aria-label={linesOf(leaf.tile).join(", ")}
            tabindex={index === active ? 0 : -1}
            onClick={() => onOpen?.(leaf.tile.key)}
            onFocus={() => (setCurrent(index), point(leaf))}
            onBlur={() => setTip(null)}
            onPointerEnter={() => point(leaf)}
            class={riskOf(leaf.tile)}
          >
            <rect x={leaf.x} y={leaf.y} width={leaf.w} height={leaf.h} rx="3" />
          </g>
        ))}
        {small.map((leaf) => (
          <g
            key={leaf.tile.key}
            data-tile={leaf.tile.key}
            aria-hidden="true"
            onClick={() => onOpen?.(leaf.tile.key)}
            onPointerEnter={() => point(leaf)}
            class={riskOf(leaf.tile)}
          >
            <rect x={leaf.x} y={leaf.y} width={leaf.w} height={leaf.h} rx="3" />
          </g>
        ))}
        <g aria-hidden="true" class="texts">
          {leaves.map((leaf) => (
            <Texts key={leaf.tile.key} {...leaf} />
          ))}
        </g>
      </svg>
      <Tip at={tip} width={width} />
      <ShareLegend />
      <AsTable
        caption={label}
        head={[tileName, "Risky", "Functions", sizeName]}
        rows={() => tiles.map((tile) => [tile.name, tile.risky, tile.functions, tile.size])}
        {...(onOpen ? { onOpen: (index: number) => onOpen(tiles[index]?.key ?? "") } : {})}
      />
    </div>
  );
}

interface LeafProps {
  tile: Tile;
  x: number;
  y: number;
  w: number;
  h: number;
}

/** The texts of a tile, apart from it: its name for screen readers has more. */
function Texts({ tile, x, y, w, h }: LeafProps) {
  return (
    <g class={riskOf(tile)}>
      {w > 44 && (
        <text x={x + 6} y={y + 16}>
          {fit(tile.label, w)}
        </text>
      )}
      {h > 38 && sharedText(tile).length * CHARACTER < w - 10 && (
        <text x={x + 6} y={y + 32} class="value">
          {sharedText(tile)}
        </text>
      )}
    </g>
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

const CHARACTER = 7.6;

function fit(text: string, width: number): string {
  const room = Math.floor((width - 12) / CHARACTER);
  return text.length <= room ? text : `…${text.slice(text.length - Math.max(1, room - 1))}`; // names differ at their ends
}
