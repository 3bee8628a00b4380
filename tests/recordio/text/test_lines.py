"""Chunks of text end where lines end."""

from recordio.text.lines import LineChunks


def test_lines_of_the_header_are_left_out_and_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,2\n3,4")
    with LineChunks(path, 8, skip_header=1) as chunks:
        chunk = chunks.read()
        assert (chunk.first_line, bytes(chunk.buffer[: chunk.length])) == (2, b"1,2\n")
