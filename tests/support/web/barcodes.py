"""Pictures of barcodes: the modules of EAN, UPC-E and ITF-14 (GS1 General Specifications, 5.2 and 5.3), drawn by a browser."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable

import attrs
from playwright.async_api import Page

from pantry.domain.gtin import check_digit, codes_of, own_code

_LEFT = ("0001101", "0011001", "0010011", "0111101", "0100011", "0110001", "0101111", "0111011", "0110111", "0001011")
_RIGHT = tuple(code.translate(str.maketrans("01", "10")) for code in _LEFT)
_EVEN = tuple(code[::-1] for code in _RIGHT)
_PARITY = ("LLLLLL", "LLGLGG", "LLGGLG", "LLGGGL", "LGLLGG", "LGGLLG", "LGGGLL", "LGLGLG", "LGLGGL", "LGGLGL")
_UPC_E = ("GGGLLL", "GGLGLL", "GGLLGL", "GGLLLG", "GLGGLL", "GLLGGL", "GLLLGG", "GLGLGL", "GLGLLG", "GLLGLG")
_ITF = ("00110", "10001", "01001", "11000", "00101", "10100", "01100", "00011", "10010", "01010")

_DRAW = """async ({ modules, scale, angle, blur }) => {
  const canvas = new OffscreenCanvas(1280, 720);
  const context = canvas.getContext("2d");
  context.fillStyle = "#f4f1ea";
  context.fillRect(0, 0, 1280, 720);
  context.filter = blur ? `blur(${blur}px)` : "none";
  context.translate(640, 360);
  context.rotate((angle * Math.PI) / 180);
  const width = modules.length * scale;
  context.fillStyle = "#fff";
  context.fillRect(-width / 2 - 12 * scale, -150, width + 24 * scale, 300);
  context.fillStyle = "#111";
  [...modules].forEach((module, place) => {
    if (module === "1") context.fillRect(-width / 2 + place * scale, -120, scale, 240);
  });
  const blob = await canvas.convertToBlob({ type: "image/png" });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""


@attrs.frozen(kw_only=True)
class Pose:
    """How a code is held: pixels of a module, degrees, pixels of blur."""

    scale: int = 4
    angle: int = 0
    blur: float = 0


def ean_13(digits: str) -> str:
    """The modules of 13 digits, 1 for a bar."""
    parity = _PARITY[int(digits[0])]
    left = "".join((_LEFT if kind == "L" else _EVEN)[int(digit)] for digit, kind in zip(digits[1:7], parity, strict=True))
    return f"101{left}01010{''.join(_RIGHT[int(digit)] for digit in digits[7:])}101"


def ean_8(digits: str) -> str:
    """The modules of 8 digits."""
    left = "".join(_LEFT[int(digit)] for digit in digits[:4])
    return f"101{left}01010{''.join(_RIGHT[int(digit)] for digit in digits[4:])}101"


def upc_e(digits: str) -> str:
    """The modules of a UPC-E: its number system and its check digit are in the parity of the six digits between."""
    parity = _UPC_E[int(digits[7])]
    if digits[0] == "1":
        parity = parity.translate(str.maketrans("GL", "LG"))
    body = "".join((_LEFT if kind == "L" else _EVEN)[int(digit)] for digit, kind in zip(digits[1:7], parity, strict=True))
    return f"101{body}010101"


def itf_14(digits: str) -> str:
    """The modules of 14 digits: pairs, the first in the bars and the second in the spaces. Wide ones have three modules."""
    modules = "1010"
    for place in range(0, len(digits), 2):
        for bar, space in zip(_ITF[int(digits[place])], _ITF[int(digits[place + 1])], strict=True):
            modules += "111" if bar == "1" else "1"
            modules += "000" if space == "1" else "0"
    return f"{modules}11101"


async def picture(page: Page, modules: str, pose: Pose) -> bytes:
    """A photo of a code, as PNG."""
    drawn: str = await page.evaluate(_DRAW, {"modules": modules, **attrs.asdict(pose)})
    return base64.b64decode(drawn)


POSES = (
    Pose(),
    Pose(scale=3, angle=8),
    Pose(angle=12, blur=1.2),
    Pose(scale=5, angle=90),
    Pose(scale=3, blur=1),
    Pose(angle=180),
)
"""Poses that a phone reads."""


def _checked(first: str) -> str:
    return f"{first}{check_digit(first)}"


def _upc_es() -> list[str]:
    """Sound ones: the check digit is the one of the UPC-A that they stand for."""
    every = (f"0{number}" for number in itertools.count(1234501, 7919))
    return list(itertools.islice((digits for digits in every if codes_of(digits) and codes_of(digits)[0][-5:] != digits[-5:]), 6))


CODES: list[tuple[str, Callable[[str], str]]] = [
    *((own_code(number * 987_654_321), ean_13) for number in range(1, 13)),
    *((_checked(f"{number}"), ean_8) for number in range(4_012_345, 4_912_345, 150_000)),
    *((digits, upc_e) for digits in _upc_es()),
    *((_checked(f"{number}400638133393"), itf_14) for number in range(1, 7)),
]
"""30 codes and how they are drawn."""
