"""Samples from cached images: what is expensive is done once, what is random every time.

With `resize` in the recipe the resized image is cached, otherwise the decoded one.  A sample is
the same to the byte as without a cache, because a window of a resized image does not depend on what
else is resized, and all draws are those of the whole image.  Where that cannot be promised - the
image is damaged, or an image on the way is too large - the image is not cached, and everything is
as if there were no cache.

`image_cache` keeps the pixels; the sources and steps of `render` make the whole image as they make
a sample.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from recordio.counter cimport counter_add, counter_load

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport (
    STEP_RESAMPLE, FirstResize, Geometry, Step, Target, add_step, load_resize, resize_first,
)
from iterators.images.cache.image_cache cimport (
    CACHE_ABSENT, CACHE_FOUND, CACHE_REFUSED, CachedImage, ImageCache,
)
from recordio.formats.row_source cimport ImageInfo, Pixels, RowSource, read_pixels
from iterators.images.image_steps cimport PIXELS_A, StepRunner
from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport ImageShortcut, Renderer
from iterators.images.sources.source cimport FETCH_OK, Source
from recordio.formats.status cimport RENDER_IMAGE, RENDER_OK, Outcome, outcome_fail

from .cache.image_cache import image_bytes


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

    def shortcut(self, RenderPlan plan not None, Source source=None, int64_t first=0):
        """Return what a renderer of that plan needs to use the cache; one for each.

        `source` is where the records come from, if there is one to ask whether they are whole, and
        `first` is the number there of the first record of the cache.
        """
        return CacheShortcut(self, plan, source, first)

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


cdef class CacheShortcut(ImageShortcut):
    """Renders from a cached image, after caching it if need be; serves one renderer."""

    cdef CachedImages images
    cdef StepRunner runner      # makes what is cached
    cdef Source source
    cdef int64_t first          # number in the source of the first record of the cache
    cdef int64_t looked         # the record that was looked for, until it is rendered; else -1
    cdef int status             # what was found: CacheStatus
    cdef CachedImage found

    def __init__(self, CachedImages images not None, RenderPlan plan not None,
                 Source source=None, int64_t first=0):
        self.looked = -1
        self.images, self.source, self.first = images, source, first
        self.runner = StepRunner(plan, (), None)

    cdef bint look(self, int64_t number) noexcept nogil:
        self.looked = number
        self.status = self.images.find(number - self.first, &self.found)
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
            self.images.cache.put(number - self.first, &self.found)
        self.render_found(renderer, &self.found, image, target, outcome)
        self.lost = self.images.cache.is_lost(&self.found)
        if self.lost:
            outcome.status = RENDER_OK      # what was found was not what was put there
            return False
        return True

    cdef bint make(self, Renderer renderer, const uint8_t* data, size_t size,
                   const ImageKey* image) noexcept nogil:
        """Make the image to be cached; False if it is damaged or has no room."""
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
        self.found.pixels = self.runner.buffers[PIXELS_A]
        # Damage that was decoded over may look different where only a part is decoded.
        return source.finish(source) and made

    cdef bint prepare(self, const ImageInfo* info, const ImageKey* image,
                      Geometry* geometry) noexcept nogil:
        """Return True if an image can be cached, and is worth it."""
        if info.raw and self.images.resize.new_width == -1:
            return False        # reading it where it is is as good
        if whole_image(&self.images.resize, image, info.width, info.height, geometry):
            return False
        self.found.source_width, self.found.source_height = info.width, info.height
        self.found.width = geometry.steps[0].target_width
        self.found.height = geometry.steps[0].target_height
        return self.images.cache.has_room(self.found.width, self.found.height)

    cdef int render_found(self, Renderer renderer, const CachedImage* found, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil:
        cdef Geometry geometry
        cdef Step* step = &geometry.steps[0]
        cdef ImageInfo info
        cdef Pixels pixels
        cdef RowSource source
        if renderer.draw(image, found.source_width, found.source_height, target, &geometry,
                         outcome):
            return outcome.status
        if self.images.resize.new_width != -1:
            # The first step is done: what is left of it is its window.
            if step.target_width != found.width or step.target_height != found.height:
                return outcome_fail(outcome, RENDER_IMAGE,
                                    b"the cached image was resized to another size")
            step.width, step.height = step.target_width, step.target_height
        pixels.first, pixels.x, pixels.y = found.pixels, 0, 0
        pixels.width, pixels.height = found.width, found.height
        pixels.pixel_size = renderer.plan.channels
        pixels.stride = <Py_ssize_t>found.width * renderer.plan.channels
        read_pixels(&source, &pixels)
        memset(&info, 0, sizeof(info))
        info.width, info.height, info.orientation = found.width, found.height, 1
        info.in_memory = True
        return renderer.runner.run(&source, &info, image, &geometry, target, outcome)
