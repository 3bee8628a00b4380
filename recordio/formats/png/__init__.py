"""PNG without Python and without the GIL: any sound file that OpenCV reads, to the same pixels."""
