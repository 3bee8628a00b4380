"""libjpeg-turbo beside the copies that torchvision, OpenCV and Pillow bring, in any order."""

import itertools
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytest.importorskip("torch")

#: Of each library a line that imports it, and one that decodes `data` to RGB.
LIBRARIES = {
    "ours": (
        "from recordio import decode_image",
        "decode_image(data)",
    ),
    "opencv": (
        "import cv2",
        "cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]",
    ),
    "torch": (
        "import torch, torchvision.io" if find_spec("torchvision") else "import torch",
        "torchvision.io.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8))"
        ".permute(1, 2, 0).numpy()"
        if find_spec("torchvision")
        else "torch.from_numpy(decode_image(data)).numpy()",
    ),
    "pillow": ("from PIL import Image", "np.asarray(Image.open(io.BytesIO(data)))"),
}
PROGRAM = """
import io, sys
import numpy as np
{imports}
pixels = np.add.outer(np.arange(120), np.arange(160))[..., None] + np.array([0, 40, 90])
encoded = io.BytesIO()
from PIL import Image as Encoder
Encoder.fromarray((pixels % 256).astype(np.uint8)).save(encoded, "jpeg", quality=90)
sound = data = encoded.getvalue()
first = [{calls}]
for data in (sound[:400], sound[:-200], b"no image"):
    for decoder in ({lambdas}):
        try:
            decoder()
        except Exception:
            pass
data = sound
again = [{calls}]
for one, two in zip(first, again):
    assert np.array_equal(one, two)
for other in first[1:]:
    assert np.abs(first[0].astype(int) - other).max() <= 4
"""


#: Those whose order counts; there are no wheels of OpenCV for interpreters without the GIL.
NAMES = ("ours", "opencv", "torch") if find_spec("cv2") else ("ours", "torch")


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)), ids="-".join)
def test_each_decodes_after_imports_in_any_order_and_after_errors(order, tmp_path):
    order = (*order, "pillow")
    program = PROGRAM.format(
        imports="\n".join(LIBRARIES[name][0] for name in order),
        calls=", ".join(LIBRARIES[name][1] for name in order),
        lambdas=", ".join(f"lambda: {LIBRARIES[name][1]}" for name in order),
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
