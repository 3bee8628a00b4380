"""The steps between the rows of an image and its slot in a batch, without the GIL.

A `StepRunner` resamples, warps, pads and crops row by row while the rows are still in the cache,
wherever they come from, changes the pixels of the result, and hands every finished row straight to
a writer.  It reads no record, opens no image and draws no geometry: `render` does.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from iterators.images.augment.geometry cimport (
    PADDING_CONSTANT, PADDING_EDGE, PADDING_REFLECT, STEP_AFFINE, STEP_PAD, STEP_PERSPECTIVE,
    STEP_RESAMPLE, STEP_WARP, Step,
)
from iterators.images.augment.pixel_changes cimport PixelChange
from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport Rows, read_pixels
from recordio.formats.status cimport (
    RENDER_GEOMETRY, RENDER_IMAGE, RENDER_MEMORY, RENDER_OK, outcome_fail,
)
from recordio.kernels.operations cimport AFFINE_NEAREST
from recordio.kernels.orient cimport orient_exchanges_sides, orient_image, orient_rectangle
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.kernels.resample cimport (
    SIMD_LEVEL_AVX512, resample_axis, resample_denominator, resample_draft, resampler_begin,
    resampler_free, resampler_new, resampler_push, resampler_source, simd_level,
)
from recordio.kernels.transform cimport affine_image, transform_map, transform_window
from recordio.kernels.warp cimport warp_bounds, warp_prepare, warp_row, warp_source, warp_weights
from recordio.sync cimport sync_now


cdef extern from "recordio/kernels/cache_hints.h" nogil:
    void prefetch_for_reading(const void* memory, size_t size)

cdef extern from "recordio/kernels/premultiply.h" nogil:
    void premultiply(const uint8_t* row, ptrdiff_t count, uint8_t* out)
    void unpremultiply(const uint8_t* row, ptrdiff_t count, uint8_t* out)

cdef const char* LOST = (
    b"the image holds signed values, fractions or others that uint16 cannot: ask for "
    b"dtype='float32'")

cdef enum:
    ROWS_AHEAD = 4          # of those that lie in memory, each at another address
    TIMED_EVERY = 8         # of the images of a runner one is timed step by step


cdef class StepRunner:
    """Runs the steps of one image after the other; see the module."""

    def __cinit__(self, RenderPlan plan not None, changes, RowWriter writer):
        cdef int i
        cdef PixelChange change
        for i in range(BUFFERS):
            self.buffers[i] = NULL
            self.capacities[i] = 0
        self.resampler = resampler_new()
        if self.resampler == NULL:
            raise MemoryError
        if len(changes) > MAX_CHANGES:
            raise ValueError(f"{len(changes)} changes: at most {MAX_CHANGES} are possible")
        self.plan, self.writer, self.owners = plan, writer, tuple(changes)
        for change in self.owners:
            self.changes[self.num_changes] = change.change
            self.num_changes += 1

    def __dealloc__(self):
        cdef int i
        resampler_free(self.resampler)
        for i in range(BUFFERS):
            free(self.buffers[i])

    cdef int run(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                 const Geometry* geometry, const Target* target,
                 Outcome* outcome) noexcept nogil:
        """Bring an image from an open source through all steps to its target."""
        cdef double begin, decoded
        cdef int status
        # Clocks between rows would cost a percent or two: some images stand for all.
        self.timed = self.runs % TIMED_EVERY == 0
        self.runs += 1
        if not self.timed:
            return self.run_steps(source, info, image, geometry, target, outcome)
        begin, decoded = sync_now(), source.seconds
        status = self.run_steps(source, info, image, geometry, target, outcome)
        seconds_add(&self.timed_seconds, sync_now() - begin - (source.seconds - decoded))
        return status

    cdef int run_steps(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                       const Geometry* geometry, const Target* target,
                       Outcome* outcome) noexcept nogil:
        cdef const Step* step = &geometry.steps[0]
        cdef Pixels pixels
        cdef RowSource memory
        cdef uint8_t* out = NULL
        cdef double begin, written
        cdef int i, denominator = 1, channels = self.plan.channels
        cdef bint writes, whole, last, on_way = False, at_end = False
        if info.pixel_size > channels:
            return self.run_deep(source, info, image, geometry, target, outcome)
        if self.writer is not None:
            self.writer.begin(target, image, geometry)
            draw_changes(self, image, &geometry.steps[geometry.count - 1], &on_way, &at_end)
            if geometry.changed == geometry.count - 1:
                at_end = on_way or at_end
        pixels.pixel_size = channels
        read_pixels(&memory, &pixels)
        if step.kind == STEP_RESAMPLE and info.scales and self.plan.reducing_gap:
            denominator = resample_draft(self.plan.reducing_gap, step.width, step.target_width,
                                         step.height, step.target_height)
        elif step.kind == STEP_RESAMPLE and info.scales and self.plan.scaled_decode:
            denominator = resample_denominator(step.method, step.width, step.target_width,
                                               step.height, step.target_height)
        if step.kind != STEP_RESAMPLE or info.orientation != 1:
            if gather(self, source, info, step, &denominator, &pixels, outcome):
                return outcome.status
            source = &memory
        for i in range(geometry.count):
            step = &geometry.steps[i]
            last = i == geometry.count - 1
            writes = self.writer is not None and last
            whole = writes and (at_end or self.writer.whole)
            out = self.buffer(PIXELS_B if i & 1 else PIXELS_A,
                              <size_t>step.out_width * step.out_height * channels, outcome)
            if out == NULL:
                return outcome.status
            begin, written = self.clock(), self.write_seconds
            if step.kind == STEP_WARP:
                warp_step(self, step, &pixels, out, writes and not whole, outcome)
            elif step.kind == STEP_PAD:
                pad_step(self, step, &pixels, out, writes and not whole, outcome)
            elif step.kind == STEP_AFFINE or step.kind == STEP_PERSPECTIVE:
                transform_step(self, step, &pixels, out, writes and not whole, outcome)
            elif step.width == step.target_width and step.height == step.target_height:
                copy_step(self, step, source, out, writes and not whole, outcome)
            else:
                resample_step(self, step, source, denominator, out, writes and not whole, outcome)
            if outcome.status:
                return outcome.status
            if step.kind != STEP_RESAMPLE:
                self.note(begin + self.write_seconds - written)
            pixels.first, pixels.stride = out, <ptrdiff_t>step.out_width * channels
            pixels.x = pixels.y = 0
            pixels.width, pixels.height = step.out_width, step.out_height
            source, denominator = &memory, 1
            begin = self.clock()
            if on_way and i == geometry.changed:
                if apply_changes(self, False, out, pixels.width, pixels.height):
                    return outcome_fail(outcome, RENDER_MEMORY, b"")
            if at_end and last:
                if apply_changes(self, True, out, pixels.width, pixels.height):
                    return outcome_fail(outcome, RENDER_MEMORY, b"")
            self.note(begin)
            if writes and whole:
                put_rows(self, out, pixels.stride, pixels.height)
        if self.writer is not None:
            begin = self.clock()
            self.writer.end()
            self.note(begin)
        return RENDER_OK

    cdef double clock(self) noexcept nogil:
        return sync_now() if self.timed else 0

    cdef void note(self, double begin) noexcept nogil:
        if self.timed:
            seconds_add(&self.change_seconds, sync_now() - begin)

    cdef int run_deep(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                      const Geometry* geometry, const Target* target,
                      Outcome* outcome) noexcept nogil:
        cdef int i, width = info.width, height = info.height
        cdef Rectangle region
        cdef Rows rows
        cdef ptrdiff_t packed
        cdef size_t size
        cdef uint8_t* stored
        cdef uint8_t* upright
        region.x = region.y = 0
        for i in range(geometry.count):
            region.x += geometry.steps[i].x + geometry.steps[i].left
            region.y += geometry.steps[i].y + geometry.steps[i].top
        region.width = geometry.steps[geometry.count - 1].out_width
        region.height = geometry.steps[geometry.count - 1].out_height
        self.writer.begin(target, image, geometry)
        self.writer.sample = info.pixel_size // self.plan.channels
        if info.orientation == 1:
            if source.start(source, 1, &region, outcome):
                return outcome.status
            i = 0
            while i < region.height:
                if source.next(source, &rows, outcome):
                    return outcome.status
                put_rows(self, rows.first, rows.stride, rows.count)
                i += rows.count
        else:
            size = <size_t>region.width * region.height * info.pixel_size
            stored = self.buffer(PIXELS_A, size, outcome)
            upright = self.buffer(PIXELS_B, size, outcome) if stored != NULL else NULL
            if upright == NULL:
                return outcome.status
            packed = <ptrdiff_t>region.width * info.pixel_size
            if orient_exchanges_sides(info.orientation):
                width, height = height, width
            orient_rectangle(width, height, info.orientation, &region.x, &region.y, &region.width,
                             &region.height)
            if copy_rows(source, 1, &region, info.pixel_size, stored, outcome):
                return outcome.status
            orient_image(stored, <ptrdiff_t>region.width * info.pixel_size, region.width,
                         region.height, info.pixel_size, info.orientation, upright, packed)
            put_rows(self, upright, packed, geometry.steps[geometry.count - 1].out_height)
        self.writer.end()
        if self.writer.lost:
            return outcome_fail(outcome, RENDER_IMAGE, LOST)
        return RENDER_OK

    cdef int load(self, RowSource* source, const ImageInfo* info, const Rectangle* region,
                  Pixels* pixels, Outcome* outcome) noexcept nogil:
        cdef Step step
        cdef int denominator = 1
        step.kind = STEP_RESAMPLE
        step.x, step.y, step.width, step.height = region.x, region.y, region.width, region.height
        pixels.pixel_size = self.plan.channels
        return gather(self, source, info, &step, &denominator, pixels, outcome)

    cdef uint8_t* buffer(self, int which, size_t size, Outcome* outcome) noexcept nogil:
        """Return memory of at least that size, kept between images; NULL after a failure."""
        cdef uint8_t* memory
        if size > self.plan.largest:
            outcome_fail(outcome, RENDER_GEOMETRY,
                         b"an image between two resizes would be too large")
            return NULL
        if size + PIXEL_SLACK > self.capacities[which]:
            memory = <uint8_t*>realloc(self.buffers[which], size + PIXEL_SLACK)
            if memory == NULL:
                outcome_fail(outcome, RENDER_MEMORY, b"")
                return NULL
            self.buffers[which] = memory
            self.capacities[which] = size + PIXEL_SLACK
        return self.buffers[which]


cdef void put_rows(StepRunner runner, const uint8_t* rows, ptrdiff_t stride,
                   int count) noexcept nogil:
    """Write finished rows."""
    cdef double begin = runner.clock()
    runner.writer.write(rows, stride, count)
    if runner.timed:
        seconds_add(&runner.write_seconds, sync_now() - begin)


cdef bint only_crops(const Geometry* geometry) noexcept nogil:
    cdef const Step* step
    cdef int i
    for i in range(geometry.count):
        step = &geometry.steps[i]
        if (step.kind != STEP_RESAMPLE or step.width != step.target_width
                or step.height != step.target_height):
            return False
    return True


cdef void draw_changes(StepRunner runner, const ImageKey* image, const Step* last, bint* on_way,
                       bint* at_end) noexcept nogil:
    """Draw the changes: whether pixels change on the way, and whether at the end."""
    cdef Change* change
    cdef int i
    for i in range(runner.num_changes):
        change = &runner.changes[i]
        if change.expect != NULL:
            change.expect(change.state, last.out_width, last.out_height)
        runner.drawn[i] = change.draw(change.state, image, &runner.writer.normalise)
        if runner.drawn[i] and change.finished:
            at_end[0] = True
        elif runner.drawn[i]:
            on_way[0] = True


cdef int apply_changes(StepRunner runner, bint finished, uint8_t* pixels, int width,
                       int height) noexcept nogil:
    """Make the changes that were drawn: 0, or -1 if there was no memory."""
    cdef int i
    for i in range(runner.num_changes):
        if runner.drawn[i] and runner.changes[i].finished == finished:
            if runner.changes[i].apply(runner.changes[i].state, pixels, runner.plan.channels,
                                       width, height):
                return -1
    return 0


cdef int gather(StepRunner runner, RowSource* source, const ImageInfo* info, const Step* step,
                int* denominator, Pixels* pixels, Outcome* outcome) noexcept nogil:
    """Bring the pixels that the first step reads into memory, upright."""
    cdef int channels = runner.plan.channels
    cdef int width = info.width, height = info.height
    cdef Rectangle region, stored
    cdef Rows rows
    cdef uint8_t* upright
    cdef uint8_t* target
    if width % denominator[0] or height % denominator[0]:
        denominator[0] = 1  # the scaled grids of stored and upright image would not agree
    find_needed(runner, step, denominator[0], info, &region)
    if info.in_memory:
        region.x = region.y = 0
        region.width, region.height = width, height
    pixels.x, pixels.y = region.x, region.y
    pixels.width, pixels.height = region.width, region.height
    if info.in_memory:
        if source.start(source, 1, &region, outcome) or source.next(source, &rows, outcome):
            return outcome.status
        pixels.first, pixels.stride = rows.first, rows.stride
        return RENDER_OK
    upright = target = runner.buffer(PIXELS_B, <size_t>region.width * region.height * channels,
                                     outcome)
    if upright != NULL and info.orientation != 1:
        target = runner.buffer(PIXELS_A, <size_t>region.width * region.height * channels, outcome)
    if outcome.status:
        return outcome.status
    width, height, stored = width // denominator[0], height // denominator[0], region
    if orient_exchanges_sides(info.orientation):
        width, height = height, width
    orient_rectangle(width, height, info.orientation, &stored.x, &stored.y, &stored.width,
                     &stored.height)
    if copy_rows(source, denominator[0], &stored, channels, target, outcome):
        return outcome.status
    pixels.first, pixels.stride = upright, <ptrdiff_t>region.width * channels
    if info.orientation != 1:
        orient_image(target, <ptrdiff_t>stored.width * channels, stored.width, stored.height,
                     channels, info.orientation, upright, pixels.stride)
    return RENDER_OK


cdef int copy_rows(RowSource* source, int denominator, const Rectangle* region, int pixel_size,
                   uint8_t* target, Outcome* outcome) noexcept nogil:
    """Copy a rectangle of the stored image at 1/denominator, packed."""
    cdef ptrdiff_t packed = <ptrdiff_t>region.width * pixel_size
    cdef Rows rows
    cdef int i, top = 0
    if source.start(source, denominator, region, outcome):
        return outcome.status
    while top < region.height:
        if source.next(source, &rows, outcome):
            return outcome.status
        for i in range(rows.count):
            memcpy(target + (top + i) * packed, rows.first + i * rows.stride, packed)
        top += rows.count
    return RENDER_OK


cdef void find_needed(StepRunner runner, const Step* step, int denominator, const ImageInfo* info,
                      Rectangle* region) noexcept nogil:
    """Find what the first step reads of the upright image at 1/denominator; never empty."""
    cdef warp_source source
    if step.kind == STEP_RESAMPLE:
        region.x, region.y = step.x // denominator, step.y // denominator
        region.width = (step.x + step.width + denominator - 1) // denominator - region.x
        region.height = (step.y + step.height + denominator - 1) // denominator - region.y
        return
    if step.kind == STEP_WARP:
        describe_warp(runner, step, NULL, &source)
        warp_bounds(&source, step.left, step.top, step.out_width, step.out_height,
                    &region.x, &region.y, &region.width, &region.height)
    elif step.kind == STEP_PAD:
        find_padded(step.method, step.left - step.border_x, step.out_width, info.width, &region.x,
                    &region.width)
        find_padded(step.method, step.top - step.border_y, step.out_height, info.height, &region.y,
                    &region.height)
    else:
        region.x = region.y = 0
        region.width, region.height = info.width, info.height
    if region.width < 1 or region.height < 1:
        region.x = region.y = 0
        region.width = region.height = 1


cdef int copy_step(StepRunner runner, const Step* step, RowSource* source, uint8_t* out,
                   bint writes, Outcome* outcome) noexcept nogil:
    """Crop only: rows go from the source to where they belong."""
    cdef int y = 0, i
    cdef ptrdiff_t packed = <ptrdiff_t>step.out_width * runner.plan.channels
    cdef Rectangle region
    cdef Rows rows
    region.x, region.y = step.x + step.left, step.y + step.top
    region.width, region.height = step.out_width, step.out_height
    if source.start(source, 1, &region, outcome):
        return outcome.status
    while y < step.out_height:
        if source.next(source, &rows, outcome):
            return outcome.status
        if writes:
            put_rows(runner, rows.first, rows.stride, rows.count)
        else:
            for i in range(rows.count):
                memcpy(out + (y + i) * packed, rows.first + i * rows.stride, packed)
        y += rows.count
    return RENDER_OK


cdef int resample_step(StepRunner runner, const Step* step, RowSource* source, int denominator,
                       uint8_t* out, bint writes, Outcome* outcome) noexcept nogil:
    """Push rows through the resampler; those that it completes are written at once."""
    cdef int channels = runner.plan.channels, i, y = 0, complete = 0, ready
    cdef ptrdiff_t packed = <ptrdiff_t>step.out_width * channels
    cdef Rectangle region
    cdef Rows rows
    cdef resample_axis horizontal, vertical
    horizontal.source, horizontal.target = step.width, step.target_width
    horizontal.begin, horizontal.count = step.left, step.out_width
    horizontal.origin, horizontal.denominator = step.x, denominator
    horizontal.stored = step.x + step.width
    vertical.source, vertical.target = step.height, step.target_height
    vertical.begin, vertical.count = step.top, step.out_height
    vertical.origin, vertical.denominator = step.y, denominator
    vertical.stored = step.y + step.height
    horizontal.low = horizontal.high = vertical.low = vertical.high = 0
    if resampler_begin(runner.resampler, step.method, &horizontal, &vertical, channels, out,
                       packed):
        return outcome_fail(outcome, RENDER_MEMORY, b"")
    resampler_source(runner.resampler, &region.x, &region.y, &region.width, &region.height)
    if source.start(source, denominator, &region, outcome):
        return outcome.status
    while y < region.height:
        if source.next(source, &rows, outcome):
            return outcome.status
        for i in range(rows.count):
            if rows.cold and i + ROWS_AHEAD < rows.count:
                prefetch_for_reading(rows.first + (i + ROWS_AHEAD) * rows.stride,
                                     region.width * channels)
            ready = resampler_push(runner.resampler, rows.first + i * rows.stride)
            if writes and ready > complete:
                put_rows(runner, out + complete * packed, packed, ready - complete)
            complete = ready
        y += rows.count
    return RENDER_OK


cdef int warp_step(StepRunner runner, const Step* step, const Pixels* pixels, uint8_t* out,
                   bint writes, Outcome* outcome) noexcept nogil:
    """Rotate, shear and scale: the inverse map is evaluated for the wanted pixels only."""
    cdef warp_source source
    cdef int y
    cdef ptrdiff_t packed = <ptrdiff_t>step.out_width * runner.plan.channels
    cdef int32_t* columns = <int32_t*>runner.buffer(COLUMNS, 8 * <size_t>step.out_width, outcome)
    if columns == NULL:
        return outcome.status
    describe_warp(runner, step, pixels, &source)
    warp_prepare(&source, step.left, step.out_width, columns)
    for y in range(step.out_height):
        warp_row(&source, step.left, step.out_width, step.top + y, out + y * packed)
        if writes:
            put_rows(runner, out + y * packed, packed, 1)
    return RENDER_OK


cdef int padded_from(int method, int at, int side) noexcept nogil:
    """Find the column or row that is seen at one of a bordered image; -1 for the fill value."""
    cdef int period
    if 0 <= at < side:
        return at
    if method == PADDING_CONSTANT:
        return -1
    if method == PADDING_EDGE or side == 1:
        return 0 if at < 0 else side - 1
    period = 2 * side - 2 if method == PADDING_REFLECT else 2 * side
    at %= period
    if at < 0:
        at += period
    return at if at < side else 2 * side - 2 - at if method == PADDING_REFLECT else period - 1 - at


cdef void find_padded(int method, int first, int count, int side, int* begin,
                      int* length) noexcept nogil:
    """Find the columns or rows that are seen at some of a bordered image."""
    cdef int at, source, end = 0
    begin[0] = side
    for at in range(first, first + count):
        source = padded_from(method, at, side)
        if source >= 0:
            begin[0] = min(begin[0], source)
            end = max(end, source + 1)
    length[0] = end - begin[0]


cdef int pad_step(StepRunner runner, const Step* step, const Pixels* pixels, uint8_t* out,
                  bint writes, Outcome* outcome) noexcept nogil:
    """Add a border."""
    cdef int channels = runner.plan.channels, x, y, i, column, source_y
    cdef int first = min(max(step.border_x - step.left, 0), step.out_width)
    cdef int last = max(min(step.border_x + step.width - step.left, step.out_width), first)
    cdef ptrdiff_t packed = <ptrdiff_t>step.out_width * channels
    cdef const uint8_t* source
    cdef uint8_t* row
    cdef int32_t* columns = <int32_t*>runner.buffer(COLUMNS, 4 * <size_t>step.out_width, outcome)
    if columns == NULL:
        return outcome.status
    for x in range(step.out_width):
        columns[x] = padded_from(step.method, step.left + x - step.border_x, step.width)
    for y in range(step.out_height):
        row = out + y * packed
        source_y = padded_from(step.method, step.top + y - step.border_y, step.height)
        source = pixels.first
        if source_y >= 0:
            source += (source_y - pixels.y) * pixels.stride
        for x in range(step.out_width):
            if source_y >= 0 and first <= x < last:
                continue
            column = -1 if source_y < 0 else columns[x]
            for i in range(channels):
                row[x * channels + i] = runner.plan.fill[i] if column < 0 else (
                    source[(column - pixels.x) * channels + i])
        if source_y >= 0 and last > first:
            memcpy(row + first * channels, source + (columns[first] - pixels.x) * channels,
                   <size_t>(last - first) * channels)
        if writes:
            put_rows(runner, row, packed, 1)
    return RENDER_OK


cdef int transform_step(StepRunner runner, const Step* step, const Pixels* pixels, uint8_t* out,
                        bint writes, Outcome* outcome) noexcept nogil:
    """Turn, move or tilt the whole image; RGBA is premultiplied, as in Pillow."""
    cdef int channels = runner.plan.channels, y
    cdef ptrdiff_t packed = <ptrdiff_t>step.width * channels
    cdef bint multiplies = channels == 4 and step.method != AFFINE_NEAREST
    cdef transform_map described
    cdef affine_image image
    cdef uint8_t* own = NULL
    image.pixels = pixels.first
    if pixels.first == runner.buffers[PIXELS_A] or pixels.first == runner.buffers[PIXELS_B]:
        own = <uint8_t*>pixels.first
    else:   # others' memory: not to be changed, and may end behind the last pixel
        image.pixels = own = runner.buffer(PIXELS_B, packed * step.height, outcome)
        if own == NULL:
            return outcome.status
        for y in range(step.height):
            memcpy(own + y * packed, pixels.first + y * pixels.stride, packed)
    image.width, image.height, image.channels = step.width, step.height, channels
    memcpy(described.matrix, step.inverse, sizeof(step.inverse))
    memcpy(described.fill, runner.plan.fill, 4)
    described.perspective, described.method = step.kind == STEP_PERSPECTIVE, step.method
    described.width, described.height = step.width, step.height
    if multiplies:
        premultiply(own, <ptrdiff_t>step.width * step.height, own)
    transform_window(simd_level(SIMD_LEVEL_AVX512), &described, &image, step.left, step.top,
                     step.out_width, step.out_height, out)
    if multiplies:
        unpremultiply(out, <ptrdiff_t>step.out_width * step.out_height, out)
    if writes:
        put_rows(runner, out, <ptrdiff_t>step.out_width * channels, step.out_height)
    return RENDER_OK


cdef void describe_warp(StepRunner runner, const Step* step, const Pixels* pixels,
                        warp_source* source) noexcept nogil:
    memset(source, 0, sizeof(warp_source))
    memcpy(source.inverse, step.inverse, sizeof(source.inverse))
    memcpy(source.fill, runner.plan.fill, 4)
    source.image_width, source.image_height = step.width, step.height
    source.channels = runner.plan.channels
    source.method = step.method
    source.weights = warp_weights(step.method)
    if pixels != NULL:
        source.pixels, source.stride = pixels.first, pixels.stride
        source.x, source.y = pixels.x, pixels.y
        source.width, source.height = pixels.width, pixels.height
