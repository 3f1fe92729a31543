"""References for indexing, scattering, sorting and random draws, written from the definitions with plain loops.

The op sweep evaluates the `numpy` text of a row with these functions in scope.
"""
import functools
import math

import numpy as np
from ref import philox, random_bits, random_uniform


def position(i, n):
    """Where index i reads along an axis of n elements: negative counts from the end, then clamped."""
    i = int(i)
    i = i + n if i < 0 else i
    return min(max(i, 0), n - 1)


def target(i, n):
    """Where index i writes, or None: negative counts from the end, what is no element is dropped."""
    i = int(i)
    i = i + n if i < 0 else i
    return i if 0 <= i < n else None


def wrap_index(x, size, outside):
    one = (lambda i: position(i, size)) if outside == "clamp" else (lambda i: -1 if target(i, size) is None else target(i, size))
    return np.array([one(i) for i in x.flat], np.int32).reshape(x.shape)


def take_along_axis(x, indices, axis):
    out = np.zeros(indices.shape, x.dtype)
    for place in np.ndindex(*indices.shape):
        source = list(place)
        source[axis] = position(indices[place], x.shape[axis])
        out[place] = x[tuple(source)]
    return out


def gather_nd(x, indices, batch_dims=0):
    depth = indices.shape[-1]
    parts = []
    for place in np.ndindex(*indices.shape[:-1]):
        at = place[:batch_dims] + tuple(position(i, n) for i, n in zip(indices[place], x.shape[batch_dims:]))
        parts.append(x[at])
    return np.array(parts, x.dtype).reshape(indices.shape[:-1] + x.shape[batch_dims + depth:])


def gather_rows(x, positions):
    out = np.zeros((x.shape[0], positions.shape[1], x.shape[2]), x.dtype)
    for b, k in np.ndindex(*out.shape[:2]):
        p = int(positions[b if positions.shape[0] > 1 else 0, k])
        if 0 <= p < x.shape[1]:
            out[b, k] = x[b, p]
    return out


def start_of(x, start, sizes):
    at = [int(i) + n if i < 0 else int(i) for i, n in zip(start, x.shape)]
    at = [min(max(i, 0), n - size) for i, n, size in zip(at, x.shape, sizes)]
    return tuple(slice(i, i + size) for i, size in zip(at, sizes))


def dynamic_slice(x, start, sizes):
    return x[start_of(x, start, sizes)]


def dynamic_update_slice(x, update, start):
    out = x.copy()
    out[start_of(x, start, update.shape)] = update
    return out


def goes_before(a, b):
    """The order of a sort: NaN behind all numbers."""
    return a < b or (b != b and a == a)


def searchsorted_inputs(rows, values):
    """Sorted rows, and values some of which are elements of theirs."""
    if rows.size:
        values.flat[::3] = np.resize(rows, values.flat[::3].shape)
    return [np.sort(rows, axis=-1), values]


def searchsorted(rows, values, right):
    out = np.zeros(values.shape, np.int32)
    for place in np.ndindex(*values.shape):
        row, v = rows if rows.ndim == 1 else rows[place[:-1]], values[place]
        out[place] = sum(not goes_before(v, r) if right else goes_before(r, v) for r in row)
    return out


# ---------------------------------------------------------------- scatter

COMBINE = {"set": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}


def scatter(x, places, updates, mode):
    """x with updates[k] combined, in order, into the element at places[k]; None is dropped."""
    out = x.copy()
    for place, update in zip(places, updates):
        if place is not None:
            out[place] = COMBINE[mode](out[place], update)
    return out


def scatter_rows(x, positions, updates, mode):
    places, values = [], []
    for b, k, d in np.ndindex(*updates.shape):
        p = int(positions[b if positions.shape[0] > 1 else 0, k])
        places.append((b, p, d) if 0 <= p < x.shape[1] else None)
        values.append(updates[b, k, d])
    return scatter(x, places, values, mode)


def scatter_runs(x, order, first, updates, mode):
    places, values = [], []
    for b, r, d in np.ndindex(*x.shape):
        o, f = order[b if len(order) > 1 else 0], first[b if len(first) > 1 else 0]
        for k in range(int(f[r]), int(f[r + 1])):
            places.append((b, r, d))
            values.append(updates[b, position(o[min(k, len(o) - 1)], updates.shape[1]), d])
    return scatter(x, places, values, mode)


def index_update(x, indices, updates, axis, mode):
    axis %= x.ndim
    rank = indices.ndim
    places, values = [], []
    for place in np.ndindex(*updates.shape):
        p = target(indices[place[axis:axis + rank]], x.shape[axis])
        places.append(None if p is None else place[:axis] + (p,) + place[axis + rank:])
        values.append(updates[place])
    return scatter(x, places, values, mode)


def scatter_elements(x, indices, updates, axis, mode):
    axis %= x.ndim
    places, values = [], []
    for place in np.ndindex(*updates.shape):
        p = target(indices[place], x.shape[axis])
        places.append(None if p is None else place[:axis] + (p,) + place[axis + 1:])
        values.append(updates[place])
    return scatter(x, places, values, mode)


