"""Sections: records that differ in what becomes of them, such as those of several packs."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from recordio.counter cimport counter_load, seconds_load

import numpy as np

from iterators.images.image_steps cimport StepRunner
from iterators.images.mosaic cimport MOSAIC_IMAGES, Mosaic, Partners
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport RenderedView, Renderer
from iterators.images.render_cache cimport CachedImages

cdef class Section:
    """Neighbouring records with one plan and one cache, from number `first` to the next section."""

    def __init__(self, RenderPlan plan not None, CachedImages cached=None, int64_t first=0):
        self.plan, self.cached, self.first = plan, cached, first


def makes_mosaics(plan):
    """Return True if a plan puts images together."""
    return getattr(plan.recipe, "mosaic", 0) > 0


def form_of(plan):
    """Return shape, layout and dtype of the batches of a plan."""
    return plan.shape(1), plan.layout, plan.dtype


cdef class Sections:
    """Sections in ascending order, the first from record 0 on, with batches of one form."""

    def __init__(self, sections):
        plans = [section.plan for section in sections]
        forms = {(*(form_of(one) for one in (plan, *plan.views)), plan.label_width)
                 for plan in plans}
        firsts = [section.first for section in sections]
        if len(forms) != 1 or firsts[0] != 0 or sorted(set(firsts)) != firsts:
            raise ValueError("sections begin at record 0, ascend, and have batches of one form")
        self.all = list(sections)
        self.table = table_of(self.all)
        self.count = len(self.all)
        self.mosaics = any(makes_mosaics(plan) for plan in plans)

    def __dealloc__(self):
        free(self.table)

    def caches(self):
        """Return the caches that there are."""
        return [section.cached for section in self.all if section.cached is not None]

    def crew(self, source, strict, fields=None, entries=None, number=0):
        """Make the renderers for the thread of that number, and the workers of a `FieldSet`.

        `entries` are entry points of all records.
        """
        cdef Section section
        cdef Renderer renderer
        renderers, mosaics = [], []
        ends = [*(section.first for section in self.all[1:]), source.count]
        for section, end in zip(self.all, ends):
            renderer = Renderer(section.plan, strict=strict,
                                beside=renderers[0] if renderers else None, entries=entries)
            if section.cached is not None:
                renderer.shortcut = section.cached.shortcut(section.plan, source, section.first)
            renderers.append(renderer)
            mosaics.append(Mosaic(renderer, section.first, end - section.first)
                           if makes_mosaics(section.plan) else None)
        return Crew(renderers, mosaics, fields, number)

    def give_up_caches(self):
        """Refer to no cache any more; nobody may be asking meanwhile."""
        cdef Section section
        for section in self.all:
            section.cached = None

    cdef Py_ssize_t section_of(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.count, middle
        while high - low > 1:
            middle = (low + high) // 2
            if (<Section>self.table[middle]).first <= number:
                low = middle
            else:
                high = middle
        return low

    cdef bint holds(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t at = self.section_of(number)
        if (<Section>self.table[at]).cached is None:
            return False
        return (<Section>self.table[at]).cached.cache.holds(
            number - (<Section>self.table[at]).first)

    cdef bint find_partners(self, Crew crew, int64_t number, uint32_t epoch, int64_t draw,
                            Partners* partners) noexcept nogil:
        cdef PyObject* mosaic
        if not self.mosaics:
            return False
        mosaic = crew.mosaic_table[self.section_of(number)]
        return mosaic != NULL and (<Mosaic>mosaic).find_partners(number, epoch, draw, partners)

    def needed(self, Crew crew not None, records, uint32_t epoch, draws):
        """Return the records, and after them the partners in their mosaics."""
        cdef Partners partners
        cdef int i
        if not self.mosaics:
            return records
        others = []
        for number, draw in zip(records.tolist(), draws.tolist()):
            if self.find_partners(crew, number, epoch, draw, &partners):
                others += [partners.records[i] for i in range(1, MOSAIC_IMAGES)]
        return np.concatenate([records, np.array(others, np.int64)])

    def mosaic_stats(self, crews):
        """Count the mosaics that the crews have made, if they make any."""
        cdef Mosaic mosaic
        cdef int64_t made = 0
        if not self.mosaics:
            return {}
        for crew in crews:
            for mosaic in crew.mosaics:
                if mosaic is not None:
                    made += counter_load(&mosaic.made)
        return {"mosaics": made}

    def counters(self, crews):
        """Count the images of some threads, and add up their seconds by what they did."""
        cdef Crew crew
        cdef Renderer renderer
        cdef StepRunner runner
        cdef int64_t images = 0, size = 0
        cdef double working = 0, rendering = 0, on_processor = 0, fields = 0, decode = 0
        cdef double total = 0, timed = 0, written = 0, changed = 0, transform, spent
        runners = set()
        for crew in crews:
            working += seconds_load(&crew.working)
            rendering += seconds_load(&crew.rendering)
            on_processor += seconds_load(&crew.on_processor)
            fields += seconds_load(&crew.on_fields)
            for renderer in crew.renderers:
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
            **({} if crew.fields is None else {"field_seconds": fields}),
        }


cdef class Crew:
    """The renderers of one thread, one for every section."""

    def __init__(self, list renderers not None, list mosaics not None, fields=None,
                 Py_ssize_t number=0):
        self.number = number
        self.renderers, self.mosaics = list(renderers), list(mosaics)
        self.table = table_of(self.renderers)
        self.mosaic_table = table_of(self.mosaics)
        self.fields = None if fields is None else fields.crew(renderers)

    def __dealloc__(self):
        free(self.table)
        free(self.mosaic_table)


cdef PyObject** table_of(list objects) except NULL:
    cdef Py_ssize_t i
    cdef PyObject** table = <PyObject**>calloc(max(len(objects), 1), sizeof(PyObject*))
    if table == NULL:
        raise MemoryError
    for i in range(len(objects)):
        if objects[i] is not None:
            table[i] = <PyObject*>objects[i]
    return table
