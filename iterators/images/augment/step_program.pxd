from libc.stdint cimport uint8_t, uint32_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.pixel_change cimport Change, PixelChange
from recordio.kernels.operations cimport operation_image, operation_kind
from recordio.kernels.transform cimport transform_map

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
