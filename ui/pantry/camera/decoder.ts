// Barcodes in pictures: by the decoder in its thread, one picture at a time.

import type { Asked, Found } from "./worker";

/** Pixels of the longer side of a photo: more take longer, and are read no better. */
const LONGEST = 1600;

/** A script of the build, next to the page (ui/vite.config.ts). */
const DECODER = "./decoder.js";

const waiting = new Map<number, (found: Found) => void>();
let worker: Worker | null = null;
let count = 0;

function started(): Worker {
  if (worker) return worker;
  worker = new Worker(DECODER, { type: "module" });
  worker.addEventListener("message", ({ data }: MessageEvent<Found>) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  });
  worker.addEventListener("error", (event) => {
    for (const [id, answer] of waiting) answer({ id, codes: [], error: event.message || "the decoder cannot be loaded: it needs the network once" });
    waiting.clear();
    worker = null;
  });
  return worker;
}

/** The codes in a picture. Raises Error if the decoder cannot be loaded. */
export async function codesIn(picture: ImageData, thorough: boolean): Promise<readonly string[]> {
  count += 1;
  const asked: Asked = { id: count, picture, thorough };
  const found = await new Promise<Found>((answer) => {
    waiting.set(asked.id, answer);
    started().postMessage(asked, [picture.data.buffer]);
  });
  if (found.error) throw new Error(`No barcode can be read here: ${found.error}`);
  return found.codes;
}

/** The pixels of a picture or of a frame of the camera; `band`: only the middle of its height: people hold a code there. */
export function pixelsOf(source: ImageBitmap | HTMLVideoElement, band: number, longest = LONGEST): ImageData {
  const [wide, high] = source instanceof ImageBitmap ? [source.width, source.height] : [source.videoWidth, source.videoHeight];
  const scale = Math.min(1, longest / Math.max(wide, high));
  const top = (high * (1 - band)) / 2;
  const canvas = new OffscreenCanvas(Math.round(wide * scale), Math.round(high * band * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new Error("This browser cannot read the pixels of a picture.");
  context.drawImage(source, 0, top, wide, high * band, 0, 0, canvas.width, canvas.height);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

/** The code on a photo, or null. */
export async function codeOnPhoto(photo: Blob): Promise<string | null> {
  const bitmap = await createImageBitmap(photo);
  try {
    const [code] = await codesIn(pixelsOf(bitmap, 1), true);
    return code ?? null;
  } finally {
    bitmap.close();
  }
}