def scatter_nd(x, indices, updates, mode):
    depth = indices.shape[-1]
    places, values = [], []
    for place in np.ndindex(*updates.shape):
        lead = place[:indices.ndim - 1]
        at = tuple(target(i, n) for i, n in zip(indices[lead], x.shape[:depth]))
        places.append(None if None in at else at + place[indices.ndim - 1:])
        values.append(updates[place])
    return scatter(x, places, values, mode)


# ---------------------------------------------------------------- sort

def order_of(row, descending):
    def compare(i, j):
        a, b = (row[j], row[i]) if descending else (row[i], row[j])
        return -1 if goes_before(a, b) else 1 if goes_before(b, a) else 0
    return sorted(range(len(row)), key=functools.cmp_to_key(compare))  # Python's sort is stable


def argsort(x, axis, descending):
    return np.apply_along_axis(lambda row: np.array(order_of(row, descending), np.int32), axis, x)


def sort(x, axis, descending):
    return np.apply_along_axis(lambda row: row[order_of(row, descending)], axis, x)


def top_k(x, k, axis, largest):
    order = np.take(argsort(x, axis, largest), range(k), axis)
    return np.take_along_axis(x, order, axis), order


def blocks(n, size):
    return [range(i, min(i + size, n)) for i in range(0, n, size)]


def sort_rank(x, descending, block):
    out = np.zeros(x.shape, np.int32)
    for place in np.ndindex(*x.shape[:-1]):
        for b in blocks(x.shape[-1], block):
            for rank, k in enumerate(order_of(x[place][b.start:b.stop], descending)):
                out[place][b.start + k] = b.start + rank
    return out


def invert_permutation_inputs(x):
    """Permutations of each row."""
    return [np.argsort(x, axis=-1, kind="stable").astype(np.int32)]


def invert_permutation(x, block):
    out = np.zeros(x.shape, np.int32)
    for place in np.ndindex(*x.shape):
        out[place[:-1] + (int(x[place]),)] = place[-1]
    return out


def merge_runs(x, order, run, descending):
    """The merge of two runs: the next element is the second run's only if it goes before that of the first."""
    out = np.zeros(order.shape, np.int32)
    before = (lambda a, b: goes_before(b, a)) if descending else goes_before
    for place in np.ndindex(*x.shape[:-1]):
        row, numbers, merged = x[place], [int(k) for k in order[place]], []
        for pair in blocks(len(numbers), 2 * run):
            a, b = numbers[pair.start:pair.stop][:run], numbers[pair.start:pair.stop][run:]
            while a or b:
                merged.append((b if b and (not a or before(row[b[0]], row[a[0]])) else a).pop(0))
        out[place] = merged
    return out


# ---------------------------------------------------------------- random

def key_words(key):
    return [int(v) & 0xFFFFFFFF for v in key]


def open_fraction(key, stream, shape):
    return ((random_bits(key, stream, shape) >> np.uint32(9)).astype(np.float64) + 0.5) / 2**23


def random_bernoulli(key, p, stream):
    return random_uniform(key, stream, p.shape) < p


def random_gumbel(key, stream, shape):
    return -np.log(-np.log(open_fraction(key, stream, shape)))


def random_categorical(key, logits, stream, axis):
    return np.argmax(logits + random_gumbel(key, stream, logits.shape), axis).astype(np.int32)


def random_int(key, stream, shape, lo, hi):
    count = int(np.prod(shape))
    words = random_bits(key, stream, (2 * count,)).astype(object)
    values = [lo + ((int(words[2 * k]) << 32 | int(words[2 * k + 1])) * (hi - lo) >> 64) for k in range(count)]
    return np.array(values, np.int64).reshape(shape)


def random_fold_in(key, data):
    keys = [philox([int(v) & 0xFFFFFFFF, (int(v) >> 32) & 0xFFFFFFFF if data.dtype.itemsize == 8 else 0, 0, 1],
                   key_words(key))[:2] for v in data.flat]
    return np.array(keys, np.uint32).reshape(data.shape + (2,))


def random_split(key, n):
    return np.array([philox([k, 0, 0, 2], key_words(key))[:2] for k in range(n)], np.uint32).reshape(n, 2)


def random_permutation(key, stream, n):
    return np.argsort(random_bits(key, stream, (n,)), kind="stable").astype(np.int32)


def inverse_erf(y):
    """By Newton's method on math.erf."""
    x = 0.0
    for _ in range(200):
        step = (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= min(max(step, -0.5), 0.5)
        if abs(step) < 1e-15:
            break
    return x


def random_truncated_normal(key, stream, shape, lo, hi):
    a, b = math.erf(lo / math.sqrt(2)), math.erf(hi / math.sqrt(2))
    u = open_fraction(key, stream, shape) * (b - a) + a
    z = np.array([math.sqrt(2) * inverse_erf(v) for v in u.flat]).reshape(shape)
    return np.clip(z, lo, hi)
