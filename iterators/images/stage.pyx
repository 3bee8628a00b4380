# build: small
"""The image stage: a pool of threads that turns records into batches.

Batches are submitted as lists of record numbers and collected in the same order.  Each sample is a
*ticket* for one *slot* of one batch; threads take tickets in order across batch boundaries, so no
thread waits for the slowest image of a batch.  A worker thread gives the GIL back when it starts
and takes it again only for images that need Python to decode them.

A batch has the shape of the plan, or another one for itself or for each of its slots; its memory is
used again when nobody refers to it any more.  Records that differ in what becomes of them - those
of several packs, say - are *groups* with plans of their own.  What a slot will contain depends on
the record, the epoch and the plan - never on the thread, the number of threads or their timing.
The stage knows nothing of orders, epochs' ends or labels' names.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from iterators.images.augment.geometry cimport Target
from iterators.images.det_render cimport MOSAIC_IMAGES, Mosaic, Partners
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport MAX_VIEWS, Renderer, Slot
from iterators.images.sources.source cimport FETCH_OK, Encoded, Scratch, Source
from iterators.images.workers cimport FieldSet, FieldWorkers, PlanGroups, StageWorkers
from recordio.counter cimport counter_add, counter_load, counter_store, seconds_add
from recordio.formats.status cimport RENDER_OK, Outcome, outcome_error
from recordio.sync cimport (
    sync_condition, sync_condition_destroy, sync_condition_init, sync_lock, sync_mutex,
    sync_mutex_destroy, sync_mutex_init, sync_now, sync_thread_seconds, sync_unlock, sync_wait,
    sync_wait_ms, sync_wake_all,
)

import os
import threading
from math import prod

import numpy as np

from ..core.pool import BufferPool


class SeparateArrays(list):
    """The images of a batch where every slot has a size of its own.

    They lie one behind the other in an array of one axis, `values`, unless one was replaced.
    """

    values = None

    @property
    def shape(self):
        """The number of images alone."""
        return (len(self),)

    @property
    def dtype(self):
        """That of every array."""
        return self[0].dtype

    def joined(self):
        """Return all values in one array of one axis."""
        if self.values is None:
            return np.concatenate([array.reshape(-1) for array in self])
        return self.values


class PatchArrays(list):
    """The patches of a batch, the row and column of each in its image, and which of them there are.

    They have the shapes (slots, patches, values), (slots, patches, 2), int64, and (slots, patches).
    """


cdef class BatchMemory:
    """Makes the arrays of batches of a plan and of its views.

    Memory is allocated by ``allocate(nbytes)``, and `keep` free pieces of it are kept.
    """

    cdef readonly list plans        # of an image, or of each of its views
    cdef readonly Py_ssize_t num_views
    cdef readonly Py_ssize_t num_arrays     # of images in a batch, views or parts of patches
    cdef list pools                 # of memory for each of them

    def __init__(self, RenderPlan plan not None, Py_ssize_t batch_size, Py_ssize_t keep, allocate):
        cdef RenderPlan view
        self.plans, self.pools = [plan, *plan.views], []
        self.num_views = len(self.plans)
        if self.num_views > MAX_VIEWS:
            raise ValueError(f"{self.num_views} views: at most {MAX_VIEWS} are possible")
        self.num_arrays = 3 if plan.patch else self.num_views
        for view in self.plans:
            nbytes = 0 if view.patch else prod(view.shape(batch_size)) * view.item_size
            self.pools.append(BufferPool(nbytes, keep=keep, allocate=allocate))

    def own_arrays(self, list data):
        """Return what `make` made of a batch that has fields behind it."""
        if (<RenderPlan>self.plans[0]).patch:
            return PatchArrays(data[:self.num_arrays])
        return data[:self.num_views] if self.num_views > 1 else data[0]

    # The arrays of a batch, all of them zero if there are fewer records than slots, and the targets
    # of its slots; `length` is the number of patches of a slot.
    cdef object make(self, Py_ssize_t slots, sizes, Py_ssize_t records, Py_ssize_t length,
                     Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef bint clear = records < slots
        cdef Py_ssize_t i, view, sample
        cdef Target first
        if sizes is not None and self.num_views > 1:
            raise ValueError("an image with several views has the sizes of its plans")
        if plan.patch:
            return self.make_patches(slots, records, length, targets)
        if np.ndim(sizes) == 2:
            return self.make_separate(slots, sizes, clear, targets)
        made = []
        for view in range(self.num_views):
            plan = self.plans[view]
            height, width = self._checked(sizes) if sizes else (plan.height, plan.width)
            shape = plan.shape(slots, (height, width))
            block = self.pools[view].take(prod(shape) * plan.item_size)
            array = np.frombuffer(block, plan.dtype).reshape(shape)
            if clear:
                array.fill(0)
            sample = plan.set_target(slots, height, width, <char*><size_t>array.ctypes.data, &first)
            for i in range(slots):
                targets[i * self.num_views + view] = first
                first.data = <char*>first.data + sample
            made.append(array)
        return made if len(made) > 1 else made[0]

    # An array for every slot, one behind the other.
    cdef object make_separate(self, Py_ssize_t slots, sizes, bint clear, Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i
        if len(sizes) != slots:
            raise ValueError(f"{len(sizes)} sizes for {slots} slots")
        shapes = [self._checked(size) for size in np.asarray(sizes).tolist()]
        lengths = [height * width * plan.channels for height, width in shapes]
        block = self.pools[0].take(max(sum(lengths), 1) * plan.item_size)
        values = np.frombuffer(block, plan.dtype)
        if clear:
            values.fill(0)
        made, end = SeparateArrays(), 0
        made.values = values[:sum(lengths)]
        for i in range(slots):
            begin, end = end, end + lengths[i]
            array = values[begin:end].reshape(self._shape_of_one(shapes[i]))
            plan.set_target(1, shapes[i][0], shapes[i][1], <char*><size_t>array.ctypes.data,
                            &targets[i])
            made.append(array)
        return made

    # Patches of all slots, their positions, and which of them there are.
    cdef object make_patches(self, Py_ssize_t slots, Py_ssize_t records, Py_ssize_t length,
                             Target* targets):
        cdef RenderPlan plan = self.plans[0]
        if length < 1:
            raise ValueError("a batch of patches needs a length")
        shape = slots, length, plan.patch * plan.patch * plan.channels
        block = self.pools[0].take(prod(shape) * plan.item_size)
        made = PatchArrays([np.frombuffer(block, plan.dtype).reshape(shape),
                            np.empty((slots, length, 2), np.int64),
                            np.empty((slots, length), bool)])
        for array in made:
            array[records:] = 0
        self.set_patch_targets(made, 0, records, targets)
        return made

    cdef int set_patch_targets(self, made, Py_ssize_t first, Py_ssize_t count,
                               Target* targets) except -1:
        """Say where the patches of some slots lie; the renderer finds the sizes of the images."""
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i, length = made[0].shape[1]
        cdef Py_ssize_t part = length * plan.patch * plan.patch * plan.channels * plan.item_size
        cdef char* patches = <char*><size_t>made[0].ctypes.data
        cdef int64_t* coordinates = <int64_t*><size_t>made[1].ctypes.data
        cdef uint8_t* marks = <uint8_t*><size_t>made[2].ctypes.data
        for i in range(count):
            plan.set_target(1, 0, 0, patches + (first + i) * part, &targets[i])
            targets[i].patch, targets[i].length = plan.patch, <int>length
            targets[i].coordinates = coordinates + 2 * (first + i) * length
            targets[i].marks = marks + (first + i) * length
        return 0

    def _checked(self, size):
        """Return height and width of an image, which the renderers have room for."""
        cdef RenderPlan plan = self.plans[0]
        height, width = [int(side) for side in size]
        if not (0 < height <= plan.most_height and 0 < width <= plan.most_width):
            raise ValueError(
                f"images of {height} x {width} pixels: the stage was made for at most "
                f"{plan.most_height} x {plan.most_width}")
        return height, width

    def _shape_of_one(self, size):
        """Return the shape of an image alone."""
        plan = self.plans[0]
        shape = plan.shape(1, size)
        return tuple(n for axis, n in zip(plan.layout, shape) if axis != "N")

    # The targets of a slot of a batch; it gets the size, if one is given.
    cdef int find(self, data, Py_ssize_t slot, size, Target* targets) except -1:
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i, sample
        if isinstance(data, PatchArrays):
            self.set_patch_targets(data, slot, 1, targets)
            return 0
        if isinstance(data, SeparateArrays):
            shape = data[slot].shape if size is None else self._shape_of_one(self._checked(size))
            if shape != data[slot].shape:
                data[slot] = np.empty(shape, plan.dtype)
                data.values = None
            lengths = dict(zip(plan.layout.replace("N", ""), data[slot].shape))
            plan.set_target(1, lengths["H"], lengths["W"], <char*><size_t>data[slot].ctypes.data,
                            targets)
            return 0
        for i, array in enumerate(data if isinstance(data, list) else [data]):
            plan = self.plans[i]
            lengths = dict(zip(plan.layout, array.shape))
            sample = plan.set_target(lengths["N"], lengths["H"], lengths["W"],
                                     <char*><size_t>array.ctypes.data, &targets[i])
            targets[i].data = <char*>targets[i].data + slot * sample
        return 0


cdef enum:
    MOST_TICKETS = 16       # taken by a thread at once
    SIGNAL_INTERVAL = 50    # milliseconds between two looks for Ctrl-C while waiting


# How many images of a sample were decoded in spite of damage, and how many to fewer bits than their
# files store.
cdef struct Notes:
    int64_t damaged
    int64_t cut


# A batch on its way.  `next` and `finished` are guarded by the stage's mutex.
cdef struct Batch:
    Py_ssize_t count        # tickets
    Py_ssize_t next         # first ticket that nobody has taken
    Py_ssize_t finished
    uint32_t epoch
    int64_t* records        # record numbers
    int64_t* draws          # what tells the occurrences of a record apart
    Outcome* outcomes
    int* fetched            # status of the source, FetchStatus
    int64_t* failed         # number of the record that a failure is of
    Notes* notes
    Target* targets         # of the image, or of each of its views, slot after slot
    float* label
    uint64_t* ids


cdef class Stage:
    """Threads that render records into batches.

    `groups` begin at record 0 and ascend; at most `depth` batches are under way at once;
    `allocate` is a source of memory, see `BufferPool`; `strict` refuses images whose decoder warns;
    `fields` are plans of what samples have beside their images, `entries` entry points of all
    records; `on_cut` is called for batches with images that have more bits than their pixels.
    """

    cdef readonly Py_ssize_t batch_size
    cdef readonly Py_ssize_t depth
    cdef readonly list caches       # of the groups that have one; given up by `close`
    cdef dict last_cache_stats
    cdef Source source
    cdef int64_t* expected          # records of a batch whose images are not cached
    cdef PlanGroups groups
    cdef list teams
    cdef StageWorkers spare         # for the consumer's thread
    cdef FieldSet fields            # None without
    cdef RenderPlan plan            # of the first group; what a batch looks like is that of all
    cdef BatchMemory memory
    cdef Py_ssize_t num_views
    cdef list threads
    cdef bint started
    cdef list arrays                # (data, label, ids) of every batch under way
    cdef object process

    cdef Batch* batches             # ring of `depth`
    cdef Py_ssize_t submitted       # batches ever submitted, taken up completely, collected
    cdef Py_ssize_t taken
    cdef Py_ssize_t collected
    cdef int64_t announced          # records that the source told the system of
    cdef int64_t damaged            # images of batches that were collected
    cdef object on_cut
    cdef Py_ssize_t working         # threads that hold tickets
    cdef Py_ssize_t in_use          # threads that take some: those of lower numbers
    cdef int64_t stopping           # read without the mutex as well
    cdef sync_mutex mutex
    cdef sync_condition work        # tickets were added, or the stage stops
    cdef sync_condition done        # a batch was finished, or a thread put its tickets down

    def __cinit__(self, Source source not None, *groups, Py_ssize_t batch_size,
                  Py_ssize_t threads, Py_ssize_t depth, allocate=None, bint strict=False,
                  fields=(), entries=None, on_cut=None):
        cdef Py_ssize_t i
        self.on_cut = on_cut
        self.batches, self.expected = NULL, NULL
        sync_mutex_init(&self.mutex)
        sync_condition_init(&self.work)
        sync_condition_init(&self.done)
        self.groups = PlanGroups(groups)
        self.plan = self.groups.all[0].plan
        self.memory = BatchMemory(self.plan, batch_size, depth + 1, allocate)
        self.num_views = self.memory.num_views
        self.batch_size, self.depth = batch_size, depth
        self.source, self.caches = source, self.groups.caches()
        self.last_cache_stats = {}
        self.expected = <int64_t*>calloc(batch_size * MOSAIC_IMAGES, sizeof(int64_t))
        self.batches = <Batch*>calloc(depth, sizeof(Batch))
        if self.batches == NULL or self.expected == NULL:
            raise MemoryError
        for i in range(depth):
            self.batches[i].records = <int64_t*>calloc(batch_size, sizeof(int64_t))
            self.batches[i].draws = <int64_t*>calloc(batch_size, sizeof(int64_t))
            self.batches[i].outcomes = <Outcome*>calloc(batch_size, sizeof(Outcome))
            self.batches[i].fetched = <int*>calloc(batch_size, sizeof(int))
            self.batches[i].failed = <int64_t*>calloc(batch_size, sizeof(int64_t))
            self.batches[i].notes = <Notes*>calloc(batch_size, sizeof(Notes))
            self.batches[i].targets = <Target*>calloc(batch_size * self.num_views, sizeof(Target))
            if (self.batches[i].records == NULL or self.batches[i].draws == NULL
                    or self.batches[i].outcomes == NULL or self.batches[i].fetched == NULL
                    or self.batches[i].failed == NULL or self.batches[i].notes == NULL
                    or self.batches[i].targets == NULL):
                raise MemoryError
        self.arrays = [None] * depth
        self.process = os.getpid()
        if fields:
            self.fields = FieldSet(fields, batch_size=batch_size, depth=depth, allocate=allocate)
        self.teams = [
            self.groups.workers(source, strict, self.fields, entries, i) for i in range(threads)
        ]
        self.in_use = threads
        self.spare = self.groups.workers(source, strict, self.fields, entries)
        self.threads = [
            threading.Thread(target=self._work, args=(self.teams[i],), daemon=True,
                             name=f"image-stage-{i}")
            for i in range(threads)
        ]

    def start(self):
        """Start the threads; `submit` does it too.

        They would keep this object alive, so whoever is to close it comes first.
        """
        if self.started:
            return
        for thread in self.threads:
            if thread.ident is None:
                thread.start()
        self.started = True

    def __dealloc__(self):
        # The threads refer to this object, so none is left.
        cdef Py_ssize_t i
        if self.batches != NULL:
            for i in range(self.depth):
                free(self.batches[i].records)
                free(self.batches[i].draws)
                free(self.batches[i].outcomes)
                free(self.batches[i].fetched)
                free(self.batches[i].failed)
                free(self.batches[i].notes)
                free(self.batches[i].targets)
            free(self.batches)
        free(self.expected)
        sync_condition_destroy(&self.done)
        sync_condition_destroy(&self.work)
        sync_mutex_destroy(&self.mutex)

    @property
    def pending(self):
        """Count the batches submitted and not yet collected."""
        return self.submitted - self.collected

    @property
    def ended(self):
        """True if none of the threads runs."""
        return not any(thread.is_alive() for thread in self.threads)

    def needed(self, records, uint32_t epoch, draws):
        """Return the records that a batch is made of: those given, and what mosaics add."""
        return self.groups.needed(self.spare, records, epoch, draws)

    def submit(self, const int64_t[::1] records not None, uint32_t epoch,
               const int64_t[::1] draws=None, sizes=None, slots=None,
               Py_ssize_t length=0):
        """Start work on a batch of at most `batch_size` slots; those without a record will be zero.

        Epoch and `draws` choose the random numbers: records that come more than once in an epoch
        look different each time if their numbers in `draws` are.  `sizes` is the height and width
        of all images, or an array of those of every slot; without it they are those of the plans.
        There are `slots` slots, by default as many as sizes or `batch_size`, and `length` patches
        in each, if the plan is one of patches.
        """
        self._check_usable()
        self.start()
        cdef Py_ssize_t count = records.shape[0], i
        if self.submitted - self.collected == self.depth:
            raise RuntimeError(f"{self.depth} batches are under way already: collect one first")
        if slots is None:
            slots = self.batch_size if np.ndim(sizes) < 2 else len(sizes)
        if not count <= slots <= self.batch_size:
            raise ValueError(f"{count} records do not fit a batch of {slots}")
        if draws is not None and draws.shape[0] != count:
            raise ValueError(f"{draws.shape[0]} draw numbers for {count} records")
        for i in range(count):
            if not 0 <= records[i] < self.source.count:
                raise IndexError(f"record {records[i]} of {self.source.count}")
        cdef Py_ssize_t at = self.submitted % self.depth
        cdef Batch* batch = &self.batches[at]
        cdef bint stopping
        data = self.memory.make(slots, sizes, count, length, batch.targets)
        if self.fields is not None:
            self.fields.begin(at, count, slots, sizes)
        label = np.zeros((slots, self.plan.label_width), np.float32)
        ids = np.zeros(slots, np.uint64)
        self.arrays[at] = data, label, ids
        batch.count, batch.next, batch.finished, batch.epoch = count, 0, 0, epoch
        for i in range(count):
            batch.records[i] = records[i]
            batch.draws[i] = 0 if draws is None else draws[i]
        batch.label = <float*><size_t>label.ctypes.data
        batch.ids = <uint64_t*><size_t>ids.ctypes.data
        with nogil:
            stopping = not self.begin_work()
            if not stopping:
                counter_add(&self.announced, self.expect(batch))
                sync_lock(&self.mutex)
                self.submitted += 1
                sync_wake_all(&self.work)
                sync_unlock(&self.mutex)
                self.end_work()
        if stopping:
            self._check_usable()

    def collect(self):
        """Wait for the oldest batch; return data, label, ids and failures, a list of (slot, error).

        Data is a list if the plan has views, one for each, and `SeparateArrays` if every slot has a
        size of its own.  Fields come behind them: arrays, or lists of a value for each slot.  The
        memory is used again when nobody refers to it.
        """
        self._check_usable()
        if self.submitted == self.collected:
            raise RuntimeError("no batch is under way")
        cdef Py_ssize_t at = self.collected % self.depth
        cdef Batch* batch = &self.batches[at]
        self._wait_for(batch)
        data, label, ids = self.arrays[at]
        failures = []
        cdef Py_ssize_t slot
        cdef int64_t damaged = 0, cut = 0
        for slot in range(batch.count):
            if batch.fetched[slot] != FETCH_OK or batch.outcomes[slot].status != RENDER_OK:
                failures.append((slot, self._failure(batch.failed[slot], batch.fetched[slot],
                                                     &batch.outcomes[slot], at, slot)))
            else:
                damaged += batch.notes[slot].damaged
                cut += batch.notes[slot].cut
        if cut and self.on_cut is not None:
            self.on_cut()
        if self.fields is not None:
            records = [batch.records[slot] for slot in range(batch.count)]
            data = [*(data if isinstance(data, list) else [data]),
                    *self.fields.finish(at, records, failures)]
        # Only now, so that an interrupt in between leaves the batch to be collected again.
        self.arrays[at] = None
        if self.fields is not None:
            self.fields.release(at)
        self.collected += 1
        counter_add(&self.damaged, damaged)
        return data, label, ids, failures

    def retry(self, int64_t record, uint32_t epoch, int64_t draw, data, label, ids,
              Py_ssize_t slot, size=None):
        """Render another record into a slot of a collected batch, in the caller's thread.

        Where every slot has a size of its own, the record may have another one.
        """
        cdef Outcome outcome
        cdef int fetched = FETCH_OK
        cdef int64_t failed = record
        cdef bint stopping
        cdef Notes notes
        cdef Slot target
        cdef Target targets[MAX_VIEWS]
        cdef uint64_t[::1] id_table = ids
        cdef Scratch scratch
        scratch.bytes, scratch.capacity = NULL, 0
        own = data
        if self.fields is not None:
            own = self.memory.own_arrays(data)
        self.memory.find(own, slot, size, targets)
        target.targets, target.fields = targets, NULL
        target.label = <float*><size_t>label.ctypes.data + slot * self.plan.label_width
        if self.fields is not None:
            self.fields.begin_slot(data[self.memory.num_arrays:], slot)
            target.fields, target.number = self.fields.rows_of(self.depth), 0
        with nogil:
            stopping = not self.begin_work()
            if not stopping:
                self.render_member(self.spare, record, epoch, draw, &target, &fetched, &outcome,
                                   &scratch, &failed, &notes)
                self.end_work()
            free(scratch.bytes)
        if stopping:
            self._check_usable()
        if fetched != FETCH_OK or outcome.status != RENDER_OK:
            raise self._failure(failed, fetched, &outcome, self.depth, 0)
        counter_add(&self.damaged, notes.damaged)
        if notes.cut and self.on_cut is not None:
            self.on_cut()
        if self.fields is not None:
            self.fields.finish_slot(data[self.memory.num_arrays:], slot, record)
        id_table[slot] = outcome.record_id

    def stats(self):
        """Add up the counters of all threads, of images that were rendered ahead as well.

        `decoder_warnings` are images of collected batches, decoded in spite of damage; `bytes`
        encoded ones, and `announced` the records that the system was told to read from the disk in
        advance.
        """
        return {**self.groups.counters([*self.teams, self.spare]), "threads": self.in_use,
                "decoder_warnings": counter_load(&self.damaged),
                "announced": counter_load(&self.announced),
                **self.groups.mosaic_stats([*self.teams, self.spare]),
                **self._cache_stats()}

    def _cache_stats(self):
        if not self.caches:
            return self.last_cache_stats
        all_stats = [cached.stats() for cached in self.caches]
        return {name: sum(stats[name] for stats in all_stats) for name in all_stats[0]}

    def use_threads(self, Py_ssize_t count):
        """Have only so many of the threads work, from their next images on."""
        with nogil:
            sync_lock(&self.mutex)
            self.in_use = count
            sync_wake_all(&self.work)
            sync_unlock(&self.mutex)

    def ready(self):
        """Return True if `collect` would return at once."""
        self._check_usable()
        cdef Batch* batch = &self.batches[self.collected % self.depth]
        cdef bint finished
        if self.submitted == self.collected:
            return False
        with nogil:
            sync_lock(&self.mutex)
            finished = batch.finished == batch.count
            sync_unlock(&self.mutex)
        return finished

    def cancel(self):
        """Forget all batches under way; waits only for the images being rendered."""
        self._check_usable()
        cdef bint idle = False
        with nogil:
            sync_lock(&self.mutex)
            self.taken = self.submitted
            sync_unlock(&self.mutex)
        while not idle:
            with nogil:
                sync_lock(&self.mutex)
                if self.working:
                    sync_wait_ms(&self.done, &self.mutex, SIGNAL_INTERVAL)
                idle = self.working == 0
                sync_unlock(&self.mutex)
        self.collected = self.submitted
        self.arrays = [None] * self.depth

    def close(self):
        """Stop the threads; waits for the images being rendered.  Idempotent.

        Called by a worker thread, it does not wait: the threads end after their present tickets.
        """
        if counter_load(&self.stopping) or os.getpid() != self.process:
            counter_store(&self.stopping, True)     # in a forked child there are no threads to stop
            return
        with nogil:
            sync_lock(&self.mutex)
            counter_store(&self.stopping, True)
            sync_wake_all(&self.work)
            sync_unlock(&self.mutex)
        if threading.current_thread() in self.threads:
            return      # a collection of garbage in a worker, which still fills one of the arrays
        for thread in self.threads:
            if thread.is_alive():
                thread.join()
        self.arrays = [None] * self.depth
        self._give_up_cache()

    def _give_up_cache(self):
        """Free the memory of the cache, unless it is being read by `retry`."""
        cdef bint idle
        cdef Renderer renderer
        with nogil:
            sync_lock(&self.mutex)
            idle = self.working == 0
            sync_unlock(&self.mutex)
        if idle and self.caches:
            self.last_cache_stats = self._cache_stats()
            for renderer in self._renderers():
                renderer.cache_reader = None
            self.groups.give_up_caches()
            self.caches = []

    def _check_usable(self):
        if os.getpid() != self.process:
            raise RuntimeError(
                "this image stage belongs to the process that created it: its threads do not "
                "survive a fork; create the provider in the process that uses it")
        if counter_load(&self.stopping):
            raise ValueError("the provider is closed")

    cdef int _wait_for(self, Batch* batch) except -1:
        """Wait until the batch is finished; Ctrl-C works meanwhile."""
        cdef bint finished = False
        while not finished:
            with nogil:
                sync_lock(&self.mutex)
                if batch.finished < batch.count:
                    sync_wait_ms(&self.done, &self.mutex, SIGNAL_INTERVAL)
                finished = batch.finished == batch.count
                sync_unlock(&self.mutex)
            PyErr_CheckSignals()
            self._check_usable()
        return 0

    def _renderers(self):
        return [renderer for workers in [*self.teams, self.spare] for renderer in workers.renderers]

    cdef bint begin_work(self) noexcept nogil:
        """Have `close` in another thread free nothing until `end_work`; False if it began."""
        cdef bint stopping
        sync_lock(&self.mutex)
        stopping = counter_load(&self.stopping) != 0
        self.working += not stopping
        sync_unlock(&self.mutex)
        return not stopping

    cdef void end_work(self) noexcept nogil:
        sync_lock(&self.mutex)
        self.working -= 1
        sync_wake_all(&self.done)
        sync_unlock(&self.mutex)

    cdef Py_ssize_t expect(self, Batch* batch) noexcept nogil:
        """Announce the records of a batch that will be read; a cached image needs only a header."""
        cdef Py_ssize_t i, count = 0
        cdef int64_t number
        cdef Partners partners
        for i in range(batch.count):
            number = batch.records[i]
            if self.groups.find_partners(
                    self.spare, number, batch.epoch, batch.draws[i], &partners):
                memcpy(self.expected + count, partners.records, sizeof(partners.records))
                count += MOSAIC_IMAGES
            elif not self.groups.holds(number):
                self.expected[count] = number
                count += 1
        if self.fields is not None:
            self.fields.expect(batch.records, batch.count)
        return self.source.expect(self.expected, count)

    cdef object _failure(self, int64_t record, int fetched, Outcome* outcome, Py_ssize_t at,
                         Py_ssize_t slot):
        if self.fields is not None and self.fields.rows_of(at).failed[slot] >= 0:
            return self.fields.failure(self.fields.rows_of(at), slot, record, outcome)
        if fetched != FETCH_OK:
            return self.source.failure(record, fetched)
        return outcome_error(outcome, self.plan.label_width, self.source.location(record))

    def _work(self, StageWorkers workers):
        """Serve as the body of a worker thread."""
        with nogil:
            self.serve(workers)

    cdef void serve(self, StageWorkers workers) noexcept nogil:
        cdef Batch* batch
        cdef Py_ssize_t first, last, slot
        cdef Scratch scratch
        cdef double begin, rendering, on_processor
        scratch.bytes, scratch.capacity = NULL, 0
        while self.take_tickets(workers.number, &batch, &first, &last):
            begin, on_processor = sync_now(), sync_thread_seconds()
            rendering = sync_now()  # asking for the time of a thread lets others go first
            for slot in range(first, last):
                self.render_slot(workers, batch, slot, &scratch)
            seconds_add(&workers.rendering, sync_now() - rendering)
            seconds_add(&workers.on_processor, sync_thread_seconds() - on_processor)
            seconds_add(&workers.working, sync_now() - begin)
            self.put_down(batch, last - first)
        free(scratch.bytes)

    cdef bint take_tickets(self, Py_ssize_t thread, Batch** batch, Py_ssize_t* first,
                           Py_ssize_t* last) noexcept nogil:
        """Wait for tickets and take some; False when the stage stops."""
        cdef Py_ssize_t left, share
        sync_lock(&self.mutex)
        while not counter_load(&self.stopping) and (
                self.taken == self.submitted or thread >= self.in_use):
            sync_wait(&self.work, &self.mutex)
        if counter_load(&self.stopping):
            sync_unlock(&self.mutex)
            return False
        batch[0] = &self.batches[self.taken % self.depth]
        # Small shares near the end of what there is keep all threads busy until it is done.
        left = batch[0].count - batch[0].next
        share = (left + (self.submitted - self.taken - 1) * self.batch_size) // 32
        share = min(max(share, 1), MOST_TICKETS, left)
        first[0] = batch[0].next
        last[0] = first[0] + share
        batch[0].next = last[0]
        if batch[0].next == batch[0].count:
            self.taken += 1
        self.working += 1
        sync_unlock(&self.mutex)
        return True

    cdef void put_down(self, Batch* batch, Py_ssize_t count) noexcept nogil:
        sync_lock(&self.mutex)
        batch.finished += count
        self.working -= 1
        if batch.finished == batch.count or self.working == 0:
            sync_wake_all(&self.done)
        sync_unlock(&self.mutex)

    cdef void render_slot(self, StageWorkers workers, Batch* batch, Py_ssize_t slot,
                          Scratch* scratch) noexcept nogil:
        cdef Slot target
        target.targets, target.fields = batch.targets + slot * self.num_views, NULL
        target.label = batch.label + slot * self.plan.label_width
        if self.fields is not None:
            target.fields, target.number = self.fields.rows_of(batch - self.batches), slot
        self.render_member(workers, batch.records[slot], batch.epoch, batch.draws[slot], &target,
                           &batch.fetched[slot], &batch.outcomes[slot], scratch,
                           &batch.failed[slot], &batch.notes[slot])
        batch.ids[slot] = batch.outcomes[slot].record_id

    cdef void render_member(self, StageWorkers workers, int64_t number, uint32_t epoch,
                            int64_t draw, const Slot* target, int* fetched, Outcome* outcome,
                            Scratch* scratch, int64_t* failed, Notes* notes) noexcept nogil:
        cdef Py_ssize_t group = self.groups.group_of(number)
        cdef Partners partners
        cdef double begin
        cdef int64_t damaged = counter_load(&(<Renderer>workers.table[group]).warned)
        cdef int64_t cut = counter_load(&(<Renderer>workers.table[group]).cut)
        failed[0] = number
        if self.groups.find_partners(workers, number, epoch, draw, &partners):
            (<Mosaic>workers.mosaic_table[group]).render(
                self.source, &partners, target, fetched, outcome, scratch, failed)
        else:
            self.render_record(<Renderer>workers.table[group], number, epoch, draw, target, fetched,
                               outcome, scratch)
        notes.damaged = counter_load(&(<Renderer>workers.table[group]).warned) - damaged
        notes.cut = counter_load(&(<Renderer>workers.table[group]).cut) - cut
        if target.fields != NULL and fetched[0] == FETCH_OK and outcome.status == RENDER_OK:
            begin = sync_now()
            (<FieldWorkers>workers.fields).render(
                group, <Renderer>workers.table[group], number, epoch, draw, target.fields,
                target.number, outcome)
            seconds_add(&workers.on_fields, sync_now() - begin)

    cdef void render_record(self, Renderer renderer, int64_t number, uint32_t epoch, int64_t draw,
                            const Slot* target, int* fetched, Outcome* outcome,
                            Scratch* scratch) noexcept nogil:
        cdef Encoded image
        cdef bint cached = renderer.cache_reader is not None and renderer.cache_reader.look(number)
        outcome.record_id = 0
        if cached:
            fetched[0] = self.source.fetch_head(number, scratch, &image)
        else:
            fetched[0] = self.source.fetch(number, scratch, &image)
        if fetched[0] == FETCH_OK:
            renderer.render(&image, epoch, number, draw, target, outcome)
            # What became of the sample counts only if its bytes were those of the file.
            fetched[0] = self.source.confirm(number, image.data, image.size)
        if cached and renderer.cache_reader.lost:       # the cache became shorter meanwhile
            self.render_record(renderer, number, epoch, draw, target, fetched, outcome, scratch)
