"""Packs of a set that do not belong together are noticed, and so is damage in one of them."""

import numpy as np
import pytest

from iterators.testing import encode, noise, write_images, write_pack
from recordio.packs.check import check_pack
from recordio.packs.open_pack import open_pack
from recordio.tools.info import collect_info, format_info


def write_set(folder, images=3, masks=None, keys=None):
    path = write_pack(folder / "a.rec", images)
    masks = [np.zeros((24, 28, 3), np.uint8)] * 3 if masks is None else masks
    write_pack(folder / "a.mask.rec", masks, keys=keys)
    return path


def problems(path):
    return [str(problem) for problem in check_pack(open_pack(path, skip_errors=True)).problems]


def test_a_set_is_whole(tmp_path):
    path = write_set(tmp_path)
    assert problems(path) == []
    info = collect_info(str(path), progress=False)
    assert info.ok and info.fields == {"mask": 3}
    assert "mask: 3" in format_info(info)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "a.idx", "a.mask.idx", "a.mask.rec", "a.rec",
    ]  # fmt: skip


def test_keys_and_sizes_that_differ(tmp_path):
    masks = [noise(24, 28), noise(28, 24), noise(24, 28)]
    path = write_set(tmp_path, masks=masks, keys=[0, 1, 7])
    assert problems(path) == [
        "field mask: 1 with no record: keys 2",
        "field mask: 1 with no image, but a record: keys 7",
        "field mask: 1 with another size than the image (24x28, not 28x24): keys 1",
    ]
    many = write_set(tmp_path, images=20)
    assert problems(many) == ["field mask: 17 with no record: keys 3, 4, 5, 6, 7, ..."]


@pytest.mark.parametrize("cut", [1, 200])
def test_damage_in_a_field(tmp_path, cut):
    path = write_set(tmp_path)
    field = tmp_path / "a.mask.rec"
    field.write_bytes(field.read_bytes()[:-cut])
    assert any("field mask" in one and "a.mask.rec" in one for one in problems(path))
    (tmp_path / "a.mask.idx").write_text("nonsense\n")
    assert any("field mask" in one for one in problems(path))


def test_text_has_no_size(tmp_path):
    path = write_set(tmp_path, masks=[b"a", b"b", b""])
    assert problems(path) == []


def test_a_tar_with_masks_of_other_sizes(tmp_path):
    import tarfile

    write_images(tmp_path, [noise(8, 9), noise(9, 8)], ["0.png", "0.mask.png"])
    (tmp_path / "0.cls").write_text("1")
    (tmp_path / "1.png").write_bytes(encode(noise(8, 9)))
    (tmp_path / "1.cls").write_text("1")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("0.png", "0.mask.png", "0.cls", "1.png", "1.cls"):
            tar.add(tmp_path / name, name)
    assert problems(tmp_path / "a.tar") == [
        "field mask: 1 with no record: keys 1",
        "field mask: 1 with another size than the image (8x9, not 9x8): keys 0",
    ]


@pytest.mark.libjpeg
def test_optimized_and_repaired_packs_have_their_fields(tmp_path):
    from recordio.tools import cli

    path = write_set(tmp_path)
    assert cli.main(["optimize", str(path), str(tmp_path / "b")]) == 0
    assert cli.main(["check", str(path), "--repair", str(tmp_path / "c")]) == 0
    for name in "bc":
        for end in ("rec", "idx"):
            mask = (tmp_path / f"{name}.mask.{end}").read_bytes()
            assert mask == (tmp_path / f"a.mask.{end}").read_bytes()
        assert problems(tmp_path / f"{name}.rec") == []
