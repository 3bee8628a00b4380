"""Mosaics: four records of a pack become one image with the objects of all.

The corners of the images touch in a point of a canvas that is twice as wide and high as the result,
as in YOLO: each fits into a quarter of it.  Then the canvas goes the way of an image that was
decoded.  Which records are partners, and where that point is, follows from the key, the epoch and
the record.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from recordio.counter cimport counter_add, seconds_add
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.sync cimport sync_now

from iterators.images.augment.det_geometry cimport load_emission
from iterators.images.augment.det_labels cimport Box, Objects, crop_objects, place_objects
from iterators.images.augment.draw cimport (
    DRAW_MOSAIC, draw, draw_between, draw_key, philox_block, philox_unit,
)
from iterators.images.augment.geometry cimport (
    METHOD_RESIZE, STEP_RESAMPLE, Geometry, Step, choose_method,
)
from recordio.formats.row_source cimport ImageInfo, Pixels, RowSource, read_pixels
from iterators.images.det_render cimport PREFIX
from iterators.images.image_steps cimport PIXELS_A
from recordio.kernels.normalise cimport normalise_done
from iterators.images.sources.source cimport FETCH_OK, Encoded
from recordio.formats.status cimport MESSAGE_SIZE, RENDER_LABEL, RENDER_OK

# Where an image lies: the window of it that is seen, and the position of that on the canvas.
cdef struct Tile:
    int left
    int top
    int width
    int height
    int x
    int y


cdef inline int64_t draw_number(uint32_t high, uint32_t low, int64_t count) noexcept nogil:
    """Uniform in [0, count), of 53 random bits."""
    return <int64_t>(((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0 * count)


cdef class Mosaic:
    """Puts the records of one pack together; serves one thread."""

    def __cinit__(self, Renderer renderer not None, int64_t first, int64_t count):
        recipe = renderer.plan.recipe
        self.renderer, self.labels = renderer, renderer.labels
        self.tiles = StepRunner(renderer.plan, (), None)
        self.first, self.count = first, count
        self.chance, self.inter_method = recipe.mosaic, recipe.method
        self.low, self.high = recipe.mosaic_center
        load_emission(&self.emission, recipe)
        self.canvas = <uint8_t*>malloc(
            <size_t>4 * renderer.plan.most_width * renderer.plan.most_height
            * renderer.plan.channels + PIXEL_SLACK)
        self.row = <float*>malloc((renderer.plan.label_width + 1) * sizeof(float))
        if self.canvas == NULL or self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.canvas)
        free(self.row)

    cdef bint find_partners(self, int64_t number, uint32_t epoch, int64_t occurrence,
                            Partners* partners) noexcept nogil:
        cdef philox_block words
        cdef int64_t other
        cdef int i
        partners.image.key = draw_key(self.renderer.plan.key, occurrence)
        partners.image.epoch, partners.image.record = epoch, number
        words = draw(&partners.image, DRAW_MOSAIC)
        if philox_unit(words.word[0]) >= self.chance:
            return False
        partners.x = draw_between(words.word[1], self.low, self.high)
        partners.y = draw_between(words.word[2], self.low, self.high)
        partners.records[0] = number
        for i in range(1, MOSAIC_IMAGES):
            words = draw(&partners.image, DRAW_MOSAIC + (i + 1) // 2)
            other = self.first
            if self.count > 1:      # any of the others
                other += draw_number(words.word[2 * (i - 1) % 4], words.word[2 * (i - 1) % 4 + 1],
                                     self.count - 1)
                other += other >= number
            partners.records[i] = other
        return True

    cdef void render(self, Source source, const Partners* partners, const Slot* slot, int* fetched,
                     Outcome* outcome, Scratch* scratch, int64_t* failed) noexcept nogil:
        cdef Encoded image
        cdef int i
        self.width, self.height = 2 * slot.targets.width, 2 * slot.targets.height
        self.x, self.y = <int>(partners.x * self.width / 2), <int>(partners.y * self.height / 2)
        fill_canvas(self)
        for i in range(MOSAIC_IMAGES):
            failed[0] = partners.records[i]
            outcome.record_id = 0
            fetched[0] = source.fetch(failed[0], scratch, &image)
            if fetched[0] != FETCH_OK:
                return
            self.add(&image, partners, i, slot, outcome)
            fetched[0] = source.confirm(failed[0], image.data, image.size)
            if fetched[0] != FETCH_OK or outcome.status != RENDER_OK:
                return
        failed[0] = partners.records[0]
        finish(self, self.renderer, partners, slot, outcome)

    cdef int add(self, const Encoded* found, const Partners* partners, int number,
                 const Slot* slot, Outcome* outcome) noexcept nogil:
        """Add the image of one record and its objects."""
        cdef Slot target = slot[0]
        cdef Encoded image = found[0]
        cdef double begin = sync_now()
        outcome.status = RENDER_OK
        outcome.message[0] = 0
        if number:
            target.label = self.row
        if not self.renderer.read_labels(&image, &target, outcome):
            if number == 0:
                self.record_id, self.header = outcome.record_id, self.labels.header
                self.objects = self.labels.objects
            if not check_width(self, outcome):
                self.renderer.announce(partners.records[number])
                self.add_tile(image.data, image.size, partners, number, outcome)
            counter_add(&self.renderer.bytes, <int64_t>image.size)
        seconds_add(&self.renderer.total_seconds, sync_now() - begin)
        return outcome.status

    cdef int add_tile(self, const uint8_t* data, size_t size, const Partners* partners, int number,
                      Outcome* outcome) noexcept nogil:
        cdef ImageInfo info
        cdef Geometry geometry
        cdef Tile tile
        cdef Box seen, part
        cdef Step* step = &geometry.steps[0]
        cdef RowSource* source = self.renderer.open_image(data, size, &info, outcome)
        if source == NULL:
            return outcome.status
        plan_tile(self, partners, number, &info, step, &tile)
        geometry.count, geometry.changed = 1, 0
        geometry.mirror = geometry.flip = False
        if tile.width < 1 or tile.height < 1:
            self.labels.objects.count = 0   # the point is at an edge: nothing of this one is seen
        else:
            if not self.tiles.run(source, &info, &partners.image, &geometry, NULL, outcome):
                copy_tile(self, &tile)
            seen.x, seen.width = <float>tile.left / step.target_width, (
                <float>tile.width / step.target_width)
            seen.y, seen.height = <float>tile.top / step.target_height, (
                <float>tile.height / step.target_height)
            part.x, part.width = <float>tile.x / self.width, <float>tile.width / self.width
            part.y, part.height = <float>tile.y / self.height, <float>tile.height / self.height
            crop_objects(&self.labels.objects, &seen, &self.emission)
            place_objects(&self.labels.objects, &part)
        add_objects(self, number)
        return self.renderer.finish(source, outcome)


cdef void fill_canvas(Mosaic mosaic) noexcept nogil:
    cdef int i, channels = mosaic.renderer.plan.channels
    cdef size_t size = <size_t>mosaic.width * channels, x, y
    for x in range(<size_t>mosaic.width):
        for i in range(channels):
            mosaic.canvas[x * channels + i] = mosaic.renderer.plan.fill[i]
    for y in range(1, <size_t>mosaic.height):
        memcpy(mosaic.canvas + y * size, mosaic.canvas, size)


cdef int check_width(Mosaic mosaic, Outcome* outcome) noexcept nogil:
    """Refuse objects that cannot stand beside those of the first record."""
    cdef const Objects* mine = &mosaic.objects
    cdef const Objects* more = &mosaic.labels.objects
    if more.count == 0 or more.width == mine.width:
        return RENDER_OK
    snprintf(outcome.message, MESSAGE_SIZE,
             "the objects of the record have %d values, and those that a mosaic adds them to %d",
             more.width, mine.width)
    outcome.status = RENDER_LABEL
    return RENDER_LABEL


cdef void plan_tile(Mosaic mosaic, const Partners* partners, int number, const ImageInfo* info,
                    Step* step, Tile* tile) noexcept nogil:
    """Plan the image in a quarter of the canvas: its size, its tile, and what is seen of it.

    The first two images are the upper ones, the first and the third the left ones.
    """
    cdef int width = mosaic.width // 2, height = mosaic.height // 2
    cdef double ratio = min(<double>width / info.width, <double>height / info.height)
    step.kind = STEP_RESAMPLE
    step.x = step.y = 0
    step.width, step.height = info.width, info.height
    step.target_width = min(max(<int>(info.width * ratio + 0.5), 1), width)
    step.target_height = min(max(<int>(info.height * ratio + 0.5), 1), height)
    step.method = choose_method(mosaic.inter_method, &partners.image, METHOD_RESIZE, info.width,
                                info.height, step.target_width, step.target_height)
    fit_side(step.target_width, mosaic.width, mosaic.x, number % 2 == 0, &tile.left,
             &tile.width, &tile.x)
    fit_side(step.target_height, mosaic.height, mosaic.y, number < 2, &tile.top,
             &tile.height, &tile.y)
    step.left, step.top = tile.left, tile.top
    step.out_width, step.out_height = tile.width, tile.height


cdef void fit_side(int size, int full, int centre, bint before, int* skipped, int* seen,
                   int* at) noexcept nogil:
    """Fit a tile along one axis: it ends at the centre, or begins there."""
    skipped[0], at[0] = 0, centre
    seen[0] = min(size, full - centre)
    if before:
        seen[0] = min(size, centre)
        skipped[0], at[0] = size - seen[0], centre - seen[0]


cdef void copy_tile(Mosaic mosaic, const Tile* tile) noexcept nogil:
    cdef int channels = mosaic.renderer.plan.channels, y
    cdef size_t packed = <size_t>tile.width * channels
    for y in range(tile.height):
        memcpy(mosaic.canvas
               + (<size_t>(tile.y + y) * mosaic.width + tile.x) * channels,
               mosaic.tiles.buffers[PIXELS_A] + y * packed, packed)


cdef void add_objects(Mosaic mosaic, int number) noexcept nogil:
    """Add as many objects as fit behind those that there are already."""
    cdef Objects* mine = &mosaic.objects
    cdef const Objects* more = &mosaic.labels.objects
    cdef Py_ssize_t room, count
    if number == 0:
        mine[0] = more[0]
    elif more.count:
        room = mosaic.renderer.plan.label_width - PREFIX - mosaic.header
        count = min(more.count, room // mine.width - mine.count)
        memcpy(mine.values + mine.count * mine.width, more.values,
               sizeof(float) * count * mine.width)
        mine.count += count


cdef void finish(Mosaic mosaic, Renderer renderer, const Partners* partners, const Slot* slot,
                 Outcome* outcome) noexcept nogil:
    """Render the canvas into the slot."""
    cdef ImageInfo info
    cdef Geometry geometry
    cdef Pixels pixels
    cdef RowSource memory
    cdef double begin = sync_now()
    pixels.first, pixels.pixel_size = mosaic.canvas, renderer.plan.channels
    pixels.stride = <ptrdiff_t>mosaic.width * renderer.plan.channels
    pixels.x = pixels.y = 0
    pixels.width, pixels.height = mosaic.width, mosaic.height
    read_pixels(&memory, &pixels)
    memset(&info, 0, sizeof(ImageInfo))
    info.width, info.height = mosaic.width, mosaic.height
    info.orientation, info.in_memory = 1, True
    mosaic.labels.objects, mosaic.labels.header = mosaic.objects, mosaic.header
    if renderer.plan.label_width:
        mosaic.labels.row = slot.label
    outcome.record_id = mosaic.record_id
    if not renderer.draw(&partners.image, mosaic.width, mosaic.height, slot.targets, &geometry,
                         outcome):
        renderer.runner.run(&memory, &info, &partners.image, &geometry, slot.targets,
                            outcome)
    normalise_done()
    counter_add(&mosaic.made, 1)
    counter_add(&renderer.images, 1)
    seconds_add(&renderer.total_seconds, sync_now() - begin)
