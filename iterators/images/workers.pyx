# build: small
"""Groups of records with one plan each, such as those of several packs, and their workers.

The image stage renders the image of a sample first; then the `FieldWorkers` of its thread make the
fields, by the geometry that was drawn for the image.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport calloc, free

from iterators.images.augment.draw cimport ImageKey, draw_key
from iterators.images.augment.geometry cimport Target
from iterators.images.det_render cimport MOSAIC_IMAGES, Mosaic
from iterators.images.fields.field cimport (
    MAX_FIELDS, FieldPlan, FieldTask, FieldWorker, PathFinder, Payload,
)
from iterators.images.image_steps cimport StepRunner
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport CacheReader, CachedImages, RenderedView
from iterators.images.sources.source cimport FETCH_OK, Encoded
from recordio.counter cimport counter_load, seconds_load
from recordio.formats.status cimport RENDER_IMAGE, RENDER_OK, outcome_error, outcome_fail

from math import prod

import numpy as np

from recordio.errors import RecordIOError

from ..core.pool import BufferPool


cdef class PlanGroup:
    """Neighbouring records with one plan and one cache, from number `first` to the next group."""

    cdef readonly RenderPlan plan
    cdef readonly CachedImages cached
    cdef readonly int64_t first

    def __init__(self, RenderPlan plan not None, CachedImages cached=None, int64_t first=0):
        self.plan, self.cached, self.first = plan, cached, first


def makes_mosaics(plan):
    """Return True if a plan puts images together."""
    return getattr(plan.recipe, "mosaic", 0) > 0


def form_of(plan):
    """Return shape, layout and dtype of the batches of a plan."""
    return plan.shape(1), plan.layout, plan.dtype


cdef class PlanGroups:
    """Groups in ascending order, the first from record 0 on, with batches of one form."""

    def __init__(self, groups):
        plans = [group.plan for group in groups]
        forms = {(*(form_of(one) for one in (plan, *plan.views)), plan.label_width)
                 for plan in plans}
        firsts = [group.first for group in groups]
        if len(forms) != 1 or firsts[0] != 0 or sorted(set(firsts)) != firsts:
            raise ValueError("groups begin at record 0, ascend, and have batches of one form")
        self.all = list(groups)
        self.table = table_of(self.all)
        self.count = len(self.all)
        self.mosaics = any(makes_mosaics(plan) for plan in plans)

    def __dealloc__(self):
        free(self.table)

    def caches(self):
        """Return the caches that there are."""
        return [group.cached for group in self.all if group.cached is not None]

    def workers(self, source, strict, fields=None, entries=None, number=0):
        """Make the renderers for the thread of that number, and the workers of a `FieldSet`.

        `entries` are entry points of all records.
        """
        cdef PlanGroup group
        cdef Renderer renderer
        renderers, mosaics = [], []
        ends = [*(group.first for group in self.all[1:]), source.count]
        for group, end in zip(self.all, ends):
            renderer = (group.plan.renderer_class or Renderer)(
                group.plan, strict=strict, beside=renderers[0] if renderers else None,
                entries=entries)
            if group.cached is not None:
                renderer.cache_reader = CacheReader(group.cached, group.plan, source, group.first)
            renderers.append(renderer)
            mosaics.append(Mosaic(renderer, group.first, end - group.first)
                           if makes_mosaics(group.plan) else None)
        return StageWorkers(renderers, mosaics, fields, number)

    def give_up_caches(self):
        """Refer to no cache any more; nobody may be asking meanwhile."""
        cdef PlanGroup group
        for group in self.all:
            group.cached = None

    cdef Py_ssize_t group_of(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.count, middle
        while high - low > 1:
            middle = (low + high) // 2
            if (<PlanGroup>self.table[middle]).first <= number:
                low = middle
            else:
                high = middle
        return low

    cdef bint holds(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t at = self.group_of(number)
        if (<PlanGroup>self.table[at]).cached is None:
            return False
        return (<PlanGroup>self.table[at]).cached.cache.holds(
            number - (<PlanGroup>self.table[at]).first)

    cdef bint find_partners(self, StageWorkers workers, int64_t number, uint32_t epoch,
                            int64_t draw, Partners* partners) noexcept nogil:
        cdef PyObject* mosaic
        if not self.mosaics:
            return False
        mosaic = workers.mosaic_table[self.group_of(number)]
        return mosaic != NULL and (<Mosaic>mosaic).find_partners(number, epoch, draw, partners)

    def needed(self, StageWorkers workers not None, records, uint32_t epoch, draws):
        """Return the records, and after them the partners in their mosaics."""
        cdef Partners partners
        cdef int i
        if not self.mosaics:
            return records
        added = []
        for number, draw in zip(records.tolist(), draws.tolist()):
            if self.find_partners(workers, number, epoch, draw, &partners):
                added += [partners.records[i] for i in range(1, MOSAIC_IMAGES)]
        return np.concatenate([records, np.array(added, np.int64)])

    def mosaic_stats(self, teams):
        """Count the mosaics that the teams have made, if they make any."""
        cdef Mosaic mosaic
        cdef int64_t made = 0
        if not self.mosaics:
            return {}
        for workers in teams:
            for mosaic in workers.mosaics:
                if mosaic is not None:
                    made += counter_load(&mosaic.made)
        return {"mosaics": made}

    def counters(self, teams):
        """Count the images of some threads, and add up their seconds by what they did."""
        cdef StageWorkers workers
        cdef Renderer renderer
        cdef StepRunner runner
        cdef int64_t images = 0, size = 0
        cdef double working = 0, rendering = 0, on_processor = 0, fields = 0, decode = 0
        cdef double total = 0, timed = 0, written = 0, changed = 0, transform, spent
        runners = set()
        for workers in teams:
            working += seconds_load(&workers.working)
            rendering += seconds_load(&workers.rendering)
            on_processor += seconds_load(&workers.on_processor)
            fields += seconds_load(&workers.on_fields)
            for renderer in workers.renderers:
                images += counter_load(&renderer.images)
                size += counter_load(&renderer.bytes)
                decode += renderer.decode_seconds()
                total += seconds_load(&renderer.total_seconds)
                runners.add(renderer.runner)
                runners.update((<RenderedView>view).runner for view in renderer.views)
        for runner in runners:
            timed += seconds_load(&runner.timed_seconds)
            written += seconds_load(&runner.write_seconds)
            changed += seconds_load(&runner.change_seconds)
        # Of images at work the decoding is counted already.
        transform = max(total - decode, 0.0)
        spent = max(timed, written + changed, 1e-12)
        return {
            "images": images,
            "bytes": size,
            "working_seconds": working,
            "processor_seconds": on_processor,
            "read_seconds": max(rendering - total - fields, 0.0),
            "decode_seconds": decode,
            "transform_seconds": transform,
            "resample_seconds": transform * (spent - written - changed) / spent,
            "augment_seconds": transform * changed / spent,
            "normalise_seconds": transform * written / spent,
            **({} if workers.fields is None else {"field_seconds": fields}),
        }


cdef class StageWorkers:
    """The renderers of one thread, one for every group."""

    def __init__(self, list renderers not None, list mosaics not None, fields=None,
                 Py_ssize_t number=0):
        self.number = number
        self.renderers, self.mosaics = list(renderers), list(mosaics)
        self.table = table_of(self.renderers)
        self.mosaic_table = table_of(self.mosaics)
        self.fields = None if fields is None else FieldWorkers(fields, renderers)

    def __dealloc__(self):
        free(self.table)
        free(self.mosaic_table)


cdef PyObject** table_of(list objects) except NULL:
    """Make a table of addresses, for as long as the list keeps them; NULL for None."""
    cdef Py_ssize_t i
    cdef PyObject** table = <PyObject**>calloc(max(len(objects), 1), sizeof(PyObject*))
    if table == NULL:
        raise MemoryError
    for i in range(len(objects)):
        if objects[i] is not None:
            table[i] = <PyObject*>objects[i]
    return table


# ---- fields ----

cdef class FieldSet:
    """The fields that plans describe, for batches of one size."""

    def __cinit__(self, plans, *, Py_ssize_t batch_size, Py_ssize_t depth, allocate=None):
        cdef Py_ssize_t i, j
        cdef FieldPlan plan
        self.ring = NULL
        self.plans = tuple(plans)
        self.plan_table = table_of(list(self.plans))
        self.count, self.batch_size, self.depth = len(self.plans), batch_size, depth
        if self.count > MAX_FIELDS:
            raise ValueError(f"{self.count} fields: at most {MAX_FIELDS} are possible")
        self.ring = <FieldRows*>calloc(depth + 1, sizeof(FieldRows))
        if self.ring == NULL:
            raise MemoryError
        for i in range(depth + 1):
            slots = batch_size if i < depth else 1
            self.ring[i].failed = <int*>calloc(slots, sizeof(int))
            self.ring[i].fetched = <int*>calloc(slots, sizeof(int))
            if self.ring[i].failed == NULL or self.ring[i].fetched == NULL:
                raise MemoryError
            for j in range(self.count):
                plan = self.plans[j]
                if not plan.is_array:
                    self.ring[i].payloads[j] = <Payload*>calloc(slots, sizeof(Payload))
                    if self.ring[i].payloads[j] == NULL:
                        raise MemoryError
        self.pools = []
        for plan in self.plans:
            self.pools.append(
                BufferPool(prod(plan.shape(batch_size)) * plan.dtype.itemsize, keep=depth + 1,
                           allocate=allocate) if plan.is_array else None)
        self.arrays, self.slots = [None] * depth, [0] * depth

    def __dealloc__(self):
        cdef Py_ssize_t i, j, k
        if self.ring != NULL:
            for i in range(self.depth + 1):
                free(self.ring[i].failed)
                free(self.ring[i].fetched)
                for j in range(self.count):
                    if self.ring[i].payloads[j] == NULL:
                        continue
                    for k in range(self.batch_size if i < self.depth else 1):
                        free(self.ring[i].payloads[j][k].bytes)
                    free(self.ring[i].payloads[j])
            free(self.ring)
        free(self.plan_table)

    def begin(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t slots, size=None):
        """Take memory for the batch at a position of the ring, of whose slots `count` will be made.

        `size` is the height and width of its images, if they are not those of the plans.
        """
        cdef FieldRows* rows = &self.ring[at]
        cdef FieldPlan plan
        cdef Py_ssize_t i
        if np.ndim(size) > 1:
            raise ValueError("images of several sizes in a batch have no fields")
        arrays = []
        for i in range(self.count):
            plan = self.plans[i]
            array = None
            if plan.is_array:
                shape = plan.shape(slots, size)
                block = self.pools[i].take(prod(shape) * plan.dtype.itemsize)
                array = np.ndarray(shape, plan.dtype, block)
                if count < slots:
                    array.fill(plan.padding)
                self.set_target(rows, i, array, 0)
            arrays.append(array)
        self.slots[at] = slots
        for i in range(self.batch_size):
            rows.failed[i] = -1
        self.arrays[at] = arrays

    cdef int set_target(self, FieldRows* rows, Py_ssize_t number, array, Py_ssize_t slot) except -1:
        """Note where a slot of the array of a field lies, and those behind it."""
        cdef FieldPlan plan = self.plans[number]
        cdef Target* target = &rows.targets[number]
        lengths = dict(zip(plan.layout, array.shape))
        rows.slot_bytes[number] = plan.set_target(lengths["N"], lengths["H"], lengths["W"],
                                                  <char*><size_t>array.ctypes.data, target)
        target.data = <char*>target.data + slot * rows.slot_bytes[number]
        return 0

    def finish(self, Py_ssize_t at, records, failures):
        """Return what there is of every field: an array, or a list of a value for each slot.

        Values that cannot be made of what was stored for the `records` are added to the `failures`.
        """
        cdef Py_ssize_t i, slot
        cdef FieldPlan plan
        arrays = list(self.arrays[at])
        bad = {slot for slot, _ in failures}
        for i in range(self.count):
            plan = self.plans[i]
            if plan.is_array:
                continue
            arrays[i] = values = [plan.padding] * self.slots[at]
            for slot, record in enumerate(records):
                if slot in bad:
                    continue
                try:
                    values[slot] = self._value(at, i, slot, record)
                except RecordIOError as error:
                    bad.add(slot)
                    failures.append((slot, error))
        return arrays

    def release(self, Py_ssize_t at):
        """Refer no longer to the memory of a batch that was handed over."""
        self.arrays[at] = None

    def _value(self, Py_ssize_t at, Py_ssize_t number, Py_ssize_t slot, int64_t record):
        cdef Payload* payload = &self.ring[at].payloads[number][slot]
        cdef FieldPlan plan = self.plans[number]
        content = PyBytes_FromStringAndSize(<const char*>payload.bytes, <Py_ssize_t>payload.size)
        try:
            return plan.value(content)
        except RecordIOError as error:
            raise error.at(**plan.source.location(record)) from None

    cdef FieldRows* rows_of(self, Py_ssize_t at) noexcept nogil:
        return &self.ring[at]

    cdef void expect(self, const int64_t* numbers, Py_ssize_t count) noexcept nogil:
        cdef int i
        for i in range(self.count):
            if (<FieldPlan>self.plan_table[i]).source is not None:
                (<FieldPlan>self.plan_table[i]).source.expect(numbers, count)

    def begin_slot(self, arrays, Py_ssize_t slot):
        """Prepare to make one slot of a collected batch again."""
        cdef FieldRows* rows = &self.ring[self.depth]
        cdef FieldPlan plan
        cdef Py_ssize_t i
        rows.failed[0] = -1
        for i in range(self.count):
            plan = self.plans[i]
            if plan.is_array:
                self.set_target(rows, i, arrays[i], slot)

    def finish_slot(self, arrays, Py_ssize_t slot, int64_t record):
        """Put what was made of a record where it belongs."""
        cdef Py_ssize_t i
        for i in range(self.count):
            if not (<FieldPlan>self.plans[i]).is_array:
                arrays[i][slot] = self._value(self.depth, i, 0, record)

    cdef object failure(self, const FieldRows* rows, Py_ssize_t slot, int64_t record,
                        Outcome* outcome):
        cdef FieldPlan plan = self.plans[rows.failed[slot]]
        if rows.fetched[slot] != FETCH_OK:
            return plan.source.failure(record, rows.fetched[slot])
        return outcome_error(outcome, 0, plan.source.location(record))


cdef class FieldWorkers:
    """Makes the fields of one sample after the other, beside `renderers`, one of each group."""

    def __cinit__(self, FieldSet fields not None, renderers):
        cdef Renderer renderer
        cdef RenderedView view
        self.table, self.paths = NULL, NULL
        self.scratch.bytes, self.scratch.capacity = NULL, 0
        self.fields, self.workers, views = fields, [], 1
        for renderer in renderers:
            renderer.path_finder = PathFinder(renderer.runner)
            for view in renderer.views:
                view.path_finder = PathFinder(view.runner)
            views = max(views, len(renderer.views))
            self.workers += [plan.worker(renderer) for plan in fields.plans]
        self.table = table_of(self.workers)
        self.paths = <FieldPath*>calloc(views, sizeof(FieldPath))
        if self.paths == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.table)
        free(self.paths)
        free(self.scratch.bytes)

    def sample(self, Renderer renderer not None, arrays, int64_t number, uint32_t epoch=0,
               int64_t draw=0):
        """Make the fields of the image that a renderer made last, as those of a batch of one.

        `arrays` has the array of each field that is one, and a list with a place for the value of
        each other.
        """
        cdef Outcome outcome
        cdef FieldRows* rows = self.fields.rows_of(self.fields.depth)
        self.fields.begin_slot(arrays, 0)
        outcome.status, outcome.message[0], outcome.record_id = RENDER_OK, 0, 0
        with nogil:
            self.render(0, renderer, number, epoch, draw, rows, 0, &outcome)
        if rows.failed[0] >= 0:
            raise self.fields.failure(rows, 0, number, &outcome)
        if outcome.status != RENDER_OK:
            raise outcome_error(&outcome, 0, {})
        self.fields.finish_slot(arrays, 0, number)

    cdef int find_paths(self, Renderer renderer, Outcome* outcome) noexcept nogil:
        cdef int i
        if renderer.num_views == 0:
            return renderer.path_finder.find(renderer.runner, &self.paths[0], outcome)
        for i in range(renderer.num_views):
            if (<RenderedView>renderer.view_table[i]).path_finder.find(
                    (<RenderedView>renderer.view_table[i]).runner, &self.paths[i], outcome):
                return outcome.status
        return RENDER_OK

    cdef int render(self, Py_ssize_t group, Renderer renderer, int64_t number, uint32_t epoch,
                    int64_t draw, FieldRows* rows, Py_ssize_t slot,
                    Outcome* outcome) noexcept nogil:
        cdef Outcome own
        cdef Encoded record
        cdef FieldTask task
        cdef ImageKey image
        cdef PyObject* one
        cdef int i
        rows.failed[slot] = -1
        if self.find_paths(renderer, outcome):
            return outcome.status
        image.epoch, image.record = epoch, number
        for i in range(self.fields.count):
            one = self.fields.plan_table[i]
            task.path = &self.paths[(<FieldPlan>one).view]
            image.key = renderer.plan.key
            if (<FieldPlan>one).view:
                image.key = (<RenderedView>renderer.view_table[(<FieldPlan>one).view]).plan.key
            image.key = draw_key(image.key, draw)
            task.image = &image
            task.target, task.payload = rows.targets[i], NULL
            if (<FieldPlan>one).is_array:
                task.target.data = <char*>task.target.data + slot * rows.slot_bytes[i]
            else:
                task.payload = &rows.payloads[i][slot]
            own.status, own.message[0], own.record_id = RENDER_OK, 0, outcome.record_id
            rows.fetched[slot] = FETCH_OK
            if (<FieldPlan>one).source is not None:
                rows.fetched[slot] = (<FieldPlan>one).source.fetch(number, &self.scratch, &record)
            if rows.fetched[slot] == FETCH_OK:
                (<FieldWorker>self.table[group * self.fields.count + i]).render(
                    &record, &task, &own)
                if (<FieldPlan>one).source is not None:
                    rows.fetched[slot] = (<FieldPlan>one).source.confirm(
                        number, record.data, record.size)
            if rows.fetched[slot] != FETCH_OK or own.status != RENDER_OK:
                rows.failed[slot] = i
                outcome.num_labels = own.num_labels
                return outcome_fail(outcome, own.status if own.status else RENDER_IMAGE,
                                    own.message)
        return RENDER_OK
