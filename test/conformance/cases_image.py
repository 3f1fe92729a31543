"""Images, signals, pooling, regions, empty sets. See case_tools.py."""
import numpy as np
from case_tools import attend, case, ints, known, one, rand
from onnx_file import node

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
