"""Cases of newer_ops_test.py: functions that return nodes, inputs, expected outputs and the opset. Each reference is
written from the operator's definition in the standard."""
import math

import numpy as np
from onnx_file import Graph, field, function, node

ALL = {}


def case(f):
    ALL[f.__name__] = f
    return f


def rand(*shape, dtype=np.float32):
    return np.random.uniform(-1, 1, shape).astype(dtype)


def one(op, inputs, output, opset, **attrs):
    """A node of all inputs with one result."""
    return {"nodes": [node(op, list(inputs), ["y"], **attrs)], "inputs": inputs, "outputs": {"y": output}, "opset": opset}


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


erf = np.vectorize(math.erf)

# ---------------------------------------------------------------- activations and elementwise


@case
def gelu_20():
    x = rand(3, 4)
    return one("Gelu", {"x": x}, (0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(np.float32), 20)


@case
def gelu_tanh_20():
    x = rand(3, 4)
    y = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return one("Gelu", {"x": x}, y, 20, approximate="tanh")


@case
def mish_18():
    x = rand(3, 4) * 4
    return one("Mish", {"x": x}, x * np.tanh(np.log1p(np.exp(x))), 18)


@case
def swish_24():
    x = rand(3, 4) * 4
    return one("Swish", {"x": x}, x / (1 + np.exp(-1.5 * x)), 24, alpha=1.5)


@case
def hardmax_13():
    x = np.array([[1, 3, 3, 2], [0, -1, -2, -3]], np.float32)
    return one("Hardmax", {"x": x}, np.array([[0, 1, 0, 0], [1, 0, 0, 0]], np.float32), 13)


@case
def bitwise_18():
    a, b = np.array([1, 6, -4], np.int32), np.array([3, 2, 7], np.int32)
    nodes = [node("BitwiseAnd", ["a", "b"], ["and"]), node("BitwiseOr", ["a", "b"], ["or"]),
             node("BitwiseXor", ["a", "b"], ["xor"]), node("BitwiseNot", ["a"], ["not"])]
    return {"nodes": nodes, "inputs": {"a": a, "b": b}, "outputs": {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a}, "opset": 18}


@case
def is_inf_20_f16():
    x = np.array([1, np.inf, -np.inf, np.nan], np.float16)
    return one("IsInf", {"x": x}, np.array([False, True, False, False]), 20, detect_negative=0)


@case
def pow_int_by_float():
    x, e = np.array([1, 2, 3], np.int64), np.array([2, 2, 2], np.float32)
    return one("Pow", {"x": x, "e": e}, np.array([1, 4, 9], np.int64), 15)


@case
def cumsum_14_exclusive_reverse():
    x = rand(2, 5)
    y = np.flip(np.cumsum(np.flip(x, 1), 1), 1) - x
    return {"nodes": [node("CumSum", ["x", "axis"], ["y"], exclusive=1, reverse=1)], "inputs": {"x": x},
            "initializers": {"axis": np.array(1, np.int64)}, "outputs": {"y": y}, "opset": 14}


# ---------------------------------------------------------------- normalisation


def normalised(x, axes, epsilon):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def grouped():
    x = rand(2, 6, 3, 3)
    return x, normalised(x.reshape(2, 3, -1), (2,), 1e-5).reshape(x.shape)


@case
def group_normalization_18():
    x, y = grouped()
    scale, bias = rand(3), rand(3)
    wide = lambda v: np.repeat(v, 2).reshape(1, 6, 1, 1)
    return one("GroupNormalization", {"x": x, "scale": scale, "bias": bias}, y * wide(scale) + wide(bias), 18, num_groups=3)


@case
def group_normalization_21():
    x, y = grouped()
    scale, bias = rand(6), rand(6)
    wide = lambda v: v.reshape(1, 6, 1, 1)
    return one("GroupNormalization", {"x": x, "scale": scale, "bias": bias}, y * wide(scale) + wide(bias), 21, num_groups=3)


@case
def layer_normalization_17_statistics():
    x, scale, bias = rand(2, 3, 4), rand(3, 4), rand(3, 4)
    mean = x.mean(axis=(1, 2), keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=(1, 2), keepdims=True) + 1e-2)
    nodes = [node("LayerNormalization", ["x", "s", "b"], ["y", "mean", "inverse"], axis=1, epsilon=1e-2)]
    return {"nodes": nodes, "inputs": {"x": x, "s": scale, "b": bias}, "opset": 17,
            "outputs": {"y": (x - mean) * inverse * scale + bias, "mean": mean, "inverse": inverse}}


