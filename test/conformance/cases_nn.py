"""Activations, normalisation, attention, and operators of com.microsoft. See case_tools.py."""
import math

import numpy as np
from case_tools import attend, case, causal, erf, ints, microsoft, normalised, one, rand, rotated
from onnx_file import node

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


# ---------------------------------------------------------------- com.microsoft


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
