// Codes by the camera, where the browser reads barcodes and gives the camera: on secure origins only.

const FORMATS = ["ean_13", "upc_a"];
const EVERY = 150;

export const hasCamera = "BarcodeDetector" in globalThis && Boolean(navigator.mediaDevices?.getUserMedia);

let stream = null;

// Show the camera's picture in `video` until a code is seen, which is given; null where the camera was closed before.
export async function scan(video) {
  const detector = new BarcodeDetector({ formats: FORMATS });
  stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  video.srcObject = stream;
  await video.play();
  try {
    while (stream) {
      const [found] = await detector.detect(video);
      if (found) return found.rawValue;
      await new Promise((done) => setTimeout(done, EVERY));
    }
    return null;
  } finally {
    close(video);
  }
}

export function close(video) {
  stream?.getTracks().forEach((track) => track.stop());
  stream = null;
  video.srcObject = null;
}