@case
def layer_normalization_17_broadcast_scale():
    x, scale = rand(2, 3, 4), rand(4)
    return one("LayerNormalization", {"x": x, "s": scale}, normalised(x, (1, 2), 1e-5) * scale, 17, axis=-2)


@case
def rms_normalization_23():
    x, scale = rand(2, 3, 4), rand(3, 4)
    y = x / np.sqrt((x * x).mean(axis=(1, 2), keepdims=True) + 1e-5) * scale
    return one("RMSNormalization", {"x": x, "s": scale}, y, 23, axis=1)


@case
def skip_simplified_layer_normalization():
    x, skip, scale = rand(2, 3, 4), rand(2, 3, 4), rand(4)
    total = x + skip
    y = total / np.sqrt((total * total).mean(axis=-1, keepdims=True) + 1e-6) * scale
    nodes = [node("SkipSimplifiedLayerNormalization", ["x", "k", "s"], ["y", "", "", "sum"], domain="com.microsoft", epsilon=1e-6)]
    return {"nodes": nodes, "inputs": {"x": x, "k": skip, "s": scale}, "outputs": {"y": y, "sum": total}, "opset": 17,
            "domains": {"com.microsoft": 1}}


# ---------------------------------------------------------------- attention


def attend(q, k, v, bias=0.0, scale=None, softcap=0):
    k, v = (np.repeat(t, q.shape[1] // t.shape[1], axis=1) for t in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / math.sqrt(q.shape[-1])) + bias
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    return softmax(scores) @ v


def causal(queries, keys, past=0):
    return np.where(np.arange(keys)[None] <= np.arange(queries)[:, None] + past, 0, -np.inf)


@case
def attention_23():
    q, k, v = rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 8)
    return one("Attention", {"q": q, "k": k, "v": v}, attend(q, k, v).astype(np.float32), 23)


@case
def attention_23_grouped_causal():
    q, k, v = rand(2, 6, 4, 8), rand(2, 3, 4, 8), rand(2, 3, 4, 10)
    return one("Attention", {"q": q, "k": k, "v": v}, attend(q, k, v, causal(4, 4)).astype(np.float32), 23, is_causal=1)


@case
def attention_23_cross_causal():
    q, k, v = rand(1, 2, 3, 8), rand(1, 2, 5, 8), rand(1, 2, 5, 8)
    return one("Attention", {"q": q, "k": k, "v": v}, attend(q, k, v, causal(3, 5)).astype(np.float32), 23, is_causal=1)


@case
def attention_23_bool_mask_scale():
    q, k, v = rand(2, 3, 4, 8), rand(2, 3, 6, 8), rand(2, 3, 6, 8)
    mask = np.random.rand(4, 6) > 0.4
    mask[:, 0] = True
    y = attend(q, k, v, np.where(mask, 0, -np.inf), scale=0.25)
    return one("Attention", {"q": q, "k": k, "v": v, "m": mask}, y.astype(np.float32), 23, scale=0.25)


@case
def attention_23_3d_softcap():
    q, k, v = rand(2, 4, 24), rand(2, 6, 24), rand(2, 6, 24)
    split = lambda t: t.reshape(2, -1, 3, 8).transpose(0, 2, 1, 3)
    y = attend(split(q), split(k), split(v), softcap=2).transpose(0, 2, 1, 3).reshape(2, 4, 24)
    return one("Attention", {"q": q, "k": k, "v": v}, y.astype(np.float32), 23, q_num_heads=3, kv_num_heads=3, softcap=2.0)


@case
def attention_23_past_present():
    q, k, v = rand(1, 2, 3, 8), rand(1, 2, 3, 8), rand(1, 2, 3, 8)
    past_k, past_v = rand(1, 2, 4, 8), rand(1, 2, 4, 8)
    all_k, all_v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    y = attend(q, all_k, all_v, causal(3, 7, 4))
    nodes = [node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"], is_causal=1)]
    return {"nodes": nodes, "inputs": {"q": q, "k": k, "v": v, "pk": past_k, "pv": past_v}, "opset": 23,
            "outputs": {"y": y.astype(np.float32), "nk": all_k, "nv": all_v}}


@case
def attention_23_scores_out():
    q, k, v, bias = rand(1, 2, 3, 8), rand(1, 2, 5, 8), rand(1, 2, 5, 8), rand(3, 5)
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(8) + bias
    nodes = [node("Attention", ["q", "k", "v", "m"], ["y", "", "", "scores"], qk_matmul_output_mode=1)]
    return {"nodes": nodes, "inputs": {"q": q, "k": k, "v": v, "m": bias}, "opset": 23,
            "outputs": {"y": attend(q, k, v, bias).astype(np.float32), "scores": scores.astype(np.float32)}}


@case
def attention_24_padded_keys():
    q, k, v = rand(2, 2, 3, 8), rand(2, 2, 6, 8), rand(2, 2, 6, 8)
    lengths = np.array([4, 6], np.int64)
    bias = np.where(np.arange(6) < lengths[:, None], 0, -np.inf)[:, None, None]
    nodes = [node("Attention", ["q", "k", "v", "", "", "", "n"], ["y"])]
    return {"nodes": nodes, "inputs": {"q": q, "k": k, "v": v, "n": lengths}, "opset": 24,
            "outputs": {"y": attend(q, k, v, bias).astype(np.float32)}}


def rotated(x, cos, sin, interleaved):
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    real, imag = cos * a - sin * b, sin * a + cos * b
    return np.stack([real, imag], -1).reshape(x.shape) if interleaved else np.concatenate([real, imag], -1)


@case
def rotary_embedding_23():
    x, cos, sin = rand(2, 3, 5, 8), rand(16, 4), rand(16, 4)
    at = np.random.randint(0, 16, (2, 5)).astype(np.int64)
    y = rotated(x, cos[at][:, None], sin[at][:, None], False)
    return one("RotaryEmbedding", {"x": x, "c": cos, "s": sin, "p": at}, y, 23)


@case
def rotary_embedding_23_partial_interleaved_3d():
    x, cos, sin = rand(2, 5, 24), rand(2, 5, 2), rand(2, 5, 2)
    split = x.reshape(2, 5, 3, 8)
    turned = rotated(split[..., :4], cos[:, :, None], sin[:, :, None], True)
    y = np.concatenate([turned, split[..., 4:]], -1).reshape(x.shape)
    return one("RotaryEmbedding", {"x": x, "c": cos, "s": sin}, y, 23, interleaved=1, num_heads=3, rotary_embedding_dim=4)


@case
def tensor_scatter_24():
    past, update, at = rand(2, 3, 6, 4), rand(2, 3, 2, 4), np.array([1, 4], np.int64)
    y = past.copy()
    for b, first in enumerate(at):
        y[b, :, first:first + 2] = update[b]
    return one("TensorScatter", {"past": past, "update": update, "at": at}, y, 24)


@case
def tensor_scatter_24_circular():
    past, update, at = rand(1, 3, 4, 2), rand(1, 3, 2, 2), np.array([3], np.int64)
    y = past.copy()
    y[0, :, 3], y[0, :, 0] = update[0, :, 0], update[0, :, 1]
    return one("TensorScatter", {"past": past, "update": update, "at": at}, y, 24, mode="circular")


# ---------------------------------------------------------------- shapes


def known(op, x, operands, output, opset, **attrs):
    """A node whose further operands are initialisers."""
    return {"nodes": [node(op, ["x", *operands], ["y"], **attrs)], "inputs": {"x": x}, "outputs": {"y": output}, "opset": opset,
            "initializers": {k: v for k, v in operands.items() if k}}


def ints(*values):
    return np.array(values, np.int64)


@case
def pad_19_wrap_axes():
    x = rand(2, 3, 4)
    y = np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="wrap")
    return {"nodes": [node("Pad", ["x", "p", "", "a"], ["y"], mode="wrap")], "inputs": {"x": x}, "outputs": {"y": y}, "opset": 19,
            "initializers": {"p": ints(2, 1), "a": ints(-1)}}


@case
def pad_18_reflect_negative():
    x = rand(2, 5)
    y = np.pad(x, ((0, 0), (2, 0)), mode="reflect")[:, :-1]
    return known("Pad", x, {"p": ints(0, 2, 0, -1)}, y, 18, mode="reflect")


@case
def split_18_num_outputs():
    x = rand(7, 2)
    parts = np.array_split(np.arange(7), [3, 6])
    return {"nodes": [node("Split", ["x"], ["a", "b", "c"], num_outputs=3)], "inputs": {"x": x}, "opset": 18,
            "outputs": {name: x[p] for name, p in zip("abc", parts)}}


@case
def center_crop_pad_18():
    x = rand(4, 7, 3)
    return known("CenterCropPad", x, {"s": ints(6, 4)}, np.pad(x[:, 1:5], ((1, 1), (0, 0), (0, 0))), 18, axes=[0, 1])


@case
def col2im_18():
    x = rand(1, 8, 6)
    y = np.zeros((1, 2, 3, 4), np.float32)
    blocks = x.reshape(1, 2, 2, 2, 2, 3)
    for i in range(2):
        for j in range(3):
            y[:, :, i:i + 2, j:j + 2] += blocks[:, :, :, :, i, j]
    return known("Col2Im", x, {"i": ints(3, 4), "b": ints(2, 2)}, y, 18)


@case
def reduce_18_axes_input():
    x = rand(2, 3, 4)
    return known("ReduceMax", x, {"a": ints(0, -1)}, x.max(axis=(0, 2)), 18, keepdims=0)


@case
def reduce_20_bool():
    x = np.array([[True, False], [False, False]])
    return known("ReduceMax", x, {"a": ints(1)}, np.array([[True], [False]]), 20)


@case
def reduce_18_noop():
    x = rand(2, 3)
    return one("ReduceSumSquare", {"x": x}, x * x, 18, noop_with_empty_axes=1)


@case
def scatter_elements_18_max():
    x, at, up = rand(3, 3), np.array([[0, 1, 2], [0, 0, 0]], np.int64), rand(2, 3)
    y = x.copy()
    for i in range(2):
        for j in range(3):
            y[at[i, j], j] = max(y[at[i, j], j], up[i, j])
    return one("ScatterElements", {"x": x, "i": at, "u": up}, y, 18, axis=0, reduction="max")


@case
def reshape_baked():
    x = rand(2, 6)
    return {"nodes": [node("Reshape", ["x", "s"], ["y"])], "inputs": {"x": x, "s": ints(3, -1)},
            "outputs": {"y": x.reshape(3, 4)}, "opset": 19}


@case
def shape_arithmetic():
    x = rand(2, 3, 4)
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["d"]), node("Unsqueeze", ["d", "zero"], ["u"]),
             node("Concat", ["minus", "u"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": x.reshape(-1, 3)}, "opset": 18,
            "initializers": {"one": np.array(1, np.int64), "zero": ints(0), "minus": ints(-1)}}


# ---------------------------------------------------------------- images and signals


@case
def affine_grid_20():
    theta = rand(1, 2, 3)
    x, y = (np.arange(3) * 2 + 1) / 3 - 1, (np.arange(2) * 2 + 1) / 2 - 1
    base = np.stack([np.tile(x, (2, 1)), np.tile(y[:, None], (1, 3)), np.ones((2, 3))], -1)
    grid = np.einsum("nij,hwj->nhwi", theta, base)
    return known("AffineGrid", theta, {"s": ints(1, 1, 2, 3)}, grid.astype(np.float32), 20)


def resized(x, places, antialias=1.0, a=None):
    """Rows of weights for positions along the last axis: linear, or cubic with coefficient a; edges repeat."""
    n = x.shape[-1]
    out = []
    for p in places:
        reach = (1 if a is None else 2) / antialias
        weights = np.zeros(n)
        for i in range(int(np.floor(p - reach)) - 1, int(np.ceil(p + reach)) + 2):
            t = abs(i - p) * antialias
            if a is None:
                w = max(0, 1 - t)
            else:
                w = ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0
            weights[min(max(i, 0), n - 1)] += w
        out.append(x @ (weights / weights.sum()))
    return np.stack(out, -1).astype(np.float32)


@case
def resize_18_antialias_linear():
    x = rand(1, 1, 1, 8)
    scales = np.array([1, 1, 1, 0.5], np.float32)
    y = resized(x, (np.arange(4) + 0.5) * 2 - 0.5, antialias=0.5)
    return {"nodes": [node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=1)], "inputs": {"x": x}, "outputs": {"y": y},
            "opset": 18, "initializers": {"s": scales}}


