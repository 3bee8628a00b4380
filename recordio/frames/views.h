/* What CPython's interface offers only in part for views of mapped files. */
#ifndef RECORDIO_VIEWS_H
#define RECORDIO_VIEWS_H

#include <Python.h>

/* Until Python 3.11 the cycle collector runs inside allocations: a list of many memoryviews is
   then traversed again and again while it is built.  Later versions collect between bytecodes. */
#if PY_VERSION_HEX < 0x030C0000
#define recordio_pause_collector() PyGC_Disable()
#define recordio_resume_collector(was)                                                                       \
    do {                                                                                                     \
        if (was) PyGC_Enable();                                                                              \
    } while (0)
#else
#define recordio_pause_collector()     0
#define recordio_resume_collector(was) ((void)(was))
#endif

/* Without a GIL another thread may be inside the map when close() is called. */
#ifdef Py_GIL_DISABLED
#define RECORDIO_UNMAP_ON_CLOSE 0
#else
#define RECORDIO_UNMAP_ON_CLOSE 1
#endif

#if defined(__GNUC__) || defined(__clang__)
#define recordio_prefetch(address) __builtin_prefetch(address)
#else
#define recordio_prefetch(address) ((void)(address))
#endif

/* A view of part of what `whole` shows.  Slicing would do, but takes three more objects and twice
   the time; the new view's own description of its memory is narrowed instead. */
static inline PyObject* recordio_part(PyObject* whole, Py_ssize_t start, Py_ssize_t length) {
#if defined(PYPY_VERSION) || defined(GRAALVM_PYTHON)
    return PySequence_GetSlice(whole, start, start + length);
#else
    PyObject* from = whole;
#ifdef Py_GIL_DISABLED
    /* Views of one view count each other, which CPython does without atomic numbers (gh-155606):
       with threads they would seem to be released.  A view of the map itself has its own count. */
    if (PyMemoryView_GET_BASE(whole)) from = PyMemoryView_GET_BASE(whole);
#endif
    PyObject* part = PyMemoryView_FromObject(from);
    if (part) {
        Py_buffer* buffer = PyMemoryView_GET_BUFFER(part);
        buffer->buf = (char*)PyMemoryView_GET_BUFFER(whole)->buf + start;
        buffer->len = length;
        buffer->shape[0] = length;
    }
    return part;
#endif
}

#endif
