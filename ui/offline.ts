// The kitchen's page as an app: its manifest, its icons, and the list of files that the service worker keeps.

import type { Plugin } from "vite";

/** The name of the service worker's script, without its ending. */
export const WORKER = "sw";

const COLOR = "#1f5fd6";
const MANIFEST = {
  id: "./",
  name: "Pantry",
  short_name: "Pantry",
  description: "The stock of the pantry: scan, book in and out, see what is low.",
  start_url: "./",
  scope: "./",
  display: "standalone",
  background_color: COLOR,
  theme_color: COLOR,
  icons: [
    { src: "icon-192.png", sizes: "192x192", type: "image/png" },
    { src: "icon-512.png", sizes: "512x512", type: "image/png" },
    { src: "icon-mask.png", sizes: "512x512", type: "image/png", purpose: "maskable" },
    { src: "icon.svg", sizes: "any", type: "image/svg+xml" },
  ],
};
/** A jar: rectangles of a square of 32, from left, top, right and bottom, with their colour. */
const SHAPES = [
  [9, 6, 23, 9, 0xff_ff_ff],
  [8, 10, 24, 26, 0xff_ff_ff],
  [11, 15, 21, 22, 0xf6_cf_9f],
] as const;
/** Files that are loaded when they are needed are kept then. */
const LATER = /\.(txt|wasm)$/;

/** Write manifest and icons, and the list of files into the service worker. */
export function offline(): Plugin {
  return {
    name: "pantry-offline",
    enforce: "post",
    transformIndexHtml: {
      order: "post",
      handler: () => [
        { tag: "link", attrs: { rel: "icon", href: "./icon.svg" } },
        { tag: "link", attrs: { rel: "manifest", href: "./manifest.webmanifest" } },
        { tag: "link", attrs: { rel: "apple-touch-icon", href: "./icon-192.png" } },
        { tag: "meta", attrs: { name: "theme-color", content: COLOR } },
      ],
    },
    generateBundle: {
      order: "post",
      async handler(_options, bundle) {
        const added: Record<string, string | Uint8Array> = {
          "manifest.webmanifest": JSON.stringify(MANIFEST),
          "icon.svg": svg(),
          "icon-192.png": await png(192, 0),
          "icon-512.png": await png(512, 0),
          "icon-mask.png": await png(512, 4), // a phone cuts off the edges of an icon
        };
        for (const [fileName, source] of Object.entries(added)) this.emitFile({ type: "asset", fileName, source });
        const script = bundle[`${WORKER}.js`];
        if (script?.type !== "chunk") throw new Error("the service worker was not built");
        const files = [...Object.keys(bundle), ...Object.keys(added)];
        const kept = files.filter((name) => name !== script.fileName && name !== "index.html" && !LATER.test(name)).sort();
        const contents = Object.values(bundle).map((file) => (file.type === "chunk" ? file.code : file.source));
        script.code = script.code
          .replaceAll("__FILES__", JSON.stringify([...new Set(kept)]))
          .replaceAll("__VERSION__", JSON.stringify(await digest(contents.map(String).join())));
      },
    },
  };
}

async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return hex(bytes).slice(0, 16);
}

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function svg(): string {
  const shapes = SHAPES.map(([left, top, right, bottom, color]) => {
    const fill = `#${color.toString(16).padStart(6, "0")}`;
    return `<rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" rx="1" fill="${fill}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="${COLOR}"/>${shapes.join("")}</svg>`;
}

/** The same as PNG (ISO/IEC 15948), with a margin in units of the drawing. */
async function png(size: number, margin: number): Promise<Uint8Array> {
  const unit = size / (32 + 2 * margin);
  const rows = new Uint8Array(size * (1 + 3 * size));
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      const [across, down] = [x / unit - margin, y / unit - margin];
      const shape = SHAPES.findLast(([left, top, right, bottom]) => across >= left && across < right && down >= top && down < bottom);
      const color = shape?.[4] ?? Number.parseInt(COLOR.slice(1), 16);
      rows.set([color >> 16, (color >> 8) & 0xff, color & 0xff], y * (1 + 3 * size) + 1 + 3 * x);
    }
  }
  const header = new Uint8Array(13);
  new DataView(header.buffer).setUint32(0, size);
  new DataView(header.buffer).setUint32(4, size);
  header.set([8, 2, 0, 0, 0], 8); // 8 bits, RGB
  const packed = new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream("deflate")));
  const parts = [part("IHDR", header), part("IDAT", new Uint8Array(await packed.arrayBuffer())), part("IEND", new Uint8Array())];
  return Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...parts.flatMap((each) => [...each])]);
}

function part(name: string, body: Uint8Array): Uint8Array {
  const found = new Uint8Array(body.length + 12);
  const view = new DataView(found.buffer);
  view.setUint32(0, body.length);
  found.set(new TextEncoder().encode(name), 4);
  found.set(body, 8);
  view.setUint32(body.length + 8, crc(found.subarray(4, body.length + 8)));
  return found;
}

/** The check sum of a part of a PNG (ISO/IEC 15948, annex D). */
function crc(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
