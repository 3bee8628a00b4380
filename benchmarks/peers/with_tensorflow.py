"""TensorFlow on the CPU: `tf.data` over four TFRecord files of the JPEGs.

`num_parallel_calls` and `private_threadpool_size` are the threads given, one thread inside an
operation, order not kept (`deterministic=False`), a shuffle buffer of 1,024, `prefetch(2)`.  Random
resized crops by `decode_and_crop_jpeg`, which decodes the part only.  Bilinear without
antialiasing; mirrored and normalised as batches.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf
from protocol import Unsupported, serve

FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64, default_value=0),
}


def decoded(jpeg, recipe):
    """The part of the image that the recipe wants, resampled."""
    size = (recipe.size, recipe.size)
    if recipe.crop == "random_resized":
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(jpeg),
            tf.zeros([1, 0, 4]),
            area_range=recipe.area,
            aspect_ratio_range=recipe.aspect,
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], extent[:2]], axis=0)
        image = tf.io.decode_and_crop_jpeg(jpeg, window, channels=3)
        return tf.image.resize(image, size)
    image = tf.io.decode_jpeg(jpeg, channels=3)
    if recipe.short_side:
        shape = tf.cast(tf.shape(image)[:2], tf.float32)
        shape = shape * recipe.short_side / tf.reduce_min(shape)
        image = tf.image.resize(image, tf.cast(tf.round(shape), tf.int32))
    if recipe.crop == "random":
        image = tf.image.random_crop(image, (*size, 3))
    return tf.ensure_shape(image, (*size, 3))


def images(job, files, threads):
    """Batches of one epoch after the other."""
    recipe = job.recipe
    if recipe.extra:
        raise Unsupported("no such recipe of one call")
    if job.pack == "png_photos":
        raise Unsupported("it decodes parts of JPEG alone")
    mean = tf.reshape(tf.constant(recipe.mean), (3, 1, 1))
    scale = 1 / tf.reshape(tf.constant(recipe.std), (3, 1, 1))

    def sample(record):
        example = tf.io.parse_single_example(record, FEATURES)
        return decoded(example["image/encoded"], recipe), example["image/class/label"]

    def normalised(batch, labels):
        batch = tf.transpose(tf.image.random_flip_left_right(batch), (0, 3, 1, 2))
        return (tf.cast(batch, tf.float32) - mean) * scale, labels

    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    options.deterministic = False
    batches = (
        tf.data.TFRecordDataset(files["tfrecord"])
        .shuffle(1024)
        .repeat()
        .map(sample, num_parallel_calls=threads)
        .batch(job.batch, drop_remainder=True)
        .map(normalised)
        .prefetch(2)
        .with_options(options)
    )
    for batch, _labels in batches:
        yield batch.shape[0]


if __name__ == "__main__":
    serve({"TensorFlow": tf.__version__}, images=images)
