"""References for views, reductions, cumulative and linear-algebra ops where a numpy expression is not enough.

The op sweep evaluates the `numpy` text of a row with these functions in scope.
"""
import numpy as np


def pad(x, low, high, value, mode):
    """numpy's pad; a negative number crops afterwards."""
    grow = [(max(a, 0), max(b, 0)) for a, b in zip(low, high)]
    y = np.pad(x, grow, mode, **({"constant_values": value} if mode == "constant" else {}))
    return y[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, y.shape))]


def depth_to_space(x, block, mode):
    """Pixel (y, x) of output channel c is input channel (y', x', c) or (c, y', x') of its block, element by element."""
    *leading, channels, height, width = x.shape
    count = channels // block**2
    out = np.zeros((*leading, count, height * block, width * block), x.dtype)
    for c, i, j in np.ndindex(count, block, block):
        source = (i * block + j) * count + c if mode == "DCR" else (c * block + i) * block + j
        out[..., c, i::block, j::block] = x[..., source, :, :]
    return out


def space_to_depth(x, block, mode):
    count = x.shape[-3]
    out = np.zeros((*x.shape[:-3], count * block**2, x.shape[-2] // block, x.shape[-1] // block), x.dtype)
    for c, i, j in np.ndindex(count, block, block):
        target = (i * block + j) * count + c if mode == "DCR" else (c * block + i) * block + j
        out[..., target, :, :] = x[..., c, i::block, j::block]
    return out


def update_slice(x, update, start):
    y = x.copy()
    y[tuple(slice(s, s + n) for s, n in zip(start, update.shape))] = update
    return y


def diag_embed(x, offset, axis1, axis2):
    side = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], side, side), x.dtype)
    for k in range(x.shape[-1]):
        y[..., k + max(-offset, 0), k + max(offset, 0)] = x[..., k]
    return np.moveaxis(y, (-2, -1), (axis1, axis2))


def arg_extremum(function, x, axis, keep_dims, select_last_index):
    """Position of the first extremum, or of the last one: the first of the reversed axis."""
    at = function(np.flip(x, axis) if select_last_index else x, axis=axis, keepdims=keep_dims)
    return (x.shape[axis] - 1 - at if select_last_index else at).astype(np.int32)


def norm(x, p, axes, keep_dims):
    kwargs = {"axis": tuple(axes) or None, "keepdims": keep_dims}
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(np.abs(x), **kwargs)
    if p == 0:
        return np.sum((x != 0).astype(x.dtype), **kwargs)
    return np.sum(np.abs(x) ** p, **kwargs) ** (1 / p)


def variance(x, axes, correction, keep_dims):
    axes = tuple(axes) or tuple(range(x.ndim))
    count = np.prod([x.shape[axis] for axis in axes])
    squares = (x - np.mean(x, axis=axes, keepdims=True)) ** 2
    return np.sum(squares, axis=axes, keepdims=keep_dims) / max(count - correction, 0)


def cumulative(function, x, axis, reverse=False, exclusive=False):
    """function(previous, element) along an axis, one element after the other; exclusive results start at its identity."""
    x = np.moveaxis(x, axis, 0)[::-1 if reverse else 1]
    floats = x.dtype.kind == "f"
    identity = {np.add: 0, np.multiply: 1, np.logaddexp: -np.inf,
                np.maximum: -np.inf if floats else np.iinfo(x.dtype if not floats else np.int8).min,
                np.minimum: np.inf if floats else np.iinfo(x.dtype if not floats else np.int8).max}[function]
    so_far, y = np.full(x.shape[1:], identity, x.dtype), []
    for element in x:
        following = function(so_far, element)
        y.append(so_far if exclusive else following)
        so_far = following
    y = np.array(y, x.dtype).reshape(x.shape)
    return np.moveaxis(y[::-1 if reverse else 1], 0, axis)


def linear_recurrence(a, b, axis, reverse):
    step = -1 if reverse else 1
    a, b = np.moveaxis(a, axis, 0)[::step], np.moveaxis(b, axis, 0)[::step]
    h, y = np.zeros(b.shape[1:], b.dtype), []
    for factor, summand in zip(a, b):
        h = factor * h + summand
        y.append(h)
    return np.moveaxis(np.array(y, b.dtype).reshape(b.shape)[::step], 0, axis)


def cross(a, b, axis):
    (a0, a1, a2), (b0, b1, b2) = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)
