"""Write the sound files of the corpus: ``python seeds.py``.

Small files made by the project, and pieces of those in ``tests/golden``.  Files that were kept
because of what they found have other names and stay.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from PIL import Image
from targets import CORPUS
from targets.archives import archive, framed
from targets.caches import whole_file
from targets.checksums import sound
from targets.containers import sound as sound_indexes
from targets.fields import KINDS
from targets.inflate import deflated
from targets.pages import BETWEEN
from targets.records import RECORDS, SIX
from targets.states import first_states

from iterators.images.augment.named_recipes import NAMED_RECIPES
from recordio import IRHeader, RecordWriter, pack, pack_img, shard
from recordio.formats import pnm
from recordio.formats.transcode.transcode import rewrite
from recordio.frames.encoder import MAGIC, encode
from recordio.kernels.operations import NAMES
from recordio.tools.convert.tf_example import encode_example
from recordio.tools.npy import encode_npy, sparse_dtype

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "bombs")]
import bombs  # noqa: E402
import made_png  # noqa: E402

#: One pixel of JPEG XL, to be turned.
JXL = "/woAEBAJCAACABACwASxiLFcJJluUMieI="

GOLDEN = Path(__file__).parents[1] / "golden"


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Coloured blobs with noise."""
    random = np.random.default_rng(seed)
    blobs = random.integers(0, 256, (max(2, height // 5), max(2, width // 5), 3), np.uint8)
    smooth = cv2.resize(blobs, (width, height), interpolation=cv2.INTER_CUBIC).astype(int)
    return np.clip(smooth + random.integers(-9, 10, smooth.shape), 0, 255).astype(np.uint8)


def jpeg(sampling: str = "420", size: tuple[int, int] = (40, 56), **options: int) -> bytes:
    """A JPEG file by OpenCV; options are names of its flags."""
    flags = [
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}"),
    ]
    for name, value in {"QUALITY": 60, **options}.items():
        flags += [getattr(cv2, f"IMWRITE_JPEG_{name}"), value]
    return cv2.imencode(".jpg", picture(*size), flags)[1].tobytes()


def by_pillow(mode: str, kind: str, **options) -> bytes:
    """An image file by Pillow."""
    file = io.BytesIO()
    Image.fromarray(picture(20, 26)).convert(mode).save(file, kind, **options)
    return file.getvalue()


def turned(kind: str = "JPEG", **options) -> bytes:
    """An image with an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return by_pillow("RGB", kind, exif=exif, **options)


def without_last_scans(data: bytes, count: int) -> bytes:
    """The same file without its last scans, whose tables stay."""
    end = len(data)
    for _ in range(count):
        end = data.rindex(b"\xff\xda", 0, end)
    return data[:end] + b"\xff\xd9"


def jpegs() -> dict[str, bytes]:
    """JPEG files of many kinds."""
    return {
        "420": jpeg(),
        "444": jpeg("444", (17, 23)),
        "422": jpeg("422", OPTIMIZE=1),
        "411": jpeg("411", RST_INTERVAL=1),
        "440": jpeg("440", RST_INTERVAL=3),
        "restarts": jpeg(size=(64, 96), RST_INTERVAL=2),
        "progressive": jpeg(PROGRESSIVE=1),
        "progressive_restarts": jpeg("444", (24, 24), PROGRESSIVE=1, RST_INTERVAL=2),
        "progressive_411": jpeg("411", (17, 40), PROGRESSIVE=1, RST_INTERVAL=1),
        "progressive_grey": by_pillow("L", "JPEG", progressive=True, quality=95),
        "progressive_first_scans": without_last_scans(jpeg("420", (33, 24), PROGRESSIVE=1), 4),
        "optimized": rewrite(jpeg(size=(64, 96)), 4)[0],
        "grey": by_pillow("L", "JPEG"),
        "cmyk": by_pillow("CMYK", "JPEG"),
        "rgb": by_pillow("RGB", "JPEG", keep_rgb=True),
        "turned": turned(comment=b"a comment"),
        "tiny": jpeg("444", (1, 1)),
        "best": jpeg("444", (16, 16), QUALITY=100),
    }


def pngs() -> dict[str, bytes]:
    """PNG files of all depths and kinds, some with chunks that change what is seen."""
    found = {}
    for colour, depths in made_png.DEPTHS.items():
        for depth in depths:
            made = made_png.picture(
                colour, depth, (9, 6), seed=depth, transparent=depth > 2, filters=[4, 3, 2, 1, 0]
            )
            found[f"{colour}_{depth}"] = made.file()
            made.interlaced, made.piece = True, 30
            found[f"{colour}_{depth}_passes"] = made.file()
    gamma = (b"gAMA", struct.pack(">I", 45455))
    exif = (b"eXIf", b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0")
    background = (b"bKGD", bytes(6))
    found["chunks"] = made_png.picture(2, 8, before=(gamma, exif, background)).file()
    turned = exif[0], exif[1][:-3] + b"\x06\0\0"
    found["turned"] = made_png.picture(2, 8, before=(turned,)).file()
    return found


def webps() -> dict[str, bytes]:
    """WebP files of all kinds; ``simple_filter`` and ``four_parts`` are of libwebp's encoder."""
    file = io.BytesIO()
    frames = [Image.fromarray(picture(12, 14, seed)) for seed in (1, 2)]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:])
    clear, alpha = {}, np.dstack([picture(20, 26), picture(20, 26, 1)[..., 0]])
    for lossless in (False, True):
        target = io.BytesIO()
        Image.fromarray(alpha).save(target, "WEBP", lossless=lossless, quality=40)
        clear["clear_lossless" if lossless else "clear"] = target.getvalue()
    return clear | {
        "lossy": by_pillow("RGB", "WEBP", quality=60),
        "lossless": by_pillow("RGB", "WEBP", lossless=True),
        "turned": turned("WEBP"),
        "moving": file.getvalue(),
        "tiny": cv2.imencode(".webp", picture(1, 1))[1].tobytes(),
    }


