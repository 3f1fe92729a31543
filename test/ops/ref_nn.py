"""References for gather and activations, written from the definitions with plain loops.

The op sweep evaluates the `numpy` text of a row with these functions in scope: arrays come first, attributes by keyword.
"""
import numpy as np


def take(x, indices, axis):
    n = x.shape[axis]
    positions = []
    for i in np.asarray(indices).reshape(-1):
        i = int(i)
        i = i + n if i < 0 else i
        positions.append(min(max(i, 0), n - 1))
    parts = [np.take(x, i, axis) for i in positions]
    axis %= x.ndim
    flat = np.stack(parts, axis) if parts else np.zeros(x.shape[:axis] + (0,) + x.shape[axis + 1:], x.dtype)
    return flat.reshape(x.shape[:axis] + np.shape(indices) + x.shape[axis + 1:])


def one_hot(indices, depth, axis=-1, on=1, off=0):
    out = np.full(np.shape(indices) + (depth,), float(off))
    for place in np.ndindex(*np.shape(indices)):
        i = int(indices[place])
        if 0 <= i < depth:
            out[place + (i,)] = on
    return np.moveaxis(out, -1, axis)


def logsumexp(x, axis):
    return np.logaddexp.reduce(x, axis)


def log_softmax(x, axis):
    return x - np.expand_dims(logsumexp(x, axis), axis)


def softmax(x, axis):
    return np.exp(log_softmax(x, axis))


def dropout(x, key, stream, rate):
    from ref import random_uniform  # the generator belongs to another family
    return np.where(random_uniform(key, stream, x.shape) >= rate, x / (1 - rate), 0)
