"""Images of every format and in the forms that other tools leave behind, by name."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

PHOTO = np.stack(
    [np.add.outer(np.arange(20) * 7, np.arange(30) * 3) % 256 for _ in range(3)], -1
).astype(np.uint8)
PHOTO[..., 1] = PHOTO[::-1, :, 1]
PHOTO[..., 2] = 255 - PHOTO[:, ::-1, 2]
DEEP = (PHOTO[..., 0].astype(np.uint16) << 8) + 77


def saved(image, kind, **options):
    """An image as Pillow writes it."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def exif(kind, value, order="<", signature=b""):
    """EXIF data that name an orientation in a field of some type."""
    start = {"<": b"II*\0", ">": b"MM\0*"}[order]
    number = struct.pack(
        order + {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 11: "f"}[kind], value
    )
    entry = struct.pack(order + "IHHHI", 8, 1, 0x112, kind, 1) + number.ljust(4, b"\0")
    return signature + start + entry + bytes(4)


def chunk(kind, content, off=0):
    """A chunk of PNG; `off` makes its checksum wrong."""
    checksum = (zlib.crc32(kind + content) + off) % 2**32
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png_with(*chunks, image=None, after=()):
    """A PNG file with more chunks, in front of the pixels and behind them."""
    data = saved(Image.fromarray(PHOTO) if image is None else image, "PNG")
    return data[:33] + b"".join(chunks) + data[33:-12] + b"".join(after) + data[-12:]


def app1(content):
    """A segment of JPEG."""
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def jpeg_with(segment, **options):
    """A JPEG file with a segment at its begin."""
    data = saved(Image.fromarray(PHOTO), "JPEG", **options)
    return data[:2] + segment + data[2:]


def tiff(pixels, bits, *more, photometric=1, order="<", big=False, tile=None, numbers=1, data=None):
    """An uncompressed TIFF file of one strip, or of tiles; more tags are (number, type, values)."""
    pixels = np.atleast_3d(pixels)
    height, width, samples = pixels.shape
    if data is None and tile is None:
        data = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    parts = [data]
    if tile is not None:
        parts = []
        for y in range(0, height, tile):
            for x in range(0, width, tile):
                part = np.zeros((tile, tile, samples), pixels.dtype.newbyteorder(order))
                some = pixels[y : y + tile, x : x + tile]
                part[: some.shape[0], : some.shape[1]] = some
                parts.append(part.tobytes())
    tags = {
        256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [1]),
        262: (3, [photometric]), 277: (3, [samples]), 339: (3, [numbers] * samples),
    }  # fmt: skip
    if tile is None:
        tags |= {273: (4, [0]), 278: (4, [height]), 279: (4, [len(parts[0])])}
    else:
        tags |= {322: (4, [tile]), 323: (4, [tile]), 324: (4, [0] * len(parts))}
        tags |= {325: (4, [len(part) for part in parts])}
    tags |= {number: (kind, values) for number, kind, values in more}
    room, start = (8, 16) if big else (4, 8)
    word, count = ("Q", "Q") if big else ("I", "H")
    offset = start
    places = []
    for part in parts:
        places.append(offset)
        offset += len(part) + len(part) % 2
    tags[273 if tile is None else 324] = (4, places)
    table, rest, at = (
        b"",
        b"",
        offset + struct.calcsize(order + count) + len(tags) * (12 + 8 * big) + room,
    )
    for number, (kind, values) in sorted(tags.items()):
        code = {1: "B", 2: "B", 3: "H", 4: "I", 9: "i"}[kind]
        content = struct.pack(f"{order}{len(values)}{code}", *values)
        table += struct.pack(order + "HH" + word, number, kind, len(values))
        if len(content) <= room:
            table += content.ljust(room, b"\0")
        else:
            table += struct.pack(order + word, at + len(rest))
            rest += content + b"\0" * (len(content) % 2)
    head = {"<": b"II", ">": b"MM"}[order] + struct.pack(order + "H", 43 if big else 42)
    head += struct.pack(order + "HHQ", 8, 0, offset) if big else struct.pack(order + "I", offset)
    body = b"".join(part + b"\0" * (len(part) % 2) for part in parts)
    return head + body + struct.pack(order + count, len(tags)) + table + bytes(room) + rest


