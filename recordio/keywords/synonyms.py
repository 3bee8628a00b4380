"""Keywords of other libraries, and which does the same here: the table behind "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_THREADS = {
    name: "It is a number of threads, and no process is started"
    for name in ("preprocess_threads", "threads", "num_thread")
} | {"": "nothing here starts worker processes: providers prepare batches in threads"}
_NO_WORKERS = {"": "there are no worker processes to set up: providers prepare batches in threads"}
_LAST_BATCH = {
    "": "providers take round_batch or last_batch_handle",
    "last_batch_handle": "last_batch_handle='discard' drops a short last batch",
    "last_batch": "last_batch='drop' drops a short last batch",
    "round_batch": "It is about what fills a short last batch, which is never dropped; leave it "
    "out in the loop where batch.pad is above 0",
}
_BATCH_SIZE = {"batch_size": ""}
_AHEAD = {
    "prefetch_buffer": "It is a number of batches, of all threads together",
    "": "providers prepare prefetch_buffer batches ahead",
}
_SEED = {"seed": "It is a number, on which every order and every augmentation depend"}
_FILES = dict.fromkeys(("path_imgrec", "data_csv", "data_libsvm", "image", "path"), "")
_INDEX = {"path_imgidx": "", "index": ""}
_SHAPE = {"data_shape": "For images it is (channels, height, width)"}
_RESIZE = {"resize": "It is the length of the shorter side"} | _SHAPE
_CROP = {"rand_crop": "", "random_resized_crop": ""}
_MIRROR = {"rand_mirror": "rand_mirror=True mirrors one half of the images"}
_MEAN = {"mean_r": "Pixel values go from 0 to 255, and mean_r, mean_g and mean_b are in that scale"}
_STD = {"std_r": "Pixel values go from 0 to 255, and std_r, std_g and std_b are in that scale"}
_RECIPE = {
    "transform": "",
    "recipe": "It is the name of a recipe or its keywords; a function is taken by "
    "ImageRecordDataset(transform=) and ImageIter(aug_list=)",
    "": "functions of images are taken by ImageRecordDataset(transform=) and ImageIter(aug_list=)",
}
_SAMPLER = {
    "weights": "They draw records with replacement; images_per_class draws by class, num_parts "
    "and part_index take one part of several",
    "shuffle": "The order follows from shuffle and seed; num_parts and part_index take one part "
    "of several",
    "": "providers choose records by shuffle, seed, weights, images_per_class and num_parts",
}
_BY_CLASS = {"images_per_class": "classes_per_batch is the number of classes in a batch"}
_OF_RANKS = {
    "": "providers take num_parts and part_index, iterators.torch.RecordBatches rank and world_size"
}
_PARTS = {"num_parts": ""} | _OF_RANKS
_PART = {"part_index": ""} | _OF_RANKS
_DEVICE = {"device": "device='cuda:0' delivers tensors on the first GPU"}
_PINNED = {
    "device": "device='cuda' uploads batches through pinned memory",
    "": "batches of a provider with device='cuda' are uploaded through pinned memory",
}
_COLLATE = {
    "convert": "",
    "data_specs": "It is the form of a batch as spaces and sources; a function is taken by "
    "iterators.torch.RecordBatches(convert=)",
    "": "a function of a batch is taken by iterators.torch.RecordBatches(convert=)",
}
_EPOCHS = {"": "a loop over a provider is one epoch: loop again for the next one"}
_CHANNELS = {"": "data_shape=(channels, height, width) has the number of channels"}

#: For each foreign name the keywords that do the same here, the best one first, each with a
#: sentence about how it differs.  The entry "" is for callees that have none of them.
SYNONYMS: Mapping[str, Mapping[str, str]] = {
    # torch's DataLoader
    "num_workers": _THREADS,
    "drop_last": _LAST_BATCH,
    "collate_fn": _COLLATE,
    "pin_memory": _PINNED,
    "pin_memory_device": _PINNED,
    "prefetch_factor": _AHEAD,
    "persistent_workers": _NO_WORKERS,
    "multiprocessing_context": _NO_WORKERS,
    "worker_init_fn": {"seed": "There are no worker processes, and chance depends on it alone"}
    | _NO_WORKERS,
    "generator": _SEED,
    "sampler": _SAMPLER,
    "batch_sampler": _BY_CLASS | _SAMPLER,
    "num_replicas": _PARTS,
    "world_size": _PARTS,
    "rank": _PART,
    # torchvision and timm
    "transform": _RECIPE,
    "transforms": _RECIPE,
    "augment": _RECIPE,
    "augmentation": _RECIPE,
    "hflip": _MIRROR,
    "horizontal_flip": _MIRROR,
    "flip": _MIRROR,
    "mean": _MEAN,
    "std": _STD,
    "image_size": _SHAPE,
    "img_size": _SHAPE,
    "input_size": _SHAPE,
    "size": _SHAPE,
    "crop_size": _SHAPE,
    "resize_size": _RESIZE,
    "random_crop": _CROP,
    "in_chans": _CHANNELS,
    "num_channels": _CHANNELS,
    # DALI, tf.data and others
    "num_threads": _THREADS,
    "n_threads": _THREADS,
    "workers": _THREADS,
    "n_jobs": _THREADS,
    "device_id": _DEVICE,
    "num_shards": _PARTS,
    "shard_id": _PART,
    "prefetch": _AHEAD,
    "prefetch_size": _AHEAD,
    "buffer_size": _AHEAD,
    "prefetch_queue_depth": _AHEAD,
    "random_state": _SEED,
    "random_seed": _SEED,
    "rng": _SEED,
    "repeat": _EPOCHS,
    "epochs": _EPOCHS,
    "num_epochs": _EPOCHS,
    "batchsize": _BATCH_SIZE,
    "bs": _BATCH_SIZE,
    "path": _FILES,
    "paths": _FILES,
    "root": _FILES,
    "file": _FILES,
    "filename": _FILES,
    "files": _FILES,
    "idx": _INDEX,
    "index_path": _INDEX,
    "path_idx": _INDEX,
}


def synonym(name: str, names: Iterable[str]) -> str:
    """Ask for the known keyword that does what another library calls `name`; empty without one.

    Options of commands are found as well, with their dashes.
    """
    spelled = {_plain(item): item for item in names}
    for target, difference in SYNONYMS.get(_plain(name), {}).items():
        if target and target in spelled:
            return f"did you mean {spelled[target]!r}? {difference}".rstrip()
    return ""


def elsewhere(name: str) -> str:
    """Say how a thing is done here that another library calls `name`; empty without an answer."""
    return SYNONYMS.get(_plain(name), {}).get("", "")


def _plain(name: str) -> str:
    return name.lstrip("-").replace("-", "_")
