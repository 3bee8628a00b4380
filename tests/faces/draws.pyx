"""What recipes draw for single images, by the same functions as the image stage."""

from libc.string cimport memset

from iterators.images.augment.draw cimport ImageKey, draw_key
from iterators.images.augment.pixel_changes cimport (
    ColourRecipe, ColourSteps, DrawnFace, Eraser, Jitter, PixelChange, compose, draw_colours,
    linear_colour, load_colours,
)
from iterators.images.augment.program cimport (
    STEP_AFFINE, STEP_JITTER, STEP_PERSPECTIVE, STEP_POLICY, STEP_ROTATE, Drawn, DrawnStep,
    PolicyChange, PolicyState, StepChange, StepState, step_map,
)
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.transform cimport transform_map

import numpy as np

from recordio.kernels.operations import METHODS, NAMES

from iterators.images.augment.pixel_changes import ColourJitter, DetColourJitter, FaceChange
from iterators.images.augment.program import OWN


cdef ImageKey image_key(key, epoch, record, occurrence=0):
    cdef ImageKey image
    image.key, image.epoch, image.record = draw_key(key, occurrence), epoch, record
    return image


cdef void* draw_change(PixelChange change, ImageKey image):
    """Draw one kind of change; return its state, which begins with what was drawn."""
    cdef normalise_recipe normalise
    memset(&normalise, 0, sizeof(normalise))
    change.change.draw(change.change.state, &image, &normalise)
    return change.change.state


def drawn_jitter(recipe, key, epoch, record, occurrence=0):
    """Return the changes drawn for the colours of one image; those that are not used are left out.

    They are `factor` (brightness, contrast, saturation), their `order`, the shifts `hue`,
    `lightness` and `saturation`, the `noise` of R, G and B, `exposure` and `illumination`.
    """
    change = ColourJitter(recipe)
    cdef Jitter jitter = (
        <Jitter*>draw_change(change, image_key(key, epoch, record, occurrence)))[0]
    found = {}
    if jitter.jitters:
        found.update(factor=jitter.factor, order=jitter.order)
    if jitter.shifts:
        found.update(hue=jitter.hue, lightness=jitter.lightness, saturation=jitter.saturation)
    if jitter.noises:
        found.update(noise=jitter.noise)
    if jitter.exposes:
        found.update(exposure=jitter.exposure, illumination=jitter.illumination)
    return found


def drawn_det_jitter(recipe, key, epoch, record):
    """Return the changes drawn for the colours of one detection image.

    They are the shifts `hue`, `lightness` and `saturation`, and `gain`, the factor of the contrast.
    """
    change = DetColourJitter(recipe)
    cdef Jitter jitter = (<Jitter*>draw_change(change, image_key(key, epoch, record)))[0]
    return {"hue": jitter.hue, "lightness": jitter.lightness, "saturation": jitter.saturation,
            "gain": jitter.gain}


def drawn_colours(recipe, key, epoch, record, occurrence=0):
    """Return the changes drawn for the colours of one image that are made in float.

    They are `factor` (brightness, contrast, saturation), their `order`, `hue` in radians, the
    `noise` of R, G and B, and `grey`, true if the image turns grey.
    """
    cdef ColourRecipe settings
    cdef ColourSteps steps
    cdef ImageKey image = image_key(key, epoch, record, occurrence)
    load_colours(&settings, recipe)
    draw_colours(&settings, &image, &steps)
    return {"factor": steps.factor, "order": steps.order, "hue": steps.hue, "noise": steps.noise,
            "grey": bool(steps.grey)}


def composed(factor, order, hue, noise, grey, average, mean=(0, 0, 0), std=(1, 1, 1)):
    """Return the float32 map that these steps make, ``out = matrix @ rgb + offset``.

    The steps are those of `drawn_colours`; `average` is the mean red, green and blue of the image,
    and `mean` and `std` belong to the normalisation that follows.
    """
    cdef ColourSteps steps
    cdef linear_colour colour
    cdef double[3] averages
    cdef float[3] means, factors
    cdef int i, j
    for i in range(3):
        steps.factor[i], steps.order[i], steps.noise[i] = factor[i], order[i], noise[i]
        averages[i], means[i] = average[i], mean[i]
        factors[i] = np.float32(1) / np.float32(std[i])
    steps.hue, steps.grey = hue, grey
    compose(&steps, averages, means, factors, &colour)
    matrix = [[colour.matrix[i][j] for j in range(3)] for i in range(3)]
    return np.array(matrix, np.float32), np.array(colour.offset, np.float32)


def drawn_rectangles(recipe, key, epoch, record, occurrence=0):
    """Return the rectangles erased from one image: (x, y, width, height) in its pixels."""
    _, height, width = recipe.data_shape
    cdef Eraser eraser = Eraser(recipe, width)
    cdef ImageKey image = image_key(key, epoch, record, occurrence)
    eraser.draw_rectangles(&image, width, height)
    return [(eraser.rectangles[i].x, eraser.rectangles[i].y, eraser.rectangles[i].width,
             eraser.rectangles[i].height) for i in range(eraser.count)]


