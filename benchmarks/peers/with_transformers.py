"""transformers: the image processor of the class, with Pillow's or torchvision's backend.

Pillow decodes; lists of 8 images, tensors of torch, one thread.
"""

import io
import sys
from functools import partial

import torch
import torchvision
import transformers
from PIL import Image
from protocol import serve
from with_decoder import batches_of


def processor(suffix, job, files, threads):
    """Tensors of one batch after the other."""
    torch.set_num_threads(1)
    settings = dict(job.processor)
    kind = getattr(transformers, settings.pop("image_processor_type") + suffix)
    call = {key: settings.pop(key) for key in ("crop_to_patches",) if key in settings}
    made = kind(**settings)
    for blobs in batches_of(files, job.batch):
        images = [Image.open(io.BytesIO(blob)).convert("RGB") for blob in blobs]
        made(images, return_tensors="pt", **call)
        yield len(blobs)


if __name__ == "__main__":
    versions = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "Pillow": Image.__version__,
    }
    serve(versions, processor=partial(processor, sys.argv[1]))
