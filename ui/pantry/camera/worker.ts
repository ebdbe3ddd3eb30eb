// Reads barcodes in pictures, in a separate thread: zxing-wasm, which is loaded with this file when it is first needed.

import { prepareZXingModule, readBarcodes, type ReaderOptions } from "zxing-wasm/reader";
import binary from "zxing-wasm/reader/zxing_reader.wasm?url";

/** A picture, and whether to look longer: for a photo, and now and then for a frame of the camera. */
export interface Asked {
  id: number;
  picture: ImageData;
  thorough: boolean;
}

/** The codes in a picture, each as a scanner would send it. */
export interface Found {
  id: number;
  codes: readonly string[];
  error?: string;
}

const FORMATS: ReaderOptions["formats"] = ["EAN13", "EAN8", "UPCA", "UPCE", "ITF14", "DataBar", "Code128", "DataMatrix", "QRCode"];
/** Identifiers (ISO/IEC 15424) of codes with elements of GS1, whose text has parentheses then. */
const ELEMENTS = /^\](C1|e0|d2|Q3)/;

prepareZXingModule({ overrides: { locateFile: () => binary } });

addEventListener("message", async ({ data: { id, picture, thorough } }: MessageEvent<Asked>) => {
  try {
    const found = await readBarcodes(picture, {
      formats: FORMATS,
      tryHarder: thorough,
      tryRotate: thorough,
      tryInvert: false,
      tryDownscale: thorough,
      maxNumberOfSymbols: 1,
    });
    const codes = found.map(({ symbologyIdentifier, text }) => (ELEMENTS.test(symbologyIdentifier) ? `${symbologyIdentifier}${text}` : text));
    postMessage({ id, codes } satisfies Found);
  } catch (error) {
    postMessage({ id, codes: [], error: String(error) } satisfies Found);
  }
});