def drawn_face(recipe, key, epoch, record, occurrence=0):
    """Return the changes drawn for one face; those that do not happen are left out.

    They are `part`, x, y, width and height of the part that stays; `small`, width and height in
    between; and `methods`, those of `recordio.kernels.resample` down and up.
    """
    change = FaceChange(recipe)
    cdef DrawnFace drawn = (
        <DrawnFace*>draw_change(change, image_key(key, epoch, record, occurrence)))[0]
    found = {}
    if drawn.crops:
        found["part"] = drawn.x, drawn.y, drawn.crop_width, drawn.crop_height
    if drawn.lowers:
        found["small"] = drawn.small_width, drawn.small_height
        found["methods"] = drawn.down, drawn.up
    return found


def drawn_photometric(recipe, key, epoch, record, occurrence=0):
    """Return the photometric changes drawn for one image: names and values, in their order."""
    change = StepChange(recipe, recipe.photometric_steps())
    return [(name, values[0]) for name, *values in steps_of(change, key, epoch, record, occurrence)]


def drawn_steps(recipe, key, epoch, record, occurrence=0):
    """Return the steps drawn for one image, each a name and its numbers, in their order."""
    return steps_of(StepChange(recipe, recipe.steps), key, epoch, record, occurrence)


def steps_of(StepChange change, key, epoch, record, occurrence=0):
    """Return the steps drawn for one image.

    A jitter is the operations that it consists of; those of a policy come one by one.
    """
    cdef const DrawnStep* done
    cdef Drawn* operations
    cdef int i, j, count
    found = []
    draw_change(change, image_key(key, epoch, record, occurrence))
    for i in range(change.state.num_drawn):
        done = &change.state.drawn[i]
        if done.node.kind == STEP_POLICY:
            operations = &(<PolicyState*>done.node.policy.state).drawn
            for j in range(operations.count):
                found.append((NAMES[<int>operations.operations[j].kind],
                              operations.operations[j].value))
            continue
        count = {STEP_AFFINE: 6, STEP_PERSPECTIVE: 8}.get(done.node.kind, 1)
        if done.node.kind <= STEP_JITTER:
            name = NAMES[<int>done.operation]
        else:
            name = OWN[<int>done.node.kind - 1]
        found.append((name, *(done.values[j] for j in range(count))))
    return found


def drawn_warps(recipe, key, epoch, record, int width, int height, occurrence=0):
    """Return the warps drawn for an image of that size: the numbers of torchvision's functions.

    A dict of "rotation", "affine" and "perspective", of those that move its pixels.
    """
    cdef ImageKey image = image_key(key, epoch, record, occurrence)
    cdef StepChange change = StepChange(recipe, recipe.warp_steps())
    cdef StepState* state = change.draw_for(&image, width, height)
    cdef const DrawnStep* done
    cdef transform_map how
    cdef int i
    found = {}
    for i in range(state.num_drawn):
        done = &state.drawn[i]
        if not step_map(done, width, height, &how):
            continue
        numbers = [done.values[j] for j in range(8)]
        if done.node.kind == STEP_ROTATE:
            found["rotation"] = numbers[0]
        elif done.node.kind == STEP_AFFINE:
            angle, x, y, scale, *shear = numbers[:6]
            found["affine"] = angle, (int(x), int(y)), scale, tuple(shear)
        else:
            whole = list(map(int, numbers))
            found["perspective"] = list(zip(whole[::2], whole[1::2]))
    return found


def drawn_operations(recipe, key, epoch, record, occurrence=0):
    """Return the operations drawn for one image, as `operations_of` does for a recipe's change."""
    return operations_of(PolicyChange(recipe), key, epoch, record, occurrence)


def operations_of(PolicyChange change, key, epoch, record, occurrence=0):
    """Return the operations drawn for one image.

    An operation is name, value and interpolation; those that their probability left out are
    missing.  A dict follows, for AugMix alone: the first operation and the `weights` of the parts,
    and the `share` of their sum.
    """
    draw_change(change, image_key(key, epoch, record, occurrence))
    cdef Drawn* drawn = &change.state.drawn
    operations = [
        (NAMES[<int>drawn.operations[i].kind], drawn.operations[i].value,
         METHODS[drawn.operations[i].method])
        for i in range(drawn.count)
    ]
    if drawn.num_parts == 0:
        return operations, {}
    return operations, {
        "parts": [drawn.parts[i] for i in range(drawn.num_parts)],
        "weights": [drawn.weights[i] for i in range(drawn.num_parts)],
        "share": drawn.share,
    }
