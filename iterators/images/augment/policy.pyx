"""Operations of a `Policy`, drawn for one image and applied to its pixels, without the GIL.

Every operation of an image has random numbers of its own, so that none depends on how many others
draw.  ``kernels/operations.h`` defines the operations.
"""

from libc.math cimport INFINITY, cos, log, pow, rint, sqrt, trunc
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from iterators.images.augment.draw cimport (
    DRAW_MIX, DRAW_OPERATION, ImageKey, draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.pixel_change cimport PixelChange, take_map
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.operations cimport (
    AFFINE_BICUBIC, AFFINE_BILINEAR, operation, operation_apply, operation_is_geometric,
    operation_kind, operation_matrix, operation_room,
)
from recordio.kernels.transform cimport transform_map

from recordio.kernels.operations import METHODS, NAMES
from .policies import MOST_DEPTH, MOST_LAYERS, MOST_WIDTH

cdef enum:
    LARGEST_BLUR = 2        # standard deviation of the blurs of timm's tables
    GAMMA_TRIES = 64        # of which each succeeds with a probability of at least 0.95

assert MOST_WIDTH == MAX_WIDTH and MOST_DEPTH == MAX_DEPTH and MOST_LAYERS <= MAX_DRAWN


cdef double draw_gamma(const ImageKey* image, double shape, uint32_t purpose) noexcept nogil:
    """Draw a Gamma number (Marsaglia and Tsang 2000); exactly exponential for a shape of 1."""
    cdef philox_block block = draw(image, purpose)
    cdef double boost = 1, d, c, normal, volume, unit
    cdef int i
    if shape == 1:
        return -log(1 - philox_unit(block.word[0]))
    if shape < 1:
        boost = pow(1 - philox_unit(block.word[3]), 1 / shape)
        shape += 1
    d = shape - 1.0 / 3
    c = 1 / sqrt(9 * d)
    for i in range(GAMMA_TRIES):
        block = draw(image, purpose + 1 + i)
        normal = (sqrt(-2 * log(1 - philox_unit(block.word[0])))
                  * cos(6.283185307179586 * philox_unit(block.word[1])))
        volume = 1 + c * normal
        if volume <= 0:
            continue
        volume = volume * volume * volume
        unit = 1 - philox_unit(block.word[2])
        if log(unit) < 0.5 * normal * normal + d * (1 - volume + log(volume)):
            return boost * d * volume
    return boost * d


cdef int pick(const PolicyRecipe* recipe, uint32_t word, const bint* taken) noexcept nogil:
    """Pick a choice by its weight, of those that are not taken."""
    cdef double left = 0, point
    cdef int i, last = 0
    for i in range(recipe.count):
        if not taken[i]:
            left += recipe.choices[i].weight
    point = philox_unit(word) * left
    for i in range(recipe.count):
        if taken[i]:
            continue
        last = i
        point -= recipe.choices[i].weight
        if point < 0:
            break
    return last


cdef double draw_level(const PolicyRecipe* recipe, const Choice* choice, philox_block words,
                       philox_block more) noexcept nogil:
    cdef double level = choice.level
    if recipe.bins:
        level = draw_integer(words.word[3], 0, recipe.bins - 1)
    elif recipe.noise == INFINITY:
        level = draw_between(words.word[3], 0, level)
    elif recipe.noise > 0:
        level += (recipe.noise * sqrt(-2 * log(1 - philox_unit(words.word[3])))
                  * cos(6.283185307179586 * philox_unit(more.word[0])))
    return min(max(level, 0.0), recipe.most) / recipe.levels


cdef double even_step(double span, double levels, double level) noexcept nogil:
    """Return torch.linspace at a level: float32, from the nearer end, rounded once.

    The number is cut afterwards, so that it matters: TrivialAugment's 16 pixels are 15.
    """
    cdef double position = rint(level * levels)
    cdef float step = <float>span / <float>levels
    if position < <int>((levels + 1) / 2):
        return <float>(<double>step * position)
    return <float>(<double><float>span - <double>step * (levels - position))


cdef void draw_operation(const PolicyRecipe* recipe, int number, philox_block words,
                         philox_block more, Drawn* drawn) noexcept nogil:
    """Add a choice to what was drawn, unless it is left out this time."""
    cdef const Choice* choice = &recipe.choices[number]
    cdef operation* done = &drawn.operations[drawn.count]
    cdef double more_value, value
    cdef double low = choice.low * recipe.units[choice.unit]
    cdef double span = choice.span * recipe.units[choice.unit]
    if philox_unit(words.word[1]) >= choice.chance:
        return
    more_value = draw_level(recipe, choice, words, more)
    more_value = even_step(span, recipe.levels, more_value) if choice.whole else span * more_value
    if choice.rounding == CUT:
        more_value = trunc(more_value)
    elif choice.rounding == EVEN:
        more_value = rint(more_value)
    if choice.signed_span and words.word[2] >> 31:
        more_value = -more_value
    value = min(max(low + more_value, choice.least), choice.most)
    if choice.whole:
        value = trunc(value)
    if choice.between:
        value = draw_between(more.word[2], 0.1, 2 * value)
    done.kind, done.value = choice.kind, <float>value
    done.method = recipe.method
    if recipe.method < 0:
        done.method = AFFINE_BICUBIC if more.word[1] >> 31 else AFFINE_BILINEAR
    drawn.count += 1


cdef void draw_layers(const PolicyRecipe* recipe, const ImageKey* image, int first, int count,
                      Drawn* drawn) noexcept nogil:
    """Choices one after the other; `first` is the number of the first one's random numbers."""
    cdef bint[MAX_CHOICES] taken
    cdef philox_block words, more
    cdef int i, number
    memset(taken, 0, sizeof(taken))
    for i in range(first, first + count):
        words = draw(image, DRAW_OPERATION + 2 * i)
        more = draw(image, DRAW_OPERATION + 2 * i + 1)
        number = pick(recipe, words.word[0], taken)
        taken[number] = not recipe.again
        draw_operation(recipe, number, words, more, drawn)


cdef void draw_chain(const PolicyRecipe* recipe, const ImageKey* image,
                     Drawn* drawn) noexcept nogil:
    cdef philox_block words = draw(image, DRAW_OPERATION)
    cdef int chain = draw_integer(words.word[0], 0, recipe.num_chains - 1), i
    cdef int first = recipe.chains[chain]
    for i in range(first, recipe.chains[chain + 1]):
        draw_operation(recipe, i, draw(image, DRAW_OPERATION + 2 * (i - first)),
                       draw(image, DRAW_OPERATION + 2 * (i - first) + 1), drawn)


cdef void draw_mix(const PolicyRecipe* recipe, const ImageKey* image, Drawn* drawn) noexcept nogil:
    cdef double first, total = 0
    cdef double[MAX_WIDTH] parts
    cdef int i, depth
    cdef philox_block words
    first = draw_gamma(image, recipe.alpha, DRAW_MIX)
    drawn.share = <float>(draw_gamma(image, recipe.alpha, DRAW_MIX + 128))
    drawn.share = <float>(drawn.share / (first + drawn.share)) if first + drawn.share > 0 else 0.5
    for i in range(recipe.width):
        words = draw(image, DRAW_MIX + 256 + i)
        parts[i] = draw_gamma(image, recipe.alpha, DRAW_MIX + 512 + 128 * i)
        total += parts[i]
        depth = recipe.depth if recipe.depth > 0 else draw_integer(words.word[0], 1, 3)
        drawn.parts[i] = drawn.count
        draw_layers(recipe, image, i * MAX_DEPTH, depth, drawn)
    drawn.num_parts = recipe.width
    drawn.parts[recipe.width] = drawn.count
    for i in range(recipe.width):
        drawn.weights[i] = <float>(parts[i] / total if total > 0 else 1.0 / recipe.width)


cdef void expect_size(void* state, int width, int height) noexcept nogil:
    cdef PolicyRecipe* recipe = &(<State*>state).recipe
    recipe.units[0], recipe.units[1], recipe.units[2] = 1, width, height


cdef bint draw_policy(void* state, const ImageKey* image,
                      normalise_recipe* normalise) noexcept nogil:
    cdef const PolicyRecipe* recipe = &(<State*>state).recipe
    cdef Drawn* drawn = &(<State*>state).drawn
    drawn.count = drawn.num_parts = 0
    if recipe.kind == LAYERS:
        draw_layers(recipe, image, 0, recipe.layers, drawn)
    elif recipe.kind == CHAINS:
        draw_chain(recipe, image, drawn)
    else:
        draw_mix(recipe, image, drawn)
    return drawn.count > 0


cdef void run_operations(State* state, int first, int last) noexcept nogil:
    cdef int i
    for i in range(first, last):
        operation_apply(&state.drawn.operations[i], &state.image)


cdef void mix_images(State* state, size_t size) noexcept nogil:
    """Mix the sum of the parts, which all begin with the image, with it as the library does."""
    cdef const Drawn* drawn = &state.drawn
    cdef uint8_t* pixels = state.image.pixels
    cdef float weight, value, rest = 1 - drawn.share
    cdef int part
    cdef size_t i
    memcpy(state.original, pixels, size)
    for i in range(size):
        state.sum[i] = rest * state.original[i] if state.recipe.mixing == SUM else 0
    for part in range(drawn.num_parts):
        if part:
            memcpy(pixels, state.original, size)
        run_operations(state, drawn.parts[part], drawn.parts[part + 1])
        weight = drawn.weights[part]
        if state.recipe.mixing == SUM:
            weight *= drawn.share
        for i in range(size):
            state.sum[i] += weight * pixels[i]
    for i in range(size):
        value = min(max(state.sum[i], <float>0), <float>255)
        if state.recipe.mixing == BLEND:
            value = state.original[i] + drawn.share * (<float>(<int>value) - state.original[i])
        pixels[i] = <uint8_t><int>value


cdef void blend_images(State* state, size_t size) noexcept nogil:
    """Blend the parts over the image, timm's other way, each with the weight of its share."""
    cdef const Drawn* drawn = &state.drawn
    cdef uint8_t* pixels = state.image.pixels
    cdef double rest = 1, share
    cdef double[MAX_WIDTH] shares
    cdef int part
    cdef size_t i
    memcpy(state.original, pixels, size)
    for part in range(drawn.num_parts - 1, -1, -1):
        share = drawn.weights[part] * drawn.share / rest if rest > 0 else 0
        rest *= 1 - share
        shares[part] = share
    for i in range(size):
        state.sum[i] = state.original[i]
    for part in range(drawn.num_parts):
        if part:
            memcpy(pixels, state.original, size)
        run_operations(state, drawn.parts[part], drawn.parts[part + 1])
        for i in range(size):
            state.sum[i] = <float>(<int>(
                state.sum[i] + <float>shares[part] * (pixels[i] - state.sum[i])))
    for i in range(size):
        pixels[i] = <uint8_t><int>state.sum[i]


cdef int apply_policy(void* state, uint8_t* pixels, int channels, int width,
                      int height) noexcept nogil:
    cdef State* policy = <State*>state
    cdef size_t size = <size_t>width * height * channels
    policy.image.pixels, policy.image.width, policy.image.height = pixels, width, height
    if policy.drawn.num_parts == 0:
        run_operations(policy, 0, policy.drawn.count)
    elif policy.recipe.mixing == BLENDED:
        blend_images(policy, size)
    else:
        mix_images(policy, size)
    return 0


cdef void follow_policy(void* state, int width, int height, take_map take,
                        void* path) noexcept nogil:
    cdef const Drawn* drawn = &(<State*>state).drawn
    cdef transform_map how
    cdef int i
    memset(&how, 0, sizeof(transform_map))
    for i in range(drawn.count):
        if operation_is_geometric(drawn.operations[i].kind):
            how.method = drawn.operations[i].method
            operation_matrix(&drawn.operations[i], width, height, how.matrix)
            take(path, &how)


cdef int load_choice(Choice* target, choice) except -1:
    scale = choice.scale
    target.kind = <operation_kind><int>NAMES.index(scale.operation)
    target.unit = ("", "width", "height").index(scale.of)
    target.low, target.span = scale.low, scale.span
    target.signed_span = scale.signed
    target.rounding = <Rounding><int>("", "cut", "even").index(scale.rounding)
    target.whole, target.least, target.most = scale.whole, scale.least, scale.most
    target.chance, target.weight, target.level = choice.chance, choice.weight, choice.level
    target.between = choice.between
    return 0


cdef int load_policy(PolicyRecipe* target, policy) except -1:
    """Copy a `policies.Policy`."""
    cdef int i
    if len(policy.choices) > MAX_CHOICES or len(policy.chains) > MAX_CHAINS:
        raise ValueError(f"{len(policy.choices)} choices: at most {MAX_CHOICES} are possible")
    memset(target, 0, sizeof(PolicyRecipe))
    target.kind = <Kind><int>("layers", "chains", "mix").index(policy.kind)
    target.count = len(policy.choices)
    for i in range(target.count):
        load_choice(&target.choices[i], policy.choices[i])
    target.layers, target.again = policy.layers, policy.replace
    target.num_chains = len(policy.chains)
    for i in range(target.num_chains):
        target.chains[i + 1] = target.chains[i] + policy.chains[i]
    target.levels, target.noise, target.bins = policy.levels, policy.noise, policy.bins
    target.most, target.width, target.depth = policy.most, policy.width, policy.depth
    target.alpha = policy.alpha
    target.mixing = <Mixing><int>("sum", "blend", "blended").index(policy.mixing)
    target.method = -1
    if policy.interpolation != "random":
        target.method = METHODS.index(policy.interpolation)
    return 0


cdef class PolicyChange(PixelChange):
    """The operations that a policy, `auto_augment` of the recipe if not given, draws."""

    def __cinit__(self, recipe, policy=None):
        cdef size_t size
        cdef int i
        cdef State* state = &self.state
        memset(state, 0, sizeof(State))
        channels, height, width = recipe.data_shape
        policy = recipe.policy() if policy is None else policy
        load_policy(&state.recipe, policy)
        expect_size(state, width, height)
        state.image.channels = channels
        for i in range(3):
            state.image.fill[i] = policy.fill[i]
        size = <size_t>width * height * channels
        state.image.room = <uint8_t*>malloc(
            operation_room(width, height, channels, LARGEST_BLUR))
        if state.recipe.kind == MIX:
            state.original = <uint8_t*>malloc(size)
            state.sum = <float*>malloc(size * sizeof(float))
        if state.image.room == NULL or state.recipe.kind == MIX and (
                state.original == NULL or state.sum == NULL):
            raise MemoryError
        self.change.state, self.change.finished = state, True
        self.change.expect = expect_size
        self.change.draw, self.change.apply = draw_policy, apply_policy
        self.change.follow = follow_policy
        for i in range(state.recipe.count):
            self.change.mixes = self.change.mixes or (
                state.recipe.kind == MIX
                and operation_is_geometric(state.recipe.choices[i].kind))

    cdef const Drawn* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil:
        expect_size(&self.state, width, height)
        draw_policy(&self.state, image, NULL)
        return &self.state.drawn

    def __dealloc__(self):
        free(self.state.image.room)
        free(self.state.original)
        free(self.state.sum)
