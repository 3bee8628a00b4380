"""Sections: records that differ in what becomes of them, such as those of several packs."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free

from recordio.counter cimport counter_load

import numpy as np

from iterators.images.mosaic cimport MOSAIC_IMAGES, Meeting, Mosaic
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport Renderer
from iterators.images.render_cache cimport CachedImages

cdef class Section:
    """Neighbouring records of which the same becomes.

    Parameters
    ----------
    plan : RenderPlan
        What becomes of them.
    cached : CachedImages, optional
        Images of theirs that need not be decoded again.
    first : int
        Number of the first record; the last one is before the next section.
    """

    def __init__(self, RenderPlan plan not None, CachedImages cached=None, int64_t first=0):
        self.plan, self.cached, self.first = plan, cached, first


def makes_mosaics(plan):
    """Whether a plan puts images together."""
    return getattr(plan.recipe, "mosaic", 0) > 0


def form_of(plan):
    """What batches of a plan look like."""
    return plan.shape(1), plan.layout, plan.dtype


cdef class Sections:
    """Sections in ascending order, the first from record 0 on, with batches of one form.

    Parameters
    ----------
    sections : sequence of Section

    Raises
    ------
    ValueError
        If they are not as described.
    """

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
        """The caches that there are."""
        return [section.cached for section in self.all if section.cached is not None]

    def crew(self, source, strict):
        """Renderers for one thread."""
        cdef Section section
        cdef Renderer renderer
        renderers, mosaics = [], []
        ends = [*(section.first for section in self.all[1:]), source.count]
        for section, end in zip(self.all, ends):
            renderer = Renderer(section.plan, strict=strict,
                                beside=renderers[0] if renderers else None)
            if section.cached is not None:
                renderer.shortcut = section.cached.shortcut(section.plan, source, section.first)
            renderers.append(renderer)
            mosaics.append(Mosaic(renderer, section.first, end - section.first)
                           if makes_mosaics(section.plan) else None)
        return Crew(renderers, mosaics)

    def give_up_caches(self):
        """Refer to no cache any more; nobody may be asking meanwhile."""
        cdef Section section
        for section in self.all:
            section.cached = None

    cdef Py_ssize_t place_of(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.count, middle
        while high - low > 1:
            middle = (low + high) // 2
            if (<Section>self.table[middle]).first <= number:
                low = middle
            else:
                high = middle
        return low

    cdef bint holds(self, int64_t number) noexcept nogil:
        cdef Py_ssize_t place = self.place_of(number)
        if (<Section>self.table[place]).cached is None:
            return False
        return (<Section>self.table[place]).cached.cache.holds(
            number - (<Section>self.table[place]).first)

    cdef bint meets(self, Crew crew, int64_t number, uint32_t epoch, int64_t draw,
                    Meeting* meeting) noexcept nogil:
        cdef PyObject* mosaic
        if not self.mosaics:
            return False
        mosaic = crew.mosaic_table[self.place_of(number)]
        return mosaic != NULL and (<Mosaic>mosaic).meet(number, epoch, draw, meeting)

    def needed(self, Crew crew not None, records, uint32_t epoch, draws):
        """Records, and after them the partners in their mosaics.

        Parameters
        ----------
        crew : Crew
            Any of these sections.
        records, draws : numpy.ndarray of int64
        epoch : int

        Returns
        -------
        numpy.ndarray of int64
        """
        cdef Meeting meeting
        cdef int i
        if not self.mosaics:
            return records
        others = []
        for number, draw in zip(records.tolist(), draws.tolist()):
            if self.meets(crew, number, epoch, draw, &meeting):
                others += [meeting.records[i] for i in range(1, MOSAIC_IMAGES)]
        return np.concatenate([records, np.array(others, np.int64)])

    def mosaic_stats(self, crews):
        """How many mosaics the crews have made, if they make any."""
        cdef Mosaic mosaic
        cdef int64_t made = 0
        if not self.mosaics:
            return {}
        for crew in crews:
            for mosaic in crew.mosaics:
                if mosaic is not None:
                    made += counter_load(&mosaic.made)
        return {"mosaics": made}


cdef class Crew:
    """The renderers of one thread, one for every section.

    Parameters
    ----------
    renderers : list of Renderer
    mosaics : list of Mosaic or None
        For each of them.
    """

    def __init__(self, list renderers not None, list mosaics not None):
        self.renderers, self.mosaics = list(renderers), list(mosaics)
        self.table = table_of(self.renderers)
        self.mosaic_table = table_of(self.mosaics)

    def __dealloc__(self):
        free(self.table)
        free(self.mosaic_table)


cdef PyObject** table_of(list objects) except NULL:
    """Their addresses, for as long as the list keeps them; NULL for None."""
    cdef Py_ssize_t i
    cdef PyObject** table = <PyObject**>calloc(max(len(objects), 1), sizeof(PyObject*))
    if table == NULL:
        raise MemoryError
    for i in range(len(objects)):
        if objects[i] is not None:
            table[i] = <PyObject*>objects[i]
    return table
