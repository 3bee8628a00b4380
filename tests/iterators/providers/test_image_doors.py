"""Every form of image through every door: the pixels and the verdict of `decode_image`."""

import io
import tarfile

import numpy as np
import pytest
from image_variants import variants

import recordio.convert
from iterators import ImageRecordDataset, ImageRecordIter
from iterators.testing import write_pack
from recordio import ImageDecodeError, decode_image, image_info
from recordio.formats.decode import check_whole
from recordio.formats.table import kind_of, suffixes_of
from recordio.tools.images import check_decodes

pytestmark = pytest.mark.filterwarnings("ignore:.*bits")
VARIANTS = {name: data for name, data in variants().items() if data}


def decoded(data, **settings):
    """The pixels, or None of what is refused."""
    try:
        return decode_image(data, **settings)
    except ImageDecodeError:
        return None


PIXELS = {name: decoded(data) for name, data in VARIANTS.items()}
#: Images that are there, although some of their values do not fit into 8 bits.
SOUND = {
    name
    for name, data in VARIANTS.items()
    if PIXELS[name] is not None or decoded(data, dtype="float32") is not None
}


def file_of(number, data):
    return f"{number:03d}{suffixes_of(kind_of(data))[0]}"


def check_examples(dataset, names):
    """Every image of a data set, or its error."""
    assert len(dataset) == len(names)
    for number, name in enumerate(names):
        if PIXELS[name] is None:
            with pytest.raises(ImageDecodeError):
                dataset[number]
        else:
            assert np.array_equal(dataset[number][0], PIXELS[name]), name


@pytest.fixture
def packed(tmp_path):
    """All of them as records."""
    return write_pack(tmp_path / "a.rec", VARIANTS.values(), [0] * len(VARIANTS))


def test_records(packed):
    check_examples(ImageRecordDataset(packed), list(VARIANTS))


def test_a_folder_and_a_tar(tmp_path):
    names = [name for name, data in VARIANTS.items() if kind_of(data) in ("jpeg", "png")]
    folder = tmp_path / "set" / "class"
    folder.mkdir(parents=True)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number, name in enumerate(names):
            data = VARIANTS[name]
            (folder / file_of(number, data)).write_bytes(data)
            for file, content in (file_of(number, data), data), (f"{number:03d}.cls", b"0"):
                member = tarfile.TarInfo(file)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    check_examples(ImageRecordDataset(str(folder.parent)), names)
    check_examples(ImageRecordDataset(str(tmp_path / "a.tar")), names)


def test_batches_of_images_in_their_own_size(packed):
    """Sizes from the headers alone, which the pixels must have: nothing is resized."""
    sound = [number for number, pixels in enumerate(PIXELS.values()) if pixels is not None]
    settings = {"data_shape": None, "batch_size": 1, "dtype": "uint8", "layout": "NHWC"}
    found = {}
    with ImageRecordIter(
        path_imgrec=str(packed), on_error="skip", verbose=False, **settings
    ) as images:
        for batch in images:
            found[int(batch.index[0])] = np.asarray(batch.data[0][0])
    for number, (name, pixels) in enumerate(PIXELS.items()):
        if number in sound:
            assert np.array_equal(found[number], pixels), name


@pytest.mark.parametrize("name", VARIANTS)
def test_one_rule_says_what_is_whole(name):
    data = VARIANTS[name]
    for check in (check_whole, check_decodes):
        try:
            check(data)
        except ImageDecodeError as error:
            assert name not in SOUND, error
        else:
            assert name in SOUND
    if PIXELS[name] is not None:
        info = image_info(data)
        assert (info.height, info.width) == PIXELS[name].shape[:2]


@pytest.mark.parametrize(
    ("convert", "check"),
    [(recordio.convert.from_imagefolder, "header"), (recordio.convert.pack, "decode")],
)
def test_converters_keep_what_training_reads(tmp_path, convert, check):
    folder = tmp_path / "set" / "class"
    folder.mkdir(parents=True)
    names = [name for name, data in VARIANTS.items() if kind_of(data) in ("jpeg", "png")]
    for number, name in enumerate(names):
        (folder / file_of(number, VARIANTS[name])).write_bytes(VARIANTS[name])
    report = convert(folder.parent, tmp_path / "out", check=check)
    left_out = {int(skipped.path[-8:].lstrip("/").split(".")[0][-3:]) for skipped in report.skipped}
    assert {names[number] for number in left_out} == set(names) - SOUND
