"""A check passes what is right, and names what is wrong."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

import recordio
from iterators import ArrayDataProvider, DataBatch, ResizeIter, TransformDataset, VectorSpace
from iterators.testing import (
    assert_same,
    box_label,
    check_dataset,
    check_decoder,
    check_pack,
    check_provider,
    check_space,
    check_states,
    copies,
    encode,
    noise,
    same,
    strategies,
    write_faces,
    write_images,
    write_list,
    write_pack,
)
from recordio.formats import by_opencv
from recordio.packs.scanned_pack import ScannedPack

# -- providers -------------------------------------------------------------------------------------


class Rows(ArrayDataProvider):
    def __init__(self, **more):
        super().__init__(np.arange(11), np.arange(11) % 4, batch_size=4, shuffle=True, **more)


class OtherShape(Rows):
    def next(self):
        batch = super().next()
        batch.data[0] = batch.data[0][:3]
        return batch


class OtherType(Rows):
    def next(self):
        batch = super().next()
        batch.label[0] = batch.label[0].astype("f2")
        return batch


class NoLabel(Rows):
    def next(self):
        batch = super().next()
        batch.label.pop()
        return batch


class OtherPad(Rows):
    def next(self):
        batch = super().next()
        batch.pad = 5
        return batch


class OtherLength(Rows):
    def __len__(self):
        return 7


class Random(Rows):
    def __init__(self):
        super().__init__(seed=int(np.random.default_rng().integers(2**31)))


class OneBuffer(Rows):
    def next(self):
        batch = super().next()
        kept = self.__dict__.setdefault("kept", batch.data[0].copy())
        kept[:] = batch.data[0]
        batch.data[0] = kept
        return batch


class SameAgain(Rows):
    """Stays in an epoch that was left."""

    def reset(self):
        self.set_epoch(self.epoch)


class NoState(Rows):
    def load_state_dict(self, state):
        pass


class Slower(Rows):
    def __init__(self, threads=1):
        super().__init__(seed=threads)


PROVIDERS = {
    OtherShape: r"batch 0: data has shape \(3,\), not \(4,\)",
    OtherType: "batch 0: softmax_label is float16, not .*int64",
    NoLabel: "batch 0 has 1 arrays, 2 are described",
    OtherPad: "batch 0: 5 of 4 samples are padding",
    OtherLength: r"len\(\) is 7, but the epoch has 3 batches",
    Random: "found",
    OneBuffer: "found",
    SameAgain: "the epoch is still 0 after four more",
    NoState: "from a state of epoch 0, reset, 0 items: another first epoch",
}


def test_a_provider_passes():
    check_provider(Rows, variants=[{"prefetch_buffer": 1}])
    check_provider(lambda: ResizeIter(Rows(), 5), resets=False)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_provider_with_a_fault_does_not_pass(kind):
    with pytest.raises(AssertionError, match=PROVIDERS[kind]):
        check_provider(kind)


def test_a_variant_must_change_nothing():
    check_provider(Slower)
    with pytest.raises(AssertionError, match="found"):
        check_provider(Slower, variants=[{"threads": 2}])


def test_states_of_anything_that_has_them():
    class Numbers:
        def __init__(self):
            self.at = 0

        def __iter__(self):
            while self.at < 3:
                self.at += 1
                yield self.at
            self.at = 0

        def state_dict(self):
            return self.at

        def load_state_dict(self, state):
            self.at = state

    check_states(Numbers, empty_loops=True)
    Numbers.load_state_dict = lambda it, state: setattr(it, "at", min(state + 1, 3))
    with pytest.raises(AssertionError, match="a state of epoch 0, before, 0 items"):
        check_states(Numbers)


# -- data sets -------------------------------------------------------------------------------------


class Squares:
    """Integers only."""

    def __len__(self):
        return 4

    def __getitem__(self, number):
        if not -4 <= number < 4:
            raise IndexError(number)
        return (number % 4) ** 2


class Endless(Squares):
    def __getitem__(self, number):
        return (number % 4) ** 2


class FromTheFront(Squares):
    def __getitem__(self, number):
        return super().__getitem__(number if number > 3 else abs(number) % 4)


class Changing(Squares):
    asked = 0

    def __getitem__(self, number):
        self.asked += 1
        return super().__getitem__(number) + self.asked // 5


class Clipped(TransformDataset):
    """Takes a mask that is too long."""

    def __getitem__(self, index):
        return super().__getitem__(index[:5] if isinstance(index, list) else index)


def test_a_data_set_passes():
    check_dataset(Squares(), several=False)
    check_dataset(TransformDataset(range(5), str))
    check_dataset(Changing(), several=False, drawn=True)


@pytest.mark.parametrize(
    ("dataset", "text", "more"),
    [
        (Endless(), "iteration: other examples", {"several": False}),
        (FromTheFront(), "negative integers", {"several": False}),
        (Squares(), "there is an example -1 of 4", {"several": False, "negative": False}),
        (Changing(), "a second time", {"several": False}),
        (Clipped(range(5), str), "a mask that is too long", {}),
        ([], "empty", {}),
    ],
)
def test_a_data_set_with_a_fault_does_not_pass(dataset, text, more):
    with pytest.raises(AssertionError, match=text):
        check_dataset(dataset, **more)


# -- spaces and decoders ---------------------------------------------------------------------------


class Halved(VectorSpace):
    def np_format_as(self, batch, space):
        return super().np_format_as(batch / 2, space)


class NeverEqual(VectorSpace):
    def __eq__(self, other):
        return False

    __hash__ = VectorSpace.__hash__


def test_a_space_with_a_fault_does_not_pass():
    batch = np.arange(6.0).reshape(2, 3)
    check_space(VectorSpace(3), batch, [VectorSpace(3, dtype="float64")])
    with pytest.raises(AssertionError, match=r"found 0.25 .*wanted 1"):
        check_space(Halved(3), batch)
    with pytest.raises(AssertionError, match="after pickling"):
        check_space(NeverEqual(3), batch)


def decode(blob):
    if len(blob) < 20:
        raise ValueError("too short")
    return np.frombuffer(blob, np.uint8)[:20]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda blob: decode(blob)[1:], r"blob 0: found uint8 \(19,\), wanted uint8 \(20,\)"),
        (lambda blob: decode(blob) + np.uint8(1), "blob 0: values differ by 1"),
        (lambda blob: (blob[0], decode(blob))[1], "blob 0 cut off at byte 0: IndexError"),
    ],
)
def test_a_decoder_with_a_fault_does_not_pass(other, text):
    blobs = [bytes(range(30)), bytes(40)]
    check_decoder(decode, decode, blobs)
    with pytest.raises(AssertionError, match=text):
        check_decoder(other, decode, blobs)
    with pytest.raises(AssertionError, match="no blob"):
        check_decoder(decode, decode, [])


# -- packs -----------------------------------------------------------------------------------------


def test_a_pack_is_what_was_asked_for(tmp_path):
    path = write_pack(
        tmp_path / "a.rec", [noise(seed=9), b"text", b""], [1, [2, 3], box_label((0, 0, 0, 1, 1))],
        ids=[7, 8, 9], keys=[5, 1, 3], checksums=True,
    )  # fmt: skip
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.crc", "a.idx", "a.rec"]
    right = {
        "records": 3, "keys": [5, 1, 3], "labels": [1, [2, 3], [2, 5, 0, 0, 0, 1, 1]],
        "ids": [7, 8, 9], "contents": [encode(noise(seed=9)), b"text", b""],
    }  # fmt: skip
    assert check_pack(path, **right).checksums == 3
    for name, wrong in {
        "records": 2, "keys": [1, 3, 5], "labels": [1, 2, 3], "ids": [7, 8, 8],
        "contents": [b"", b"", b""],
    }.items():  # fmt: skip
        with pytest.raises(AssertionError, match=f"{name} are"):
            check_pack(path, **{name: wrong})
    with pytest.raises(AssertionError, match="the record with key 1 is not an image"):
        check_pack(path, images=True)


def test_damage_is_found(tmp_path):
    path = write_pack(tmp_path / "a.rec", 3, checksums=True)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(AssertionError, match="checksum"):
        check_pack(path)
    (tmp_path / "a.crc").unlink()
    check_pack(path)
    (tmp_path / "a.idx").write_text("0\t0\n")
    with pytest.raises(AssertionError, match="a.idx does not list 2 records"):
        check_pack(path)


def test_as_many_labels_as_images(tmp_path):
    with pytest.raises(ValueError, match="1 labels for 2 records"):
        write_pack(tmp_path / "a.rec", 2, [1])
    assert not list(tmp_path.iterdir())


def test_a_pack_of_faces_is_one_to_its_readers(tmp_path):
    path = write_faces(tmp_path / "a.rec", [3, 1, 4])
    check_pack(path, records=12, ids=range(12), images=True)
    with ScannedPack(path) as pack:
        assert (pack.identities, pack.labels.values.tolist()) == (3, [0, 0, 0, 1, 2, 2, 2, 2])


def test_files_and_the_list_of_them(tmp_path):
    names = ["a/0.png", "a/1.jpg", "b/ü.bmp"]
    paths = write_images(tmp_path, 3, names)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == names
    assert [path.read_bytes()[:2] for path in paths] == [b"\x89P", b"\xff\xd8", b"BM"]
    assert write_list(tmp_path / "a.lst", names, ids=[4, 5, 6]).read_text("utf-8").splitlines() == [
        "4\t0\ta/0.png", "5\t1\ta/1.jpg", "6\t2\tb/ü.bmp"
    ]  # fmt: skip


@pytest.mark.libjpeg
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_encoded_without_opencv(channels, monkeypatch):
    image = noise(channels=channels)
    jpeg = encode(image[..., :3], ".jpg")
    monkeypatch.setattr(by_opencv, "available", lambda: False)
    monkeypatch.setitem(sys.modules, "cv2", None)
    np.testing.assert_array_equal(recordio.decode_image(encode(image), channels=channels), image)
    assert encode(image[..., :3], ".jpg") == jpeg
    with pytest.raises(ModuleNotFoundError, match="opencv-python-headless"):
        encode(image, ".png", 16, 9)


# -- comparing -------------------------------------------------------------------------------------


def test_what_is_the_same():
    torch = pytest.importorskip("torch")
    sparse = pytest.importorskip("scipy.sparse")
    nan = float("nan")
    for make in (
        lambda: np.array([1.0, nan]), lambda: nan, lambda: {"a": [np.zeros(2), "b"]},
        lambda: torch.arange(3), lambda: sparse.csr_array(np.eye(2)), lambda: (1, None),
        lambda: np.array([1, "a", None], object),
        lambda: DataBatch([np.zeros(2)], pad=1, index=np.arange(2)),
    ):  # fmt: skip
        assert same(make(), make())
        assert_same([make()], [make()])
    different = [
        np.zeros(2), np.zeros(2, "f4"), np.zeros((2, 1)), np.array([0, nan]), [0.0, 0.0],
        (0.0, 0.0), torch.zeros(2), {"a": 1}, {"b": 1}, {"a": 2}, 1, 1.5, None,
        DataBatch([np.zeros(2)]), DataBatch([np.zeros(2)], pad=1), sparse.csr_array(np.eye(2)),
    ]  # fmt: skip
    for number, first in enumerate(different):
        for second in different[:number]:
            assert not same(first, second) and not same(second, first)


def test_the_first_difference_has_its_place():
    first = DataBatch([np.zeros((2, 2))])
    second = copies([first])[0]
    second.data[0][1, 0] = 5
    with pytest.raises(AssertionError) as caught:
        assert_same([first], [second])
    assert str(caught.value) == "[0]['data'][0][1, 0]: found 0.0 (1 of 4 differ), wanted 5.0"


# -- strategies ------------------------------------------------------------------------------------


@given(strategies.blobs((".png", ".pnm")), strategies.labels(), strategies.payloads())
def test_what_is_drawn_is_valid(blob, label, payload):
    header, content = recordio.unpack(recordio.pack(recordio.IRHeader(0, label, 1, 0), payload))
    assert content == payload
    assert np.atleast_1d(header.label).tolist() == np.atleast_1d(label).tolist()
    assert recordio.unpack_img(recordio.pack(header, blob))[1] is not None


def test_the_checks_need_no_hypothesis():
    program = """
import sys
sys.modules["hypothesis"] = None
import iterators.testing
try:
    import iterators.testing.strategies
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == (
        "hypothesis is needed for iterators.testing.strategies: pip install hypothesis\n"
    )
