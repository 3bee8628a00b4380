"""Plain script over OpenCV, the reference for `im2rec --resize 256 --quality 95`.

``python benchmarks/opencv_loop.py FOLDER TARGET`` reads, resizes and encodes one image after the
other, in one process and one thread, and writes them to a record file.  It imports nothing that it
does not need.
"""

import sys
from pathlib import Path

import cv2

from recordio import IRHeader, RecordWriter, pack


def main(folder, target):
    """Pack every file below `folder` into the record file `target`."""
    cv2.setNumThreads(1)
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    with RecordWriter(target) as writer:
        for number, path in enumerate(files):
            image = cv2.imread(str(path))
            height, width = image.shape[:2]
            size = (256, height * 256 // width) if width < height else (width * 256 // height, 256)
            image = cv2.resize(image, size)
            encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])[1]
            writer.write(pack(IRHeader(0, 0.0, number, 0), encoded.tobytes()))


if __name__ == "__main__":
    main(*sys.argv[1:])