@case
def resize_18_antialias_cubic():
    x = rand(1, 1, 1, 8)
    y = resized(x, (np.arange(3) + 0.5) * 8 / 3 - 0.5, antialias=3 / 8, a=-0.75)
    return {"nodes": [node("Resize", ["x", "", "", "s"], ["y"], mode="cubic", antialias=1)], "inputs": {"x": x}, "outputs": {"y": y},
            "opset": 18, "initializers": {"s": ints(1, 1, 1, 3)}}


@case
def resize_18_axes_not_larger():
    x = rand(1, 1, 2, 4)
    y = np.repeat(np.repeat(x, 2, 2), 2, 3)
    nodes = [node("Resize", ["x", "", "", "s"], ["y"], mode="nearest", axes=[2, 3], keep_aspect_ratio_policy="not_larger")]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": y}, "opset": 18, "initializers": {"s": ints(7, 8)}}


@case
def resize_19_half_pixel_symmetric():
    x = rand(1, 1, 1, 4)
    scale, length = 0.6, 2.4
    places = 4 / 2 * (1 - 2 / length) + (np.arange(2) + 0.5) / scale - 0.5
    nodes = [node("Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="half_pixel_symmetric")]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": resized(x, places)}, "opset": 19,
            "initializers": {"s": np.array([1, 1, 1, scale], np.float32)}}


