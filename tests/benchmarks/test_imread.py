"""Our decoder in a checkout of imread_benchmark."""

import ast
import tomllib

import imread
import pytest

TABLE = '[project.entry-points."imread_benchmark.decoders"]\npillow = "a:B"\n'
DOTTED = '[project]\nentry-points."imread_benchmark.decoders".pillow = "a:B"\n'


@pytest.mark.parametrize("text", [TABLE, DOTTED])
def test_a_checkout_gets_the_module_and_its_entry_point(tmp_path, text):
    (tmp_path / "imread_benchmark" / "decoders").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(text)
    imread.put_into(tmp_path)
    found = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert found["project"]["entry-points"]["imread_benchmark.decoders"] == {
        "recordio": "imread_benchmark.decoders.recordio_decoder:RecordioDecoder",
        "pillow": "a:B",
    }
    module = tmp_path / "imread_benchmark" / "decoders" / "recordio_decoder.py"
    names = [getattr(part, "name", "") for part in ast.parse(module.read_text()).body]
    assert "RecordioDecoder" in names


def test_another_version_is_left_as_it_is(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(SystemExit, match="another version"):
        imread.put_into(tmp_path)
    assert (tmp_path / "pyproject.toml").read_text() == "[project]\n"
