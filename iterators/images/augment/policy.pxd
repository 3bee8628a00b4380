from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.pixel_change cimport PixelChange
from recordio.kernels.operations cimport operation, operation_image, operation_kind

cdef enum:
    MAX_CHOICES = 64
    MAX_CHAINS = 32
    MAX_WIDTH = 8
    MAX_DEPTH = 8
    MAX_DRAWN = MAX_WIDTH * MAX_DEPTH


cdef enum Kind:
    LAYERS = 0
    CHAINS = 1
    MIX = 2


cdef enum Rounding:
    NONE = 0
    CUT = 1
    EVEN = 2


cdef enum Mixing:
    SUM = 0
    BLEND = 1
    BLENDED = 2


# A `policies.Choice`.
cdef struct Choice:
    operation_kind kind
    int unit                # what the value is a share of: position among the units of the recipe
    double low
    double span
    bint signed_span
    Rounding rounding
    bint whole
    double least
    double most
    double chance
    double weight
    double level
    bint between


cdef struct PolicyRecipe:
    Kind kind
    double units[3]         # 1, width and height of the image at work
    int count
    Choice choices[MAX_CHOICES]
    int layers
    bint again
    int num_chains
    int chains[MAX_CHAINS + 1]      # the first choice of each
    double levels
    double noise
    int bins
    double most
    int width
    int depth
    double alpha
    Mixing mixing
    int method              # AFFINE_..., -1 for bilinear or bicubic at random


# Operations drawn for one image.
cdef struct Drawn:
    int count               # operations
    operation operations[MAX_DRAWN]
    int num_parts           # of a mix, else 0
    int parts[MAX_WIDTH + 1]    # the first operation of each
    float weights[MAX_WIDTH]
    float share             # of the mix


cdef struct State:
    PolicyRecipe recipe
    Drawn drawn
    operation_image image
    uint8_t* original       # of a mix
    float* sum


# Draws and applies the operations of a policy; belongs to one thread at a time.
cdef class PolicyChange(PixelChange):
    cdef State state

    # Operations for an image of that size; valid until the next call.
    cdef const Drawn* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil
