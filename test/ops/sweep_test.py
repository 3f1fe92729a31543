#!/usr/bin/python3
"""Every row of the op table against its numpy reference: random inputs of each sample (ir/op_samples.h: every dtype that
the row takes, in ordinary, size-1, odd, long and zero-size shapes), evaluated op by op, in f64 arithmetic, and as
compiled plans by the loop executor, all within the row's tolerance.

  AGC=build/agc test/ops/sweep_test.py [OP...] [--seed=N] [--full]

By default each dtype comes in one size and each size in one dtype; --full takes all of them. Prints op, dtype, largest
error and tolerance; the last line is `N passed, N failed`.
"""
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from xml.sax.saxutils import quoteattr

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ref  # noqa: E402

# References of all families: ref.py, ref_nn.py and so on.
REFERENCES = [importlib.import_module(f[:-3]) for f in sorted(os.listdir(HERE))
              if re.fullmatch(r"ref(_\w+)?\.py", f)]

F64_TOLERANCE = 1e-12   # ops in f64; the table has none, they differ by the order of sums
DTYPES = dict(ref.DTYPES)
MODES = {
    "op by op": [],
    "f64 arithmetic": ["--double"],
    "lavapipe plan": ["--planned", "--target=lavapipe"],
    "h200 plan": ["--planned", "--target=h200"],
}


def parse_type(text):
    dtype, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", text).groups()
    return dtype, tuple(int(d) for d in dims.split(",") if d)


def to_bf16(x):
    """The nearest bf16 as the upper half of the f32 bits, halves to even."""
    bits = x.astype(np.float32)[np.newaxis].view(np.uint32)[0].astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32)[np.newaxis] << 16).view(np.float32)[0]


def random_input(rng, text, lo, hi):
    """Values of the dtype as the reference takes them: floats are f64, rounded to their dtype."""
    dtype, dims = parse_type(text)
    if dtype == "bool":
        return rng.integers(0, 2, dims).astype(np.bool_)
    if dtype[0] in "iu":
        x = rng.integers(max(int(np.ceil(lo)), 0 if dtype[0] == "u" else -2**31), int(np.floor(hi)) + 1, dims)
        return x.astype(DTYPES[dtype])
    x = rng.uniform(lo, hi, dims)
    return from_bf16(to_bf16(x)).astype(np.float64) if dtype == "bf16" else x.astype(DTYPES[dtype]).astype(np.float64)


def random_inputs(rng, op, graph):
    """The graph's inputs. Where not all values are valid, function OP_inputs of a reference module mends them."""
    inputs = [random_input(rng, value["type"], op["sample"]["lo"], op["sample"]["hi"]) for value in graph["inputs"]]
    for module in REFERENCES:
        mend = vars(module).get(op["name"] + "_inputs")
        inputs = list(mend(*inputs)) if mend else inputs
    return inputs


def save(path, text, x):
    dtype = parse_type(text)[0]
    np.save(path, to_bf16(x) if dtype == "bf16" else x if dtype == "bool" else x.astype(DTYPES[dtype]))


def number(attr):
    """JSON has no infinities and no NaN: they come as strings. NaN is a float that was left out."""
    return {"inf": np.inf, "-inf": -np.inf, "nan": None}.get(attr, attr) if isinstance(attr, str) else attr


def reference(op, graph, inputs):
    scope = {"np": np}
    for module in REFERENCES:
        scope.update({k: v for k, v in vars(module).items() if not k.startswith("_")})
    scope.update({name: number(value) for name, value in graph["attrs"].items()})
    scope.update({f"x{i}": x for i, x in enumerate(inputs)})
    with np.errstate(all="ignore"):
        result = eval(op["numpy"], scope)
    return list(result) if isinstance(result, tuple) else [result]


def tolerance_of(op, dtype):
    return op["tolerance"].get(dtype, F64_TOLERANCE)


def error_of(got, expected):
    """Largest difference relative to max(1, |expected|); equal NaNs and infinities agree."""
    if got.shape != expected.shape:
        return np.inf
    with np.errstate(all="ignore"):
        close = np.abs(got - expected) / np.maximum(1, np.abs(expected))
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    error = np.where(same, 0, close)
    return float(np.nan_to_num(error, nan=np.inf).max()) if error.size else 0.0


