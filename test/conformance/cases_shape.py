"""Shapes, reductions, quantisation, control flow. See case_tools.py."""
import numpy as np
from case_tools import case, ints, known, one, rand
from onnx_file import Graph, field, function, node

# ---------------------------------------------------------------- shapes


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
