"""Steps that were drawn for an image, carried out on arrays one after the other, for comparison."""

import numpy as np

RESAMPLE, WARP, PAD, AFFINE, PERSPECTIVE = range(5)
MODES = ("constant", "edge", "reflect", "symmetric")


def nearest_centres(begin, size, target):
    """The pixel under the centre of each target pixel."""
    return np.array([begin + (2 * i + 1) * size // (2 * target) for i in range(target)])


def matrix_of(step):
    """3 x 3, from positions in the target of a step to those in its input."""
    if step["kind"] == RESAMPLE:
        across, down = step["width"] / step["target_width"], step["height"] / step["target_height"]
        return np.array([[across, 0, step["x"]], [0, down, step["y"]], [0, 0, 1]])
    if step["kind"] == PAD:
        return np.array([[1, 0, -step["border_x"]], [0, 1, -step["border_y"]], [0, 0, 1]], float)
    m = step["inverse"]
    if step["kind"] == PERSPECTIVE:
        return np.array([m[:3], m[3:6], [m[6], m[7], 1]])
    matrix = np.array([m[:3], m[3:6], [0, 0, 1]])
    if step["kind"] == WARP:
        half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        matrix = half @ matrix @ np.linalg.inv(half)
    return matrix


def moved(values, step, ignore):
    """A whole target of a map, by the nearest pixel."""
    m = np.array(step["inverse"])
    rows, columns = np.mgrid[: step["target_height"], : step["target_width"]]
    if step["kind"] == WARP:
        across = m[0] * columns + m[1] * rows + m[2] + 0.5
        down = m[3] * columns + m[4] * rows + m[5] + 0.5
    else:
        x, y = columns + 0.5, rows + 0.5
        across, down = m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]
    if step["kind"] == PERSPECTIVE:
        depth = m[6] * x + m[7] * y + 1
        across, down = across / depth, down / depth
    height, width = values.shape
    inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)
    out = np.full(across.shape, ignore, values.dtype)
    out[inside] = values[down[inside].astype(int), across[inside].astype(int)]
    return out


def padded(values, step, ignore):
    """With its border."""
    right = step["target_width"] - step["width"] - step["border_x"]
    bottom = step["target_height"] - step["height"] - step["border_y"]
    # What begins behind the target, or ends before it, has no border there.
    room = 1 + max(abs(step["border_x"]), abs(step["border_y"]), abs(right), abs(bottom))
    if MODES[step["method"]] != "constant":
        widths = ((step["border_y"], bottom), (step["border_x"], right))
        return np.pad(values, widths, MODES[step["method"]])
    out = np.full(
        (step["target_height"] + 2 * room, step["target_width"] + 2 * room), ignore, values.dtype
    )
    y, x = step["border_y"] + room, step["border_x"] + room
    height, width = values.shape
    y, x = min(y, out.shape[0] - height), min(x, out.shape[1] - width)
    out[y : y + height, x : x + width] = values
    return out[room : room + step["target_height"], room : room + step["target_width"]]


def followed(values, path, ignore=255):
    """The mask of an image as its steps make it, each by the nearest pixel."""
    for step in path.steps:
        if step["kind"] == RESAMPLE:
            columns = nearest_centres(step["x"], step["width"], step["target_width"])
            rows = nearest_centres(step["y"], step["height"], step["target_height"])
            values = values[rows][:, columns]
        elif step["kind"] == PAD:
            values = padded(values, step, ignore)
        else:
            values = moved(values, step, ignore)
        left, top = step["left"], step["top"]
        values = values[top : top + step["out_height"], left : left + step["out_width"]]
    values = values[:, ::-1] if path.mirror else values
    return values[::-1] if path.flip else values


def forward_matrix(path):
    """3 x 3, from positions in the image to those in the finished one."""
    whole = np.eye(3)
    for step in path.steps:
        window = np.array([[1, 0, step["left"]], [0, 1, step["top"]], [0, 0, 1]], float)
        whole = whole @ matrix_of(step) @ window
    last = path.steps[-1]
    if path.mirror:
        whole = whole @ np.array([[-1, 0, last["out_width"]], [0, 1, 0], [0, 0, 1]])
    if path.flip:
        whole = whole @ np.array([[1, 0, 0], [0, -1, last["out_height"]], [0, 0, 1]])
    return np.linalg.inv(whole)