def compare(op, graph, inputs, directory, double):
    """Largest error and its tolerance over the outputs. What has no elements is only looked at for its shape."""
    worst, limit = 0.0, np.inf
    shapes = [parse_type(output["type"])[1] for output in graph["outputs"]]
    if all(0 in shape for shape in shapes):
        expected = [np.zeros(shape) for shape in shapes]
    else:
        expected = reference(op, graph, inputs)
    if len(expected) != len(graph["outputs"]):
        return np.inf, 0.0
    for output, want in zip(graph["outputs"], expected):
        dtype = parse_type(output["type"])[0]
        got = np.load(os.path.join(directory, f"{graph['graph']}.{output['name']}.npy"))
        if dtype == "bf16" and not double:
            got = from_bf16(got)
        want = np.asarray(want)
        if dtype in ("f64", "f32", "f16", "bf16"):
            error = error_of(got.astype(np.float64), want.astype(np.float64))
            allowed = tolerance_of(op, dtype) * graph["growth"]
        else:
            error, allowed = (0.0 if got.shape == want.shape and np.array_equal(got, want.astype(got.dtype)) else np.inf), 0.0
        if error - allowed >= worst - limit:
            worst, limit = error, allowed
    return worst, limit


def run(agc, *arguments):
    done = subprocess.run([agc, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"agc {' '.join(arguments)} ended with status {done.returncode}")
    return done.stdout


def sweep(agc, only, seed, full, work):
    """(name, largest error, tolerance, message) per graph and mode."""
    ops = [op for op in json.loads(run(agc, "ops", "--json", *full)) if op["graphs"]]
    unknown = sorted(set(only) - {op["name"] for op in ops})
    if unknown:
        sys.exit("there is no op to sweep named " + ", ".join(unknown))
    ops = [op for op in ops if not only or op["name"] in only]
    with open(os.path.join(work, "samples.agir"), "w", encoding="utf-8") as file:
        file.write(run(agc, "ops", "--samples", *full))
    rng = np.random.default_rng(seed)
    cases = []
    for op in ops:
        for graph in op["graphs"]:
            inputs = random_inputs(rng, op, graph)
            for value, x in zip(graph["inputs"], inputs):
                save(os.path.join(work, f"{graph['graph']}.{value['name']}.npy"), value["type"], x)
            cases.append((op, graph, inputs))
    if error_of(np.ones(3), np.ones(3) + 1e-5) <= 9e-6:
        sys.exit("an error of 1e-5 is not seen: the comparison is broken")
    for mode, flags in MODES.items():
        to = os.path.join(work, mode.replace(" ", "_"))
        os.mkdir(to)
        printed = run(agc, "eval", os.path.join(work, "samples.agir"), f"--all={work}", f"--to={to}", *flags)
        messages = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
        for op, graph, inputs in cases:
            name = f"{graph['graph']} ({mode})"
            try:
                error, allowed = compare(op, graph, inputs, to, "--double" in flags)
                yield name, error, allowed, messages.get(graph["graph"], "")
            except Exception as e:  # a wrong reference is a failure of its row, not of the sweep
                yield name, np.inf, 0.0, messages.get(graph["graph"], f"{type(e).__name__}: {e}")


def main():
    only = [a for a in sys.argv[1:] if not a.startswith("--")]
    seed = next((int(a[7:]) for a in sys.argv[1:] if a.startswith("--seed=")), 1)
    full = ["--full"] if "--full" in sys.argv else []
    failed, lines = [], []
    with tempfile.TemporaryDirectory() as work:
        for name, error, allowed, message in sweep(os.environ.get("AGC", "agc"), only, seed, full, work):
            ok = error <= allowed
            lines.append((name, ok))
            if not ok:
                failed.append(name)
            print(f"{name:<48} error {error:9.3g}  tolerance {allowed:9.3g}{'' if ok else '  FAILED ' + message}")
    if os.environ.get("AGC_RESULTS"):
        with open(os.path.join(os.environ["AGC_RESULTS"], "sweep_test.xml"), "w", encoding="utf-8") as file:
            rows = "".join(f"<testcase name={quoteattr(n)}>{'' if ok else '<failure/>'}</testcase>" for n, ok in lines)
            file.write(f"<testsuite name=\"sweep\">{rows}</testsuite>\n")
    print(f"{len(lines) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
