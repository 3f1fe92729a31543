"""References for data, comparisons, views and reductions where a numpy expression is not enough.

The op sweep evaluates the `numpy` text of a row with these functions in scope. Dtypes come as their names in text.
"""
import numpy as np

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
          "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_,
          "bf16": np.float64}  # which numpy has not: its values are kept in f64


def numpy_dtype(dtype):
    return np.dtype(DTYPES[dtype] if isinstance(dtype, str) else dtype)


def to_bf16(x):
    """The nearest of 8 significant bits, halves to even; beyond the largest of f32 infinite."""
    x = np.asarray(x, np.float64)
    _, exponent = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(exponent, -125) - 8)
    rounded = np.rint(x / step) * step
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, x), rounded)


def cast(x, dtype):
    """Float to integer truncates and saturates and NaN is 0; integers wrap; anything but 0 is true."""
    if dtype == "bf16":
        return to_bf16(x)
    to = numpy_dtype(dtype)
    if to == np.bool_:
        return x != 0
    if x.dtype.kind != "f" or to.kind == "f":
        return x.astype(to)
    info = np.iinfo(to)
    whole = [0 if np.isnan(v) else min(max(int(np.clip(v, -2.0**70, 2.0**70)), info.min), info.max) for v in x.flat]
    return np.array(whole, dtype=to).reshape(x.shape)


def iota(dtype, shape, axis=0):
    along = np.arange(shape[axis])
    place = [1] * len(shape)
    place[axis] = -1
    return np.broadcast_to(along.reshape(place), shape).astype(numpy_dtype(dtype))


def broadcast(x, shape, axes=()):
    """Axis k of x becomes axis axes[k]; without axes numpy's rule."""
    if len(axes) == 0:
        return np.broadcast_to(x, shape)
    place = [1] * len(shape)
    for k, axis in enumerate(axes):
        place[axis] = x.shape[k]
    return np.broadcast_to(x.reshape(place), shape)


def reduced(function, x, axes, keep_dims=False):
    """A numpy reduction over one axis or a list of axes; an empty list means all."""
    if isinstance(axes, (int, np.integer)):
        return function(x, axis=axes, keepdims=keep_dims)
    return np.asarray(function(x, axis=tuple(axes) or None, keepdims=keep_dims), dtype=x.dtype)


def philox(counter, key):
    """Philox-4x32-10 on four counter words and two key words (Salmon and others, 2011)."""
    mask = 0xFFFFFFFF
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


# Known answers of the authors' Random123 library.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == \
    [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def random_bits(key, stream, shape):
    count = int(np.prod(shape))
    words = [word for block in range((count + 3) // 4)
             for word in philox([block, stream, 0, 0], [int(v) & 0xFFFFFFFF for v in key])]
    return np.array(words[:count], dtype=np.uint32).reshape(shape)


def random_uniform(key, stream, shape):
    return (random_bits(key, stream, shape) >> np.uint32(8)).astype(np.float64) / 2**24


def random_normal(key, stream, shape):
    u = random_uniform(key, stream, tuple(shape) + (2,))
    return np.sqrt(-2 * np.log(1 - u[..., 0])) * np.cos(2 * np.pi * u[..., 1])
