"""Policies and programs of steps, drawn for one image and applied to its pixels, without the GIL.

A policy draws some operations of ``kernels/operations.h``.  The steps of a program are applied in
order, and a policy can be one of them.  The photometric keywords of a recipe are a program as well,
and so are torchvision's warps; their random numbers are words of their own.  Every operation and
every step has its own random numbers, so that none depends on how many others draw.  The arithmetic
is Pillow's, except that of "gaussian_blur", which is torchvision's.  (`pixel_changes` has MXNet's
colours, whose grey and rounding differ.)
"""

from libc.math cimport INFINITY, cos, fabs, fmod, log, pow, rint, sqrt, trunc
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from iterators.images.augment.draw cimport (
    DRAW_CORNERS, DRAW_LEAN, DRAW_MIX, DRAW_OPERATION, DRAW_PHOTOMETRIC, DRAW_ROTATION, DRAW_STEP,
    draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.pixel_changes cimport take_map
from recordio.kernels.gaussian cimport gaussian_blur, gaussian_of, gaussian_room, gaussian_taps
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.operations cimport (
    AFFINE_BICUBIC, AFFINE_BILINEAR, OPERATION_BRIGHTNESS, OPERATION_COLOUR, OPERATION_CONTRAST,
    OPERATION_HUE, operation_apply, operation_apply_at, operation_is_geometric, operation_matrix,
    operation_room,
)
from recordio.kernels.orient cimport orient_image
from recordio.kernels.resample cimport SIMD_LEVEL_AVX512, simd_level
from recordio.kernels.transform cimport (
    affine_image, transform_affine, transform_perspective, transform_rotation, transform_window,
)

from recordio.kernels.operations import METHODS, NAMES

from .policies import MOST_DEPTH, MOST_LAYERS, MOST_WIDTH
from .steps import (
    CORNERS, LEAN, PHOTOMETRIC, ROTATION, STEPS, parameters_of, ranges_of, step_policy, walk,
)


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
    if fabs(position - level * levels) > 1e-6:     # between two steps: of a range of others
        return <float>(span * level)
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


cdef void expect_policy(void* state, int width, int height) noexcept nogil:
    cdef PolicyRecipe* recipe = &(<PolicyState*>state).recipe
    recipe.units[0], recipe.units[1], recipe.units[2] = 1, width, height


cdef bint draw_policy(void* state, const ImageKey* image,
                      normalise_recipe* normalise) noexcept nogil:
    cdef const PolicyRecipe* recipe = &(<PolicyState*>state).recipe
    cdef Drawn* drawn = &(<PolicyState*>state).drawn
    drawn.count = drawn.num_parts = 0
    if recipe.kind == LAYERS:
        draw_layers(recipe, image, 0, recipe.layers, drawn)
    elif recipe.kind == CHAINS:
        draw_chain(recipe, image, drawn)
    else:
        draw_mix(recipe, image, drawn)
    return drawn.count > 0


cdef void run_operations(PolicyState* state, int first, int last) noexcept nogil:
    cdef int i
    for i in range(first, last):
        operation_apply(&state.drawn.operations[i], &state.image)


cdef void mix_images(PolicyState* state, size_t size) noexcept nogil:
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


cdef void blend_images(PolicyState* state, size_t size) noexcept nogil:
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
    cdef PolicyState* policy = <PolicyState*>state
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
    cdef const Drawn* drawn = &(<PolicyState*>state).drawn
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
        cdef PolicyState* state = &self.state
        memset(state, 0, sizeof(PolicyState))
        channels, height, width = recipe.data_shape
        policy = recipe.policy() if policy is None else policy
        load_policy(&state.recipe, policy)
        expect_policy(state, width, height)
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
        self.change.expect = expect_policy
        self.change.draw, self.change.apply = draw_policy, apply_policy
        self.change.follow = follow_policy
        for i in range(state.recipe.count):
            self.change.mixes = self.change.mixes or (
                state.recipe.kind == MIX
                and operation_is_geometric(state.recipe.choices[i].kind))

    cdef const Drawn* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil:
        expect_policy(&self.state, width, height)
        draw_policy(&self.state, image, NULL)
        return &self.state.drawn

    def __dealloc__(self):
        free(self.state.image.room)
        free(self.state.original)
        free(self.state.sum)


# ---- programs ----

cdef enum:
    JITTERS = 4
    CORNER_NUMBERS = 8
    MOST_PARTS = 64         # of an order
    # Orientations of EXIF whose images a flip turns upright.
    ORIENTATION_MIRRORED = 2
    ORIENTATION_FLIPPED = 4

# Blocks of random numbers of a step, of which it has this many.
cdef enum Block:
    CHANCE = 0              # whether it happens; which of a choice
    VALUES = 1              # and 2
    ORDER = 4               # one word for each part of up to 64
    BLOCKS = 32

#: Steps that are no operation of `recordio.kernels.operations`, in the order of `StepKind`.
OWN = (
    "color_jitter", "gaussian_blur", "rotate", "affine", "perspective", "hflip", "vflip",
    "auto_augment", "apply", "choice", "order",
)
assert len(OWN) == STEP_ORDER and all(bool(row.kernel) != (op in OWN) for op, row in STEPS.items())
assert (ROTATION, LEAN) == (DRAW_ROTATION, DRAW_LEAN)
assert (CORNERS, PHOTOMETRIC) == (DRAW_CORNERS, DRAW_PHOTOMETRIC)


cdef uint32_t word_at(const ImageKey* image, Word word) noexcept nogil:
    return draw(image, word.purpose).word[word.number]


cdef void words_from(const ImageKey* image, Word first, int count, uint32_t* words) noexcept nogil:
    """Copy words that follow one another, in as many blocks as they take."""
    cdef philox_block block
    cdef int i, at = first.number
    for i in range(count):
        if i == 0 or at == 4:
            block = draw(image, first.purpose)
            first.purpose += 1
            at %= 4
        words[i] = block.word[at]
        at += 1


cdef float drawn_between(uint32_t word, double low, double high) noexcept nogil:
    """Draw evenly from a range, in float32 as torchvision does."""
    return <float>draw_between(word, low, high)


cdef void draw_order(const ImageKey* image, Word first, int count, int* order) noexcept nogil:
    """Bring up to 64 numbers in a random order: that of their words."""
    cdef uint32_t[MOST_PARTS] words
    cdef bint[MOST_PARTS] done
    cdef int i, j, next
    words_from(image, first, count, words)
    memset(done, 0, sizeof(done))
    for i in range(count):
        next = -1
        for j in range(count):
            if not done[j] and (next < 0 or words[j] < words[next]):
                next = j
        done[next] = True
        order[i] = next


cdef DrawnStep* add(StepState* state, const Node* node) noexcept nogil:
    cdef DrawnStep* done = &state.drawn[state.num_drawn]
    done.node, done.operation = node, node.operation
    state.num_drawn += 1
    return done


cdef void draw_jitter(StepState* state, const ImageKey* image, const Node* node) noexcept nogil:
    """Draw each change once, in random order."""
    cdef uint32_t[JITTERS] words
    cdef operation_kind[JITTERS] kinds = [
        OPERATION_BRIGHTNESS, OPERATION_CONTRAST, OPERATION_COLOUR, OPERATION_HUE]
    cdef int[JITTERS] order
    cdef DrawnStep* done
    cdef double low, high, value
    cdef int i, which
    draw_order(image, node.order_at, JITTERS, order)
    words_from(image, node.value_at, JITTERS, words)
    for i in range(JITTERS):
        which = order[i]
        low, high = node.ranges[2 * which], node.ranges[2 * which + 1]
        if low == high == (0 if kinds[which] == OPERATION_HUE else 1):
            continue
        value = drawn_between(words[which], low, high)
        done = add(state, node)
        done.operation = kinds[which]
        done.values[0] = <int>(255 * value) if kinds[which] == OPERATION_HUE else value


cdef void draw_affine(const StepState* state, const ImageKey* image, const Node* node,
                      DrawnStep* done) noexcept nogil:
    """Draw angle, shifts in whole pixels, scale and shears, in torchvision's order."""
    cdef uint32_t[AFFINE_NUMBERS] words
    cdef double most
    cdef int i, at
    words_from(image, node.value_at, AFFINE_NUMBERS, words)
    for i in range(AFFINE_NUMBERS):
        if i == 1 or i == 2:    # by a share of a side, either way
            most = node.ranges[1 + i] * (state.image.width if i == 1 else state.image.height)
            done.values[i] = rint(drawn_between(words[i], -most, most))
        else:
            at = 2 * i - 2 if i else 0
            done.values[i] = drawn_between(words[i], node.ranges[at], node.ranges[at + 1])


cdef void draw_perspective(const StepState* state, const ImageKey* image, const Node* node,
                           DrawnStep* done) noexcept nogil:
    """Draw x and y of the corners, clockwise from the top left one."""
    cdef int[2] sides = [state.image.width, state.image.height]
    cdef uint32_t[CORNER_NUMBERS] words
    cdef int i, side, most, inwards
    words_from(image, node.value_at, CORNER_NUMBERS, words)
    for i in range(CORNER_NUMBERS):
        side = sides[i % 2]
        most = <int>(node.ranges[0] * (side // 2))
        inwards = draw_integer(words[i], 0, most)
        done.values[i] = inwards
        if i in (2, 4, 5, 7):   # corners 1 and 2 are on the right, 2 and 3 at the bottom
            done.values[i] = side - 1 - (inwards if node.inwards else most - inwards)


cdef int picked(const StepState* state, const ImageKey* image, int number) noexcept nogil:
    """Return the number of the part of a choice that is drawn."""
    cdef const Node* node = &state.nodes[number]
    cdef double point, total = 0
    cdef int part = number + 1, choice = number + 1
    while part < node.last:
        total += state.nodes[part].weight
        part = state.nodes[part].last
    point = philox_unit(word_at(image, node.chance_at)) * total
    part = number + 1
    while part < node.last:
        if state.nodes[part].weight > 0:
            choice = part
            point -= state.nodes[part].weight
            if point < 0:
                break
        part = state.nodes[part].last
    return choice


cdef void draw_parts(StepState* state, const ImageKey* image, int number,
                     normalise_recipe* normalise) noexcept nogil:
    """Draw the parts of a combinator: all, one, or all in random order."""
    cdef const Node* node = &state.nodes[number]
    cdef int[MOST_PARTS] order
    cdef int[MOST_PARTS] parts
    cdef int part = number + 1, count = 0, i
    if node.kind == STEP_CHOICE:
        draw_node(state, image, picked(state, image, number), normalise)
        return
    while part < node.last:
        if node.kind == STEP_APPLY:
            draw_node(state, image, part, normalise)
        else:
            parts[count] = part
        count += 1
        part = state.nodes[part].last
    if node.kind == STEP_ORDER:
        draw_order(image, node.order_at, count, order)
        for i in range(count):
            draw_node(state, image, parts[order[i]], normalise)


cdef bint draw_policy_step(const ImageKey* image, const Node* node,
                           normalise_recipe* normalise) noexcept nogil:
    """Draw a policy, with a key of its own."""
    cdef ImageKey own = image[0]
    cdef philox_block words = draw(image, node.value_at.purpose)
    own.key = <uint64_t>words.word[0] << 32 | words.word[1]
    return node.policy.draw(node.policy.state, &own, normalise)


cdef void draw_node(StepState* state, const ImageKey* image, int number,
                    normalise_recipe* normalise) noexcept nogil:
    cdef const Node* node = &state.nodes[number]
    if node.chance < 1 and philox_unit(word_at(image, node.chance_at)) >= node.chance:
        return
    if node.kind >= STEP_APPLY:
        draw_parts(state, image, number, normalise)
    elif node.kind == STEP_JITTER:
        draw_jitter(state, image, node)
    elif node.kind == STEP_AFFINE:
        draw_affine(state, image, node, add(state, node))
    elif node.kind == STEP_PERSPECTIVE:
        draw_perspective(state, image, node, add(state, node))
    elif node.kind != STEP_POLICY or draw_policy_step(image, node, normalise):
        add(state, node).values[0] = drawn_between(
            word_at(image, node.value_at), node.ranges[0], node.ranges[1])


cdef bint draw_steps(void* state, const ImageKey* image,
                     normalise_recipe* normalise) noexcept nogil:
    cdef StepState* steps = <StepState*>state
    cdef int number = 0
    steps.num_drawn = 0
    while number < steps.count:
        draw_node(steps, image, number, normalise)
        number = steps.nodes[number].last
    return steps.num_drawn > 0


cdef bint step_map(const DrawnStep* done, int width, int height, transform_map* how) noexcept nogil:
    cdef const float* values = done.values
    cdef int[4][2] ends
    cdef int i
    memset(how, 0, sizeof(transform_map))
    how.method = done.node.method
    if done.node.kind == STEP_ROTATE:
        transform_rotation(values[0], width, height, False, how)
        return fmod(values[0], 360) != 0
    if done.node.kind == STEP_AFFINE:
        transform_affine(values[0], values[1], values[2], values[3], values[4], values[5], width,
                         height, how)
    elif done.node.kind == STEP_PERSPECTIVE:
        for i in range(CORNER_NUMBERS):
            ends[i // 2][i % 2] = <int>values[i]
        return transform_perspective(ends, width, height, how) == 0
    elif done.node.kind == STEP_HFLIP:
        how.matrix[0], how.matrix[2], how.matrix[4] = -1, width, 1
    elif done.node.kind == STEP_VFLIP:
        how.matrix[0], how.matrix[4], how.matrix[5] = 1, -1, height
    else:
        return False
    return True


cdef void move(StepState* state, const DrawnStep* done, uint8_t* pixels, int width,
               int height) noexcept nogil:
    """Turn, shear or tilt the image; one whose corners meet, being a few pixels, stays."""
    cdef transform_map how
    cdef affine_image source
    source.pixels, source.width, source.height = state.image.room, width, height
    source.channels = state.image.channels
    if not step_map(done, width, height, &how):
        return
    memcpy(how.fill, done.node.fill, 4)
    memcpy(state.image.room, pixels, <size_t>width * height * source.channels)
    transform_window(state.level, &how, &source, 0, 0, width, height, pixels)


cdef int apply_steps(void* state, uint8_t* pixels, int channels, int width,
                     int height) noexcept nogil:
    cdef StepState* steps = <StepState*>state
    cdef const DrawnStep* done
    cdef operation change
    cdef gaussian_taps[2] taps
    cdef ptrdiff_t stride = <ptrdiff_t>width * channels
    cdef int i, j
    steps.image.pixels, steps.image.width, steps.image.height = pixels, width, height
    for i in range(steps.num_drawn):
        done = &steps.drawn[i]
        if done.node.kind <= STEP_JITTER:
            change.kind, change.value, change.method = done.operation, done.values[0], 0
            operation_apply_at(steps.level, &change, &steps.image)
        elif done.node.kind == STEP_GAUSSIAN:
            for j in range(2):
                taps[j] = gaussian_of(done.node.kernel[j], done.values[0])
            gaussian_blur(steps.level, taps, pixels, width, height, channels, steps.image.room)
        elif done.node.kind == STEP_HFLIP or done.node.kind == STEP_VFLIP:
            memcpy(steps.image.room, pixels, stride * height)
            orient_image(steps.image.room, stride, width, height, channels,
                         ORIENTATION_MIRRORED if done.node.kind == STEP_HFLIP
                         else ORIENTATION_FLIPPED, pixels, stride)
        elif done.node.kind == STEP_POLICY:
            if done.node.policy.apply(done.node.policy.state, pixels, channels, width, height):
                return -1
        else:
            move(steps, done, pixels, width, height)
    return 0


cdef void follow_steps(void* state, int width, int height, take_map take,
                       void* path) noexcept nogil:
    cdef StepState* steps = <StepState*>state
    cdef const DrawnStep* done
    cdef transform_map how
    cdef int i
    for i in range(steps.num_drawn):
        done = &steps.drawn[i]
        if done.node.kind == STEP_POLICY:
            done.node.policy.follow(done.node.policy.state, width, height, take, path)
        elif step_map(done, width, height, &how):
            take(path, &how)


cdef void expect_steps(void* state, int width, int height) noexcept nogil:
    cdef StepState* steps = <StepState*>state
    cdef Change* policy
    cdef int i
    steps.image.width, steps.image.height = width, height
    for i in range(steps.count):
        policy = steps.nodes[i].policy
        if policy != NULL:
            policy.expect(policy.state, width, height)


cdef int load_step(Node* node, step, int number) except -1:
    """Copy a step; `number` counts the steps before it."""
    values = parameters_of(step)
    chance, value, order = values.get("words") or ((CHANCE, 0), (VALUES, 0), ORDER)
    cdef uint32_t first = 0 if "words" in values else DRAW_STEP + BLOCKS * number
    cdef int i
    node.chance_at.purpose, node.chance_at.number = first + <uint32_t>chance[0], chance[1]
    node.value_at.purpose, node.value_at.number = first + <uint32_t>value[0], value[1]
    node.order_at.purpose = first + <uint32_t>order
    # A keyword draws how far a corner moves, and a step where it moves to, as torchvision does.
    node.inwards = "words" in values
    node.chance, node.weight = values["p"], 1
    node.last = number + 1 + sum(1 for _ in walk("", step.get("of", ())))
    if STEPS[step["op"]].kernel:
        node.operation = <operation_kind><int>NAMES.index(STEPS[step["op"]].kernel)
    else:
        node.kind = <StepKind><int>(1 + OWN.index(step["op"]))
    for i, end in enumerate(ranges_of(step)):
        node.ranges[i] = end
    if "interpolation" in values:
        node.method = METHODS.index(values["interpolation"])
        node.fill = [*values["fill"], 0]
    if "kernel_size" in values:
        node.kernel = values["kernel_size"]
    return 0


cdef class StepChange(PixelChange):
    """The steps of a program, for images of a recipe; see `PixelChange`."""

    def __cinit__(self, recipe, steps):
        cdef StepState* state = &self.state
        cdef PolicyChange policy
        cdef int i, part
        memset(state, 0, sizeof(StepState))
        channels, height, width = recipe.data_shape
        every = [step for _, step in walk("", steps)]
        state.count = len(every)
        state.nodes = <Node*>calloc(state.count, sizeof(Node))
        state.drawn = <DrawnStep*>calloc(JITTERS * state.count, sizeof(DrawnStep))
        if state.nodes == NULL or state.drawn == NULL:
            raise MemoryError
        self.policies = []
        room = operation_room(width, height, channels, 0)
        for i, step in enumerate(every):
            load_step(&state.nodes[i], step, i)
            if step["op"] == "auto_augment":
                policy = PolicyChange(recipe, step_policy(step))
                self.policies.append(policy)
                state.nodes[i].policy = &policy.change
                self.change.mixes = self.change.mixes or policy.change.mixes
            elif step["op"] == "gaussian_blur":
                room = max(room, gaussian_room(width, height, channels, max(step["kernel_size"])))
            elif step["op"] == "blur":
                room = max(room, operation_room(width, height, channels, step["sigma"][1]))
        for i, step in enumerate(every):
            part = i + 1
            for weight in step.get("weights", ()):
                state.nodes[part].weight = weight
                part = state.nodes[part].last
        state.level = simd_level(SIMD_LEVEL_AVX512)
        state.image.channels = channels
        state.image.room = <uint8_t*>malloc(room)
        if state.image.room == NULL:
            raise MemoryError
        expect_steps(state, width, height)
        self.change.state, self.change.finished = state, True
        self.change.expect = expect_steps
        self.change.draw, self.change.apply = draw_steps, apply_steps
        self.change.follow = follow_steps

    cdef StepState* draw_for(self, const ImageKey* image, int width, int height) noexcept nogil:
        expect_steps(&self.state, width, height)
        draw_steps(&self.state, image, NULL)
        return &self.state

    def __dealloc__(self):
        free(self.state.nodes)
        free(self.state.drawn)
        free(self.state.image.room)
