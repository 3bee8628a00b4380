# build: small
"""One encoded record becomes one sample of a batch, without the GIL.

A `Renderer` is made of parts, which its plan chooses: labels are read by one, the geometry is drawn
by another; then the first of the `codecs` that takes the image gives the rows, at the rectangle and
the scale that the geometry needs, and `image_steps` takes them through the steps and the changes of
pixels to a writer.  A renderer knows nothing of threads, order or batches; the stage gives every
thread one of its own.

`CachedImages` keeps the expensive part, and leaves the random one to every sample: with `resize` in
the recipe the resized image is cached, otherwise the decoded one.  A sample is the same to the byte
as without a cache, because a window of a resized image does not depend on what else is resized, and
all draws are those of the whole image.  Where that cannot be promised - the image is damaged, or an
image on the way is too large - the image is not cached, and everything is as if there were no
cache.
"""

from libc.string cimport memcpy, memset

from iterators.images.augment.draw cimport draw_key
from iterators.images.augment.geometry cimport (
    STEP_RESAMPLE, Step, add_step, geometry_message, load_resize, resize_first,
)
from iterators.images.cache.image_cache cimport CACHE_ABSENT, CACHE_FOUND, CACHE_REFUSED
from iterators.images.image_steps cimport PIXELS_A, only_crops
from iterators.images.row_writer cimport RowWriter
from iterators.images.sources.source cimport FETCH_OK
from recordio.counter cimport counter_add, counter_load, seconds_add, seconds_load
from recordio.formats.pnm cimport pnm_convert_row
from recordio.formats.row_source cimport Pixels, Rectangle, RowDecoder, open_first, read_pixels
from recordio.formats.status cimport (
    RENDER_GEOMETRY, RENDER_IMAGE, RENDER_OK, RENDER_SHORT_HEADER, RENDER_SHORT_LABELS,
    outcome_error, outcome_fail,
)
from recordio.header cimport HEADER_FLAG, HEADER_ID, HEADER_LABEL, HEADER_SIZE
from recordio.kernels.normalise cimport normalise_done, normalise_is_float
from recordio.sync cimport sync_now

import numpy as np

from recordio.errors import ImageDecodeError
from recordio.formats.general import wishes
from recordio.formats.image_decoder import CODECS, SpecialRows
from recordio.formats.image_header import check_pixels

from .cache.image_cache import image_bytes


cdef const char* DAMAGED = (
    b"the data of the JPEG image is damaged: the decoder gives pixels with warnings, which "
    b"strict=True refuses; pack it again from its source")


cdef const char* RESIZED = (
    b"the image has more than 8 bits, which dtype='uint16' keeps, and would be resized to "
    b"data_shape: store it as large as its crops, or ask for 'float32' or 'uint8'")
cdef const char* UNLIKE = b"two decoders find different sizes in the image: it is damaged"


cdef uint8_t[:, :, ::1] in_channels(const uint8_t[:, :, ::1] image, int channels):
    """Grey or RGB pixels as RGB or grey ones, as raw images are converted."""
    cdef Py_ssize_t y
    cdef int stored = image.shape[2]
    if channels == 4:
        raise ImageDecodeError(
            f"the image has {stored} channels, not the 4 that were asked for")
    cdef uint8_t[:, :, ::1] made = np.empty((image.shape[0], image.shape[1], channels), np.uint8)
    for y in range(image.shape[0]):
        pnm_convert_row(&image[y, 0, 0], <int>image.shape[1], stored, &made[y, 0, 0])
    return made


cdef class RenderedView:
    """Makes one view of an image, beside others; serves one renderer."""

    def __init__(self, RenderPlan plan not None):
        self.plan = plan
        _, self.geometry, changes, writer = plan.parts()
        self.runner = StepRunner(plan, changes, writer or RowWriter(plan))


