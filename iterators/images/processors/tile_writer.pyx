"""One picture into its place in a tensor: resized, cut into tiles or patches, and normalised.

A picture is done in one go without the GIL, after tables of whole numbers that a
`processor_rules.PicturePlan` becomes: `write_picture`.  Every value is looked up, so that it has
the rounding of the processor, or computed where that gives the same tables, and written once.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

cimport recordio.kernels.resample as resample
from recordio.kernels.pixel cimport PIXEL_SLACK

cdef extern from "iterators/images/processors/tile_store.h" nogil:
    ctypedef struct tile_scale:
        float divisor
        float[3] mean
        float[3] deviation

    bint tile_scale_fits(const tile_scale* scale, const void* tables)
    void tile_values(const uint8_t* line, int count, const tile_scale* scale, float* red,
                     float* green, float* blue)
    void tile_store(void* to, const void* source, size_t size)
    void tile_store_done()

#: Numbers of a step: source; x, y, width and height of the region; height and width of the result
#: and of its canvas; y and x of the result there.
STEP_COLUMNS = 11

cdef enum:
    CHANNELS = 3

ctypedef fused value:
    uint8_t
    uint16_t
    uint32_t


# RGB pixels somewhere in memory; height and width are those before it was decoded at a fraction.
cdef struct Picture:
    const uint8_t* first
    ptrdiff_t stride
    int height, width, denominator


# Where the pixels of a tile or a patch go, in values of the tensor.
cdef struct Form:
    int side                # of a patch; 0: the tile is written as it is
    int merge
    int repeat
    bint interleaved
    int item_height         # of a tile in the tensor, which may be larger than the tile
    int item_width
    const tile_scale* scale     # by which values can be computed; NULL: they are looked up


cdef class Scratch:
    """Memory for the pictures that one picture becomes, used again for the next one of a thread."""

    cdef uint8_t* memory
    cdef size_t size

    def __dealloc__(self):
        free(self.memory)

    cdef uint8_t* reserve(self, size_t size) except NULL:
        """Return so many bytes, which are valid until the next call."""
        if size > self.size:
            free(self.memory)
            self.memory, self.size = <uint8_t*>malloc(size), size
            if self.memory == NULL:
                self.size = 0
                raise MemoryError("no memory to resize a picture")
        return self.memory


def write_picture(const uint8_t[:, :, ::1] pixels not None, source,
                  const int[:, ::1] steps not None, const int[:, ::1] cuts not None, tile,
                  int method, form, item, const uint8_t[:, ::1] tables not None,
                  const float[::1] scale not None, uint8_t[::1] out not None, size_t begin,
                  size_t room, Scratch scratch not None, fill=(0, 0, 0)):
    """Write all tiles of a picture, and zeros into the rest of its room.

    `source` is (height, width) and the denominator of the fraction at which the pixels were
    decoded.  `steps` and `cuts` are those of a plan, with `STEP_COLUMNS` and (source, y, x)
    columns; `tile` is (height, width); `method` a filter of `recordio.kernels.resample`; `form` is
    (side, merge, repeat, interleaved), side 0 for tiles; `item` (height, width) of a tile in the
    tensor.  `tables` has the bytes of 256 values for each channel, and `scale` the seven numbers
    that floats of these tables are computed with, where that gives the same ones.  The picture's
    part of `out` begins at the item `begin`, of which it has `room`.  `scratch` is that of the
    thread, `fill` the colour of canvases.
    """
    cdef Form to
    cdef Picture picture
    cdef int status, item_size = <int>tables.shape[1] // 256
    cdef int height = tile[0], width = tile[1]
    cdef size_t item_bytes, used, size = 1
    cdef uint8_t* memory
    cdef uint8_t[CHANNELS] colour
    cdef int i
    colour[0], colour[1], colour[2] = fill
    to.side, to.merge, to.repeat, to.interleaved = form
    to.item_height, to.item_width = item
    picture.height, picture.width, picture.denominator = source
    picture.first, picture.stride = &pixels[0, 0, 0], pixels.shape[1] * CHANNELS
    if to.side:
        item_bytes = <size_t>CHANNELS * to.repeat * to.side * to.side * item_size
        used = <size_t>(height // to.side) * (width // to.side)
    else:
        item_bytes = <size_t>CHANNELS * to.item_height * to.item_width * item_size
        used = cuts.shape[0]
    if (tables.shape[0] != CHANNELS or scale.shape[0] != 1 + 2 * CHANNELS
            or pixels.shape[2] != CHANNELS or used > room
            or picture.denominator not in (1, 2, 4, 8)
            or pixels.shape[0] != _above(picture.height, picture.denominator)
            or pixels.shape[1] != _above(picture.width, picture.denominator)
            or steps.shape[1] != STEP_COLUMNS or cuts.shape[1] != 3
            or (to.side and (cuts.shape[0] != 1 or height % (to.side * to.merge)
                             or width % (to.side * to.merge)))
            or (begin + room) * item_bytes > <size_t>out.shape[0]):
        raise ValueError("the plan of a picture does not fit the tensor")
    if room == 0:
        return
    for i in range(<int>steps.shape[0]):
        if steps[i, 7] < 1 or steps[i, 8] < 1:
            raise ValueError("the plan of a picture has one without pixels")
        size += <size_t>steps[i, 7] * steps[i, 8] * CHANNELS + PIXEL_SLACK
    memory = scratch.reserve(size)
    to.scale = <const tile_scale*>&scale[0]
    if item_size != sizeof(float) or not tile_scale_fits(to.scale, &tables[0, 0]):
        to.scale = NULL
    with nogil:
        status = _write(&picture, steps, cuts, height, width, method, &to, &tables[0, 0], item_size,
                        &out[0] + begin * item_bytes, item_bytes, memory, colour)
        if status == resample.RESAMPLE_OK:
            memset(&out[0] + (begin + used) * item_bytes, 0, (room - used) * item_bytes)
    if status == resample.RESAMPLE_NO_MEMORY:
        raise MemoryError("no memory to resize a picture")
    if status != resample.RESAMPLE_OK:
        raise ValueError("a step of the plan of a picture lies outside of it")


cdef int _above(int length, int denominator) noexcept nogil:
    return (length + denominator - 1) // denominator


cdef int _write(const Picture* picture, const int[:, ::1] steps, const int[:, ::1] cuts,
                int height, int width, int method, const Form* form, const uint8_t* tables,
                int item_size, uint8_t* out, size_t item_bytes, uint8_t* memory,
                const uint8_t* colour) noexcept nogil:
    """Make the pictures of all steps and write the tiles; a status of the resampler."""
    cdef int i, count = <int>steps.shape[0], status = resample.RESAMPLE_OK
    cdef const Picture* source
    cdef const uint8_t* first
    cdef resample.resampler* resampler = resample.resampler_new()
    cdef Picture* made = <Picture*>calloc(count + 1, sizeof(Picture))
    cdef size_t line = form.side * form.side if form.side else width
    cdef void* room = malloc(line * CHANNELS * item_size)
    if made == NULL or resampler == NULL or room == NULL:
        status = resample.RESAMPLE_NO_MEMORY
    else:
        made[0] = picture[0]
        for i in range(count):
            status = _step(resampler, method, made, i, &steps[i, 0], &memory, colour)
            if status != resample.RESAMPLE_OK:
                break
    if status == resample.RESAMPLE_OK:
        for i in range(<int>cuts.shape[0]):
            if not 0 <= cuts[i, 0] <= count:
                status = resample.RESAMPLE_BAD_ARGUMENT
                break
            source = &made[cuts[i, 0]]
            if (source.denominator != 1 or cuts[i, 1] < 0 or cuts[i, 2] < 0
                    or cuts[i, 1] + height > source.height or cuts[i, 2] + width > source.width):
                status = resample.RESAMPLE_BAD_ARGUMENT
                break
            first = source.first + cuts[i, 1] * source.stride + cuts[i, 2] * CHANNELS
            if item_size == 4:
                _tile(first, source.stride, height, width, form, <const uint32_t*>tables,
                      <uint32_t*>room, <uint32_t*>(out + i * item_bytes))
            elif item_size == 2:
                _tile(first, source.stride, height, width, form, <const uint16_t*>tables,
                      <uint16_t*>room, <uint16_t*>(out + i * item_bytes))
            else:
                _tile(first, source.stride, height, width, form, tables, <uint8_t*>room,
                      out + i * item_bytes)
        tile_store_done()
    free(made)
    free(room)
    resample.resampler_free(resampler)
    return status


cdef int _step(resample.resampler* resampler, int method, Picture* made, int number,
               const int* step, uint8_t** memory, const uint8_t* colour) noexcept nogil:
    """Make the picture of one step in memory, which then begins behind it."""
    cdef resample.resample_axis across, down
    cdef int x = step[1], y = step[2], width = step[3], height = step[4]
    cdef int row, left, top, columns, rows, status
    cdef const Picture* source
    cdef const uint8_t* first
    cdef Picture* to = &made[number + 1]
    cdef uint8_t* own = memory[0]
    cdef size_t size
    if not 0 <= step[0] <= number:
        return resample.RESAMPLE_BAD_ARGUMENT
    source = &made[step[0]]
    to.height, to.width, to.denominator = step[7], step[8], 1
    if (x < 0 or y < 0 or width < 1 or height < 1 or x + width > source.width
            or y + height > source.height or step[9] < 0 or step[10] < 0
            or step[5] < 1 or step[6] < 1 or step[9] + step[5] > to.height
            or step[10] + step[6] > to.width):
        return resample.RESAMPLE_BAD_ARGUMENT
    first = source.first
    if source.denominator == 1:
        first += y * source.stride + x * CHANNELS
        x = y = 0
    if (source.denominator == 1 and height == to.height and width == to.width
            and height == step[5] and width == step[6]):
        to.first, to.stride = first, source.stride      # as it is: of the same pixels
        return resample.RESAMPLE_OK
    to.stride = <ptrdiff_t>to.width * CHANNELS
    size = <size_t>to.stride * to.height
    memory[0] += size + PIXEL_SLACK
    to.first = own
    if to.height != step[5] or to.width != step[6]:
        _fill(own, size, colour)
    _axis(&across, source, x, width, source.width, step[6])
    _axis(&down, source, y, height, source.height, step[5])
    status = resample.resampler_begin(
        resampler, method, &across, &down, CHANNELS,
        own + step[9] * to.stride + step[10] * CHANNELS, to.stride)
    if status != resample.RESAMPLE_OK:
        return status
    resample.resampler_source(resampler, &left, &top, &columns, &rows)
    for row in range(top, top + rows):
        resample.resampler_push(resampler, first + row * source.stride + left * CHANNELS)
    return resample.RESAMPLE_OK


cdef void _fill(uint8_t* canvas, size_t size, const uint8_t* colour) noexcept nogil:
    """Paint all pixels of a canvas."""
    cdef size_t at
    if colour[0] == colour[1] == colour[2]:
        memset(canvas, colour[0], size)
        return
    for at in range(size):
        canvas[at] = colour[at % CHANNELS]


cdef void _axis(resample.resample_axis* axis, const Picture* picture, int origin, int source,
                int stored, int target) noexcept nogil:
    """All pixels of an axis, to so many."""
    axis.source, axis.origin, axis.stored = source, origin, stored
    axis.target = axis.count = target
    axis.begin = 0
    axis.denominator = picture.denominator
    axis.low = axis.high = 0


cdef void _tile(const uint8_t* first, ptrdiff_t stride, int height, int width, const Form* form,
                const value* tables, value* room, value* out) noexcept nogil:
    """Write a tile, as it is or as its patches, after there was `room` for a row or a patch."""
    cdef int side = form.side, merge = form.merge, x, y, i, j, channel
    cdef size_t plane = <size_t>form.item_height * form.item_width
    if side == 0:
        for y in range(height):
            _planes(first + y * stride, width, form, tables, room, room + width, room + 2 * width)
            for channel in range(CHANNELS):
                tile_store(out + channel * plane + <size_t>y * form.item_width,
                           room + channel * width, width * sizeof(value))
        _clear_rest(height, width, form, out)
        return
    for y in range(height // side // merge):
        for x in range(width // side // merge):
            for j in range(y * merge, (y + 1) * merge):
                for i in range(x * merge, (x + 1) * merge):
                    out = _patch(first + j * side * stride + i * side * CHANNELS, stride, form,
                                 tables, room, out)


cdef inline value* _patch(const uint8_t* first, ptrdiff_t stride, const Form* form,
                          const value* tables, value* room, value* out) noexcept nogil:
    """Write a patch; where the next one begins."""
    cdef int side = form.side, y, channel, _again
    cdef size_t plane = <size_t>side * side
    cdef value* to = room
    if form.interleaved:
        for y in range(side):
            _look_up(first + y * stride, side, tables, to, to + 1, to + 2, CHANNELS)
            to += CHANNELS * side
        tile_store(out, room, CHANNELS * plane * sizeof(value))
        return out + CHANNELS * plane
    for y in range(side):
        _planes(first + y * stride, side, form, tables, to, to + plane, to + 2 * plane)
        to += side
    for channel in range(CHANNELS):
        for _again in range(form.repeat):
            tile_store(out, room + channel * plane, plane * sizeof(value))
            out += plane
    return out


cdef inline void _planes(const uint8_t* line, int width, const Form* form, const value* tables,
                         value* red, value* green, value* blue) noexcept nogil:
    """Make the values of a row of pixels for three planes."""
    if form.scale != NULL and width >= 8:
        tile_values(line, width, form.scale, <float*>red, <float*>green, <float*>blue)
    else:
        _look_up(line, width, tables, red, green, blue, 1)


cdef inline void _look_up(const uint8_t* line, int width, const value* tables, value* red,
                          value* green, value* blue, int step) noexcept nogil:
    """Look up the values of a row of pixels."""
    cdef int x
    for x in range(width):
        red[x * step] = tables[line[0]]
        green[x * step] = tables[256 + line[1]]
        blue[x * step] = tables[512 + line[2]]
        line += CHANNELS


cdef void _clear_rest(int height, int width, const Form* form, value* out) noexcept nogil:
    """Write zeros to the right of a tile and below it."""
    cdef int _channel, y
    if height == form.item_height and width == form.item_width:
        return
    for _channel in range(CHANNELS):
        for y in range(form.item_height):
            if y < height:
                memset(out + width, 0, (form.item_width - width) * sizeof(value))
            else:
                memset(out, 0, form.item_width * sizeof(value))
            out += form.item_width