@case
def dft_20_axis_input_inverse():
    x = rand(2, 5, 3, 2)
    z = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    y = np.stack([z.real, z.imag], -1).astype(np.float32)
    return {"nodes": [node("DFT", ["x", "", "a"], ["y"], inverse=1)], "inputs": {"x": x}, "outputs": {"y": y}, "opset": 20,
            "initializers": {"a": np.array(1, np.int64)}}


@case
def dft_20_onesided_padded():
    x = rand(2, 6, 1)
    z = np.fft.rfft(x[..., 0], n=8, axis=1)
    y = np.stack([z.real, z.imag], -1).astype(np.float32)
    return {"nodes": [node("DFT", ["x", "n"], ["y"], onesided=1)], "inputs": {"x": x}, "outputs": {"y": y}, "opset": 20,
            "initializers": {"n": np.array(8, np.int64)}}


@case
def deform_conv_19():
    x, w, bias = rand(1, 2, 4, 4), rand(3, 2, 2, 2), rand(3)
    offset, mask = rand(1, 8, 3, 3), rand(1, 4, 3, 3)
    y = np.zeros((1, 3, 3, 3)) + bias.reshape(1, 3, 1, 1)
    for i in range(3):
        for j in range(3):
            for tap in range(4):
                r, c = i + tap // 2 + offset[0, 2 * tap, i, j], j + tap % 2 + offset[0, 2 * tap + 1, i, j]
                for dr in (0, 1):
                    for dc in (0, 1):
                        row, column = int(np.floor(r)) + dr, int(np.floor(c)) + dc
                        if 0 <= row < 4 and 0 <= column < 4:
                            weight = (1 - abs(r - row)) * (1 - abs(c - column)) * mask[0, tap, i, j]
                            y[0, :, i, j] += w[:, :, tap // 2, tap % 2] @ x[0, :, row, column] * weight
    return one("DeformConv", {"x": x, "w": w, "o": offset, "b": bias, "m": mask}, y.astype(np.float32), 19)


@case
def grid_sample_20_volume():
    x = rand(1, 1, 2, 3, 4)
    places = np.stack(np.meshgrid(np.linspace(-1, 1, 2), np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij"), -1)
    grid = np.flip(places, -1)[None].astype(np.float32)
    return one("GridSample", {"x": x, "g": grid}, x, 20, align_corners=1)


# ---------------------------------------------------------------- quantisation


@case
def quantize_21_blocks():
    x, scale = rand(4, 6) * 10, np.random.uniform(0.05, 0.1, (2, 6)).astype(np.float32)
    zero = np.random.randint(-10, 10, (2, 6)).astype(np.int8)
    y = np.clip(np.rint(x / np.repeat(scale, 2, 0)) + np.repeat(zero, 2, 0), -128, 127).astype(np.int8)
    return one("QuantizeLinear", {"x": x, "s": scale, "z": zero}, y, 21, axis=0, block_size=2)


@case
def dequantize_21_blocks():
    q, scale = np.random.randint(0, 255, (3, 5)).astype(np.uint8), rand(3, 3)
    y = q.astype(np.float32) * np.repeat(scale, 2, 1)[:, :5]
    return one("DequantizeLinear", {"q": q, "s": scale}, y, 21, axis=1, block_size=2)


@case
def quantize_21_int16():
    x = rand(3, 4) * 1000
    scale, zero = np.array(0.5, np.float32), np.array(-7, np.int16)
    return one("QuantizeLinear", {"x": x, "s": scale, "z": zero}, (np.rint(x / scale) + zero).astype(np.int16), 21)


# ---------------------------------------------------------------- control flow, functions


@case
def if_of_a_run_time_condition():
    x = rand(3)
    then, other = Graph([node("Neg", ["x"], ["t"])], {}, ["t"]), Graph([node("Exp", ["x"], ["e"])], {}, ["e"])
    nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "zero"], ["c"]),
             node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": -x if x.sum() > 0 else np.exp(x)}, "opset": 18,
            "initializers": {"zero": np.array(0, np.float32)}}


