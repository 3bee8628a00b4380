from libc.stdint cimport uint32_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.pixel_changes cimport Change, PixelChange
from recordio.kernels.operations cimport operation, operation_image, operation_kind
from recordio.kernels.transform cimport transform_map


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


cdef struct PolicyState:
    PolicyRecipe recipe
    Drawn drawn
    operation_image image
    uint8_t* original       # of a mix
    float* sum


# Draws and applies the operations of a policy; belongs to one thread at a time.
cdef class PolicyChange(PixelChange):
    cdef PolicyState state

    # Operations for an image of that size; valid until the next call.
    cdef const Drawn* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil


cdef enum:
    AFFINE_NUMBERS = 6
    MOST_RANGES = 10
    MOST_VALUES = 8


cdef enum StepKind:
    STEP_OPERATION = 0      # of `kernels/operations.h`
    STEP_JITTER = 1
    STEP_GAUSSIAN = 2
    STEP_ROTATE = 3
    STEP_AFFINE = 4
    STEP_PERSPECTIVE = 5
    STEP_HFLIP = 6
    STEP_VFLIP = 7
    STEP_POLICY = 8
    STEP_APPLY = 9
    STEP_CHOICE = 10
    STEP_ORDER = 11


# Where a random number comes from: a word of the block of a purpose.
cdef struct Word:
    uint32_t purpose
    int number


# One step; those that it consists of follow it.
cdef struct Node:
    StepKind kind
    int last                # number after its last part
    double chance
    double weight           # of a part of a choice
    Word chance_at          # also of the choice itself
    Word value_at
    Word order_at           # the first of the words that bring parts in order
    operation_kind operation
    double ranges[MOST_RANGES]  # of an affine map: angle, shares, scale, shears
    bint inwards            # the numbers of a perspective are those of pixels inwards
    int kernel[2]
    int method
    uint8_t fill[4]
    Change* policy


# A step drawn for one image.
cdef struct DrawnStep:
    const Node* node
    operation_kind operation
    # float32 as torchvision's; gcc 12 leaves rounding out where it stores two of them as doubles.
    float values[MOST_VALUES]


cdef struct StepState:
    Node* nodes
    int count               # of nodes
    DrawnStep* drawn
    int num_drawn
    int level
    operation_image image   # the fill is not its own


# Draws and applies the steps of a program; belongs to one thread at a time.
cdef class StepChange(PixelChange):
    cdef StepState state
    cdef list policies      # owners of what the nodes refer to

    # Steps for an image of that size; valid until the next call.
    cdef StepState* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil


# Where the pixels of a drawn step come from, in an image of that size; False if all stay.
cdef bint step_map(const DrawnStep* done, int width, int height, transform_map* how) noexcept nogil
