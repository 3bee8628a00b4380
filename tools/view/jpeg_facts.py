"""Facts from the markers of a JPEG file: sampling, scans, restarts, and quality."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from recordio.formats.jpeg_markers import segments

#: The quantisation of luminance in annex K of the standard, for quality 50, in zigzag order.
LUMINANCE = np.array([
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37,
    29, 40, 58, 51, 61, 60, 57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87,
    95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
])  # fmt: skip
SAMPLINGS = {
    (1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1",
    (4, 2): "4:1:0",
}  # fmt: skip
FRAMES = {
    0xC0: "baseline",
    0xC1: "extended sequential",
    0xC2: "progressive",
    0xC3: "lossless",
    0xC9: "sequential, arithmetic coding",
    0xCA: "progressive, arithmetic coding",
}


def jpeg_facts(content: Any) -> dict[str, str]:
    """Return facts about a JPEG file, by their names; as many as its markers tell."""
    data = bytes(content)
    facts: dict[str, str] = {}
    coding, scans, interval = "", 0, 0
    for marker, begin, end, _ in segments(data):
        body = data[begin:end]
        if marker in FRAMES and len(body) >= 6:
            coding = FRAMES[marker]
            parts = [body[at + 1] for at in range(6, 6 + 3 * body[5], 3) if at + 1 < len(body)]
            facts["Components"] = {1: "1 (grey)", 3: "3", 4: "4 (CMYK)"}.get(body[5], str(body[5]))
            if len(parts) == 3:
                ratio = [(parts[0] >> s & 15) // ((parts[1] >> s & 15) or 1) for s in (4, 0)]
                facts["Chroma"] = SAMPLINGS.get((ratio[0], ratio[1]), f"{ratio[0]} x {ratio[1]}")
        elif marker == 0xDA:
            scans += 1
        elif marker == 0xDD and len(body) == 2:
            (interval,) = struct.unpack(">H", body)
        elif marker == 0xDB and "Quality" not in facts and body and body[0] & 15 == 0:
            facts["Quality"] = quality_of(body)
        elif marker == 0xEE and body.startswith(b"Adobe"):
            facts["Adobe marker"] = "yes"
        elif marker == 0xE2 and body.startswith(b"ICC_PROFILE"):
            facts["Colour profile"] = "yes; decoders here ignore it"
    if coding:
        facts["Coding"] = f"{coding}, {scans} scan{'s' if scans != 1 else ''}"
    facts["Restart markers"] = f"every {interval} MCUs" if interval else "none"
    return facts


def quality_of(table: bytes) -> str:
    """Return the quality from 1 to 100 with which libjpeg makes a quantisation table, as text.

    The table is that of a DQT segment: precision and number, then 64 values in zigzag order.
    """
    wide = table[0] >> 4
    size = 128 if wide else 64
    if len(table) < 1 + size:
        return "unknown"
    values = np.frombuffer(table, ">u2" if wide else "u1", 64, 1).astype(float)
    for quality in range(1, 101):
        factor = 5000 // quality if quality < 50 else 200 - 2 * quality
        if np.array_equal(np.clip((LUMINANCE * factor + 50) // 100, 1, 255), values):
            return str(quality)
    scale = float((values / LUMINANCE).mean()) * 100
    guess = (200 - scale) / 2 if scale <= 100 else 5000 / scale
    return f"about {min(max(round(guess), 1), 100)}, with tables of its own"