@case
def loop_with_a_run_time_end():
    x = np.array(3, np.float32)
    body = Graph([node("Add", ["v", "v"], ["w"]), node("Less", ["w", "limit"], ["go"])],
                 {"i": (7, []), "c": (9, []), "v": (1, [])}, ["go", "w"])
    return {"nodes": [node("Loop", ["m", "", "x"], ["y"], body=body)], "inputs": {"x": x, "limit": np.array(20, np.float32)},
            "outputs": {"y": np.array(24, np.float32)}, "opset": 18, "initializers": {"m": np.array(10, np.int64)}}


@case
def function_with_attribute():
    x = rand(3)
    scaled = node("LeakyRelu", ["a"], ["b"])
    # alpha: a reference to the function's attribute `slope`
    scaled += field(5, field(1, "alpha") + field(21, "slope") + field(20, 1))
    f = function("Sloped", "here", ["a"], ["b"], [scaled], attrs=["slope"])
    return {"nodes": [node("Sloped", ["x"], ["y"], domain="here", slope=0.5)], "inputs": {"x": x}, "opset": 18,
            "outputs": {"y": np.where(x < 0, x * np.float32(0.5), x)}, "domains": {"here": 1}, "functions": [f]}


@case
def upsample_7():
    x = rand(1, 1, 2, 2)
    return one("Upsample", {"x": x}, np.repeat(np.repeat(x, 2, 2), 3, 3), 7, mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])


