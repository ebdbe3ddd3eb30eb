// Codes by the camera, where the browser reads barcodes and gives the camera: on secure origins only.

import { useEffect, useRef } from "preact/hooks";

/** A part of the Shape Detection API, which not every browser has. */
interface Detector {
  detect(source: HTMLVideoElement): Promise<{ rawValue: string }[]>;
}

declare global {
  var BarcodeDetector: (new (options: { formats: string[] }) => Detector) | undefined;
}

const FORMATS = ["ean_13", "upc_a"];
const EVERY = 150;

export const hasCamera = (): boolean => Boolean(globalThis.BarcodeDetector && navigator.mediaDevices?.getUserMedia);

interface Props {
  onCode: (digits: string) => void;
  onProblem: (error: unknown) => void;
  close: () => void;
}

export function Camera({ onCode, onProblem, close }: Props) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    const stop = new AbortController();
    read(video.current, stop.signal)
      .then(
        (digits) => digits && onCode(digits),
        (error) => stop.signal.aborted || onProblem(error),
      )
      .finally(() => stop.signal.aborted || close());
    return () => stop.abort();
  }, []);
  return (
    <div class="viewfinder">
      <video ref={video} muted playsInline aria-label="Camera picture" />
      <button type="button" onClick={close}>
        Close camera
      </button>
    </div>
  );
}

/** The first code that is seen; null if it is stopped before. */
async function read(video: HTMLVideoElement | null, stop: AbortSignal): Promise<string | null> {
  const Detector = globalThis.BarcodeDetector;
  if (!video || !Detector) return null;
  const detector = new Detector({ formats: FORMATS });
  const picture = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  try {
    video.srcObject = picture;
    await video.play();
    while (!stop.aborted) {
      const [found] = await detector.detect(video);
      if (found) return found.rawValue;
      await new Promise((done) => setTimeout(done, EVERY));
    }
    return null;
  } finally {
    for (const track of picture.getTracks()) track.stop();
    video.srcObject = null;
  }
}
