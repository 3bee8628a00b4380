"""Pages full of words, as photographs of papers are for vision-language models."""

import io

from PIL import Image, ImageDraw

__all__ = ["encoded", "pages"]


def encoded(picture):
    """A picture as a JPEG file."""
    file = io.BytesIO()
    picture.save(file, "jpeg", quality=90)
    return file.getvalue()


def pages(count):
    """Contents of pages of 2 megapixels, full of lines of words."""
    found = []
    for number in range(count):
        page = Image.new("RGB", (1240, 1700), "white")
        draw = ImageDraw.Draw(page)
        for line in range(80):
            draw.text((60, 40 + 20 * line), f"line {line} of page {number} " * 6, "black")
        found.append(encoded(page))
    return found