def packed(values, bits):
    """Rows of numbers of some bits, each row filled up to whole bytes."""
    rows = []
    for row in values:
        text = "".join(f"{int(value):0{bits}b}" for value in row)
        text += "0" * (-len(text) % 8)
        rows.append(int(text, 2).to_bytes(len(text) // 8, "big"))
    return b"".join(rows)


def bmp(bits, rows, compression=0, masks=b"", offset=None, size=(2, 2)):
    """A BMP file whose rows begin at the bottom."""
    at = 54 + len(masks)
    info = struct.pack("<IiiHHIIiiII", 40, *size, 1, bits, compression, len(rows), 0, 0, 0, 0)
    head = struct.pack("<IHHI", at + len(rows), 0, 0, at if offset is None else offset)
    return b"BM" + head + info + masks + rows


def gif(screen, frames, end=b";", blocks=b""):
    """A GIF file of red, green, blue and white; frames are (x, y, width, height, values, clear)."""
    out = b"GIF89a" + struct.pack("<HH", *screen) + bytes([0xF1, 0, 0])
    out += bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255]) + blocks
    for x, y, width, height, values, clear in frames:
        if clear is not None:
            out += b"\x21\xf9\x04" + bytes([9, 0, 0, clear]) + b"\0"
        bits = count = 0
        for position, value in enumerate([*values, 5]):
            for code in [4, value] if position % 2 == 0 else [value]:
                bits |= code << count
                count += 3
        body = bits.to_bytes(-(-count // 8), "little")
        head = struct.pack("<HHHHB", x, y, width, height, 0)
        out += b"," + head + b"\x02" + bytes([len(body)]) + body + b"\0"
    return out + end


def _animated_png(hidden):
    """Two frames, green and blue; the still image is red, or the first frame."""
    red = Image.new("RGB", (2, 2), (255, 0, 0))
    still = saved(red, "PNG")

    def control(number):
        return chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, 2, 2, 0, 0, 1, 10, 0, 0))

    def frame(number, colour):
        rows = zlib.compress((b"\0" + bytes(colour) * 2) * 2)
        return chunk(b"fdAT", struct.pack(">I", number) + rows)

    first = chunk(b"acTL", struct.pack(">II", 2, 0)) + (b"" if hidden else control(0))
    rest = [control(1), frame(2, (0, 0, 255))]
    if hidden:
        rest = [control(0), frame(1, (0, 255, 0)), control(2), frame(3, (0, 0, 255))]
    return still[:33] + first + still[33:-12] + b"".join(rest) + still[-12:]


def _inks(**options):
    """A CMYK JPEG file; Pillow gives it Adobe's marker."""
    return saved(Image.fromarray(PHOTO).convert("CMYK"), "JPEG", quality=95, **options)


def _without_adobe(data):
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 16 :]


def _as_ycck(data):
    """The same file with the marker of luma, chroma and black."""
    at = data.index(b"Adobe")
    return data[: at + 11] + b"\2" + data[at + 12 :]


def _text_profile(kind):
    raw = exif(3, 6, signature=b"Exif\0\0")
    text = b"\nexif\n%8d\n" % len(raw) + raw.hex().encode() + b"\n"
    if kind == b"zTXt":
        return chunk(kind, b"Raw profile type exif\0\0" + zlib.compress(text))
    return chunk(kind, b"Raw profile type exif\0" + text)