def images() -> dict[str, bytes]:
    """Images of other formats."""
    found = {mode.lower(): by_pillow(mode, "PNG") for mode in ("RGB", "RGBA", "L", "LA", "P", "1")}
    found["deep"] = cv2.imencode(".png", picture(9, 7).astype(np.uint16) * 257)[1].tobytes()
    found |= {
        kind.lower(): by_pillow("RGB", kind)
        for kind in ("BMP", "GIF", "WEBP", "TIFF", "PPM", "AVIF")
    }
    found["jxl"] = base64.b64decode(JXL)
    return found | {"jpeg": turned(comment=b"a comment"), "cmyk": by_pillow("CMYK", "JPEG")}


def doors() -> dict[str, bytes]:
    """One image of each kind, and what should cost little though it promises much."""
    kinds = ("rgb", "jpeg", "gif", "webp", "tiff", "avif")
    harmful = {
        "webp": "WebP, size, EXIF",
        "avif": "AVIF, frame",
        "tiff": "TIFF, width twice, large first",
    }
    found = {kind: image for kind, image in images().items() if kind in kinds}
    found["progressive"] = by_pillow("RGB", "JPEG", progressive=True)
    return found | {f"large-{kind}": bombs.BOMBS[name]() for kind, name in harmful.items()}


def turned_doors() -> dict[str, bytes]:
    """The same with an orientation."""
    kinds = ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")
    return doors() | {f"turned-{kind.lower()}": turned(kind) for kind in kinds}


def records(contents: dict[str, bytes]) -> dict[str, bytes]:
    """Images behind headers."""
    return {
        name: pack(IRHeader(0, [1.0, 2.0] if number % 2 else 3.0, number, 0), content)
        for number, (name, content) in enumerate(contents.items())
    }


