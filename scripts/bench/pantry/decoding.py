"""The decoder of the kitchen page: the time for each of 30 pictures of codes, turned and blurred, in Chromium.

    PYTHONPATH=.:scripts .venv/bin/python scripts/bench/pantry/decoding.py [--runs 3]

A picture has 1280 x 720 pixels, as a photo of a code does after it was made smaller. The time of a picture is the time that a
worker of the page takes from the pixels to the digits. The first picture, which loads the decoder, is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from pantry.domain.gtin import codes_of
from tests.support.pantry.system import pantry_system
from tests.support.web.barcodes import CODES, POSES, picture
from tests.support.web.browser import chromium, visitor

READ = """async (pictures) => {
  const worker = new Worker("./decoder.js", { type: "module" });
  const results = [];
  for (const text of [pictures[0], ...pictures]) {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const pixels = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const began = performance.now();
    const found = await new Promise((answer) => {
      worker.onmessage = ({ data }) => answer(data);
      worker.postMessage({ id: 1, picture: pixels, thorough: true });
    });
    results.push([performance.now() - began, found.codes[0] ?? ""]);
  }
  worker.terminate();
  return results.slice(1);
}"""


async def measure(runs: int) -> None:
    """Print the times of each run, and the pictures that were not read."""
    with tempfile.TemporaryDirectory() as directory:
        async with pantry_system(Path(directory)) as system, chromium() as browser, visitor(browser, system.one.url) as cook:
            page = await cook.open()
            poses = [POSES[number % len(POSES)] for number in range(len(CODES))]
            made = [await picture(page, draw(digits), pose) for (digits, draw), pose in zip(CODES, poses, strict=True)]
            pictures = [base64.b64encode(each).decode() for each in made]
            for run in range(1, runs + 1):
                found: list[Any] = await page.evaluate(READ, pictures)
                times = sorted(time for time, _ in found)
                missed = [
                    digits
                    for (digits, _), (_, code) in zip(CODES, found, strict=True)
                    if not set(codes_of(code)) & set(codes_of(digits))
                ]
                print(
                    f"run {run}: {len(CODES) - len(missed)} of {len(CODES)} read, median {statistics.median(times):.0f} ms, "
                    f"longest {times[-1]:.0f} ms, over 300 ms: {sum(time > 300 for time in times)}, load {os.getloadavg()[0]:.1f}"
                )
                if missed:
                    print(f"not read: {', '.join(missed)}")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    asyncio.run(measure(parser.parse_args().runs))


if __name__ == "__main__":
    main()
