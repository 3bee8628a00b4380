"""Samples from cached images: what is expensive is done once, what is random every time.

With `resize` in the recipe the resized image is cached, otherwise the decoded one.  A sample is
the same to the byte as without a cache, because a window of a resized image does not depend on what
else is resized, and all draws are those of the whole image.  Where that cannot be promised - the
image is damaged, or an image on the way is too large - the image is not cached, and everything is
as if there were no cache.

Nothing here keeps pixels (`image_cache` does), and nothing decodes or resamples: `WholeRenderer`
has the steps of `render` make the whole image instead of a sample.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport (
    LAYER_RESAMPLE,
    Geometry,
    Layer,
    add_layer,
    resize_short_side,
)
from iterators.images.cache.image_cache cimport (
    CACHE_ABSENT, CACHE_FOUND, CACHE_REFUSED, CachedImage, ImageCache,
)
from iterators.images.augment.jitter cimport Jitter
from iterators.images.codecs.jpeg.jpeg cimport decoder_warnings
from iterators.images.layers cimport PIXELS_A, Pixels
from iterators.images.status cimport Outcome, RENDER_GEOMETRY, RENDER_IMAGE, RENDER_OK
from iterators.images.codecs.pnm cimport PNM_OK
from iterators.images.render cimport ImageShortcut, Renderer
from iterators.images.plan cimport RenderPlan
from iterators.images.sources.source cimport FETCH_OK, Source

cdef extern from "iterators/core/counter.h" nogil:
    int64_t counter_load(const int64_t* counter)
    void counter_add(int64_t* counter, int64_t number)
    void seconds_add(double* seconds, double more)

from .cache.image_cache import image_bytes

cdef enum:
    RANDOM_METHOD = 10      # of the interpolations: another one for every image and epoch


cdef class CachedImages:
    """A cache for the images of a recipe.

    Parameters
    ----------
    cache : ImageCache
    recipe : Recipe or DetRecipe
        `resize` and `inter_method` say what is cached; see `resizes`.

    Attributes
    ----------
    cache : ImageCache

    Examples
    --------
    >>> from iterators.images.cache.image_cache import MemoryImageCache
    >>> from iterators.images.augment.recipe import Recipe
    >>> recipe = Recipe(data_shape=(3, 224, 224), resize=256)
    >>> CachedImages(MemoryImageCache(10, 3, 1 << 20), recipe).stats()
    {'cache_hits': 0, 'cache_misses': 0}
    """

    def __init__(self, ImageCache cache not None, recipe):
        self.cache = cache
        self.inter_method = recipe.inter_method
        self.resize = recipe.resize if resizes(recipe) else -1

    def stats(self):
        """Samples that were made from cached images, and those that were not."""
        return {"cache_hits": counter_load(&self.hits), "cache_misses": counter_load(&self.misses)}

    def shortcut(self, RenderPlan plan not None, Source source=None):
        """What a renderer of that plan needs to use the cache; one for each.

        `source` is where the records come from, if there is one to ask whether they are whole.
        """
        return CacheShortcut(self, plan, source)

    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef int status = self.cache.find(number, image)
        cdef ImageKey key
        cdef Geometry geometry
        if status != CACHE_FOUND:
            return status
        memset(&key, 0, sizeof(key))    # nothing is drawn for images that are kept
        if whole_image(self.resize, self.inter_method, &key, image.source_width,
                       image.source_height, &geometry):
            return CACHE_REFUSED
        if (geometry.layers[0].target_width != image.width
                or geometry.layers[0].target_height != image.height):
            return CACHE_REFUSED
        return CACHE_FOUND


def resizes(recipe):
    """Whether images are cached as they are after the first resize.

    Not if there is none, or if its interpolation differs from epoch to epoch.

    Examples
    --------
    >>> from iterators.images.augment.recipe import Recipe
    >>> [resizes(Recipe(data_shape=(3, 8, 8), resize=9, inter_method=m)) for m in (1, 9, 10)]
    [True, True, False]
    """
    return recipe.resize != -1 and recipe.inter_method != RANDOM_METHOD


def cached_bytes(recipe, int width, int height):
    """Bytes that an image takes in a cache; 0 if it cannot be cached.

    Parameters
    ----------
    recipe : Recipe or DetRecipe
    width, height : int
        Of the encoded image, in pixels.

    Examples
    --------
    >>> from iterators.images.augment.recipe import Recipe
    >>> cached_bytes(Recipe(data_shape=(3, 224, 224), resize=256), 640, 480)
    262016
    """
    cdef Geometry geometry
    cdef ImageKey image
    memset(&image, 0, sizeof(image))
    if width < 1 or height < 1 or whole_image(
            recipe.resize if resizes(recipe) else -1, recipe.inter_method, &image, width, height,
            &geometry):
        return 0
    return image_bytes(geometry.layers[0].target_width, geometry.layers[0].target_height,
                       recipe.channels)


cdef int whole_image(int resize, int inter_method, const ImageKey* image, int width, int height,
                     Geometry* geometry) noexcept nogil:
    """The one step from a decoded image to a cached one; not 0 if it is impossible."""
    geometry.count, geometry.mirror, geometry.coloured = 0, False, -1
    if resize != -1:
        return resize_short_side(resize, inter_method, image, &width, &height, geometry)
    return add_layer(geometry, LAYER_RESAMPLE, 0, &width, &height, width, height) == NULL


cdef class WholeRenderer(Renderer):
    """Makes the image that is cached; it remains in the first buffer."""

    cdef CachedImages images
    cdef bint raw               # the pixels lie in the record as they are
    cdef CachedImage made       # of the image at work

    def __cinit__(self, RenderPlan plan):
        self.raw = False

    cdef int draw(self, const ImageKey* image, int width, int height, Geometry* geometry,
                  Outcome* outcome) noexcept nogil:
        cdef Layer* layer = &geometry.layers[0]
        if whole_image(self.images.resize, self.images.inter_method, image, width, height,
                       geometry):
            return self.fail(outcome, RENDER_GEOMETRY, b"")
        self.made.source_width, self.made.source_height = width, height
        self.made.width, self.made.height = layer.target_width, layer.target_height
        # Before anything is decoded for nothing.
        if not self.images.cache.has_room(self.made.width, self.made.height):
            return self.fail(outcome, RENDER_GEOMETRY, b"")
        if self.raw and self.images.resize == -1:
            return self.fail(outcome, RENDER_GEOMETRY, b"")     # reading it there is as good
        return RENDER_OK

    cdef void draw_colours(self, const ImageKey* image, Jitter* jitter) noexcept nogil:
        memset(jitter, 0, sizeof(Jitter))

    cdef int find_pixels(self, const uint8_t* data, size_t size, Pixels* pixels, int* channels,
                         Outcome* outcome) noexcept nogil:
        cdef int status = Renderer.find_pixels(self, data, size, pixels, channels, outcome)
        self.raw = status == PNM_OK
        return status

    cdef bint make(self, const uint8_t* data, size_t size, const ImageKey* image) noexcept nogil:
        """Whether there is a sound image, with room in the cache, and now in the first buffer."""
        cdef Outcome outcome
        outcome.status = RENDER_OK
        self.raw = False
        self.render_image(data, size, image, NULL, &outcome)
        self.made.pixels = self.buffers[PIXELS_A]
        # Damage that was decoded over may look different where only a part is decoded.
        return outcome.status == RENDER_OK and (
            self.decoder == NULL or decoder_warnings(self.decoder) == 0)


cdef class CacheShortcut(ImageShortcut):
    """Renders from a cached image, after caching it if need be; serves one renderer."""

    cdef CachedImages images
    cdef WholeRenderer whole
    cdef Source source
    cdef int64_t looked         # the record that was looked for, until it is rendered; else -1
    cdef int status             # what was found: CacheStatus
    cdef CachedImage found

    def __init__(self, CachedImages images not None, RenderPlan plan not None,
                 Source source=None):
        self.looked = -1
        self.images, self.source = images, source
        self.whole = WholeRenderer(plan)
        self.whole.images = images

    cdef bint look(self, int64_t number) noexcept nogil:
        self.looked = number
        self.status = self.images.find(number, &self.found)
        return self.status == CACHE_FOUND

    cdef bint render(self, Renderer renderer, const uint8_t* data, size_t size,
                     const ImageKey* image, void* slot, Outcome* outcome) noexcept nogil:
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
            self.whole.decode_seconds = 0
            made = self.whole.make(data, size, image)
            seconds_add(&renderer.decode_seconds, self.whole.decode_seconds)
            if self.source is not None and self.source.confirm(number, data, size) != FETCH_OK:
                return False        # nobody else shall get what was made of it
            if not made:
                self.images.cache.refuse(number)
                return False
            self.found = self.whole.made
            self.images.cache.put(number, &self.found)
        self.render_found(renderer, &self.found, image, slot, outcome)
        self.lost = self.images.cache.is_lost(&self.found)
        if self.lost:
            outcome.status = RENDER_OK      # what was found was not what was put there
            return False
        return True

    cdef int render_found(self, Renderer renderer, const CachedImage* found, const ImageKey* image,
                          void* slot, Outcome* outcome) noexcept nogil:
        cdef Geometry geometry
        cdef Layer* layer = &geometry.layers[0]
        cdef Pixels pixels
        if renderer.draw(image, found.source_width, found.source_height, &geometry, outcome):
            return outcome.status
        if self.images.resize != -1:
            # The first step is done: what is left of it is its window.
            if layer.target_width != found.width or layer.target_height != found.height:
                return renderer.fail(outcome, RENDER_IMAGE,
                                     b"the cached image was resized to another size")
            layer.width, layer.height = layer.target_width, layer.target_height
        pixels.first, pixels.x, pixels.y = found.pixels, 0, 0
        pixels.width, pixels.height = found.width, found.height
        pixels.stride = <Py_ssize_t>found.width * renderer.plan.channels
        return renderer.run_layers(image, &geometry, &pixels, 1, slot, outcome)
