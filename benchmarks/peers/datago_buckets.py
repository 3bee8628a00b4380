"""Images of a folder in datago's buckets: prints how many, and their seconds of processor time."""

import json
import sys
import time

from datago import DatagoClient

FOLDER, SIDE, STEP, RATIO, COUNT = sys.argv[1], *map(float, sys.argv[2:])

CONFIG = {
    "source_type": "file",
    "source_config": {"root_path": FOLDER, "random_sampling": False, "rank": 0, "world_size": 1},
    "limit": int(COUNT),
    "samples_buffer_size": 32,
    "image_config": {
        "crop_and_resize": True,
        "default_image_size": int(SIDE),
        "downsampling_ratio": int(STEP),
        "min_aspect_ratio": 1 / RATIO,
        "max_aspect_ratio": RATIO,
        "pre_encode_images": False,
    },
}

start, images = time.process_time(), 0
client = DatagoClient(json.dumps(CONFIG))
client.start()
while (sample := client.get_sample()) is not None:
    sample.image.to_numpy_array()
    images += 1
print(images, time.process_time() - start)