@case
def add_6_axis():
    x, b = rand(2, 3, 4), rand(3)
    return one("Add", {"x": x, "b": b}, x + b[:, None], 6, axis=1, broadcast=1)


# ---------------------------------------------------------------- empty sets, pooling, regions


def empty_set(op, value):
    def make():
        x = np.zeros((2, 0, 4), np.float32)
        return known(op, x, {"a": ints(1)}, np.full((2, 1, 4), value, np.float32), 20 if op in ("ReduceMax", "ReduceMin") else 18)
    make.__name__ = f"{op.lower()}_of_nothing"
    return case(make)


for _op, _value in {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceL1": 0, "ReduceL2": 0,
                    "ReduceSumSquare": 0, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}.items():
    empty_set(_op, _value)


@case
def average_pool_19_dilated():
    x = rand(1, 1, 5, 5)
    y = (x[:, :, 0:3, 0:3] + x[:, :, 2:5, 0:3] + x[:, :, 0:3, 2:5] + x[:, :, 2:5, 2:5]) / 4
    return one("AveragePool", {"x": x}, y, 19, kernel_shape=[2, 2], dilations=[2, 2])


@case
def average_pool_19_ceil_counts_padding_only():
    x = rand(1, 1, 1, 4)
    # kernel 3, stride 2, padding 1 before: windows of 3, 3 and 1 elements of the padded row; beyond it nothing counts.
    row = np.concatenate([[0], x[0, 0, 0]])
    y = np.array([row[0:3].mean(), row[2:5].mean()], np.float32).reshape(1, 1, 1, 2)
    return one("AveragePool", {"x": x}, y, 19, kernel_shape=[1, 3], strides=[1, 2], pads=[0, 1, 0, 0], count_include_pad=1, ceil_mode=1)


@case
def max_pool_22_ceil_leaves_out_the_last_window():
    x = rand(1, 1, 2, 2)  # which would start behind the operand
    return one("MaxPool", {"x": x}, x[:, :, :1, :1], 22, kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1)


@case
def max_pool_12_int8():
    x = np.random.randint(-128, 127, (1, 1, 4, 4)).astype(np.int8)
    return one("MaxPool", {"x": x}, x.reshape(1, 1, 2, 2, 2, 2).max(axis=(3, 5)), 12, kernel_shape=[2, 2], strides=[2, 2])


@case
def lp_pool_18_dilated():
    x = rand(1, 1, 5)
    y = np.sqrt(x[:, :, 0:3] ** 2 + x[:, :, 2:5] ** 2)
    return one("LpPool", {"x": x}, y, 18, kernel_shape=[2], dilations=[2], p=2)


@case
def roi_align_16_max():
    x = rand(1, 1, 4, 4)
    # One bin of one sample at (1.25, 1.75): the largest of the weighted neighbours.
    rois = np.array([[1.25, 0.75, 3.25, 2.75]], np.float32)
    r, c = 0.75 + 1 - 0.5, 1.25 + 1 - 0.5
    r0, c0, dr, dc = int(r), int(c), r - int(r), c - int(c)
    parts = [x[0, 0, r0 + i, c0 + j] * (dr if i else 1 - dr) * (dc if j else 1 - dc) for i in (0, 1) for j in (0, 1)]
    y = np.array(parts, np.float32).max().reshape(1, 1, 1, 1)
    return one("RoiAlign", {"x": x, "r": rois, "b": np.array([0], np.int64)}, y, 16, mode="max", output_height=1, output_width=1,
               sampling_ratio=1)


