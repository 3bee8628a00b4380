"""What a reader of the pages has at hand: photographs, packs, annotations and tables, all small."""

import io
import json
import pickle
import tarfile

import numpy as np
from PIL import Image

import recordio

CLASSES = ("cat", "cup", "person")


def make(folder, photos):
    """Everything that pages name, in a folder.

    Parameters
    ----------
    folder : pathlib.Path
    photos : dict of str to numpy.ndarray
        Photographs as the fixture of that name gives them.
    """
    pictures = [photos[name] for name in ("chelsea", "coffee", "astronaut")]
    write_folder(folder / "photos", pictures)
    write_folder(folder / "valid", pictures, each=2)
    write_pack(folder / "train.rec", pictures, np.arange(24) % 3)
    write_pack(folder / "valid.rec", pictures, np.arange(6) % 3)
    write_pack(folder / "first.rec", pictures, np.arange(12) % 3)
    write_pack(folder / "second.rec", pictures, np.arange(6) % 2)
    for name in ("boxes", "valid-boxes"):
        write_pack(folder / f"{name}.rec", pictures, [[2, 5, 0, 0.2, 0.1, 0.7, 0.9]] * 12)
    (folder / "photo.jpg").write_bytes(jpeg(pictures[0], side=300))
    files = sorted((folder / "photos").rglob("*.jpg"))
    names = [path.relative_to(folder / "photos").as_posix() for path in files]
    lines = [f"{i}\t{i // 4:f}\t{name}\n" for i, name in enumerate(names)]
    (folder / "train.lst").write_text("".join(lines))
    write_faces(folder / "ms1mv3", pictures, identities=14, each=10)
    write_faces(folder / "mine", pictures, identities=4, each=10)
    write_annotations(folder, pictures)
    write_datasets(folder)
    values = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    np.save(folder / "rows.npy", values)
    np.savetxt(folder / "rows.csv", values, delimiter=",")
    (folder / "table.csv").write_text("1,0.5,2\n0,1,3\n1,-1,4\n")


def jpeg(pixels, side=96, quality=90):
    """A picture as the bytes of a small JPEG file."""
    height, width = pixels.shape[:2]
    target = io.BytesIO()
    size = (side * width // height, side)
    Image.fromarray(pixels).resize(size).save(target, "JPEG", quality=quality)
    return target.getvalue()


def write_folder(folder, pictures, each=4):
    for name, pixels in zip(CLASSES, pictures, strict=True):
        (folder / name).mkdir(parents=True)
        for number in range(each):
            content = jpeg(np.roll(pixels, 40 * number, axis=1))
            (folder / name / f"{number}.jpg").write_bytes(content)


def write_pack(path, pictures, labels):
    path.parent.mkdir(exist_ok=True)
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key, label in enumerate(labels):
            label = float(label) if np.ndim(label) == 0 else label
            header = recordio.IRHeader(0, label, key, 0)
            writer.write(recordio.pack(header, jpeg(pictures[key % 3])), key)


def write_faces(folder, pictures, identities, each):
    """As InsightFace packs them: record 0 and the last ones list the identities."""
    folder.mkdir()
    first = 1 + identities * each
    faces = [jpeg(pixels[:300, :300], side=112) for pixels in pictures]
    with recordio.RecordWriter(folder / "train.rec", folder / "train.idx") as writer:

        def write(key, label, content=b""):
            writer.write(recordio.pack(recordio.IRHeader(0, label, key, 0), content), key)

        write(0, [first, first + identities])
        for key in range(1, first):
            write(key, float((key - 1) // each), faces[key % 3])
        for number in range(identities):
            begin = 1 + number * each
            write(first + number, [begin, begin + each])


def write_annotations(folder, pictures):
    """The same four images with a box each, for COCO, VOC and YOLO."""
    images, annotations = [], []
    for name in ("images", "Annotations", "labels"):
        (folder / name).mkdir()
    for number in range(4):
        content = jpeg(pictures[number % 3])
        width, height = Image.open(io.BytesIO(content)).size
        (folder / "images" / f"{number}.jpg").write_bytes(content)
        images.append(
            {"id": number, "file_name": f"{number}.jpg", "width": width, "height": height}
        )
        box = [10, 12, width // 2, height // 2]
        annotations.append({"id": number, "image_id": number, "category_id": 7, "bbox": box})
        (folder / "Annotations" / f"{number}.xml").write_text(
            f"<annotation><filename>{number}.jpg</filename>"
            f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
            "<object><name>cat</name><bndbox><xmin>11</xmin><ymin>13</ymin>"
            f"<xmax>{10 + box[2]}</xmax><ymax>{12 + box[3]}</ymax></bndbox></object></annotation>"
        )
        (folder / "labels" / f"{number}.txt").write_text("0 0.4 0.5 0.3 0.6\n")
    coco = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 7, "name": "cat"}],
    }
    (folder / "instances.json").write_text(json.dumps(coco))
    captions = [
        {"image_id": number, "caption": caption}
        for number in range(4)
        for caption in (f"a photo, number {number}", f"photo {number} of four")
    ]
    (folder / "captions.json").write_text(json.dumps({"annotations": captions}))
    (folder / "names.txt").write_text("cat\n")
    lines = [
        json.dumps({"source-ref": f"s3://bucket/images/{image['file_name']}", "class": 0})
        for image in images
    ]
    (folder / "output.manifest").write_text("\n".join(lines))


def write_datasets(folder):
    """The four files of MNIST, and the archive of CIFAR-10."""
    place = folder / "folder-with-four-idx-files"
    place.mkdir()
    for part, count in (("train", 20), ("t10k", 10)):
        images, labels = np.zeros((count, 28, 28), np.uint8), np.arange(count, dtype=np.uint8) % 10
        recordio.write_idx_array(place / f"{part}-images-idx3-ubyte", images)
        recordio.write_idx_array(place / f"{part}-labels-idx1-ubyte", labels)
    with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as archive:
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            content = {b"data": np.zeros((4, 3072), np.uint8), b"labels": [0, 1, 2, 3]}
            data = pickle.dumps(content, protocol=2)
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