def fields() -> dict[str, bytes]:
    """Records of fields behind the number of their kind."""
    found = {f"sound_{i}": bytes([i]) + record for i, (_, record) in enumerate(KINDS)}
    header = IRHeader(0, 0, 0, 0)
    for name, image in pngs().items():
        if name.startswith(("0_", "3_")):  # grey, and with a palette
            found[name] = b"\0" + pack(header, image)
    points = [2, 6, 0.2, 0.3, 2, 0.9, 1.5, 1, 0, 0, 0, 0.5, -0.5, 2]
    objects = [4, 6, 7, 7, 3, 0.1, 0.2, 0.9, 0.8, 5, 1, 0.5, 0.5, 0.2, 0.2, 5]
    texts = {"lines": b"\6one\ntwo\n", "json": b'\7{"a": [1, null, "\xc3\xa4"]}'}
    texts |= {
        "rows": b"\7[[1, 0, 0.5, 1, 1], [2, 0, 0, 1, 1]]",
        "raw": b"\2P5 9 6 255\n" + bytes(54),
    }
    found |= {name: text[:1] + pack(header, text[1:]) for name, text in texts.items()}
    found["points"] = b"\3" + pack(IRHeader(0, points, 0, 0), b"")
    return found | {"objects": b"\4" + pack(IRHeader(0, objects, 0, 0), b"")}


def boxes() -> bytes:
    """A record file of images with boxes."""
    return b"".join(
        encode(
            pack_img(
                IRHeader(0, [2, 5] + [i, 0.2, 0.2, 0.5 + 0.1 * i, 1.0] * (i + 1), i, 0),
                picture(12, 16, i),
                img_fmt=".png" if i % 2 else ".jpg",
            )
        )
        for i in range(3)
    )


def texts() -> dict[str, bytes]:
    """Numbers as text."""
    return {
        "three": b"1,2,3\n4.5,-6e3,7\n\n8,9,1e-45\n",
        "semicolons": b"\xef\xbb\xbf1;2\r\n3;4;\r\n \t\r\n-5;+6",
        "blanks": b"255 0 \n 1 \t2\n",
        "special": b"nan,inf,-infinity\n1e400,4.9e-324,0.1\n",
        "large": b"9223372036854775807,-9223372036854775808\n2147483648,256\n",
        "golden": (GOLDEN / "data.csv").read_bytes()[:300],
        "packed": gzip.compress(b"1,2,3\n4,5,6\n" * 9, mtime=0),
        "header": b"a,b,c\n0.1,0.2,0.3\n123456789.123456789,1e22,1e23\n",
    }


def libsvm() -> dict[str, bytes]:
    """Sparse rows as text."""
    return {
        "golden": (GOLDEN / "data.libsvm").read_bytes(),
        "all": b"1 0:0.5 2:3 # c\n-1:0.5 qid:3 1:2\n\n#\n+1e3 7:nan\n",
        "packed": gzip.compress(b"1 0:1 1:2\n" * 9, mtime=0),
        "large": b"0 9223372036854775806:1\n1\t2:3\r\n",
    }