@case
def resize_18_crop_axes_extrapolated():
    x = rand(1, 1, 4, 4)
    # Rows and columns 1.5 to 4.5 of 0 to 3 in steps of 1.5: what lies outside is 10.
    start, end = 0.5, 1.5
    places = start * 3 + np.arange(3) * (end - start) * 3 / 2
    y = np.full((1, 1, 3, 3), 10, np.float32)
    for i, r in enumerate(places):
        for j, q in enumerate(places):
            if r <= 3 and q <= 3:
                a, b = min(int(r), 2), min(int(q), 2)
                y[0, 0, i, j] = sum(x[0, 0, a + k, b + l] * (1 - abs(r - a - k)) * (1 - abs(q - b - l)) for k in (0, 1) for l in (0, 1))
    nodes = [node("Resize", ["x", "roi", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
                  extrapolation_value=10.0, axes=[2, 3])]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": y}, "opset": 18,
            "initializers": {"roi": np.array([start, start, end, end], np.float32), "s": ints(3, 3)}}


@case
def resize_18_cubic_exclude_outside():
    x = rand(1, 1, 1, 4)
    y = np.zeros((1, 1, 1, 8), np.float32)
    for k in range(8):
        p = (k + 0.5) / 2 - 0.5
        t = np.abs(np.arange(4) - p)
        w = np.where(t <= 1, (1.5 * t - 2.5) * t * t + 1, np.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0))
        y[0, 0, 0, k] = x[0, 0, 0] @ (w / w.sum())
    nodes = [node("Resize", ["x", "", "s"], ["y"], mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": y}, "opset": 18,
            "initializers": {"s": np.array([1, 1, 1, 2], np.float32)}}


@case
def affine_grid_20_volume_align_corners():
    theta = rand(1, 3, 4)
    z, y, x = np.linspace(-1, 1, 2), np.linspace(-1, 1, 3), np.linspace(-1, 1, 2)
    zz, yy, xx = np.meshgrid(z, y, x, indexing="ij")
    grid = np.einsum("nij,dhwj->ndhwi", theta, np.stack([xx, yy, zz, np.ones_like(xx)], -1))
    return known("AffineGrid", theta, {"s": ints(1, 1, 2, 3, 2)}, grid.astype(np.float32), 20, align_corners=1)


@case
def attention_23_f16():
    q, k, v = (rand(1, 2, 3, 8, dtype=np.float16) for _ in range(3))
    y = attend(*(t.astype(np.float64) for t in (q, k, v)))
    return one("Attention", {"q": q, "k": k, "v": v}, y.astype(np.float16), 23)


@case
def qlinear_matmul_21_f16_scales():
    a, b = np.random.randint(0, 255, (2, 4)).astype(np.uint8), np.random.randint(0, 255, (4, 3)).astype(np.uint8)
    scales, zeros = [np.array(s, np.float16) for s in (0.01, 0.02, 0.5)], [np.array(z, np.uint8) for z in (100, 120, 110)]
    exact = (a.astype(int) - 100) @ (b.astype(int) - 120) * (float(scales[0]) * float(scales[1]) / float(scales[2]))
    y = np.clip(np.rint(exact) + 110, 0, 255).astype(np.uint8)
    inputs = {"a": a, "as": scales[0], "az": zeros[0], "b": b, "bs": scales[1], "bz": zeros[1], "ys": scales[2], "yz": zeros[2]}
    return one("QLinearMatMul", inputs, y, 21)


@case
def clip_13_bounds_cross():
    x = rand(4)
    return one("Clip", {"x": x, "lo": np.array(2, np.float32), "hi": np.array(1, np.float32)}, np.ones(4, np.float32), 13)


@case
def optional_has_element_18_without_operand():
    x = rand(1)
    nodes = [node("OptionalHasElement", [], ["h"]), node("Not", ["h"], ["y"])]
    return {"nodes": nodes, "inputs": {"x": x}, "outputs": {"y": np.array(True)}, "opset": 18}


@case
def group_query_heads_of_rotary_models():
    """What exported language models are made of: rotary positions by Slice, Neg and Concat, grouped heads by Expand."""
    x = rand(1, 4, 3, 8)
    cos, sin = rand(3, 8), rand(3, 8)
    y = np.repeat(x * cos + np.concatenate([-x[..., 4:], x[..., :4]], -1) * sin, 2, axis=1)
    nodes = [node("Slice", ["x", "c0", "c4", "c3", "c1"], ["l"]), node("Slice", ["x", "c4", "big", "c3", "c1"], ["r"]),
             node("Neg", ["r"], ["n"]), node("Concat", ["n", "l"], ["t"], axis=-1), node("Mul", ["x", "cos"], ["a"]),
             node("Mul", ["t", "sin"], ["b"]), node("Add", ["a", "b"], ["z"]), node("Unsqueeze", ["z", "c2"], ["u"]),
             node("Expand", ["u", "shape"], ["e"]), node("Reshape", ["e", "flat"], ["y"])]
    return {"nodes": nodes, "inputs": {"x": x, "cos": cos, "sin": sin}, "outputs": {"y": y}, "opset": 18,
            "initializers": {"c0": ints(0), "c1": ints(1), "c2": ints(2), "c3": ints(3), "c4": ints(4), "big": ints(1 << 62),
                             "shape": ints(1, 4, 2, 3, 8), "flat": ints(1, 8, 3, 8)}}


# ---------------------------------------------------------------- com.microsoft


def microsoft(op, inputs, outputs, **attrs):
    return {"nodes": [node(op, list(inputs), list(outputs), domain="com.microsoft", **attrs)], "inputs": inputs, "outputs": outputs,
            "opset": 17, "domains": {"com.microsoft": 1}}


@case
def multi_head_attention_bias_mask():
    q, k, v, bias = rand(2, 3, 8), rand(2, 5, 8), rand(2, 5, 8), rand(24)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    split = lambda t: t.reshape(2, -1, 2, 4).transpose(0, 2, 1, 3)
    hidden = np.where(mask == 1, 0, -np.inf)[:, None, None]
    y = attend(split(q + bias[:8]), split(k + bias[8:16]), split(v + bias[16:]), hidden)
    y = y.transpose(0, 2, 1, 3).reshape(2, 3, 8).astype(np.float32)
    return microsoft("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": bias, "m": mask}, {"y": y}, num_heads=2)


