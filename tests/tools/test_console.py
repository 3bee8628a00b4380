"""Parts of the console that no command shows by itself."""

import io

from recordio.tools.console import printable


def test_text_that_a_stream_cannot_write_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert printable("\u00e9t\u00e9", stream) == "\\xe9t\\xe9"
    assert printable("ete", stream) == "ete"
