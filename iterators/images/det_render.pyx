# build: small
"""The parts of a renderer that differ for images with boxes: labels, geometry, mosaics.

The label is the vector of objects, which changes together with the image; and the image may be
smaller than its slot, lies at the top left of it, and is mirrored within itself.

In a mosaic four records of a pack become one image with the objects of all.  The corners of the
images touch in a point of a canvas that is twice as wide and high as the result, as in YOLO: each
fits into a quarter of it.  Then the canvas goes the way of an image that was decoded.  Which
records are partners, and where that point is, follows from the key, the epoch and the record.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from iterators.images.augment.det_geometry cimport (
    Box, DetGeometryRecipe, check_label, crop_objects, draw_det_geometry, label_message,
    load_det_recipe, load_emission, move_objects, parse_label, place_objects,
)
from iterators.images.augment.draw cimport (
    DRAW_MOSAIC, draw, draw_between, draw_key, philox_block, philox_unit,
)
from iterators.images.augment.geometry cimport (
    METHOD_RESIZE, STEP_RESAMPLE, Geometry, GeometryDrawer, Step, Target, choose_method,
)
from iterators.images.augment.program cimport PolicyChange
from iterators.images.image_steps cimport PIXELS_A
from iterators.images.plan cimport RenderPlan
from iterators.images.row_writer cimport RowWriter
from iterators.images.sources.source cimport FETCH_OK
from recordio.counter cimport counter_add, seconds_add
from recordio.formats.row_source cimport ImageInfo, Pixels, RowSource, read_pixels
from recordio.formats.status cimport MESSAGE_SIZE, RENDER_LABEL, RENDER_OK, outcome_fail
from recordio.kernels.normalise cimport normalise_done
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.sync cimport sync_now


cdef enum:
    NO_OBJECTS = 2          # values of a label without objects: its header
    OBJECT_WIDTH = 5        # of the objects that it does not have
    MOST_SAMPLE = 4         # bytes of a channel


cdef class DetPlan(RenderPlan):
    """`RenderPlan` for detection images.

    `raw_width` is the number of labels that every record must have, 0 or less for any number, and
    `label_width` 4 more than the longest raw label.  The labels that replace those in the records
    are ids, ascending; where the label of each begins and the last one ends; and all values.

    >>> import numpy as np
    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.det_recipe import DetRecipe
    >>> from iterators.images.render import Renderer
    >>> header = IRHeader(0, [2, 5, 7, 0.0, 0.25, 0.5, 1.0], 1, 0)
    >>> record = pack_img(header, np.zeros((4, 6, 3), np.uint8), img_fmt=".png")
    >>> recipe = DetRecipe(data_shape=(3, 8, 8), resize_mode="shrink")
    >>> data, label, _ = Renderer(DetPlan(recipe, label_width=12)).sample(record)
    >>> label[0].tolist()
    [3.0, 4.0, 6.0, 7.0, 2.0, 5.0, 7.0, 0.0, 0.25, 0.5, 1.0, -1.0]
    """

    cdef Py_ssize_t raw_width

    def __init__(self, recipe, *, raw_width=0, **more):
        self.raw_width = raw_width
        super().__init__(recipe, **more)

    def parts(self):
        """Return the parts, as `RenderPlan.parts` does."""
        labels = ObjectLabels(self)
        changes = self.changes()
        return labels, DetGeometry(self, labels, changes), changes, CanvasWriter(self)


cdef class ObjectLabels(LabelReader):
    """Vectors of objects: their number may differ from record to record."""

    def __init__(self, DetPlan plan not None):
        cdef const uint64_t[::1] ids
        cdef const int64_t[::1] starts
        cdef const float[::1] values
        LabelReader.__init__(self, plan.change)
        self.width, self.raw_width, self.channels = plan.label_width, plan.raw_width, plan.channels
        self.pad_value = plan.recipe.label_pad_value
        if plan.labels is None:
            return
        self.arrays = ids, starts, values = plan.labels
        if starts.shape[0] != ids.shape[0] + 1 or starts[ids.shape[0]] > values.shape[0]:
            raise ValueError("labels must be ids (n,), starts (n + 1,) and values")
        self.num_listed = ids.shape[0]
        self.starts = &starts[0]
        if self.num_listed:
            self.ids = &ids[0]
        if values.shape[0]:
            self.values = &values[0]

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        """Copy the raw label behind the prefix, and check it."""
        cdef Py_ssize_t listed, count = flag
        cdef int status
        if self.absent:
            return self.have_none(row)
        if self.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed < 0:
                return outcome.status
            count = self.starts[listed + 1] - self.starts[listed]
            labels = self.values + self.starts[listed]
        elif flag == 0:
            return outcome_fail(outcome, RENDER_LABEL,
                                b"the record has a single label instead of a vector of objects")
        if self.raw_width > 0 and count != self.raw_width:
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the record has %lld labels, label_width is %lld",
                     <long long>count, <long long>self.raw_width)
            outcome.status = RENDER_LABEL
            return RENDER_LABEL
        if count > self.width - PREFIX:
            return self.refuse(labels, count, outcome)
        self.row = row
        memcpy(row + PREFIX, labels, sizeof(float) * count)
        status = parse_label(row + PREFIX, count, &self.header, &self.objects)
        if status:
            return outcome_fail(outcome, RENDER_LABEL, label_message(status))
        for listed in range(self.objects.count):
            if self.change(self.objects.values + listed * self.objects.width, outcome):
                return outcome.status
        return RENDER_OK

    cdef int have_none(self, float* row) noexcept nogil:
        """Write the label of an image without objects."""
        self.row, self.header = row, NO_OBJECTS
        self.objects.values, self.objects.count, self.objects.width = NULL, 0, OBJECT_WIDTH
        row[PREFIX], row[PREFIX + 1] = NO_OBJECTS, OBJECT_WIDTH
        return RENDER_OK

    cdef int refuse(self, const void* label, Py_ssize_t count, Outcome* outcome) noexcept nogil:
        """Say what is wrong with a label that does not fit: most often it is damaged."""
        cdef int status = check_label(label, count, &self.header, &self.objects)
        if status:
            return outcome_fail(outcome, RENDER_LABEL, label_message(status))
        snprintf(outcome.message, MESSAGE_SIZE,
                 "the label has %lld values, and %lld fit: label_pad_width or, without it, "
                 "max_label_width says how many",
                 <long long>count, <long long>(self.width - PREFIX))
        outcome.status = RENDER_LABEL
        return RENDER_LABEL

    cdef void finish(self, int width, int height) noexcept nogil:
        """Complete the row: what comes before the label and what fills it up."""
        cdef Py_ssize_t i, count = self.header + self.objects.count * self.objects.width
        if self.row == NULL:
            return
        self.row[0], self.row[1], self.row[2], self.row[3] = self.channels, height, width, count
        for i in range(PREFIX + count, self.width):
            self.row[i] = self.pad_value


cdef class DetGeometry(GeometryDrawer):
    """Draws the geometry of a `DetRecipe`, and changes the objects alike, as a policy does."""

    cdef DetGeometryRecipe recipe
    cdef CropLimits emission
    cdef ObjectLabels labels
    cdef PolicyChange policy        # None without

    def __init__(self, DetPlan plan not None, ObjectLabels labels not None, changes):
        self.labels = labels
        load_det_recipe(&self.recipe, plan.recipe)
        load_emission(&self.emission, plan.recipe)
        for change in changes:
            if isinstance(change, PolicyChange):
                self.policy = change

    cdef int draw_steps(self, const ImageKey* image, int width, int height, const Target* target,
                        Geometry* geometry) noexcept nogil:
        cdef int status
        self.recipe.width, self.recipe.height = target.width, target.height
        status = draw_det_geometry(&self.recipe, image, width, height, &self.labels.objects,
                                   geometry)
        if status:
            return status
        width = geometry.steps[geometry.count - 1].out_width
        height = geometry.steps[geometry.count - 1].out_height
        if self.policy is not None:
            move_objects(&self.labels.objects, self.policy.draw_for(image, width, height), width,
                         height, geometry.mirror, &self.emission)
        self.labels.finish(width, height)
        return status


cdef class CanvasWriter(RowWriter):
    """Writes images that may be smaller than their slots, and below and beside them zeros.

    The mirror is within the image, and a mean image stays where it is on the canvas.
    """

    cdef uint8_t* row           # of the canvas
    cdef int width              # size of the image
    cdef int height

    def __cinit__(self, RenderPlan plan not None):
        self.row = <uint8_t*>calloc(
            MOST_SAMPLE * <size_t>plan.most_width * plan.channels + PIXEL_SLACK, 1)
        if self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.row)

    cdef void begin(self, const Target* target, const ImageKey* image,
                    const Geometry* geometry) noexcept nogil:
        RowWriter.begin(self, target, image, geometry)
        self.width = geometry.steps[geometry.count - 1].out_width
        self.height = geometry.steps[geometry.count - 1].out_height
        memset(self.row, 0, MOST_SAMPLE * <size_t>self.target.width * self.plan.channels)

    cdef void write(self, const uint8_t* rows, ptrdiff_t stride, int count) noexcept nogil:
        cdef int i, x, c, pixel_bytes = self.plan.channels * self.sample
        cdef ptrdiff_t size = <ptrdiff_t>self.width * pixel_bytes
        cdef const uint8_t* pixel
        if self.width == self.target.width and not (
                self.mirror and self.normalise.mean_image != NULL):
            RowWriter.write(self, rows, stride, count)
            return
        for i in range(count):
            if self.mirror:
                pixel = rows + i * stride + size
                for x in range(self.width):
                    pixel -= pixel_bytes
                    for c in range(pixel_bytes):
                        self.row[x * pixel_bytes + c] = pixel[c]
            else:
                memcpy(self.row, rows + i * stride, size)
            self.put(self.row, False)

    cdef void end(self) noexcept nogil:
        memset(self.row, 0, self.sample * <size_t>self.target.width * self.plan.channels)
        while self.y < self.target.height:
            self.put(self.row, False)
        RowWriter.end(self)


# ---- mosaics ----

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

    cdef int add(self, const Encoded* record, const Partners* partners, int number,
                 const Slot* slot, Outcome* outcome) noexcept nogil:
        """Add the image of one record and its objects."""
        cdef Slot target = slot[0]
        cdef Encoded image = record[0]
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
