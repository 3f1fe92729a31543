"""References for contractions, pooling, gather and activations, written from the definitions with plain loops.

The op sweep evaluates the `numpy` text of a row with these functions in scope: arrays come first, attributes by keyword.
"""
import numpy as np


def windows(shape, kernel, stride, pad):
    """Per output row and column and per tap: (p, q, u, v, y, x) with (y, x) inside the input of `shape` (height, width)."""
    rows = (shape[0] + pad[0] + pad[2] - kernel[0]) // stride[0] + 1
    columns = (shape[1] + pad[1] + pad[3] - kernel[1]) // stride[1] + 1
    places = []
    for p, q, u, v in np.ndindex(rows, columns, kernel[0], kernel[1]):
        y, x = p * stride[0] + u - pad[0], q * stride[1] + v - pad[1]
        if 0 <= y < shape[0] and 0 <= x < shape[1]:
            places.append((p, q, u, v, y, x))
    return rows, columns, places


def conv2d(x, w, stride, pad):
    rows, columns, places = windows(x.shape[2:], w.shape[2:], stride, pad)
    out = np.zeros((x.shape[0], w.shape[0], rows, columns), x.dtype)
    for p, q, u, v, y, z in places:
        out[:, :, p, q] += x[:, :, y, z] @ w[:, :, u, v].T
    return out


def conv2d_input_grad(g, w, input, stride, pad):
    out = np.zeros(input, g.dtype)
    for p, q, u, v, y, z in windows(input[2:], w.shape[2:], stride, pad)[2]:
        out[:, :, y, z] += g[:, :, p, q] @ w[:, :, u, v]
    return out


def conv2d_weight_grad(x, g, weight, stride, pad):
    out = np.zeros(weight, g.dtype)
    for p, q, u, v, y, z in windows(x.shape[2:], weight[2:], stride, pad)[2]:
        out[:, :, u, v] += g[:, :, p, q].T @ x[:, :, y, z]
    return out


def max_pool2d_with_index(x, window, stride, pad):
    rows, columns, places = windows(x.shape[2:], window, stride or window, pad)
    value = np.zeros(x.shape[:2] + (rows, columns), x.dtype)
    index = np.zeros(value.shape, np.uint8)
    seen = np.zeros((rows, columns), bool)
    for p, q, u, v, y, z in places:  # taps in row-major order
        new, old = x[:, :, y, z], value[:, :, p, q]
        wins = (new > old) | (np.isnan(new) & ~np.isnan(old)) if seen[p, q] else np.ones(old.shape, bool)
        value[:, :, p, q] = np.where(wins, new, old)
        index[:, :, p, q] = np.where(wins, u * window[1] + v, index[:, :, p, q])
        seen[p, q] = True
    return value, index


def max_pool2d(x, window, stride, pad):
    return max_pool2d_with_index(x, window, stride, pad)[0]


def max_pool2d_grad(g, index, input, window, stride, pad):
    out = np.zeros(input, g.dtype)
    for p, q, u, v, y, z in windows(input[2:], window, stride or window, pad)[2]:
        out[:, :, y, z] += np.where(index[:, :, p, q] == u * window[1] + v, g[:, :, p, q], 0)
    return out


def max_pool2d_take(x, index, window, stride, pad):
    out = np.zeros(index.shape, x.dtype)
    for p, q, u, v, y, z in windows(x.shape[2:], window, stride or window, pad)[2]:
        hit = index[:, :, p, q] == u * window[1] + v
        out[:, :, p, q] = np.where(hit, x[:, :, y, z], out[:, :, p, q])
    return out


def avg_pool2d(x, window, stride, pad):
    rows, columns, places = windows(x.shape[2:], window, stride or window, pad)
    out = np.zeros(x.shape[:2] + (rows, columns), x.dtype)
    for p, q, _, _, y, z in places:
        out[:, :, p, q] += x[:, :, y, z] / (window[0] * window[1])
    return out


def avg_pool2d_grad(g, input, window, stride, pad):
    out = np.zeros(input, g.dtype)
    for p, q, _, _, y, z in windows(input[2:], window, stride or window, pad)[2]:
        out[:, :, y, z] += g[:, :, p, q] / (window[0] * window[1])
    return out


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


def one_hot(indices, depth, dtype=None):
    """As f64; `dtype` is only how the op stores it."""
    out = np.zeros(np.shape(indices) + (depth,))
    for place in np.ndindex(*np.shape(indices)):
        i = int(indices[place])
        if 0 <= i < depth:
            out[place + (i,)] = 1
    return out


def logsumexp(x, axis):
    return np.logaddexp.reduce(x, axis)


def log_softmax(x, axis):
    return x - np.expand_dims(logsumexp(x, axis), axis)


def softmax(x, axis):
    return np.exp(log_softmax(x, axis))


def dropout(x, key, stream, rate):
    from ref import random_uniform  # the generator belongs to another family
    return np.where(random_uniform(key, stream, x.shape) >= rate, x / (1 - rate), 0)