def idx_arrays() -> dict[str, bytes]:
    """idx arrays."""
    labels = (GOLDEN / "labels-idx1-ubyte").read_bytes()
    return {
        "labels": labels,
        "packed": gzip.compress(labels, mtime=0),
        "floats": bytes([0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 2]) + bytes(8),
        "doubles": bytes([0, 0, 14, 1, 0, 0, 0, 2]) + struct.pack(">2d", 0.5, -3),
        "shorts": bytes([0, 0, 11, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(range(12)),
        "number": bytes([0, 0, 12, 0, 1, 2, 3, 4]),
        "empty": bytes([0, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 5]),
    }


def tf_records() -> dict[str, bytes]:
    """TFRecord files."""
    small = jpeg("444", (8, 8))
    examples = [
        encode_example({"image/encoded": [small], "image/class/label": [7]}),
        encode_example({"label": [0.5, 2.0], "image": [small], "x": [b"", b"y"]}),
        encode_example({"x": [-1, 2**63 - 1, -(2**63)]}),
    ]
    return {
        "three": framed(examples),
        "numbers": framed(examples[2:]),
        "packed": gzip.compress(framed(examples[:1]), mtime=0),
        "empty": framed([b""]),
    }


def sagemaker() -> dict[str, bytes]:
    """Files of SageMaker's SDK, each alone and its first record by itself."""
    seeds = {}
    for name, case in json.loads((GOLDEN / "sagemaker.json").read_text()).items():
        file = bytes.fromhex(case["file"])
        seeds[name] = b"\0" + file
        seeds[f"{name}_record"] = b"\3" + file[8 : 8 + int.from_bytes(file[4:8], "little")]
    return seeds


def tars() -> dict[str, bytes]:
    """Archives of WebDataset."""
    small = jpeg("444", (8, 8))
    files = [
        ("a/1.jpg", small), ("a/1.cls", b"3"), ("2.left.png", by_pillow("L", "PNG")),
        ("2.json", b'{"label": [1, 2.5], "x": "y"}'), ("3.npy", encode_npy(np.zeros(2))),
    ]  # fmt: skip
    return {
        "five": archive(*files),
        "long": archive(("x" * 120 + ".jpg", small), ("\xe4.cls", b"1")),
        "gz": gzip.compress(archive(*files[:2]), mtime=0),
        "bz2": bz2.compress(archive(*files[:2])),
        "xz": lzma.compress(archive(*files[:2])),
        "none": archive(),
    }


def cifar_batches() -> dict[str, bytes]:
    """Batches of two images, as Python 2 and as Python 3 write them."""
    batch = {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [3, 98]}
    return {f"protocol_{number}": pickle.dumps(batch, number) for number in (0, 2, 5)}


def recipes() -> dict[str, bytes]:
    """Named recipes and some keywords, and an operation of every kind."""
    pixels = bytes(range(256)) + np.random.default_rng(0).bytes(64)

    def seed(width: int, height: int, channels: int, **asked) -> bytes:
        return json.dumps({"size": [width, height, channels], **asked}).encode() + b"\n" + pixels

    found = {
        recipe.name.replace("/", "-"): seed(40, 30, 3, recipe=recipe.name)
        for recipe in NAMED_RECIPES
    }
    found |= {
        name: seed(1 + 13 * number % 40, 33, 3, operation=[name, 3, "bilinear", 128])
        for number, name in enumerate(NAMES)
    }
    everything = {"auto_augment": "rand-m9-n4-mstd0.5-inc1", "random_erasing": 1,
                  "low_resolution": 1, "crop_on_fill": 1, "gaussian_blur": 1}  # fmt: skip
    for name, size in {"pixel": (1, 1, 3), "row": (70, 1, 1), "column": (1, 70, 4)}.items():
        found[name] = seed(*size, recipe=everything)
    found["augmix"] = seed(9, 20, 3, recipe={"auto_augment": "augmix-m5-w8-d8-b1"})
    return found


def inflates() -> dict[str, bytes]:
    """Compressed data with blocks of each kind."""
    rows = picture(20, 24, 5).tobytes() + bytes(300) + b"abcdefg" * 40
    return {
        f"{level}_{strategy}": deflated(rows, level, strategy)
        for level, strategy in [(0, 0), (1, 0), (9, 0), (6, 1), (6, 2), (6, 3), (6, 4)]
    }


def all_seeds() -> dict[str, dict[str, bytes]]:
    """Name of the target -> name of the file -> its bytes."""
    frames = (GOLDEN / "frames.rec").read_bytes()
    in_parts = encode(MAGIC * 3) + encode(b"abc" + MAGIC + b"d") + encode(b"\0" + MAGIC)
    ppm = pnm.encode(picture(5, 7))
    return {
        "frames": {
            "golden": frames[:1400],
            "six": RECORDS,
            "parts": in_parts,
            "unescaped": b"".join(MAGIC + bytes([8, 0, 0, 0]) + MAGIC + bytes(4) for _ in "ab"),
            "empty": b"",
        },
        "index": {
            "six": b"".join(b"%d\t%d\n" % (i, RECORDS.index(encode(p))) for i, p in enumerate(SIX)),
            "odd": b"7\t0\r\n 3 \t 8 \textra\n+5\t56",
            "golden": (GOLDEN / "frames.idx").read_bytes()[:60],
        },
        "headers": {
            "one": SIX[1],
            "two": pack(IRHeader(0, [1, 2.5], 8, 0), b"x"),
            "none": bytes(24),
        }
        | records({"jpeg": jpeg("444", (8, 8)), "npy": encode_npy(np.zeros(3))}),
        "npy": {
            "floats": encode_npy(np.arange(6.0).reshape(2, 3)),
            "sparse": encode_npy(np.zeros(2, sparse_dtype(np.dtype("f4")))),
            "texts": encode_npy(np.array(["a", "bc"])),
            "empty": encode_npy(np.zeros((0, 3))),
        },
        "lists": {
            "plain": b"0\t1.0\ta.jpg\n1\t2.000000\tb/c.jpg\n",
            "wide": b"5\t1\t2\tx y.png\r\n7\tnan\t-1e3\t\xff.png",
            "spaces": b"\xef\xbb\xbf3 1.0 a.jpg\n\n# comment\n4 2 b.jpg\n",
            "boxes": b"0\t2\t5\t1\t0.1\t0.1\t0.5\t0.5\ta.jpg\n",
        },
        "jpeg": jpegs(),
        "jpeg_rewrite": jpegs(),
        "jpeg_resize": jpegs(),
        "png": pngs(),
        "inflate": inflates(),
        "webp": webps(),
        "pnm": {
            "colour": ppm,
            "grey": pnm.encode(picture(3, 4)[..., :1].copy()),
            "comment": b"P5 # a\n 2\t#b\r3\n255\n......",
            "deep": b"P6\n1 1\n65535\n123456",
        },
        "image": images(),
        "decode_image": images(),
        "image_header": turned_doors(),
        "channel_sums": doors(),
        "picture_hash": doors(),
        "read_image": doors(),
        "recipes": recipes(),
        "render": records({**jpegs(), **{k: v for k, v in images().items() if len(v) < 3000}}),
        "detection": {"three": boxes()},
        "fields": fields(),
        "csv": texts(),
        "libsvm": libsvm(),
        "idx_array": idx_arrays(),
        "mean_image": {"golden": (GOLDEN / "mean_mxnet.bin").read_bytes()},
        "cache": {"four": whole_file()},
        "tfrecord": tf_records(),
        "protobuf": sagemaker(),
        "webdataset": tars(),
        "tar": {name: tars()[name] for name in ("five", "long", "none")},
        **sound_indexes(),
        "cifar": cifar_batches(),
        **annotations(),
        "shards": {"one": manifest()},
        "expressions": conditions(),
        "checksums": {"six": sound()},
        "journals": {
            "half": b"400\nSAME\n0 204 DEVICE INODE\n0 392 DEVICE INODE\n",
            "whole": b"999999\nSAME\n0 52 DEVICE INODE\n0 860 DEVICE INODE\n0 8",
            "other": b"200\nanother\n0 52 DEVICE INODE\n",
        },
        "mirrors": {
            "sound": b"\n",
            "cut": b"cut data 300000\n",
            "gone": b"remove data\n",
            "noise": b"write data 300000 junkjunkjunk\n",
            "marks": b"3\nwrite blocks 64 \1\1\1\n",
            "table": b"cut blocks 20\nwrite about.json 0 x\n",
        },
        "pages": pages(),
        "states": {
            name: json.dumps({"of": name, "state": json.loads(text)}).encode()
            for name, text in first_states().items()
        },
    }


def conditions() -> dict[str, bytes]:
    """Conditions of every kind."""
    return {
        "chained": b"0 < label <= 2 and width / height > 1",
        "lists": b"format in {'png', 'jpeg'} or 7 in labels",
        "numbers": b"not ( id - 10 < 0 ) and abs( bytes % 7 - key // 2 ) == 3",
        "large": b"id % 2 == 1 or key * 9223372036854775807 > 5",
        "words": b"decodable == False or len(labels) > 1",
    }


def pages() -> dict[str, bytes]:
    """Requests for every page, and packs that they are about."""
    settings = "batch_size=2&data_shape=(3,8,8)"
    asked = {
        "images": [
            "?where=decodable+and+width+>+1", "record/0", "image/0/224", "search?q=jpg",
            "key?key=0",
        ],
        "contents": [
            "record/1", "raw/0?whole=1", "record/2", "numbers?by=label", "damage/check?decode=1",
            "damage", "../../side?pack=a&pack=a",
        ],
        "training": [
            "training?call=ImageRecordIter(batch_size=2,data_shape=(3,8,8),shuffle=True)",
            f"training?record=0&{settings}&rand_crop=True&max_rotate_angle=20",
            f"training?show=1&{settings}", f"training/sample?{settings}&slot=0",
            f"training/batch.npy?{settings}", "identities",
        ],
    }  # fmt: skip
    records = {
        "images": [
            by_pillow("L", "PNG"), b"text", jpeg("444", (8, 8)), by_pillow("RGB", "WEBP"),
            b"#classes\n0\tcat\n1\t<b>\n", b"#list\n0\t0.0\ta.jpg\n2\t1.0\tb.jpg\n",
        ],
        "contents": [
            encode_npy(np.arange(3.0)), b'{"a": [1, 2, {"b": null}]}', b"a text\n", b"\xff\xd8\xff",
            b"#tail\njunk",
        ],
        "training": [by_pillow("L", "PNG"), b"#index\n0\t0\n"],
    }  # fmt: skip
    return {
        name: "\n".join(
            f"{'POST' if '/check' in page else 'GET'} /pack/a/{page}".replace("/pack/a/../..", "")
            for page in asked[name]
        ).encode()
        + b"\n\n"
        + BETWEEN.join(records[name])
        for name in asked
    }


def manifest() -> bytes:
    """Of one shard."""
    with tempfile.TemporaryDirectory() as folder:
        with RecordWriter(f"{folder}/a.rec") as writer:
            writer.write(b"record")
        shard(f"{folder}/a.rec", folder, 1)
        return Path(folder, "a.shards.json").read_bytes()


def annotations() -> dict[str, dict[str, bytes]]:
    """The same two boxes in every form."""
    coco = {
        "images": [{"id": 7, "file_name": "a.png", "width": 8, "height": 4}],
        "categories": [{"id": 3, "name": "cat"}, {"id": 18, "name": "dog"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 1, 4.5, 2], "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 18, "bbox": [0, 0, 8, 4], "iscrowd": 1},
        ],
    }
    boxes = "".join(
        f"<object><name>{name}</name><difficult>{difficult}</difficult><bndbox><xmin>{left}</xmin>"
        f"<ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
        for name, difficult, left, top, right, bottom in (
            ("cat", 0, 2, 2, 5, 3),
            ("dog", 1, 1, 1, 8, 4),
        )
    )
    size = "<size><width>8</width><height>4</height></size>"
    box = {"class_id": 0, "left": 1, "top": 1, "width": 4, "height": 2}
    sides = [{"width": 8, "height": 4, "depth": 1}]
    kinds = {
        "class": (0, {"class-name": "cat", "confidence": 0.5}),
        "classes": ([0, 1], {"class-map": {"0": "cat", "1": "dog"}}),
        "boxes": ({"annotations": [box], "image_size": sides}, {"class-map": {"0": "cat"}}),
    }
    lines = {
        name: {"source-ref": "s3://b/a.png", "a": value, "a-metadata": about}
        for name, (value, about) in kinds.items()
    }
    voc = f"<annotation><filename>a.png</filename>{size}{boxes}</annotation>"
    return {
        "coco": {"two": json.dumps(coco).encode()},
        "voc": {"two": voc.encode(), "unsized": voc.replace(size, "").encode()},
        "yolo": {
            "two": b"0 0.4 0.5 0.5 0.5\n1 0.5 0.5 1 1\n",
            "none": b"\n",
            "polygon": b"0 0.9 0.9 0.9 0.8 0.8 0.9\n",
            "pose": b"0 0.4 0.5 0.5 0.5 0.4 0.5 2\n0 0.4 0.5 0.5 0.5 0.4 0.5 1 0.9\n",
        },
        "manifest": {name: json.dumps(line).encode() for name, line in lines.items()},
    }


def main() -> None:
    """Write them all."""
    for target, files in all_seeds().items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