cdef void extend(Rectangle* region, const Step* step, const ImageInfo* info) noexcept nogil:
    """Make a rectangle hold what a first step reads as well."""
    cdef int right = info.width, bottom = info.height, x = 0, y = 0
    if step.kind == STEP_RESAMPLE:
        x, y, right, bottom = step.x, step.y, step.x + step.width, step.y + step.height
    if region.width:
        right = max(right, region.x + region.width)
        bottom = max(bottom, region.y + region.height)
        x, y = min(x, region.x), min(y, region.y)
    region.x, region.y, region.width, region.height = x, y, right - x, bottom - y


cdef int parse_header(Encoded* image, Outcome* outcome) noexcept nogil:
    cdef size_t content
    if image.size < HEADER_SIZE:
        return outcome_fail(outcome, RENDER_SHORT_HEADER, b"")
    memcpy(&image.flag, image.data + HEADER_FLAG, 4)
    memcpy(&image.id, image.data + HEADER_ID, 8)
    content = HEADER_SIZE + <size_t>4 * image.flag
    if content > image.size:
        outcome.record_id, outcome.num_labels = image.id, image.flag
        return outcome_fail(outcome, RENDER_SHORT_LABELS, b"")
    image.labels = image.data + (HEADER_SIZE if image.flag else HEADER_LABEL)
    image.data += content
    image.size -= content
    image.has_header = False
    return RENDER_OK


