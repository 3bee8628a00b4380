"""Random numbers of one image: their purposes, and their source.

Every purpose has numbers of its own, so that switching one step on or off leaves the draws of all
others as they were.  All of them depend on the augmentation key, the epoch, the record and, where a
record comes more than once in an epoch, on a number that tells its occurrences apart.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from recordio.kernels.philox cimport philox4x32, philox_below, philox_block, philox_unit


cdef enum Purpose:
    DRAW_MIRROR = 0         # mirror, flip
    DRAW_CROP = 1           # x, y, side
    DRAW_METHOD = 2         # of the resize, the warp, the crop
    DRAW_WARP = 3           # shear, angle, position in rotate_list
    DRAW_STRETCH = 4        # scale, aspect ratio
    DRAW_JITTER = 5         # brightness, contrast, saturation, their order
    DRAW_HUE = 6            # two words for each of hue, saturation ...
    DRAW_LIGHTNESS = 7      # ... and lightness
    DRAW_NOISE = 8          # and 9: two words for each of three normal numbers
    DRAW_EXPOSURE = 10      # contrast, illumination
    DRAW_TURN = 11          # hue as an angle, whether to turn grey
    DRAW_ROTATION = 12      # of torchvision's warps: angle; angle, x, y of an affine map ...
    DRAW_LEAN = 13          # ... its scale, its two shears; chance of the perspective
    DRAW_CORNERS = 14       # and 15: x and y of two corners each
    DRAW_AREA = 16          # one block for every try: 16 ... 25
    DRAW_SHIFTS = 32        # of detection images: hue, saturation, illumination, contrast ...
    DRAW_SHIFT_CHANCES = 33     # ... and whether each of them happens
    DRAW_STEP_CHANCES = 34  # whether mirror, pad, crop happen
    DRAW_PAD = 35           # scale, x, y
    DRAW_SAMPLERS = 36      # one word for every crop sampler, to bring them in order: 36 ... 51
    DRAW_MOSAIC = 52        # chance, x, y of the centre; and 53, 54: two words for each partner
    DRAW_LINE = 56          # of a text with several
    DRAW_PHOTOMETRIC = 64   # of PolicyOptions: see `changes`; 64 ... 79
    DRAW_ERASING = 80       # chance, count; key of the noise
    DRAW_RECTANGLE = 96     # area, ratio, x, y: 10 tries for each of 16 rectangles: 96 ... 255
    DRAW_OPERATION = 1 << 16    # two blocks for every operation of a policy: 64 of them
    DRAW_MIX = 1 << 17      # Beta and Dirichlet numbers, depths: 128 blocks for every number
    DRAW_STEP = 1 << 20     # 32 blocks for every step of a program: see `program`
    DRAW_TRIAL = 1 << 26    # and above: scale, ratio, x, y; one block for every trial of a sampler


# Identity of an image among all that a key will ever draw for.
cdef struct ImageKey:
    uint64_t key
    uint32_t epoch
    int64_t record


cdef inline philox_block draw(const ImageKey* image, uint32_t purpose) noexcept nogil:
    return philox4x32(image.key, purpose, image.epoch, <uint32_t>image.record,
                      <uint32_t>(<uint64_t>image.record >> 32))


cdef inline uint64_t draw_key(uint64_t key, int64_t draw) noexcept nogil:
    """Return the key of one occurrence: `key` itself for number 0."""
    cdef philox_block block
    if draw == 0:
        return key
    block = philox4x32(key, <uint32_t>draw, <uint32_t>(<uint64_t>draw >> 32), 0,
                       0x64726177)  # "draw"
    return <uint64_t>block.word[0] << 32 | block.word[1]


cdef inline double draw_between(uint32_t word, double low, double high) noexcept nogil:
    """Draw evenly from [low, high)."""
    return low + philox_unit(word) * (high - low)


cdef inline int draw_integer(uint32_t word, int low, int high) noexcept nogil:
    """Draw evenly from low ... high, both included."""
    return low + <int>philox_below(word, <uint32_t>(high - low + 1))
