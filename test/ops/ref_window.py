"""References for convolutions, pooling and windows, for any number of spatial axes, written from the definitions with
plain loops.

The op sweep evaluates the `numpy` text of a row with these functions in scope: arrays come first, attributes by keyword.
"""
from fractions import Fraction

import numpy as np


def defaults(rank, stride, pad, dilation, kernel):
    """Stride, padding before, padding after and dilation per axis; an empty stride is the window."""
    stride = tuple(stride) or tuple(kernel)
    pad = tuple(pad) or (0,) * (2 * rank)
    return stride, pad[:rank], pad[rank:], tuple(dilation) or (1,) * rank


def places(shape, kernel, stride, pad, dilation, ceil_mode=False):
    """The output's extents, and per output place and tap (both row-major): (place, tap, element), the element inside
    the input of extents `shape`."""
    rank = len(kernel)
    stride, before, after, dilation = defaults(rank, stride, pad, dilation, kernel)
    out = []
    for k in range(rank):
        room = shape[k] + before[k] + after[k] - (kernel[k] - 1) * dilation[k] - 1
        steps = -(-room // stride[k]) if ceil_mode else room // stride[k]
        if ceil_mode and steps * stride[k] >= shape[k] + before[k]:  # the last window must start on the input
            steps -= 1
        out.append(steps + 1)
    found = []
    for place in np.ndindex(*out):
        for tap in np.ndindex(*kernel):
            at = tuple(place[k] * stride[k] + tap[k] * dilation[k] - before[k] for k in range(rank))
            if all(0 <= at[k] < shape[k] for k in range(rank)):
                found.append((place, tap, at))
    return tuple(out), found


EVERY = (slice(None), slice(None))  # all of the first two axes


def grouped(groups, channels, outputs):
    """Slices of the input's and the output's channels, group by group."""
    c, o = channels // groups, outputs // groups
    return [(slice(g * c, g * c + c), slice(g * o, g * o + o)) for g in range(groups)]


def conv(x, w, stride, pad, dilation, groups):
    out, found = places(x.shape[2:], w.shape[2:], stride, pad, dilation)
    y = np.zeros((x.shape[0], w.shape[0]) + out, x.dtype)
    for c, o in grouped(groups, x.shape[1], w.shape[0]):
        for place, tap, at in found:
            y[(slice(None), o) + place] += x[(slice(None), c) + at] @ w[(o, slice(None)) + tap].T
    return y


def conv_input_grad(g, w, input, stride, pad, dilation, groups):
    dx = np.zeros(input, g.dtype)
    for c, o in grouped(groups, input[1], w.shape[0]):
        for place, tap, at in places(input[2:], w.shape[2:], stride, pad, dilation)[1]:
            dx[(slice(None), c) + at] += g[(slice(None), o) + place] @ w[(o, slice(None)) + tap]
    return dx


def conv_weight_grad(x, g, weight, stride, pad, dilation, groups):
    dw = np.zeros(weight, g.dtype)
    for c, o in grouped(groups, x.shape[1], weight[0]):
        for place, tap, at in places(x.shape[2:], weight[2:], stride, pad, dilation)[1]:
            dw[(o, slice(None)) + tap] += g[(slice(None), o) + place].T @ x[(slice(None), c) + at]
    return dw


def conv_transpose(x, w, stride, pad, output_pad, dilation, groups):
    rank = len(stride)
    full = [(x.shape[2 + k] - 1) * stride[k] + (w.shape[2 + k] - 1) * dilation[k] + 1 + output_pad[k] for k in range(rank)]
    y = np.zeros((x.shape[0], w.shape[1] * groups) + tuple(full), x.dtype)
    for c, o in grouped(groups, x.shape[1], w.shape[1] * groups):
        for place in np.ndindex(*x.shape[2:]):
            for tap in np.ndindex(*w.shape[2:]):
                at = tuple(place[k] * stride[k] + tap[k] * dilation[k] for k in range(rank))
                y[(slice(None), o) + at] += x[(slice(None), c) + place] @ w[(c, slice(None)) + tap]
    return y[EVERY + tuple(slice(pad[k], full[k] - pad[rank + k]) for k in range(rank))]


def max_pool_with_index(x, window, stride, pad, dilation, ceil_mode=False):
    out, found = places(x.shape[2:], window, stride, pad, dilation, ceil_mode)
    taps = int(np.prod(window))
    value = np.full(x.shape[:2] + out, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    index = np.zeros(value.shape, np.uint8 if taps <= 256 else np.int32)
    seen = set()
    for place, tap, at in found:  # taps in row-major order
        new, old = x[EVERY + at], value[EVERY + place]
        wins = (new > old) | (np.isnan(new) & ~np.isnan(old)) if place in seen else np.ones(old.shape, bool)
        value[EVERY + place] = np.where(wins, new, old)
        index[EVERY + place] = np.where(wins, np.ravel_multi_index(tap, window), index[EVERY + place])
        seen.add(place)
    return value, index


def max_pool(x, window, stride, pad, dilation, ceil_mode):
    return max_pool_with_index(x, window, stride, pad, dilation, ceil_mode)[0]


def max_pool_indices(x, window, stride, pad, dilation, ceil_mode):
    index = max_pool_with_index(x, window, stride, pad, dilation, ceil_mode)[1]
    result = np.zeros(index.shape, np.int64)
    for place, tap, at in places(x.shape[2:], window, stride, pad, dilation, ceil_mode)[1]:
        hit = index[EVERY + place] == np.ravel_multi_index(tap, window)
        result[EVERY + place] = np.where(hit, np.ravel_multi_index(at, x.shape[2:]), result[EVERY + place])
    return result


def max_pool_grad(g, index, input, window, stride, pad, dilation):
    dx = np.zeros(input, g.dtype)
    for place, tap, at in places(input[2:], window, stride, pad, dilation)[1]:
        dx[EVERY + at] += np.where(index[EVERY + place] == np.ravel_multi_index(tap, window), g[EVERY + place], 0)
    return dx


def max_pool_take(x, index, window, stride, pad, dilation):
    y = np.zeros(index.shape, x.dtype)
    for place, tap, at in places(x.shape[2:], window, stride, pad, dilation)[1]:
        hit = index[EVERY + place] == np.ravel_multi_index(tap, window)
        y[EVERY + place] = np.where(hit, x[EVERY + at], y[EVERY + place])
    return y


def avg_pool(x, window, stride, pad, dilation, ceil_mode, count_include_pad):
    rank = len(window)
    out, found = places(x.shape[2:], window, stride, pad, dilation, ceil_mode)
    steps, before, after, apart = defaults(rank, stride, pad, dilation, window)
    total, count = np.zeros(x.shape[:2] + out, x.dtype), np.zeros(out)
    for place, _, at in found:
        total[EVERY + place] += x[EVERY + at]
        count[place] += not count_include_pad
    for place in np.ndindex(*out):
        for tap in np.ndindex(*window):
            at = [place[k] * steps[k] + tap[k] * apart[k] - before[k] for k in range(rank)]
            count[place] += count_include_pad and all(at[k] < x.shape[2 + k] + after[k] for k in range(rank))
    return total / np.maximum(count, 1)


def lp_pool(x, window, stride, pad, dilation, ceil_mode, p):
    out, found = places(x.shape[2:], window, stride, pad, dilation, ceil_mode)
    total = np.zeros(x.shape[:2] + out, x.dtype)
    for place, _, at in found:
        total[EVERY + place] += np.abs(x[EVERY + at]) ** p
    return total ** (1 / p)


def sliding_windows(x, window, stride, pad, dilation):
    out, found = places(x.shape[2:], window, stride, pad, dilation)
    y = np.zeros(x.shape[:2] + out + tuple(window), x.dtype)
    for place, tap, at in found:
        y[EVERY + place + tap] = x[EVERY + at]
    return y


def overlap_add(g, input, window, stride, pad, dilation):
    dx = np.zeros(g.shape[:2] + tuple(input), g.dtype)
    for place, tap, at in places(input, window, stride, pad, dilation)[1]:
        dx[EVERY + at] += g[EVERY + place + tap]
    return dx


def unfold(x, window, stride, pad, dilation):
    out, found = places(x.shape[2:], window, stride, pad, dilation)
    taps = int(np.prod(window))
    y = np.zeros((x.shape[0], x.shape[1] * taps, int(np.prod(out))), x.dtype)
    for place, tap, at in found:
        y[:, np.ravel_multi_index(tap, window)::taps, np.ravel_multi_index(place, out)] = x[EVERY + at]
    return y


def fold(columns, input, window, stride, pad, dilation):
    out, found = places(input, window, stride, pad, dilation)
    taps = int(np.prod(window))
    x = np.zeros((columns.shape[0], columns.shape[1] // taps) + tuple(input), columns.dtype)
    for place, tap, at in found:
        x[EVERY + at] += columns[:, np.ravel_multi_index(tap, window)::taps, np.ravel_multi_index(place, out)]
    return x


def max_unpool(x, indices, input, window, stride, pad, dilation):
    y = np.zeros(x.shape[:2] + tuple(input), x.dtype)
    for place, _, at in places(input, window, stride, pad, dilation)[1]:
        named = indices[EVERY + place] == np.ravel_multi_index(at, input)
        y[EVERY + at] = np.where(named, x[EVERY + place], y[EVERY + at])
    return y


def regions(shape, size):
    """Per output place: the elements of its region, row-major."""
    for place in np.ndindex(*size):
        ranges = [range(o * n // m, -(-(o + 1) * n // m)) for o, n, m in zip(place, shape, size)]
        yield place, [tuple(r[k] for r, k in zip(ranges, at)) for at in np.ndindex(*map(len, ranges))]


def adaptive_sum_pool(x, size):
    y = np.zeros(x.shape[:2] + tuple(size), x.dtype)
    for place, elements in regions(x.shape[2:], size):
        for at in elements:
            y[EVERY + place] += x[EVERY + at]
    return y


def adaptive_avg_pool(x, size):
    y = adaptive_sum_pool(x, size)
    for place, elements in regions(x.shape[2:], size):
        y[EVERY + place] /= len(elements)
    return y


def adaptive_max_pool_with_index(x, size):
    value = np.zeros(x.shape[:2] + tuple(size), x.dtype)
    index = np.zeros(value.shape, np.int32)
    for place, elements in regions(x.shape[2:], size):
        for at in elements:
            new, old = x[EVERY + at], value[EVERY + place]
            wins = (new > old) | (np.isnan(new) & ~np.isnan(old)) if at != elements[0] else np.ones(old.shape, bool)
            value[EVERY + place] = np.where(wins, new, old)
            index[EVERY + place] = np.where(wins, np.ravel_multi_index(at, x.shape[2:]), index[EVERY + place])
    return value, index


def adaptive_max_pool_grad(g, index, input):
    dx = np.zeros(g.shape[:2] + tuple(input), g.dtype)
    for place, elements in regions(input, g.shape[2:]):
        for at in elements:
            dx[EVERY + at] += np.where(index[EVERY + place] == np.ravel_multi_index(at, input), g[EVERY + place], 0)
    return dx


def adaptive_max_pool_take(x, index):
    y = np.zeros(index.shape, x.dtype)
    for place, elements in regions(x.shape[2:], index.shape[2:]):
        for at in elements:
            hit = index[EVERY + place] == np.ravel_multi_index(at, x.shape[2:])
            y[EVERY + place] = np.where(hit, x[EVERY + at], y[EVERY + place])
    return y


def cubic(distance, a):
    """The kernel of Keys (1981), equation 4 with `a` free."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def resize_matrix(n, places, mode, cubic_a, exclude_outside, stretch=Fraction(1)):
    """Rows of weights over n inputs, one per place (a Fraction; for nearest an integer). Antialiased: of the kernel
    stretched, not normalised."""
    matrix = np.zeros((len(places), n))
    for row, place in zip(matrix, places):
        floor = place.numerator // place.denominator
        if mode == "nearest":
            weights = {floor: 1.0}
        elif mode.endswith("antialias"):
            reach = 2 * int(stretch) + 3
            distances = {k: float((k - place) / stretch) for k in range(floor - reach, floor + reach)}
            weights = {k: cubic(d, cubic_a) if mode.startswith("cubic") else max(0, 1 - abs(d))
                       for k, d in distances.items() if 0 <= k < n or not exclude_outside}
        elif mode == "linear":
            weights = {floor: float(1 - (place - floor)), floor + 1: float(place - floor)}
        else:
            weights = {k: cubic(float(place - k), cubic_a) for k in range(floor - 1, floor + 3)}
            if exclude_outside:
                weights = {k: w for k, w in weights.items() if 0 <= k < n}
                weights = {k: w / sum(weights.values()) for k, w in weights.items()}
        for k, w in weights.items():
            row[min(max(k, 0), n - 1)] += w
    return matrix


def along(x, matrix, axis):
    """`matrix` applied to an axis of x; x itself where it picks one element each, so that integers stay."""
    moved = np.moveaxis(x, axis, 0)
    if x.dtype.kind != "f":
        y = moved[np.argmax(matrix, axis=1)] if matrix.size else moved
    else:
        y = np.tensordot(matrix, moved, 1)
    return np.moveaxis(y, 0, axis)


def map_matrix(n, m, map, mode, cubic_a, exclude_outside):
    places = [Fraction(map[0] * o + map[1], map[2]) for o in range(m)]
    return resize_matrix(n, places, mode, cubic_a, exclude_outside, max(Fraction(map[0], map[2]), Fraction(1)))


def resample(x, axis, size, map, mode, cubic_a, exclude_outside):
    return along(x, map_matrix(x.shape[axis], size, map, mode, cubic_a, exclude_outside), axis)


def resample_grad(g, axis, size, map, mode, cubic_a, exclude_outside):
    matrix = map_matrix(size, g.shape[axis], map, mode, cubic_a, exclude_outside)
    return np.moveaxis(np.tensordot(matrix.T, np.moveaxis(g, axis, 0), 1), 0, axis)


def resize_places(n, m, scale, mode, coordinates, rounding):
    """Where each of m outputs stands, by ONNX's coordinate_transformation_mode and nearest_mode."""
    half = Fraction(1, 2)
    found = []
    for o in range(m):
        x = (o + half) / scale - half
        if coordinates == "pytorch_half_pixel" and m == 1:
            x = Fraction(0)
        elif coordinates == "align_corners":
            x = Fraction(o * (n - 1), m - 1) if m > 1 else Fraction(0)
        elif coordinates == "asymmetric":
            x = o / scale
        if mode == "nearest":
            down, up = x.numerator // x.denominator, -(-x.numerator // x.denominator)
            nearer = down if x - down < half else up if x - down > half else None
            x = Fraction({"floor": down, "ceil": up, "round_prefer_floor": down if nearer is None else nearer,
                          "round_prefer_ceil": up if nearer is None else nearer}[rounding])
        found.append(x)
    return found


def resize(x, size, mode, coordinates, rounding, cubic_a, exclude_outside):
    leading = x.ndim - len(size)
    for k, m in enumerate(size):
        n = x.shape[leading + k]
        scale = Fraction(m, max(n, 1))
        found = resize_places(n, m, scale, mode, coordinates, rounding)
        matrix = resize_matrix(n, found, mode, cubic_a, exclude_outside, max(1 / scale, Fraction(1)))
        if mode.endswith("antialias"):
            matrix /= matrix.sum(axis=1, keepdims=True)
        x = along(x, matrix, leading + k)
    return x


def affine_grid(theta, size, align_corners):
    n, rank = theta.shape[:2]
    grid = np.zeros((n,) + tuple(size) + (rank,), theta.dtype)
    for at in np.ndindex(*size):
        point = []
        for i, m in zip(reversed(at), reversed(size)):
            point.append(((2 * i + 1) / m - 1) if not align_corners else (0 if m == 1 else 2 * i / (m - 1) - 1))
        grid[(slice(None),) + at] = theta @ np.array(point + [1.0])
    return grid


def reflect(p, size, align_corners):
    low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
    if high == low:
        return 0.0
    while p < low or p > high:
        p = 2 * low - p if p < low else 2 * high - p
    return min(max(p, 0), size - 1)


def grid_sample(x, grid, mode, padding, align_corners):
    extents = x.shape[2:]

    def settled(p, size):
        return min(max(p, 0), size - 1) if padding == "border" else reflect(p, size, align_corners) if padding == "reflection" else p

    def neighbours(coordinate, size):
        p = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
        if mode == "nearest":
            return [(int(np.rint(settled(p, size))), 1.0)]
        if mode == "cubic":
            floor = int(np.floor(p))
            return [(int(settled(k, size)), cubic(p - k, -0.75)) for k in range(floor - 1, floor + 3)]
        p = settled(p, size)
        floor = int(np.floor(p))
        return [(floor, 1 - (p - floor)), (floor + 1, p - floor)]

    y = np.zeros(x.shape[:2] + grid.shape[1:-1], x.dtype)
    for n, *place in np.ndindex(*grid.shape[:-1]):
        point = grid[(n, *place)][::-1]
        axes = [neighbours(c, size) for c, size in zip(point, extents)]
        for choice in np.ndindex(*map(len, axes)):
            at = tuple(axis[k][0] for axis, k in zip(axes, choice))
            if all(0 <= i < size for i, size in zip(at, extents)):
                y[(n, slice(None)) + tuple(place)] += x[(n, slice(None)) + at] * np.prod([axis[k][1] for axis, k in zip(axes, choice)])
    return y