@case
def packed_attention_causal():
    x, w, bias = rand(1, 3, 6), rand(6, 12), rand(12)
    both = x @ w + bias
    split = lambda t: t.reshape(1, 3, 2, 2).transpose(0, 2, 1, 3)
    y = attend(split(both[..., :4]), split(both[..., 4:8]), split(both[..., 8:]), causal(3, 3))
    y = y.transpose(0, 2, 1, 3).reshape(1, 3, 4).astype(np.float32)
    return microsoft("Attention", {"x": x, "w": w, "b": bias}, {"y": y}, num_heads=2, unidirectional=1)


@case
def rotary_embedding_of_onnx_runtime():
    x, cos, sin = rand(1, 3, 8), rand(10, 2), rand(10, 2)
    at = np.arange(3) + 4
    split = x.reshape(1, 3, 2, 4).transpose(0, 2, 1, 3)
    y = rotated(split, cos[at], sin[at], False).transpose(0, 2, 1, 3).reshape(x.shape)
    return microsoft("RotaryEmbedding", {"x": x, "p": ints(4), "c": cos, "s": sin}, {"y": y})


@case
def matmul_of_4_bits():
    a, scales = rand(2, 20), rand(3, 2)
    q = np.random.randint(0, 16, (3, 2, 16)).astype(np.uint8)
    zeros = np.random.randint(0, 16, (3, 2)).astype(np.uint8)
    w = ((q.astype(np.float32) - zeros[..., None]) * scales[..., None]).reshape(3, 32)[:, :20]
    packed, packed_zeros = q[..., 0::2] | q[..., 1::2] << 4, zeros[:, 0::2] | zeros[:, 1::2] << 4
    return microsoft("MatMulNBits", {"a": a, "b": packed, "s": scales.reshape(-1), "z": packed_zeros.reshape(-1)}, {"y": a @ w.T},
                     K=20, N=3, bits=4, block_size=16)


@case
def embed_layer_normalization():
    ids, words, places, scale, shift = np.array([[1, 2, 0]], np.int32), rand(4, 6), rand(5, 6), rand(6), rand(6)
    total = words[ids] + places[np.arange(3)]
    inputs = {"i": ids, "w": words, "p": places, "g": scale, "h": shift}
    nodes = [node("EmbedLayerNormalization", ["i", "", "w", "p", "", "g", "h"], ["y", "", "sum"], domain="com.microsoft", epsilon=1e-5)]
    return {"nodes": nodes, "inputs": inputs, "opset": 17, "domains": {"com.microsoft": 1},
            "outputs": {"y": normalised(total, (-1,), 1e-5) * scale + shift, "sum": total}}


@case
def dynamic_quantize_matmul():
    a, b, scale = rand(2, 4), np.random.randint(-127, 127, (4, 3)).astype(np.int8), np.array(0.02, np.float32)
    low, high = min(a.min(), 0), max(a.max(), 0)
    s = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / s), 0, 255)
    y = (np.clip(np.rint(a / s) + zero, 0, 255) - zero) @ b * s * scale
    return microsoft("DynamicQuantizeMatMul", {"a": a, "b": b, "s": scale}, {"y": y.astype(np.float32)})
