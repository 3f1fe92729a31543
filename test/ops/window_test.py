#!/usr/bin/python3
"""Window ops in every combination of padding, stride, dilation, groups, modes and rounding against ref_window.py: evaluated op
by op and as compiled plans by the loop executor.

  AGC=build/agc test/ops/window_test.py [--seed=N]

The last line is `N passed, N failed`.
"""
import itertools
import os
import sys
import tempfile
from xml.sax.saxutils import quoteattr

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ref_window  # noqa: E402
import sweep_test  # noqa: E402

MODES = {"op by op": ["--double"], "plan": ["--planned", "--target=lavapipe"]}
TOLERANCE = {"op by op": 1e-12, "plan": 2e-5}


def case(op, reference, arrays, **attrs):
    """(op, reference, attributes, inputs in f32, expected result)."""
    arrays = [a.astype(np.float32) for a in arrays]
    return op, reference, attrs, arrays, reference(*[a.astype(np.float64) for a in arrays], **attrs)


def same(shape, kernel, stride, dilation, upper):
    """Padding that gives ceil(n / stride) outputs, from the definition in ONNX's Conv."""
    before, after = [], []
    for n, k, s, d in zip(shape, kernel, stride, dilation):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        before.append(total // 2 if upper else total - total // 2)
        after.append(total - before[-1])
    return before + after


def convolutions(rng, rank, shape, kernel, strides, pads, dilations):
    """A convolution, its gradients and the transposed one for each combination with 1, 2 and as many groups as there
    are channels."""
    for stride, pad, dilation, groups in itertools.product(strides, pads, dilations, (1, 2, 4)):
        x = rng.uniform(-1, 1, (2, 4) + shape)
        w = rng.uniform(-1, 1, (4 if groups == 4 else 6, 4 // groups) + kernel)
        if isinstance(pad, bool):
            pad = same(shape, kernel, stride, dilation, pad)
        attrs = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
        forward = case(f"conv{rank}d", ref_window.conv, [x, w], **attrs)
        yield forward
        g = rng.uniform(-1, 1, forward[-1].shape)
        yield case(f"conv{rank}d_input_grad", ref_window.conv_input_grad, [g, w], input=list(x.shape), **attrs)
        yield case(f"conv{rank}d_weight_grad", ref_window.conv_weight_grad, [x, g], weight=list(w.shape), **attrs)
        v = rng.uniform(-1, 1, (4, 6 // 2 if groups == 2 else 1) + kernel)
        most = [max(s, d) for s, d in zip(stride, dilation)]
        for output_pad in ([0] * rank, [m - 1 for m in most]):
            yield case(f"conv_transpose{rank}d", ref_window.conv_transpose, [x, v], output_pad=output_pad, **attrs)


def poolings(rng, rank, shape, windows, strides, pads, dilations):
    for window, stride, pad, dilation, ceil_mode in itertools.product(windows, strides, pads, dilations, (False, True)):
        x = rng.uniform(-1, 1, (2, 3) + shape)
        attrs = {"window": window, "stride": stride, "pad": pad, "dilation": dilation}
        yield case(f"max_pool{rank}d", ref_window.max_pool, [x], ceil_mode=ceil_mode, **attrs)
        yield case("max_pool_indices", ref_window.max_pool_indices, [x], ceil_mode=ceil_mode, **attrs)
        for include in (False, True):
            yield case(f"avg_pool{rank}d", ref_window.avg_pool, [x], ceil_mode=ceil_mode, count_include_pad=include, **attrs)
        if ceil_mode:
            continue
        columns = case("unfold", ref_window.unfold, [x], **attrs)
        yield columns
        yield case("fold", ref_window.fold, [columns[-1]], input=list(shape), **attrs)


def resizings(rng):
    """Every mode on axes that grow, shrink, stay and have one element; and the gradient along one axis."""
    modes = [("nearest", r) for r in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")]
    for mode, rounding in modes + [("linear", "floor"), ("cubic", "floor")]:
        for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
            for shape, size in (((5, 4), [8, 3]), ((6,), [1]), ((1, 3), [4, 3]), ((3, 2, 4), [6, 5, 2])):
                attrs = {"mode": mode, "coordinates": coordinates, "rounding": rounding, "cubic_a": -0.5}
                x = rng.uniform(-1, 1, (1, 2) + shape)
                yield case("resize", ref_window.resize, [x], size=size, exclude_outside=mode == "cubic" and len(size) == 2, **attrs)
    for mode, coordinates, exclude in itertools.product(("linear", "cubic"), ("half_pixel", "asymmetric"), (False, True)):
        for shape, size in (((5, 4), [8, 3]), ((16,), [3]), ((9, 1), [1, 4]), ((3, 20, 6), [6, 7, 2])):
            attrs = {"mode": mode + "_antialias", "coordinates": coordinates, "rounding": "floor", "cubic_a": -0.5}
            x = rng.uniform(-1, 1, (1, 2) + shape)
            yield case("resize", ref_window.resize, [x], size=size, exclude_outside=exclude, **attrs)
    for mode, exclude in (("nearest", False), ("linear", False), ("cubic", False),
                          ("linear_antialias", False), ("cubic_antialias", True), ("cubic_antialias", False)):
        for a, b, c in ((1, -1, 4), (10, -2, 14), (4, 0, 6), (0, 0, 1), (7, 3, 3), (2, -9, 5)):
            for n, m in ((5, 7), (7, 5), (1, 3), (9, 2)):
                attrs = {"axis": 1, "map": [a, b, c], "mode": mode, "cubic_a": -0.75, "exclude_outside": exclude}
                yield case("resample", ref_window.resample, [rng.uniform(-1, 1, (2, n))], size=m, **attrs)
                yield case("resample_grad", ref_window.resample_grad, [rng.uniform(-1, 1, (2, m))], size=n, **attrs)


def samplings(rng):
    for mode, padding, corners in itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (False, True)):
        for shape, places in (((4, 5), (2, 3)), ((6,), (7,)), ((2, 3, 2), (2, 1, 3))):
            if mode == "cubic" and len(shape) == 3:
                continue
            arrays = [rng.uniform(-1, 1, (2, 3) + shape), rng.uniform(-2.5, 2.5, (2,) + places + (len(shape),))]
            yield case("grid_sample", ref_window.grid_sample, arrays, mode=mode, padding=padding, align_corners=corners)
    for corners, size in itertools.product((False, True), ([3], [2, 4], [1, 3], [2, 1, 3])):
        theta = rng.uniform(-1, 1, (2, len(size), len(size) + 1))
        yield case("affine_grid", ref_window.affine_grid, [theta], size=size, align_corners=corners)


def regions(rng):
    for shape, size in (((7,), [3]), ((5, 6), [2, 6]), ((3, 4), [5, 4]), ((4, 3, 5), [2, 2, 1])):
        x = rng.uniform(-1, 1, (2, 3) + shape)
        yield case("adaptive_avg_pool", ref_window.adaptive_avg_pool, [x], size=size)
        yield case("adaptive_max_pool", lambda x, size: ref_window.adaptive_max_pool_with_index(x, size)[0], [x], size=size)


def cases(rng):
    yield from resizings(rng)
    yield from samplings(rng)
    yield from regions(rng)
    yield from convolutions(rng, 1, (8,), (3,), ([1], [2], [3]), ([0, 0], [2, 1], [0, 4], True, False), ([1], [2]))
    yield from convolutions(rng, 2, (6, 9), (3, 2), ([1, 1], [2, 3]), ([1, 0, 2, 1], True), ([1, 1], [1, 4]))
    yield from convolutions(rng, 2, (8, 8), (4, 1), ([2, 2], [4, 2]), ([1, 0, 1, 0],), ([1, 1],))
    yield from convolutions(rng, 3, (4, 5, 4), (2, 3, 2), ([2, 1, 2],), ([0, 1, 0, 1, 1, 0], False), ([1, 1, 2],))
    yield from poolings(rng, 1, (9,), ([3],), ([], [1], [2], [4]), ([0, 0], [1, 2]), ([1], [2]))
    yield from poolings(rng, 2, (5, 6), ([2, 3],), ([], [2, 1]), ([0, 0, 0, 0], [1, 0, 1, 2]), ([1, 1], [1, 2]))
    yield from poolings(rng, 3, (4, 3, 5), ([2, 3, 2],), ([1, 2, 2],), ([1, 0, 0, 0, 2, 1],), ([1, 1, 1],))


def type_text(array):
    dtype = "f32" if array.dtype.kind == "f" else "i32"
    return f"{dtype}[{','.join(map(str, array.shape))}]"


def attr_text(value):
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def module_text(all_cases):
    graphs = []
    for i, (op, _, attrs, arrays, result) in enumerate(all_cases):
        inputs = ", ".join(f"input %x{k}: {type_text(a)}" for k, a in enumerate(arrays))
        operands = ", ".join(f"%x{k}" for k in range(len(arrays)))
        text = ", ".join(f"{k} = {attr_text(v)}" for k, v in attrs.items())
        graphs.append(f"  graph @g{i}({inputs}) -> (%y: {type_text(result)}) {{\n"
                      f"    %0: {type_text(result)} = {op} {operands} {{{text}}}\n    output %y = %0\n  }}\n")
    return "module @m {\n" + "".join(graphs) + "}\n"


def check(agc, seed, work):
    all_cases = list(cases(np.random.default_rng(seed)))
    path = os.path.join(work, "m.agir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(module_text(all_cases))
    for i, (_, _, _, arrays, _) in enumerate(all_cases):
        for k, array in enumerate(arrays):
            np.save(os.path.join(work, f"g{i}.x{k}.npy"), array)
    for mode, flags in MODES.items():
        to = os.path.join(work, mode.replace(" ", "_"))
        os.mkdir(to)
        printed = sweep_test.run(agc, "eval", path, f"--all={work}", f"--to={to}", *flags)
        for i, (op, _, attrs, arrays, want) in enumerate(all_cases):
            got = os.path.join(to, f"g{i}.y.npy")
            error = sweep_test.error_of(np.load(got).astype(np.float64), want) if os.path.exists(got) else np.inf
            yield f"{op} {attrs} of {[a.shape for a in arrays]} ({mode})", error, TOLERANCE[mode], printed


def main():
    seed = next((int(a[7:]) for a in sys.argv[1:] if a.startswith("--seed=")), 1)
    lines = []
    with tempfile.TemporaryDirectory() as work:
        for name, error, allowed, printed in check(os.environ.get("AGC", "agc"), seed, work):
            lines.append((name, error <= allowed))
            if error > allowed:
                print(f"{name}: error {error:.3g}, allowed {allowed:.3g}\n{printed[:400]}")
    if os.environ.get("AGC_RESULTS"):
        with open(os.path.join(os.environ["AGC_RESULTS"], "window_test.xml"), "w", encoding="utf-8") as file:
            rows = "".join(f"<testcase name={quoteattr(n)}>{'' if ok else '<failure/>'}</testcase>" for n, ok in lines)
            file.write(f"<testsuite name=\"window\">{rows}</testsuite>\n")
    failed = sum(not ok for _, ok in lines)
    print(f"{len(lines) - failed} passed, {failed} failed")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
