"""Output is refused before any work, and a folder gets its name when it is whole."""

import pytest

from recordio import RecordIOError
from recordio.tools.outputs import check_outputs, new_folder, url_refused


def test_urls_are_refused_with_a_way_to_fetch_them():
    message = url_refused("s3://bucket/train.rec")
    assert message.startswith("a URL, where a path of this machine is needed: ")
    assert "aws s3 cp" in message
    assert url_refused("data/train.rec") == ""


def test_a_folder_that_is_missing_is_noticed_before_any_work(tmp_path):
    with pytest.raises(RecordIOError, match="the folder for the output does not exist"):
        check_outputs([str(tmp_path / "no" / "a.rec")], force=False)
    check_outputs([str(tmp_path / "a.rec")], force=False)


def test_a_folder_appears_at_the_end(tmp_path):
    path = tmp_path / "new"
    with new_folder(str(path)) as folder:
        with open(f"{folder}/a.txt", "w") as file:
            file.write("a")
        assert not path.exists()
    assert [file.name for file in path.iterdir()] == ["a.txt"]
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


def test_a_folder_that_fails_is_not_there(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(str(tmp_path / "new")):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
