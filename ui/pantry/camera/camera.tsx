// Codes by the camera. A secure page sees what the camera sees; any page takes a photo.

import { useEffect, useRef, useState } from "preact/hooks";
import { codeOnPhoto, codesIn, pixelsOf } from "./decoder";

/** A part of the Shape Detection API, which not every browser has. */
interface Detector {
  detect(source: HTMLVideoElement): Promise<{ rawValue: string }[]>;
}

interface DetectorClass {
  new (options: { formats: string[] }): Detector;
  getSupportedFormats?(): Promise<string[]>;
}

declare global {
  var BarcodeDetector: DetectorClass | undefined;
}

type Reader = (video: HTMLVideoElement) => Promise<string | undefined>;

const FORMATS = ["ean_13", "ean_8", "upc_a", "upc_e", "itf"];
const EVERY = 60;
/** Every tenth frame is looked at for longer: it finds codes that are turned or blurred. */
const THOROUGH = 10;
const BAND = 0.6;
const FRAME = 960;
const BUZZ = 60;

export const hasCamera = (): boolean => Boolean(navigator.mediaDevices?.getUserMedia);

interface Props {
  onCode: (code: string) => void;
  onProblem: (error: unknown) => void;
  close: () => void;
}

export function Camera({ onCode, onProblem, close }: Props) {
  const video = useRef<HTMLVideoElement>(null);
  const [track, setTrack] = useState<MediaStreamTrack | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    read(video.current, stop.signal, setTrack)
      .then(
        (code) => {
          if (!code) return;
          navigator.vibrate?.(BUZZ);
          onCode(code);
        },
        (error) => stop.signal.aborted || onProblem(error),
      )
      .finally(() => stop.signal.aborted || close());
    return () => stop.abort();
  }, []);
  return (
    <div class="viewfinder">
      <video ref={video} muted playsInline aria-label="Camera picture" />
      <div class="line">
        <button type="button" onClick={close}>
          Close camera
        </button>
        {track && <Torch track={track} />}
      </div>
    </div>
  );
}

function Torch({ track }: { track: MediaStreamTrack }) {
  const [isOn, setOn] = useState(false);
  if (!(track.getCapabilities?.() as { torch?: boolean } | undefined)?.torch) return null;
  const turn = () => {
    void track.applyConstraints({ advanced: [{ torch: !isOn } as MediaTrackConstraintSet] }).then(() => setOn(!isOn));
  };
  return (
    <button type="button" aria-pressed={isOn} onClick={turn}>
      Light
    </button>
  );
}

/** The first code that is seen in two frames, null if it is stopped before. */
async function read(video: HTMLVideoElement | null, stop: AbortSignal, started: (track: MediaStreamTrack | null) => void): Promise<string | null> {
  if (!video) return null;
  const picture = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1280 } } });
  try {
    video.srcObject = picture;
    await video.play();
    started(picture.getVideoTracks()[0] ?? null);
    const reader = await readerOf();
    let before: string | undefined;
    while (!stop.aborted) {
      const code = await reader(video);
      if (code && code === before) return code;
      before = code ?? before;
      await new Promise((done) => setTimeout(done, EVERY));
    }
    return null;
  } finally {
    for (const track of picture.getTracks()) track.stop();
    video.srcObject = null;
  }
}

/** The browser's own reader if it reads all that we need, else ours. */
async function readerOf(): Promise<Reader> {
  const Own = globalThis.BarcodeDetector;
  const formats = (await Own?.getSupportedFormats?.().catch(() => [])) ?? [];
  if (Own && FORMATS.every((format) => formats.includes(format))) {
    const detector = new Own({ formats: FORMATS });
    return async (video) => (await detector.detect(video))[0]?.rawValue;
  }
  let frame = 0;
  return async (video) => {
    frame += 1;
    const isThorough = frame % THOROUGH === 0;
    return (await codesIn(pixelsOf(video, isThorough ? 1 : BAND, FRAME), isThorough))[0];
  };
}

/** Take a photo, or choose one: this needs no secure page. */
export function Photo({ onCode, onProblem }: Omit<Props, "close">) {
  const input = useRef<HTMLInputElement>(null);
  const [isReading, setReading] = useState(false);
  const take = async (input: HTMLInputElement) => {
    const [photo] = input.files ?? [];
    input.value = "";
    if (!photo) return;
    setReading(true);
    try {
      const code = await codeOnPhoto(photo);
      if (code) onCode(code);
      else onProblem(new Error("No barcode was found on the photo. Hold the camera closer, and the code straight."));
    } catch (error) {
      onProblem(error);
    } finally {
      setReading(false);
    }
  };
  return (
    <>
      <button type="button" disabled={isReading} onClick={() => input.current?.click()}>
        {isReading ? "Reading …" : "Photo"}
      </button>
      <input ref={input} hidden type="file" accept="image/*" capture="environment" onChange={(event) => void take(event.currentTarget)} />
    </>
  );
}
