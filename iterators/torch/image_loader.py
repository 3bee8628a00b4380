"""`ImageLoader`: batches of a data set of images, in place of torch's ``DataLoader``.

Images are made by the threads of an image provider wherever the data set and its transform are
understood; a data set of its own kind is asked for its samples, in Python.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch

from recordio.keywords.checks import boolean, checked_state, integer
from recordio.packs.classes import names_in_order

from ..core.example_seeds import seeding_batches
from ..core.order import BatchPlan, check_of
from ..core.order.cutting import Position
from ..core.random import derive_key
from ..providers.engine import ChosenBatch
from ..providers.image_provider import RecordImageProvider
from ..providers.processor_images import MOST_IMAGES
from ..providers.report import EpochReport
from ..providers.sample_iterator import chosen_batches, plan_of
from .dlpack import mapped
from .image_sets import (
    ImageSet,
    image_set,
    in_python,
    is_unchanged,
    snapshot,
    translated,
)
from .lazy_loop import LazyLoop, RetakenBatches
from .loader_arguments import (
    IN_THREADS,
    check_indices,
    check_samplers,
    refuse_orders,
    refuse_processes,
    refuse_rest,
    refuse_shapes,
)
from .loader_epochs import Cut, Epochs, LoaderSampler, OrderedEpochs, SampledEpochs
from .processed_samples import ProcessedSamples
from .python_batches import PythonBatches, can_pin, collated, pinned, set_epoch_of
from .world import World, drawn_seed, shared_seed

SAMPLE_KEY = 0x73616D70  # "samp": keeps the seeds of samples apart from others
SEED_BITS = (1 << 64) - 1


class ImageLoader:
    """Batches ``(images, labels)`` of a data set of images, in place of torch's ``DataLoader``.

    The data set's `transform` becomes a recipe, by `NamedRecipe.from_torchvision`, and the images
    are read, decoded and changed by threads that need no Python.  Transforms at the end that have
    no counterpart are called with each finished image.  A data set that is not understood, or a
    transform without a counterpart before the crop, is used as it is, by the data set's own
    ``__getitem__``.  Both raise a warning that names the reason, once.

    Parameters
    ----------
    dataset : object
        A torchvision data set: ``ImageFolder``, ``DatasetFolder``, ``ImageNet``, ``CIFAR10``,
        ``MNIST`` or a subclass that keeps their ``__getitem__`` and ``__len__``; a list of image
        files, of ``(file, label)``, or for a processor of ``(files, label)``; a pack: the path or
        URL of a record file, a list of ``.rec`` files, `Pack`; an `ImageRecordDataset` with a
        `data_shape`; or a `torch.utils.data.Subset` of these.  Any other map-style data set works
        through its ``__getitem__``; with a processor of a vision-language model as `transform` its
        samples are an image or a list of images, a tuple that begins with these, or a dictionary
        with ``images``.
    batch_size : int
        Images in a batch, at least 1.
    shuffle : bool
        A new permutation of all samples in every epoch.
    sampler : iterable of int, optional
        Numbers of the samples of this rank, in ``[0, len(dataset))``, epoch by epoch; it has a
        ``len``.
    batch_sampler : iterable of sequences of int, optional
        The same, batch by batch.
    num_workers : int
        Threads, at least 0.  With 0 there are 4, or `preprocess_threads`; a data set that is used
        through its ``__getitem__`` is then called in the thread of the loop.  Threads share the
        samples of each batch, so ``__getitems__``, where there is one, gets a part of its indices.
    collate_fn : callable, optional
        Called with the list of the samples of a batch, ``(image, label)``; the label is an int.
    pin_memory : bool
        Copy tensors to page-locked memory.  ``device="cuda"`` needs no such copy: images are
        written into page-locked memory and moved from there.
    drop_last : bool
        Leave out a last batch that is short.
    timeout, worker_init_fn, multiprocessing_context : optional
        Refused unless they are the defaults of ``DataLoader``: there are no processes.
    generator : torch.Generator, optional
        Its seed is that of the permutations and of the augmentation.  Without it, and without
        `seed`, one is drawn from torch's default generator, as `DataLoader` does, so that
        `torch.manual_seed` decides; states keep it.
    prefetch_factor : int, optional
        Batches made ahead of the consumer, of all threads together; default 4.
    persistent_workers, pin_memory_device, in_order : optional
        Accepted, and without meaning: batches always come in order, and no process starts.
    transform : NamedRecipe, dict, str, torchvision transform or image processor, optional
        Transform in place of the data set's: a recipe, keywords of `ImageRecordIter`,
        transforms, or an image processor of Hugging Face.  With that of a vision-language model,
        ``batch_patches`` is the budget of a batch, and ``image_counts`` of its dict says how many
        images each sample has where samples have lists.
    seed : int, optional
        Seed in place of `generator`.  It must be the same for all ranks; one that is drawn is that
        of rank 0 where there is a process group.
    rank, world_size : int, optional
        The part of the data for this process: every `world_size`-th position of the order.  By
        default, rank and world size are those of `torch.distributed` if it is initialised, else the
        environment's ``RANK`` and ``WORLD_SIZE``, else 0 and 1.  With a sampler they only tell
        copies of a sample on several ranks apart: it chooses the samples of each rank.
    even : bool
        Give every rank as many samples, for which some come twice.
    epoch : int
        Number of the first epoch.
    **keywords
        Of `ImageRecordIter`: ``data_shape``, ``dtype``, ``layout``, ``device``, ``on_error``,
        ``cache``, ``rand_mirror``, ...; they take precedence over the transform.  With ``fields``,
        which a pack has, batches are ``(images, field, ..., labels)``, arrays before texts, which
        are lists; packed objects are refused.  With ``buckets`` or a list of shapes as
        ``data_shape`` each batch has its shape; with ``patches`` the images are a dict of
        ``patches``, ``patch_coord`` and ``patch_valid``, with the processor of a vision-language
        model as `transform` a dict of its tensors, with ``data_shape=None`` a list of tensors, or
        for ``ragged="buffer"`` a dict of one tensor with its ``offsets`` and ``sizes``.

    Raises
    ------
    TypeError
        For a data set without indices, a keyword that does not exist, and a transform that neither
        a recipe nor a data set in Python can carry out.
    ValueError
        For values that are out of range or contradict one another.
    RecordIOError
        If a pack is damaged; in the loop also if an image is.

    Warns
    -----
    UserWarning
        If the samples are made by the data set's own ``__getitem__``, or if transforms run in
        Python after the threads, with the reason.

    Attributes
    ----------
    dataset, batch_size, batch_sampler, num_workers, collate_fn, pin_memory, drop_last, generator
        As given.
    sampler : iterable of int or None
        As given; without one the samples of this rank in the epoch that runs or comes next, with
        the ``set_epoch`` that frameworks look for there.  None beside a `batch_sampler`.
    classes : list of str or None
        Names of the classes; None where there are none.
    class_to_idx : dict of str to int or None
        The label of each of them.
    recipe : NamedRecipe or None
        What the transform has become; print it to see the keywords.

    See Also
    --------
    RecordBatches : the batches of any provider.

    Notes
    -----
    Each loop is the next epoch, with a new order; `set_epoch` sets the number of the next one.  An
    epoch depends on the seed and its number alone, as those of `ImageRecordIter` do, and not on
    threads.  Transforms in Python have a seed for each sample as well, except in threads.

    Examples
    --------
    >>> import os, tempfile
    >>> from PIL import Image
    >>> folder = tempfile.TemporaryDirectory()
    >>> for i in range(3):
    ...     Image.new("RGB", (9, 9), (i, i, i)).save(os.path.join(folder.name, f"{i}.png"))
    >>> files = [(os.path.join(folder.name, f"{i}.png"), i) for i in range(3)]
    >>> loader = ImageLoader(files, batch_size=2, data_shape=(3, 8, 8))
    >>> for images, labels in loader:
    ...     print(tuple(images.shape), labels)
    (2, 3, 8, 8) tensor([0, 1])
    (1, 3, 8, 8) tensor([2])
    >>> loader.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: None = None,
        multiprocessing_context: None = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        transform: Any = None,
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        even: bool = True,
        epoch: int = 0,
        **keywords: Any,
    ) -> None:
        refuse_processes(timeout, worker_init_fn, multiprocessing_context)
        refuse_orders(keywords)
        self.dataset: Any = dataset
        self._sampler = sampler
        self.batch_sampler: Iterable[Sequence[int]] | None = batch_sampler
        self.batch_size: int = integer("batch_size", batch_size, low=1)
        self.drop_last: bool = boolean("drop_last", drop_last)
        self.num_workers: int = integer("num_workers", num_workers, low=0)
        self.collate_fn = collate_fn
        self.generator: Any | None = generator
        self.pin_memory: bool = boolean("pin_memory", pin_memory)
        self._pins = self.pin_memory and can_pin()
        shuffle = boolean("shuffle", False if shuffle is None else shuffle)
        check_samplers(self.batch_size, shuffle, sampler, batch_sampler, self.drop_last)
        if seed is not None and generator is not None:
            raise ValueError("seed and generator both set the random numbers: give one of them")
        self._draws_seed = seed is None and generator is None
        self._seed = drawn_seed() if seed is None else integer("seed", seed)
        if generator is not None:
            self._seed = generator.initial_seed()
        self._ahead = integer(
            "prefetch_factor", 4 if prefetch_factor is None else prefetch_factor, 1
        )
        self._process = os.getpid()
        self._world = World(rank, world_size)
        self._reported = EpochReport()  # of a provider that was closed
        self._asked = transform, keywords, prefetch_factor, shuffle, boolean("even", even)
        self._provider: RecordImageProvider | None = None
        self._seen: list[Any] = []
        self._processed: ProcessedSamples | None = None
        self._said = ""  # why samples are made in Python
        self._settle()
        self._position = Position(integer("epoch", epoch, low=0))
        self._begun: dict[str, Any] | None = None  # what is to be saved of the running epoch
        self._resume: tuple[Position, Mapping[str, Any]] | None = None
        self._loop: object = None  # the newest, to which the position belongs

    def _settle(self) -> None:
        """Find out what the data set is now, and who makes its images."""
        self.close()
        transform, keywords, prefetch_factor, shuffle, even = self._asked
        keywords, dataset = dict(keywords), self.dataset
        # Another seed asks for no other costs, for which all samples are looked at.
        samples = self._processed
        costs = samples.costs if samples is not None and is_unchanged(dataset, self._seen) else None
        self._seen = snapshot(dataset)
        self._python = PythonBatches(dataset, self.num_workers, self._ahead)
        images = image_set(dataset, keywords)
        self.recipe, images, tail = translated(images, transform, keywords)
        self._images = images
        of_patches = self.recipe is not None and self.recipe.rule and keywords.get("batch_patches")
        if of_patches and self.batch_size == 1:
            self.batch_size = MOST_IMAGES
        self._keywords = self._of_provider(images, keywords, prefetch_factor)
        if tail:
            images = self._with_tail(images, tail)
        self._indices = images.indices
        self._processed = None
        if images.open is None:
            if self.recipe is not None and self.recipe.rule is not None:
                self._processed = self._with_processor(self.recipe.rule, keywords, costs)
            refuse_rest(images, keywords)
            self._count = len(dataset)
            if images.reason != self._said:  # once, also where the data set grows
                warnings.warn(
                    f"{images.name}: {images.reason}.  Its samples are made by its own __getitem__ "
                    f"in Python, {IN_THREADS if self.num_workers else ''}which is slower",
                    UserWarning,
                    stacklevel=3,
                )
            self._said = images.reason
        else:
            plan = plan_of(self._own_provider())
            count = plan.order.count()
            refuse_shapes(
                plan,
                keywords,
                sampler=self._sampler,
                batch_sampler=self.batch_sampler,
                drop_last=self.drop_last,
                collate_fn=self.collate_fn,
            )
            self._count = count if self._indices is None else len(self._indices)
            check_indices(images.name, self._indices, count)
        self._classes, self._class_to_idx = images.classes, images.class_to_idx
        if self._provider is not None and images.class_to_idx is None:
            self._class_to_idx = self._provider.class_to_idx or None
        self._epochs = self._made_epochs(shuffle, self._world, even)

    def _with_processor(
        self, rule: Any, keywords: dict[str, Any], costs: np.ndarray | None
    ) -> ProcessedSamples:
        """Have a processor make the batches of a data set in Python; takes its keywords out."""
        options = {name: keywords.pop(name, None) for name in ("batch_patches", "dtype")}
        budget = options["batch_patches"]
        budget = 0 if budget is None else integer("batch_patches", budget, low=1)
        if self.collate_fn is not None:
            raise ValueError("collate_fn gets images, which a processor puts together: drop it")
        if budget and (self._sampler is not None or self.batch_sampler is not None):
            raise ValueError(
                "batch_patches choose the images of a batch, and so does a sampler: drop one of "
                "both"
            )
        threads = 1 if self.num_workers else None
        made = ProcessedSamples(self.dataset, rule, options["dtype"], budget, threads, costs)
        self._python = PythonBatches(made, self.num_workers, self._ahead)
        return made

    def _follow(self) -> None:
        """Do as the data set says if it was changed: its length, transform, samples or labels."""
        if not is_unchanged(self.dataset, self._seen):
            self._settle()

    def _agree(self) -> None:
        """Shuffle by the same seed on all ranks."""
        if self._draws_seed and self._asked[3]:
            self._take_seed(shared_seed(self._seed, *self._world.get()))

    def _take_seed(self, seed: int) -> None:
        """Go on with the seed of a state, or of another rank."""
        self._draws_seed = False
        if seed != self._seed:
            self._seed = seed
            self._settle()

    # -- what is asked for ------------------------------------------------------------------------

    def _of_provider(
        self, images: ImageSet, keywords: Mapping[str, Any], prefetch_factor: int | None
    ) -> dict[str, Any]:
        """Return the keywords of the provider of all images."""
        for name, mine, theirs in (
            ("preprocess_threads", self.num_workers, "num_workers"),
            ("prefetch_buffer", prefetch_factor, "prefetch_factor"),
        ):
            if name in keywords and mine:
                raise ValueError(f"{name} and {theirs} mean the same: give one of them")
        all_keywords = {"device": "cpu", "seed": self._seed, **images.keywords, **keywords}
        if self.recipe is not None:
            all_keywords["recipe"] = self.recipe
        if self.num_workers:
            all_keywords["preprocess_threads"] = self.num_workers
        if prefetch_factor is not None:
            all_keywords["prefetch_buffer"] = self._ahead
        if all_keywords.get("label_name", "") is not None:
            all_keywords.setdefault("label_dtype", "int64")
        return {**all_keywords, "batch_size": self.batch_size}

    def _with_tail(self, images: ImageSet, reason: str) -> ImageSet:
        """Open a provider whose recipe ends in Python; without it if that makes no images."""
        assert self.recipe is not None
        try:
            self._own_provider()
        except Exception as error:  # of functions that anybody may have written
            if images.transform is None:
                raise
            self.recipe = None
            self._images = in_python(images, f"{reason}, and at the end of a recipe: {error}")
            return self._images
        warnings.warn(
            f"{images.name}: {reason}.  {', '.join(self.recipe.tail_names)} run in Python, for one "
            "image after the other in the thread of the loop, which is slower",
            UserWarning,
            stacklevel=4,
        )
        return images

    def _made_epochs(self, shuffle: bool, world: World, even: bool) -> Epochs:
        cut, seed = self._cut, self._seed
        if self.batch_sampler is not None:
            return SampledEpochs(self._count, self.batch_sampler, None, False, world, cut, seed)
        if self._sampler is not None:
            size, drop_last = self.batch_size, self.drop_last
            return SampledEpochs(self._count, self._sampler, size, drop_last, world, cut, seed)
        return OrderedEpochs(
            self._count,
            self.batch_size,
            world,
            shuffle=shuffle,
            seed=seed,
            even=even,
            tail="drop" if self.drop_last else "pad",
            cut=cut,
        )

    @property
    def _cut(self) -> Cut:
        """Return what epochs are cut by: batches of one shape, or of those of the provider."""
        if self._processed is not None and self._processed.costs is not None:
            return self._processed.cut
        plan = None if self._provider is None else plan_of(self._provider)
        if plan is None or not plan.shaped:
            return BatchPlan
        indices = self._indices  # without the loader: nothing keeps its threads once it is dropped
        return lambda order, _, tail: plan.over(order, tail, indices)

    # -- what there is ----------------------------------------------------------------------------

    @property
    def classes(self) -> list[str] | None:
        """Names of the classes, in the order of their labels; None where there are none."""
        if self._classes is not None:
            return list(self._classes)
        return names_in_order(self._class_to_idx) if self._class_to_idx else None

    @property
    def class_to_idx(self) -> dict[str, int] | None:
        """The label of each class; None where there are no names."""
        return None if self._class_to_idx is None else dict(self._class_to_idx)

    @property
    def sampler(self) -> Iterable[int] | None:
        """As given; without one the samples of this rank, with a ``set_epoch``."""
        if self._sampler is None and isinstance(self._epochs, OrderedEpochs):
            return LoaderSampler(self, self._epochs)
        return self._sampler

    @property
    def epoch(self) -> int:
        """Number of the running epoch; between loops, of the next one."""
        return self._position.epoch

    @property
    def provider(self) -> RecordImageProvider | None:
        """The provider of the images; None where the data set makes them, and after `close`."""
        return self._provider

    def __len__(self) -> int:
        """Return the batches of an epoch of this rank."""
        self._follow()
        return self._epochs.batch_count(self.epoch)

    def __repr__(self) -> str:
        how = "in Python" if self._images.open is None else "by threads"
        return (
            f"<{type(self).__name__} of {self._images.name}: {self._count} samples, batches of "
            f"{self.batch_size}, made {how}, epoch {self.epoch}>"
        )

    # -- loops ------------------------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, also for a sampler that has ``set_epoch``.

        After a state of that same epoch was loaded, the rest of the epoch is still delivered.

        Raises
        ------
        ValueError
            If it is below 0.
        """
        epoch = integer("epoch", epoch, low=0)
        if self._resume is not None and self._resume[0].epoch == epoch:
            return
        self._epochs.set_epoch(epoch)
        self._resume = self._begun = self._loop = None
        self._position = Position(epoch)

    def __iter__(self) -> Iterator[Any]:
        # A loop counts from its first batch on: loaders ask for iterators that they do not use.
        return LazyLoop(self._begin)

    def _begin(self) -> Callable[[], tuple[Any] | None]:
        """Begin an epoch, or the rest of one; returns what makes the next batch of it."""
        self._follow()
        self._agree()
        if self._resume is not None:
            (position, saved), self._resume = self._resume, None
        else:
            running = self._begun is not None
            position, saved = Position(self._position.epoch + running), {}
        begun = self._epochs.begin(position.epoch, saved)
        if self._images.open is None:
            set_epoch_of(self.dataset, position.epoch)
        own = None if self._images.open is None else self._own_provider()
        loop = self._loop = object()
        self._position, self._begun = position, begun
        batches = RetakenBatches(self._epochs.batches(*position))
        made = self._made(batches, position)

        def move(done: int) -> None:
            nonlocal position
            batches.leave()
            position = Position(position.epoch, done)
            if self._loop is loop:
                self._position = position

        def step() -> tuple[Any] | None:
            nonlocal made, loop
            try:
                pair = next(made, None)
            except BaseException as error:
                if self._provider is not own:  # closed, or changed with the data set: it is over
                    made, loop = iter(()), object()
                    raise
                # The generators are over: what was made ahead is made again, but not what failed.
                batches.take_again()
                if isinstance(error, Exception) and (failed := next(batches, None)) is not None:
                    move(failed.done)
                made = self._made(batches, position)
                raise
            if pair is not None:
                move(pair[1])
                return pair[:1]
            if self._loop is loop:
                self._position, self._begun = Position(position.epoch + 1), None
            return None

        return step

    def _made(
        self, batches: Iterator[ChosenBatch], position: Position
    ) -> Iterator[tuple[Any, int]]:
        """Yield every batch, with the positions that are done behind it."""
        pairs = (
            self._python.fetched(
                batches,
                position.epoch,
                self._epochs.largest,
                self.collate_fn if self._processed is None else self._processed.collate,
                self._seeds(position),
            )
            if self._images.open is None
            else self._read(batches, position)
        )
        own = self._provider
        times = self._python.times if own is None else own._provider_times
        pin = times.timing("upload", pinned)
        for batch, done in pairs:
            yield (mapped(batch, pin) if self._pins else batch), done

    def _read(
        self, batches: Iterator[ChosenBatch], position: Position
    ) -> Iterator[tuple[Any, int]]:
        """Yield batches of the provider."""
        seeds, of_batches = self._seeds(position), deque[list[int]]()
        ends = self.recipe is not None and bool(self.recipe.tail)

        def chosen() -> Iterator[ChosenBatch]:
            for batch in batches:
                of_batches.append(seeds(batch.rows) if ends else [])
                yield self._chosen(batch)

        provider = self._own_provider()
        provider.set_epoch(position.epoch)
        draws = self._epochs.draws(position.done)
        labelled = bool(provider.provide_label)
        phase = "collate" if self.collate_fn is None else "python"
        collate = provider._provider_times.timing(phase, collated)
        made = chosen_batches(provider, chosen(), self._epochs.largest, draws)
        while True:
            with seeding_batches(lambda: of_batches[0]):
                pair = next(made, None)
            if pair is None:
                return
            of_batches.popleft()
            parts, done = pair
            yield collate(parts, labelled, self.collate_fn), done

    def _chosen(self, batch: ChosenBatch) -> ChosenBatch:
        """Return a batch with the numbers that its samples have among all images."""
        if self._indices is None:
            return batch
        own, others = self._indices.__getitem__, batch.others
        if others is not None:
            batch = batch._replace(
                others=lambda slot: ((own(row), *size) for row, *size in others(slot))
            )
        return batch._replace(rows=own(batch.rows))

    def _seeds(self, position: Position) -> Callable[[np.ndarray], list[int]]:
        """Return what gives the seeds of samples, batch by batch from a position on."""
        draws = self._epochs.draws(position.done) or itertools.repeat(0)
        key, epoch = derive_key(self._seed & SEED_BITS, SAMPLE_KEY), position.epoch
        return lambda rows: [
            derive_key(key, epoch, row, draw)
            for row, draw in zip(rows.tolist(), draws, strict=False)
        ]

    def _own_provider(self) -> RecordImageProvider:
        """Return the provider of all images, made in this process."""
        if self._provider is None or self._process != os.getpid():
            assert self._images.open is not None
            self._provider = self._images.open(self._keywords)
            self._process = os.getpid()
        return self._provider

    def report(self, advise: bool = True) -> EpochReport:
        """Return where the time of the last epoch went, or of the running one so far.

        Parameters
        ----------
        advise : bool
            As for the `report` of a provider.
        """
        if self._images.open is not None:
            return self._reported if self._provider is None else self._provider.report(advise)
        return self._python.report(advise)

    # -- states -----------------------------------------------------------------------------------

    def _settings(self) -> dict[str, str]:
        """Return what a state must agree with."""
        settings = {"dataset": type(self.dataset).__name__}  # its root may lie elsewhere
        if self._images.open is not None:
            settings = self._own_provider().state_dict()["settings"]
            if plan_of(self._own_provider()).shaped:
                settings.setdefault("shapes", settings["order"])
        elif self._processed is not None:
            settings["processor"] = self._processed.described()
        if self._indices is not None:
            settings["indices"] = check_of(self._indices)
        return {**settings, **self._epochs.described()}

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run, from which it can continue exactly.

        Returns
        -------
        dict
            Numbers and text only; a sampler adds its state, or a few kilobytes of its generator's.
            Only what was delivered counts.  Without a sampler the state of one rank serves all
            ranks, of any number.
        """
        if self._resume is not None:
            position, saved = self._resume
        else:
            position = self._position
            saved = self._epochs.saved() if self._begun is None else self._begun
        return {
            "epoch": position.epoch,
            "done": position.done,
            "sampler": dict(saved),
            "settings": self._settings(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; the next loop delivers the rest of that epoch.

        Raises
        ------
        ValueError
            If the state is incomplete or belongs to other data or settings; the difference is
            named.  If a sampler cannot give the same samples again, the loop raises the error.
        """
        for name, value in checked_state(state, "sampler", "settings").items():
            if name in ("sampler", "settings") and not isinstance(value, Mapping):
                raise ValueError(f"the state has {name}={value!r:.60}: expected a dictionary")
        position = Position.saved(state, done="done")
        if self._draws_seed and str(state["settings"].get("seed", "")).isdecimal():
            self._take_seed(int(state["settings"]["seed"]))
        mine = self._settings()
        # Those of older releases have no seed where there is a sampler.
        saved = {"seed": mine.get("seed"), **state["settings"]}
        for name in [*mine, *saved]:
            if saved.get(name) != mine.get(name):
                raise ValueError(
                    f"the state was saved with {name}={saved.get(name)}, this loader has "
                    f"{name}={mine.get(name)}"
                )
        self._resume = position, state["sampler"]
        self._position, self._begun, self._loop = position, None, None

    # -- life -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop all threads; the next loop starts new ones.  Idempotent."""
        provider, self._provider = self._provider, None
        if provider is not None and self._process == os.getpid():
            self._reported = provider.report(advise=False)
            provider.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled or copied, it has threads of its own: make "
            "it where it is used, and hand over state_dict() to go on where this one is"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
