from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey


# Numbers drawn for one image.
cdef struct Jitter:
    bint colours            # whether any pixel changes
    bint jitters
    bint shifts
    bint noises
    bint exposes
    int order[3]            # of brightness 0, contrast 1, saturation 2
    float factor[3]
    int hue
    int lightness
    int saturation
    float noise[3]          # added to R, G, B
    float gain              # factor of all channels after everything else; 1 for off
    float exposure          # contrast of the normalisation
    float illumination


# Apply what was drawn to packed pixels: RGB, unless there is only a gain.  A `Change.apply` for a
# state that begins with a Jitter.
cdef int jitter_image(void* state, uint8_t* pixels, int channels, int width,
                      int height) noexcept nogil
# Noise of R, G and B along the principal colours of ImageNet.
cdef void draw_principal_noise(const ImageKey* image, double deviation,
                               double* noise) noexcept nogil
