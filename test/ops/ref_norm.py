"""References for normalisation, attention and positions, written from the definitions."""
import numpy as np


def mean_variance_norm(x, axes, epsilon):
    axes = tuple(axes) or None
    mean = np.mean(x, axes, keepdims=True)
    return (x - mean) / np.sqrt(np.mean((x - mean) ** 2, axes, keepdims=True) + epsilon)


def layer_norm(x, scale, shift, epsilon):
    out = np.zeros_like(x)
    for row in np.ndindex(x.shape[:x.ndim - scale.ndim]):
        out[row] = (x[row] - x[row].mean()) / np.sqrt(x[row].var() + epsilon) * scale + shift
    return out


def rms_norm(x, scale, epsilon):
    out = np.zeros_like(x)
    for row in np.ndindex(x.shape[:x.ndim - scale.ndim]):
        out[row] = x[row] / np.sqrt(np.mean(x[row] ** 2) + epsilon) * scale
    return out


def batch_norm(x, mean, variance, scale=None, shift=None, epsilon=1e-5):
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        out[:, c] = (x[:, c] - mean[c]) / np.sqrt(variance[c] + epsilon)
        if scale is not None:
            out[:, c] *= scale[c]
        if shift is not None:
            out[:, c] += shift[c]
    return out


def batch_norm_train(x, scale, shift, epsilon):
    mean = np.array([x[:, c].mean() for c in range(x.shape[1])])
    variance = np.array([x[:, c].var() for c in range(x.shape[1])])
    return batch_norm(x, mean, variance, scale, shift, epsilon), mean, variance


def group_norm(x, scale, shift, groups, epsilon):
    out, size = np.zeros_like(x), x.shape[1] // groups
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            group = x[n, c // size * size:c // size * size + size]
            out[n, c] = (x[n, c] - group.mean()) / np.sqrt(group.var() + epsilon) * scale[c] + shift[c]
    return out


def instance_norm(x, scale, shift, epsilon):
    return group_norm(x, scale, shift, x.shape[1], epsilon)


def lrn(x, size, alpha, beta, bias):
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1], c + size // 2 + 1)
        out[:, c] = x[:, c] / (bias + alpha / size * np.sum(x[:, low:high] ** 2, 1)) ** beta
    return out


def lp_normalize(x, axis, p, epsilon):
    return x / np.maximum(np.sum(np.abs(x) ** p, axis, keepdims=True) ** (1 / p), epsilon)


def masked_softmax(x, mask, axis):
    x, mask = np.moveaxis(x, axis, -1), np.moveaxis(np.broadcast_to(mask, x.shape), axis, -1)
    out = np.zeros_like(x)
    for row in np.ndindex(x.shape[:-1]):
        keep = mask[row] & (x[row] > -np.inf)
        e = np.exp(x[row][keep] - np.max(x[row][keep], initial=-np.inf))
        out[row][keep] = e / e.sum()
    return np.moveaxis(out, -1, axis)


def attention(q, k, v, mask, causal, scale, softcap):
    """Query by query; `mask` is bool or added."""
    queries, keys, depth = q.shape[-2], k.shape[-2], q.shape[-1]
    heads, shared = (q.shape[-3], q.shape[-3] // k.shape[-3]) if q.ndim > 2 else (1, 1)
    mask = np.broadcast_to(mask, q.shape[:-1] + (keys,))
    out = np.zeros(q.shape[:-1] + (v.shape[-1],))
    for place in np.ndindex(q.shape[:-1]):
        kv = place[:-2] + (place[-2] // shared,) if q.ndim > 2 else ()
        scores = k[kv] @ q[place] * (scale or max(depth, 1) ** -0.5)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        last = {"none": keys - 1, "upper_left": place[-1], "lower_right": place[-1] + keys - queries}[causal]
        seen = np.arange(keys) <= last
        if mask.dtype == np.bool_:
            seen &= mask[place]
        else:
            scores = scores + mask[place]
        out[place] = masked_softmax(scores, seen, -1) @ v[kv]
    return out


def rotary_embedding(x, cosine, sine, interleaved):
    pairs = cosine.shape[-1]
    cosine = np.broadcast_to(cosine, x.shape[:-1] + (pairs,))
    sine = np.broadcast_to(sine, x.shape[:-1] + (pairs,))
    out = x.copy()
    for place in np.ndindex(x.shape[:-1] + (pairs,)):
        row, k = place[:-1], place[-1]
        i, j = (2 * k, 2 * k + 1) if interleaved else (k, k + pairs)
        turned = complex(x[row][i], x[row][j]) * complex(cosine[place], sine[place])
        out[row][i], out[row][j] = turned.real, turned.imag
    return out


def sinusoidal_positions(positions, dim, base):
    angle = positions[..., np.newaxis] / base ** (np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(positions.shape + (dim,))


def alibi(shape):
    heads, queries, keys = shape

    def slopes(n):
        if n & (n - 1) == 0:
            return [2 ** (-8 * (i + 1) / n) for i in range(n)]
        power = 1 << (n.bit_length() - 1)
        return slopes(power) + slopes(2 * power)[0::2][:n - power]
    behind = np.arange(keys)[np.newaxis] - np.arange(queries)[:, np.newaxis] - (keys - queries)
    return np.array(slopes(heads)).reshape(heads, 1, 1) * behind