cdef class Renderer:
    """Renders samples one after the other; see the module.

    `strict` refuses images whose decoder warns of damage; `beside` is another one of the same
    thread, whose decoders are used, and its steps where the recipe is the same; `entries` has the
    entry points of images by their numbers.

    >>> from recordio import IRHeader, pack_img
    >>> from iterators.images.augment.recipe import Recipe
    >>> from iterators.images.plan import RenderPlan
    >>> record = pack_img(IRHeader(0, 3.0, 7, 0), np.zeros((9, 9, 3), np.uint8), img_fmt=".png")
    >>> renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 4, 4), mean_r=1)))
    >>> data, label, record_id = renderer.sample(record)
    >>> data.shape, float(data[0, 0, 0, 0]), float(label[0, 0]), record_id
    ((1, 3, 4, 4), -1.0, 3.0, 7)
    """

    def __cinit__(self, RenderPlan plan not None, *, bint strict=False, Renderer beside=None,
                  EntryStore entries=None):
        cdef RowDecoder decoder
        if len(CODECS) >= MAX_SOURCES:
            raise ValueError(f"{len(CODECS)} codecs: fewer than {MAX_SOURCES} are possible")
        self.plan, self.strict, self.entries = plan, strict, entries
        self.labels, self.geometry, changes, writer = plan.parts()
        if beside is not None and not beside.shares_form(plan):
            beside = None
        if beside is not None and beside.plan.recipe == plan.recipe:
            self.runner = beside.runner
        else:
            self.runner = StepRunner(plan, changes, writer or RowWriter(plan))
        self.borrows = beside is not None
        own = [codec(plan.channels, upright=plan.recipe.orient, deep=deep, **plan.limits)
               for deep in [False, True][:1 if plan.cuts else 2]
               for codec in CODECS] if not self.borrows else []
        options = wishes(plan.recipe.background, strict)
        if options and not self.borrows:
            own.insert(0, SpecialRows(plan.channels, upright=plan.recipe.orient, **options,
                                      **plan.limits))
        self.decoders = beside.decoders if self.borrows else own
        first = [one for one in self.decoders if isinstance(one, SpecialRows)]
        deep = self.decoders[len(first) + len(CODECS):]
        for decoder in self.decoders[:len(first) + len(CODECS)]:
            self.sources[self.num_sources] = &decoder.source
            self.num_sources += 1
        for decoder in [*first, *deep] if deep else []:
            self.deep_sources[self.num_deep] = &decoder.source
            self.num_deep += 1
        self._add_views(plan)

    def num_cut(self):
        """Count the images whose pixels had fewer bits than their files store."""
        return counter_load(&self.cut)

    def _add_views(self, RenderPlan plan not None):
        """Make what renders several views of an image, if there are several."""
        cdef int i
        self.views = []
        if not plan.views:
            return
        plans = [plan, *plan.views]
        if len(plans) > MAX_VIEWS:
            raise ValueError(f"{len(plans)} views: at most {MAX_VIEWS} are possible")
        if len({(<RenderPlan>one).channels for one in plans}) > 1:
            raise ValueError("the views of an image have the same number of channels")
        self.views = [RenderedView(one) for one in plans]
        for i in range(len(plans)):
            self.view_table[i] = <PyObject*>self.views[i]
        self.num_views = len(plans)
        self.loader = StepRunner(plan, (), None)

    cdef bint shares_form(self, RenderPlan plan):
        """Return True if images of that plan are decoded and written alike."""
        mine = self.plan
        return ((mine.channels, not mine.cuts, mine.limits, mine.recipe.orient,
                 mine.recipe.background, mine.layout, mine.dtype, mine.most_height, mine.most_width)
                == (plan.channels, not plan.cuts, plan.limits, plan.recipe.orient,
                    plan.recipe.background, plan.layout, plan.dtype, plan.most_height,
                    plan.most_width)
                and mine.mean_image is plan.mean_image)

    def sample(self, const uint8_t[::1] record not None, uint32_t epoch=0, int64_t number=0,
               int64_t draw=0):
        """Render one record; return data, labels and id of a batch of one."""
        cdef Slot slot
        cdef Target targets[MAX_VIEWS]
        cdef Outcome outcome
        cdef Encoded image
        image.data = &record[0] if record.shape[0] else NULL
        image.size, image.has_header = record.shape[0], True
        arrays = self.make_slot(targets)
        label = np.empty((1, self.plan.label_width), np.float32)
        slot.targets, slot.label = targets, <float*><size_t>label.ctypes.data
        with nogil:
            self.render(&image, epoch, number, draw, &slot, &outcome)
        return self._rendered(arrays, &outcome), label, outcome.record_id

    def pixels(self, const uint8_t[:, :, ::1] image not None, uint32_t epoch=0, int64_t number=0,
               int64_t draw=0):
        """Render pixels that are decoded already, grey or RGB, (height, width, channels).

        There are no labels, and the result is the first that `sample` returns.
        """
        cdef Slot slot
        cdef Target targets[MAX_VIEWS]
        cdef Outcome outcome
        cdef ImageKey key
        cdef ImageInfo info
        cdef Pixels pixels
        cdef RowSource memory
        if not image.shape[0] or not image.shape[1] or image.shape[2] not in (1, 3):
            raise ValueError("expected pixels of 1 or 3 channels, and at least one of them")
        check_pixels((image.shape[1], image.shape[0]), self.plan.limits["max_pixels"])
        if image.shape[2] != self.plan.channels:
            image = in_channels(image, self.plan.channels)
        arrays = self.make_slot(targets)
        slot.targets, slot.label = targets, NULL
        memset(&info, 0, sizeof(ImageInfo))
        memset(&memory, 0, sizeof(RowSource))
        info.width, info.height, info.orientation = image.shape[1], image.shape[0], 1
        info.in_memory = info.raw = True
        pixels.first, pixels.stride = &image[0, 0, 0], image.shape[1] * image.shape[2]
        pixels.x = pixels.y = 0
        pixels.width, pixels.height, pixels.pixel_size = info.width, info.height, image.shape[2]
        read_pixels(&memory, &pixels)
        with nogil:
            outcome.status, outcome.message[0], outcome.record_id = RENDER_OK, 0, 0
            key.key, key.epoch, key.record = draw_key(self.plan.key, draw), epoch, number
            if self.num_views:
                self.run_views(&memory, &info, &key, draw, &slot, &outcome)
            else:
                self.run(&memory, &info, &key, targets, &outcome)
            normalise_done()
        return self._rendered(arrays, &outcome)

    def place(self, int width, int height):
        """Note an image of that size, upright, as one that fills its slot, for its fields.

        Nothing is rendered; the recipe has no augmentation.
        """
        cdef Geometry geometry
        cdef Outcome outcome
        cdef ImageKey key
        cdef Target target
        memset(&target, 0, sizeof(Target))
        target.width, target.height = width, height
        outcome.status, outcome.message[0], outcome.record_id = RENDER_OK, 0, 0
        key.key, key.epoch, key.record = self.plan.key, 0, 0
        if self.draw(&key, width, height, &target, &geometry, &outcome):
            raise outcome_error(&outcome, 0, {})

    cdef list make_slot(self, Target* targets):
        """Memory for one sample, all of its views."""
        cdef RenderPlan plan
        arrays = []
        for i, plan in enumerate([self.plan, *self.plan.views]):
            arrays.append(np.empty(plan.shape(1), plan.dtype))
            plan.set_target(1, plan.height, plan.width, <char*><size_t>arrays[i].ctypes.data,
                            &targets[i])
        return arrays

    cdef object _rendered(self, list arrays, Outcome* outcome):
        if outcome.status:
            raise outcome_error(outcome, self.plan.label_width, {})
        return arrays if self.num_views else arrays[0]

    cdef int render(self, const Encoded* record, uint32_t epoch, int64_t number, int64_t draw,
                    const Slot* slot, Outcome* outcome) noexcept nogil:
        """Fill one slot from one image."""
        cdef Encoded encoded = record[0]
        cdef ImageKey image
        cdef double begin = sync_now()
        outcome.status = RENDER_OK
        outcome.message[0] = 0
        outcome.record_id = 0
        if self.read_labels(&encoded, slot, outcome):
            return outcome.status
        image.key = draw_key(self.plan.key, draw)
        image.epoch, image.record = epoch, number
        self.announce(number)
        if self.num_views:
            self.render_views(encoded.data, encoded.size, &image, draw, slot, outcome)
        elif self.cache_reader is None or not self.cache_reader.render(
                self, encoded.data, encoded.size, &image, slot.targets, outcome):
            self.render_image(encoded.data, encoded.size, &image, slot.targets, outcome)
        normalise_done()
        counter_add(&self.images, 1)
        counter_add(&self.bytes, <int64_t>encoded.size)
        seconds_add(&self.total_seconds, sync_now() - begin)
        return outcome.status

    cdef void announce(self, int64_t number) noexcept nogil:
        cdef int i
        for i in range(self.num_sources):
            self.sources[i].kept = NULL if self.entries is None else <void*>self.entries.store
            self.sources[i].record = number
        for i in range(self.num_deep):
            self.deep_sources[i].kept = self.sources[i].kept
            self.deep_sources[i].record = number

    cdef int read_labels(self, Encoded* image, const Slot* slot, Outcome* outcome) noexcept nogil:
        if image.has_header and parse_header(image, outcome):
            return outcome.status
        outcome.record_id, outcome.num_labels = image.id, image.flag if image.flag else 1
        if self.plan.label_width == 0:
            return RENDER_OK        # nobody asks for labels
        return self.labels.read(image.labels, image.flag, slot.label, outcome)

    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil:
        cdef ImageInfo info
        cdef Geometry geometry
        cdef RowSource* source = self.open_deep(data, size, &info, outcome)
        if source == NULL:
            return outcome.status
        if not self.draw(image, info.width, info.height, target, &geometry, outcome):
            source = self.fitted(source, data, size, &info, &geometry, outcome)
            if source == NULL:
                return outcome.status
            self.runner.run(source, &info, image, &geometry, target, outcome)
        return self.finish(source, outcome)

    cdef void run(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                  const Target* target, Outcome* outcome) noexcept nogil:
        """From an open source to the slot."""
        cdef Geometry geometry
        if not self.draw(image, info.width, info.height, target, &geometry, outcome):
            self.runner.run(source, info, image, &geometry, target, outcome)

    cdef int render_views(self, const uint8_t* data, size_t size, const ImageKey* image,
                          int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil:
        cdef ImageInfo info
        cdef RowSource* source = self.open_image(data, size, &info, outcome)
        if source == NULL:
            return outcome.status
        self.run_views(source, &info, image, draw, slot, outcome)
        return self.finish(source, outcome)

    cdef void run_views(self, RowSource* source, ImageInfo* info, const ImageKey* image,
                        int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil:
        """From an open source to the slots of all views."""
        cdef ImageKey[MAX_VIEWS] keys
        cdef Geometry[MAX_VIEWS] geometries
        cdef Rectangle region
        cdef Pixels pixels
        cdef RowSource memory
        cdef int i, status
        memset(&region, 0, sizeof(Rectangle))
        for i in range(self.num_views):
            keys[i] = image[0]
            keys[i].key = draw_key((<RenderedView>self.view_table[i]).plan.key, draw)
            status = (<RenderedView>self.view_table[i]).geometry.draw_steps(
                &keys[i], info.width, info.height, &slot.targets[i], &geometries[i])
            if status:
                outcome_fail(outcome, RENDER_GEOMETRY, geometry_message(status))
                break
            if (<RenderedView>self.view_table[i]).path_finder is not None:
                (<RenderedView>self.view_table[i]).path_finder.note(
                    &geometries[i], info.width, info.height)
            extend(&region, &geometries[i].steps[0], info)
        if outcome.status == RENDER_OK and not self.loader.load(source, info, &region, &pixels,
                                                                outcome):
            read_pixels(&memory, &pixels)
            info.in_memory, info.scales, info.orientation = True, False, 1
            for i in range(self.num_views):
                if (<RenderedView>self.view_table[i]).runner.run(
                        &memory, info, &keys[i], &geometries[i], &slot.targets[i], outcome):
                    break

    cdef int finish(self, RowSource* source, Outcome* outcome) noexcept nogil:
        """Done with an image, which may turn out to be damaged."""
        if not source.finish(source) and outcome.status == RENDER_OK:
            counter_add(&self.warned, 1)
            if self.strict:
                outcome_fail(outcome, RENDER_IMAGE, DAMAGED)
        return outcome.status

    cdef RowSource* open_image(self, const uint8_t* data, size_t size, ImageInfo* info,
                               Outcome* outcome) noexcept nogil:
        cdef RowSource* source
        if size == 0:
            outcome_fail(outcome, RENDER_IMAGE, b"the record holds no image data")
            return NULL
        source = open_first(self.sources, self.num_sources, data, size, info, outcome)
        if source != NULL and info.cut:
            counter_add(&self.cut, 1)
        return source

    cdef RowSource* open_deep(self, const uint8_t* data, size_t size, ImageInfo* info,
                              Outcome* outcome) noexcept nogil:
        cdef RowSource* source
        # What is cached has 8 bits, and what is not looks the same.
        if self.num_deep == 0 or self.cache_reader is not None or size == 0:
            return self.open_image(data, size, info, outcome)
        source = open_first(self.deep_sources, self.num_deep, data, size, info, outcome)
        if (source != NULL or outcome.status != RENDER_IMAGE
                or not normalise_is_float(self.plan.normalise.dtype)):
            return source
        outcome.status, outcome.message[0] = RENDER_OK, 0
        return self.open_image(data, size, info, outcome)   # its decoder may have 8 bits alone

    cdef RowSource* fitted(self, RowSource* source, const uint8_t* data, size_t size,
                           ImageInfo* info, const Geometry* geometry,
                           Outcome* outcome) noexcept nogil:
        cdef int width = info.width, height = info.height
        if info.pixel_size <= self.plan.channels or only_crops(geometry):
            return source
        source.finish(source)
        if not normalise_is_float(self.plan.normalise.dtype):
            outcome_fail(outcome, RENDER_IMAGE, RESIZED)
            return NULL
        source = self.open_image(data, size, info, outcome)
        if source != NULL and (info.width != width or info.height != height):
            source.finish(source)
            outcome_fail(outcome, RENDER_IMAGE, UNLIKE)
            return NULL
        return source

    cdef int draw(self, const ImageKey* image, int width, int height, const Target* target,
                  Geometry* geometry, Outcome* outcome) noexcept nogil:
        cdef int status = self.geometry.draw_steps(image, width, height, target, geometry)
        if status:
            return outcome_fail(outcome, RENDER_GEOMETRY, geometry_message(status))
        if self.path_finder is not None:
            self.path_finder.note(geometry, width, height)
        return RENDER_OK

    cdef double decode_seconds(self) noexcept nogil:
        """Return the seconds of its own sources so far; any thread may ask."""
        cdef double seconds = 0
        cdef int i
        if self.borrows:
            return 0
        for i in range(self.num_sources):
            seconds += seconds_load(&self.sources[i].seconds)
        for i in range(self.num_deep):
            seconds += seconds_load(&self.deep_sources[i].seconds)
        return seconds


# ---- cached images ----

cdef class CachedImages:
    """Keeps the images of a recipe in a cache.

    >>> from iterators.images.cache.image_cache import MemoryImageCache
    >>> from iterators.images.augment.recipe import Recipe
    >>> recipe = Recipe(data_shape=(3, 224, 224), resize=256)
    >>> CachedImages(MemoryImageCache(10, 3, 1 << 20), recipe).stats()
    {'cache_hits': 0, 'cache_misses': 0}
    """

    def __init__(self, ImageCache cache not None, recipe):
        self.cache = cache
        self.resize = cached_resize(recipe)

    def stats(self):
        """Count samples that were made from cached images, and those that were not."""
        return {"cache_hits": counter_load(&self.hits), "cache_misses": counter_load(&self.misses)}

    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef int status = self.cache.find(number, image)
        cdef ImageKey key
        cdef Geometry geometry
        if status != CACHE_FOUND:
            return status
        memset(&key, 0, sizeof(key))    # nothing is drawn for images that are kept
        if whole_image(&self.resize, &key, image.source_width, image.source_height, &geometry):
            return CACHE_REFUSED
        if (geometry.steps[0].target_width != image.width
                or geometry.steps[0].target_height != image.height):
            return CACHE_REFUSED
        return CACHE_FOUND


def resizes(recipe):
    """Return True if images are cached resized: as a recipe does it alike in every epoch.

    >>> from iterators.images.augment.recipe import Recipe
    >>> [resizes(Recipe(data_shape=(3, 8, 8), resize=9, inter_method=m)) for m in (1, 9, 10)]
    [True, True, False]
    """
    return recipe.first_resize[0] > 0 and not recipe.draws_method


cdef FirstResize cached_resize(recipe):
    """Return the resize of the images that are cached."""
    cdef FirstResize resize = load_resize(recipe)
    if not resizes(recipe):
        resize.new_width, resize.most = -1, 0
    return resize


def cached_bytes(recipe, int width, int height):
    """Return the bytes that an image takes in a cache; 0 if it cannot be cached.

    >>> from iterators.images.augment.recipe import Recipe
    >>> cached_bytes(Recipe(data_shape=(3, 224, 224), resize=256), 640, 480)
    262016
    """
    cdef Geometry geometry
    cdef ImageKey image
    cdef FirstResize resize = cached_resize(recipe)
    memset(&image, 0, sizeof(image))
    if width < 1 or height < 1 or whole_image(&resize, &image, width, height, &geometry):
        return 0
    return image_bytes(geometry.steps[0].target_width, geometry.steps[0].target_height,
                       recipe.channels)


cdef int whole_image(const FirstResize* resize, const ImageKey* image, int width, int height,
                     Geometry* geometry) noexcept nogil:
    """Find the one step from a decoded image to a cached one; not 0 if there is none."""
    geometry.count, geometry.changed = 0, -1
    geometry.mirror = geometry.flip = False
    if resize.new_width != -1:
        return resize_first(resize, image, &width, &height, geometry, width, height)
    return add_step(geometry, STEP_RESAMPLE, 0, &width, &height, width, height) == NULL


cdef class CacheReader:
    """Renders from a cached image, after caching it if need be; serves one renderer of the plan.

    `source` is where the records come from, if there is one to ask whether they are whole, and
    `first` is the number there of the first record of the cache.
    """

    def __init__(self, CachedImages images not None, RenderPlan plan not None,
                 Source source=None, int64_t first=0):
        self.looked = -1
        self.images, self.source, self.first = images, source, first
        self.runner = StepRunner(plan, (), None)

    cdef bint look(self, int64_t number) noexcept nogil:
        self.looked = number
        self.status = self.images.find(number - self.first, &self.cached)
        return self.status == CACHE_FOUND

    cdef bint render(self, Renderer renderer, const uint8_t* data, size_t size,
                     const ImageKey* image, const Target* target,
                     Outcome* outcome) noexcept nogil:
        cdef int64_t number = image.record
        cdef bint made
        if self.looked != number:
            self.look(number)
        self.looked, self.lost = -1, False
        if self.status == CACHE_FOUND:
            counter_add(&self.images.hits, 1)
        else:
            counter_add(&self.images.misses, 1)
            if self.status != CACHE_ABSENT:
                return False
            made = self.make(renderer, data, size, image)
            if self.source is not None and self.source.confirm(number, data, size) != FETCH_OK:
                return False        # nobody else shall get what was made of it
            if not made:
                self.images.cache.refuse(number - self.first)
                return False
            self.images.cache.put(number - self.first, &self.cached)
        self.render_found(renderer, &self.cached, image, target, outcome)
        self.lost = self.images.cache.is_lost(&self.cached)
        if self.lost:
            outcome.status = RENDER_OK      # what was found was not what was put there
            return False
        return True

    cdef bint make(self, Renderer renderer, const uint8_t* data, size_t size,
                   const ImageKey* image) noexcept nogil:
        cdef Outcome outcome
        cdef ImageInfo info
        cdef Geometry geometry
        cdef RowSource* source
        cdef bint made
        outcome.status = RENDER_OK
        source = renderer.open_image(data, size, &info, &outcome)
        if source == NULL:
            return False
        # All that can be said before anything is decoded for nothing.
        made = self.prepare(&info, image, &geometry) and not self.runner.run(
            source, &info, image, &geometry, NULL, &outcome)
        self.cached.pixels = self.runner.buffers[PIXELS_A]
        # Damage that was decoded over may look different where only a part is decoded.
        return source.finish(source) and made

    cdef bint prepare(self, const ImageInfo* info, const ImageKey* image,
                      Geometry* geometry) noexcept nogil:
        """Return True if an image can be cached, and is worth it."""
        if info.raw and self.images.resize.new_width == -1:
            return False        # reading it where it is is as good
        if whole_image(&self.images.resize, image, info.width, info.height, geometry):
            return False
        self.cached.source_width, self.cached.source_height = info.width, info.height
        self.cached.width = geometry.steps[0].target_width
        self.cached.height = geometry.steps[0].target_height
        return self.images.cache.has_room(self.cached.width, self.cached.height)

    cdef int render_found(self, Renderer renderer, const CachedImage* cached, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil:
        cdef Geometry geometry
        cdef Step* step = &geometry.steps[0]
        cdef ImageInfo info
        cdef Pixels pixels
        cdef RowSource source
        if renderer.draw(image, cached.source_width, cached.source_height, target, &geometry,
                         outcome):
            return outcome.status
        if self.images.resize.new_width != -1:
            # The first step is done: what is left of it is its window.
            if step.target_width != cached.width or step.target_height != cached.height:
                return outcome_fail(outcome, RENDER_IMAGE,
                                    b"the cached image was resized to another size")
            step.width, step.height = step.target_width, step.target_height
        pixels.first, pixels.x, pixels.y = cached.pixels, 0, 0
        pixels.width, pixels.height = cached.width, cached.height
        pixels.pixel_size = renderer.plan.channels
        pixels.stride = <Py_ssize_t>cached.width * renderer.plan.channels
        read_pixels(&source, &pixels)
        memset(&info, 0, sizeof(info))
        info.width, info.height, info.orientation = cached.width, cached.height, 1
        info.in_memory = True
        return renderer.runner.run(&source, &info, image, &geometry, target, outcome)