def variants():
    """All images by name; formats that this Pillow does not write are left out."""
    Image.init()
    photo, grey = Image.fromarray(PHOTO), Image.fromarray(PHOTO[..., 0])
    alpha = Image.fromarray(np.dstack([PHOTO, PHOTO[..., 0]]))
    jpeg = saved(photo, "JPEG")
    found = {
        "jpeg": jpeg, "jpeg grey": saved(grey, "JPEG"),
        "jpeg progressive": saved(photo, "JPEG", progressive=True),
        "jpeg without end": jpeg[:-2], "jpeg with a trailer": jpeg + b"trailer \xff\xd9 more",
        "jpeg without end, with a trailer": jpeg[:-2] + b"trailer" * 9,
        "jpeg JFIF 0.00": jpeg.replace(b"JFIF\0\1\1", b"JFIF\0\0\0"),
        "jpeg two signatures": jpeg_with(app1(exif(3, 6, signature=b"Exif\0\0" * 2))),
        "jpeg inks": _inks(), "jpeg inks, progressive": _inks(progressive=True),
        "jpeg inks without marker": _without_adobe(_inks()), "jpeg inks, YCCK": _as_ycck(_inks()),
        "jpeg inks, turned": _inks(exif=exif(3, 6, signature=b"Exif\0\0")),
        "png": saved(photo, "PNG"), "png grey": saved(grey, "PNG"),
        "png alpha": saved(alpha, "PNG"), "png grey alpha": saved(alpha.convert("LA"), "PNG"),
        "png palette": saved(photo.convert("P"), "PNG"),
        "png palette, transparent": saved(photo.convert("P"), "PNG", transparency=3),
        "png grey, transparent": saved(grey, "PNG", transparency=77),
        "png one bit": saved(grey.convert("1"), "PNG"),
        "png 16 bits": saved(Image.fromarray(DEEP), "PNG"),
        "png two frames": _animated_png(False), "png hidden still image": _animated_png(True),
        "png gamma": png_with(chunk(b"gAMA", struct.pack(">I", 45455))),
        "png wrong gamma": png_with(chunk(b"gAMA", struct.pack(">I", 45455), off=1)),
        "png wrong text": png_with(chunk(b"tEXt", b"Comment\0x", off=1)),
        "png wrong profile": png_with(chunk(b"iCCP", b"icc\0\0" + zlib.compress(b"x"), off=1)),
        "png junk for exif": png_with(chunk(b"eXIf", b"\0\x08\0\2junk that is no EXIF")),
        "png turned behind": png_with(after=[chunk(b"eXIf", exif(3, 6))]),
        "png exif as text": png_with(_text_profile(b"tEXt")),
        "png exif as packed text": png_with(_text_profile(b"zTXt")),
        "png without end": saved(photo, "PNG")[:-12],
        "gif": saved(photo.convert("P"), "GIF"), "gif grey": saved(grey, "GIF"),
        "gif clear": gif((2, 2), [(0, 0, 2, 2, [0, 1, 2, 3], 2)]),
        "gif small frame": gif((4, 4), [(1, 1, 2, 2, [0, 1, 2, 3], None)]),
        "gif beyond its screen": gif((4, 4), [(0, 0, 6, 6, [2] * 36, None)]),
        "gif without screen": gif((0, 0), [(0, 0, 6, 6, [2] * 36, None)]),
        "gif without end": gif((2, 2), [(0, 0, 2, 2, [2] * 4, None)], end=b""),
        "gif with an empty block": gif((2, 2), [(0, 0, 2, 2, [2] * 4, None)], blocks=b"\x21\xff\0"),
        "bmp": saved(photo, "BMP"), "bmp grey": saved(grey, "BMP"),
        "bmp 5-6-5": bmp(16, struct.pack("<4H", 0xF800, 0x07E0, 0x001F, 0x8410), 3,
                         struct.pack("<III", 0xF800, 0x7E0, 0x1F)),
        "bmp offset 0": bmp(24, bytes(range(16)), offset=0),
        "bmp without the last padding": bmp(24, bytes(range(14))),
        "tiff": saved(photo, "TIFF"), "tiff lzw": saved(photo, "TIFF", compression="tiff_lzw"),
        "tiff zstd": saved(photo, "TIFF", compression="zstd"),
        "tiff inks": saved(photo.convert("CMYK"), "TIFF"),
        "tiff alpha": tiff(np.asarray(alpha), 8, (338, 3, [2]), photometric=2),
        "tiff five samples": tiff(np.dstack([np.asarray(alpha), PHOTO[..., :1]]), 8,
                                  (338, 3, [0, 0]), photometric=2),
        "tiff 1 bit": saved(grey.convert("1"), "TIFF"),
        "tiff 2 bits": tiff(PHOTO[..., 0] >> 6, 2, data=packed(PHOTO[..., 0] >> 6, 2)),
        "tiff 4 bits": tiff(PHOTO[..., 0] >> 4, 4, data=packed(PHOTO[..., 0] >> 4, 4)),
        "tiff 12 bits": tiff(DEEP >> 4, 12, data=packed(DEEP >> 4, 12)),
        "tiff 14 bits": tiff(DEEP >> 2, 14, data=packed(DEEP >> 2, 14)),
        "tiff 16 bits": tiff(DEEP, 16), "tiff 16 bits, big-endian": tiff(DEEP, 16, order=">"),
        "tiff 16 bits, white is 0": tiff(DEEP, 16, photometric=0),
        "tiff 16 bits in tiles": tiff(DEEP, 16, tile=16),
        "tiff in tiles": tiff(PHOTO, 8, tile=16, photometric=2),
        "tiff 16 bits, colours": tiff(PHOTO.astype(np.uint16) * 257, 16, photometric=2),
        "tiff signed": tiff(DEEP.astype(np.int32).astype(np.int16), 16, numbers=2),
        "tiff signed bytes": tiff(PHOTO[..., 0].view(np.int8), 8, numbers=2),
        "tiff int32": tiff(DEEP.astype(np.int32) - 9000, 32, numbers=2),
        "tiff uint32": tiff(DEEP.astype(np.uint32) * 65536, 32),
        "tiff float": tiff(DEEP.astype(np.float32) / 7, 32, numbers=3),
        "tiff double": tiff(DEEP.astype(np.float64), 64, numbers=3),
        "tiff palette": saved(photo.convert("P"), "TIFF"),
        "tiff small colour map": tiff(PHOTO[..., 0], 8, (320, 3, [*range(256)] * 3), photometric=3),
        "tiff BigTIFF": tiff(PHOTO, 8, photometric=2, big=True),
        "tiff BigTIFF float": tiff(DEEP.astype(np.float32), 32, numbers=3, big=True),
        "tiff orientation as LONG": tiff(PHOTO, 8, (274, 4, [6]), photometric=2),
        "tiff orientation as LONG, big-endian": tiff(PHOTO, 8, (274, 4, [6]), photometric=2,
                                                     order=">"),
        "ppm": saved(photo, "PPM"), "pgm": saved(grey, "PPM"),
        "ppm 16 bits": b"P6\n30 20\n65535\n" + (PHOTO.astype(">u2") * 257).tobytes(),
        "pgm 12 bits": b"P5\n30 20\n4095\n" + (DEEP >> 4).astype(">u2").tobytes(),
        "pgm to 100": b"P5\n30 20\n100\n" + (PHOTO[..., 0] % 101).tobytes(),
        "pbm": saved(grey.convert("1"), "PPM"),
        "pfm grey": b"Pf\n30 20\n-1.0\n" + PHOTO[..., 0].astype("<f4").tobytes(),
        "pfm colours": b"PF\n30 20\n-1.0\n" + PHOTO.astype("<f4").tobytes(),
        "no image": b"no image", "empty": b"",
        "half a jpeg": jpeg[: len(jpeg) - 60], "half a png": saved(photo, "PNG")[:60],
        "half a tiff": saved(photo, "TIFF")[:300],
        "half a gif": saved(photo.convert("P"), "GIF")[:600],
        "half a bmp": saved(photo, "BMP")[:300],
    }  # fmt: skip
    for orientation in range(2, 9):
        plain = exif(3, orientation)
        for kind, options in {
            "jpeg": {"exif": b"Exif\0\0" + plain}, "png": {"exif": plain}, "tiff": {"exif": plain},
            "webp": {"exif": b"Exif\0\0" + plain}, "avif": {"exif": b"Exif\0\0" + plain},
        }.items():  # fmt: skip
            if kind.upper() in Image.SAVE:
                found[f"{kind} turned {orientation}"] = saved(photo, kind.upper(), **options)
    for order in "<>":
        for number in (1, 3, 4, 6, 8, 9, 11):
            name = f"orientation of type {number}, {order}"
            data = exif(number, 6, order)
            found[f"jpeg {name}"] = jpeg_with(app1(b"Exif\0\0" + data))
            found[f"png {name}"] = png_with(chunk(b"eXIf", data))
            if "WEBP" in Image.SAVE:
                found[f"webp {name}"] = saved(photo, "WEBP", exif=b"Exif\0\0" + data)
    for kind, options in {"WEBP": {}, "AVIF": {}, "JPEG2000": {}}.items():
        if kind in Image.SAVE:
            found[kind.lower()] = saved(photo, kind, **options)
            found[f"{kind.lower()} alpha"] = saved(alpha, kind, **options)
    if "JPEG2000" in Image.SAVE:
        found["jpeg2000 16 bits"] = saved(Image.fromarray(DEEP), "JPEG2000", irreversible=False)
    return found
