"""The fields of the samples of a stage: their memory, batch by batch, and their workers.

The image stage renders the image of a sample first; then the workers of its thread make the fields,
by the geometry that was drawn for the image.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from iterators.images.augment.draw cimport ImageKey, draw_key
from iterators.images.augment.geometry cimport Target
from iterators.images.fields.field cimport MAX_FIELDS, FieldPlan, FieldTask, FieldWorker, Payload
from iterators.images.fields.path cimport FieldPath, PathFinder
from iterators.images.render cimport RenderedView, Renderer
from iterators.images.sections cimport table_of
from iterators.images.sources.source cimport FETCH_OK, Encoded
from recordio.formats.status cimport RENDER_IMAGE, RENDER_OK, Outcome, outcome_error, outcome_fail

from math import prod

import numpy as np

from recordio.errors import RecordIOError

from iterators.core.pool import BufferPool


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

    def crew(self, renderers):
        """Make the workers of one thread beside its renderers, one of each section."""
        return FieldCrew(self, renderers)

    def begin(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t slots, size=None):
        """Take memory for the batch at a position of the ring, of whose slots `count` will be made.

        `size` is the height and width of its images, if they are not those of the plans.
        """
        cdef FieldRows* rows = &self.ring[at]
        cdef FieldPlan plan
        cdef Py_ssize_t i
        if np.ndim(size) > 1:
            raise ValueError("images of several sizes in a batch have no fields")
        found = []
        for i in range(self.count):
            plan = self.plans[i]
            array = None
            if plan.is_array:
                shape = plan.shape(slots, size)
                block = self.pools[i].take(prod(shape) * plan.dtype.itemsize)
                array = np.ndarray(shape, plan.dtype, block)
                if count < slots:
                    array.fill(plan.padding)
                self.aim(rows, i, array, 0)
            found.append(array)
        self.slots[at] = slots
        for i in range(self.batch_size):
            rows.failed[i] = -1
        self.arrays[at] = found

    cdef int aim(self, FieldRows* rows, Py_ssize_t number, array, Py_ssize_t slot) except -1:
        """Note where a slot of the array of a field lies, and those behind it."""
        cdef FieldPlan plan = self.plans[number]
        cdef Target* target = &rows.targets[number]
        lengths = dict(zip(plan.layout, array.shape))
        rows.slot_bytes[number] = plan.aim(lengths["N"], lengths["H"], lengths["W"],
                                           <char*><size_t>array.ctypes.data, target)
        target.data = <char*>target.data + slot * rows.slot_bytes[number]
        return 0

    def finish(self, Py_ssize_t at, records, failures):
        """Return what there is of every field: an array, or a list of a value for each slot.

        Values that cannot be made of what was stored for the `records` are added to the `failures`.
        """
        cdef Py_ssize_t i, slot
        cdef FieldPlan plan
        found = list(self.arrays[at])
        bad = {slot for slot, _ in failures}
        for i in range(self.count):
            plan = self.plans[i]
            if plan.is_array:
                continue
            found[i] = values = [plan.padding] * self.slots[at]
            for slot, record in enumerate(records):
                if slot in bad:
                    continue
                try:
                    values[slot] = self._value(at, i, slot, record)
                except RecordIOError as error:
                    bad.add(slot)
                    failures.append((slot, error))
        return found

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
                self.aim(rows, i, arrays[i], slot)

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


cdef class FieldCrew:
    """Makes the fields of one sample after the other; serves one thread."""

    def __cinit__(self, FieldSet fields not None, renderers):
        cdef Renderer renderer
        cdef RenderedView view
        self.table, self.paths = NULL, NULL
        self.scratch.bytes, self.scratch.capacity = NULL, 0
        self.fields, self.workers, views = fields, [], 1
        for renderer in renderers:
            renderer.finder = PathFinder(renderer.runner)
            for view in renderer.views:
                view.finder = PathFinder(view.runner)
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
            return renderer.finder.find(renderer.runner, &self.paths[0], outcome)
        for i in range(renderer.num_views):
            if (<RenderedView>renderer.view_table[i]).finder.find(
                    (<RenderedView>renderer.view_table[i]).runner, &self.paths[i], outcome):
                return outcome.status
        return RENDER_OK

    cdef int render(self, Py_ssize_t section, Renderer renderer, int64_t number, uint32_t epoch,
                    int64_t draw, FieldRows* rows, Py_ssize_t slot,
                    Outcome* outcome) noexcept nogil:
        cdef Outcome own
        cdef Encoded found
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
                rows.fetched[slot] = (<FieldPlan>one).source.fetch(number, &self.scratch, &found)
            if rows.fetched[slot] == FETCH_OK:
                (<FieldWorker>self.table[section * self.fields.count + i]).render(
                    &found, &task, &own)
                if (<FieldPlan>one).source is not None:
                    rows.fetched[slot] = (<FieldPlan>one).source.confirm(
                        number, found.data, found.size)
            if rows.fetched[slot] != FETCH_OK or own.status != RENDER_OK:
                rows.failed[slot] = i
                outcome.found = own.found
                return outcome_fail(outcome, own.status if own.status else RENDER_IMAGE,
                                    own.message)
        return RENDER_OK
