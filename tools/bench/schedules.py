#!/usr/bin/env python3
"""Times schedules of contractions side by side on a device, from products and convolutions given by their shapes.

For each problem one module runs the same nest once per schedule, and `agc bench` times its kernels. Down the ranking,
results are compared with numpy (convolutions: PyTorch) in double precision at random places until two are right; a
schedule whose result is wrong prints WRONG instead of a time. Prints a line per problem and schedule, fastest first.

  schedules.py AGC OUT.tsv [NAME-PART..]             only problems whose names contain a part
  schedules.py AGC OUT.tsv --chosen [NAME-PART..]    only the schedule that agc chooses
  schedules.py AGC OUT.tsv --only=IN.tsv             only the problems and schedules in the first two columns of a table
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

PASSES = "decompose,form-groups,lower-to-nests,simplify-expr,assign-storage"


def product(m, k, n):
    return {"a": (m, k), "b": (k, n), "c": (m, n), "op": "matmul @a, @b", "mkn": (m, k, n)}


def convolution(kind, batch, channels, size, filters, taps, pad=0):
    """One of the three convolutions of a layer with stride 1, NCHW."""
    out = size + 2 * pad - taps + 1
    x, w, y = (batch, channels, size, size), (filters, channels, taps, taps), (batch, filters, out, out)
    attrs = f"pad = [{pad}, {pad}, {pad}, {pad}]"
    if kind == "forward":
        return {"a": x, "b": w, "c": y, "op": f"conv2d @a, @b {{{attrs}}}", "mkn": (filters, channels * taps**2, batch * out**2)}
    if kind == "input_grad":
        op = f"conv2d_input_grad @a, @b {{{attrs}, input = {list(x)}}}"
        return {"a": y, "b": w, "c": x, "op": op, "mkn": (channels, filters * taps**2, batch * size**2)}
    op = f"conv2d_weight_grad @a, @b {{{attrs}, weight = {list(w)}}}"
    return {"a": x, "b": y, "c": w, "op": op, "mkn": (filters, batch * out**2, channels * taps**2)}


def problems():
    all_ = {}
    for m, k, n in [(4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (512, 512, 512), (256, 256, 256),
                    (1000, 1000, 1000), (1023, 1021, 1019), (128, 784, 512), (128, 512, 512), (128, 512, 10),
                    (784, 128, 512), (512, 128, 512), (100, 256, 120), (100, 120, 84), (256, 100, 120),
                    (64, 4096, 4096), (4096, 64, 4096), (4096, 4096, 64), (2048, 512, 8192), (8192, 1024, 256),
                    (333, 777, 555), (1500, 1500, 1500), (3000, 1000, 500), (17, 4096, 4096), (5000, 64, 3000),
                    (2047, 2047, 2047), (127, 8191, 1023), (640, 640, 640), (1536, 768, 3072), (3072, 768, 768)]:
        all_[f"matmul_{m}x{k}x{n}"] = product(m, k, n)
    for kind in ("forward", "input_grad", "weight_grad"):
        all_[f"lenet1_{kind}"] = convolution(kind, 100, 1, 28, 6, 5)
        all_[f"lenet2_{kind}"] = convolution(kind, 100, 6, 12, 16, 5)
        all_[f"resnet56_{kind}"] = convolution(kind, 32, 64, 56, 64, 3, 1)
        all_[f"resnet14_{kind}"] = convolution(kind, 32, 256, 14, 256, 3, 1)
    return all_


TILES = [(128, 128, 16, 8, 8, 1), (64, 128, 16, 8, 8, 1), (128, 64, 16, 8, 8, 1), (64, 64, 16, 8, 8, 1),
         (128, 128, 8, 16, 8, 1), (64, 64, 16, 8, 4, 1), (64, 64, 16, 4, 8, 1), (64, 64, 16, 4, 4, 1),
         (64, 128, 16, 8, 4, 1), (32, 64, 16, 4, 4, 1), (64, 32, 16, 4, 4, 1), (32, 32, 16, 4, 4, 1),
         (32, 32, 32, 4, 4, 4), (32, 32, 32, 4, 2, 2), (16, 128, 16, 4, 4, 1), (16, 64, 16, 4, 4, 1),
         (16, 256, 16, 4, 8, 1), (8, 256, 16, 4, 4, 1), (8, 128, 16, 4, 4, 1), (8, 128, 16, 4, 4, 2),
         (16, 64, 32, 4, 4, 4), (16, 32, 32, 4, 4, 4), (16, 16, 32, 4, 4, 8), (16, 16, 32, 2, 2, 4),
         (16, 16, 64, 4, 4, 16), (8, 64, 32, 4, 4, 4), (8, 32, 32, 4, 4, 8), (8, 16, 64, 4, 4, 16),
         (8, 8, 64, 4, 4, 32), (8, 8, 64, 2, 2, 16), (128, 16, 16, 4, 4, 1), (64, 16, 32, 4, 4, 4)]
DIRECT = [(tm, tn, local) for tm in (1, 2, 4, 8) for tn in (1, 2, 4, 8) for local in (64, 128)]


def candidates(name, problem):
    m, k, n = problem["mkn"]
    flops = 2 * m * k * n
    found = []
    for bm, bn, bk, tm, tn, ks in TILES:
        if bm > 2 * m and bm > 8 or bn > 2 * n and bn > 8:
            continue
        groups = -(-m // bm) * -(-n // bn)
        if groups > 20000 or flops > 2e10 and bm * bn < 4096:
            continue
        for split in (1, 2, 4, 8, 16, 32, 64, 128):
            if split > 1 and (groups * split > 1200 or split * bk > k or groups * split < 30):
                continue
            if groups * split < 16 and split * 2 * bk <= k:
                continue
            for last in (0, 1) if split > 1 else (0,):
                found.append(f"tiles {{bm = {bm}, bn = {bn}, bk = {bk}, tm = {tm}, tn = {tn}, ks = {ks}, "
                             f"split = {split}, last = {last}, ahead = 1}}")
    if flops < 1e9:
        for tm, tn, local in DIRECT:
            if tm > m and tm > 1:
                continue
            for taps in ((0, 1) if "x" not in name else (0,)):
                found.append(f"contract {{tm = {tm}, tn = {tn}, taps = {taps}, local = {local}}}")
    return found


def module(problem):
    shape = lambda s: "f32[" + ",".join(map(str, s)) + "]"
    return (f"module @m {{\n  state @a: {shape(problem['a'])} init normal(0, 1)\n"
            f"  state @b: {shape(problem['b'])} init normal(0, 1)\n  state @c: {shape(problem['c'])} init constant(0)\n"
            f"  graph @g() {{\n    %0: {shape(problem['c'])} = {problem['op']}\n    update @c = %0\n  }}\n}}\n")


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def pinned(agc, problem, schedules):
    """The module at stage nest, with its one nest once per schedule, each into the same buffer."""
    lines = run([agc, "opt", "-", "--passes=" + PASSES, "--target=h200"], input=module(problem)).split("\n")
    at = next(i for i, l in enumerate(lines) if re.match(r"\s+run @", l))
    name = re.search(r"run @(\w+)", lines[at]).group(1)
    first = next(i for i, l in enumerate(lines) if l.startswith(f"  nest @{name}("))
    last = next(i for i in range(first, len(lines)) if lines[i] == "  }")
    nest, out = lines[first:last], []
    for i, line in enumerate(lines):
        if i == at:
            out += [line.replace(f"@{name}", f"@v{k}").replace(f'"{name}"', f'"v{k}"') for k in range(len(schedules))]
        elif i == first:
            for k, s in enumerate(schedules):
                out += [nest[0].replace(f"@{name}", f"@v{k}")] + nest[1:] + [f"    schedule {s}"] * (s != "") + ["  }"]
        elif not first < i <= last:
            out.append(line)
    return "\n".join(out)


def reference(problem, a, b, places):
    """The results at `places` in double precision."""
    op, pad = problem["op"], int((re.search(r"pad = \[(\d+)", problem["op"]) or [0, 0])[1])
    if op.startswith("matmul"):
        return np.array([a[i].astype(np.float64) @ b[:, j].astype(np.float64) for i, j in places])
    import torch
    a, b, conv = torch.from_numpy(a).double(), torch.from_numpy(b).double(), torch.nn.grad
    if op.startswith("conv2d_input"):
        full = conv.conv2d_input(problem["c"], b.cuda(), a.cuda(), padding=pad)
    elif op.startswith("conv2d_weight"):
        full = conv.conv2d_weight(a.cuda(), problem["c"], b.cuda(), padding=pad)
    else:
        full = torch.nn.functional.conv2d(a.cuda(), b.cuda(), padding=pad)
    return full.cpu().numpy()[tuple(np.array(places).T)]


def wrong(agc, problem, schedule, folder, number):
    """Compares one schedule's result with the reference."""
    path = os.path.join(folder, f"one{number}.agir")
    with open(path, "w") as f:
        f.write(pinned(agc, problem, [schedule]))
    files = {s: os.path.join(folder, f"{s}{number}.npy") for s in "abc"}
    run([agc, "run", path, "--no-fuse"] + [x for s in "abc" for x in ("--save", f"{s}={files[s]}")])
    a, b, c = (np.load(files[s]) for s in "abc")
    rng = np.random.default_rng(number)
    places = [tuple(int(rng.integers(0, n)) for n in problem["c"]) for _ in range(200)]
    want, got = reference(problem, a, b, places), np.array([c[p] for p in places])
    return not bool(np.max(np.abs(want - got)) <= 4e-4 * np.sqrt(problem["mkn"][1]))  # NaN is wrong, too


def prepare(agc, name, problem, schedules, folder):
    """The compiled module of a problem, run once so that the driver has its pipelines in its cache."""
    path = os.path.join(folder, name)
    with open(path + ".agir", "w") as f:
        f.write(pinned(agc, problem, schedules))
    run([agc, "compile", path + ".agir", "--target", "h200", "--no-fuse", "-o", path + ".agb"])
    run([agc, "bench", path + ".agb", "--no-check", "--blocks", "1", "--steps", "1"])
    return schedules, path + ".agb"


def measure(agc, name, problem, prepared, folder, checked=2):
    schedules, path = prepared
    report = json.loads(run([agc, "bench", path, "--no-check", "--json", "--blocks", "2", "--steps", "40"]))
    times = {}
    for kernel in report["kernels"]:
        match = re.match(r"v(\d+)", kernel["label"])
        if match:
            k = int(match.group(1))
            times[k] = times.get(k, 0) + kernel["microseconds"]
    ranked = sorted(times, key=times.get)
    passed = 0
    for k in ranked:
        if passed == checked:
            break
        if wrong(agc, problem, schedules[k], folder, k):
            times[k] = float("nan")
        else:
            passed += 1
    flops = 2 * np.prod([float(x) for x in problem["mkn"]])
    return [(name, schedules[k], times[k], flops / times[k] * 1e-6) for k in ranked]


def wanted(arguments):
    """Schedules by problem."""
    parts = [x for x in arguments if not x.startswith("--")]
    chosen = {n: p for n, p in problems().items() if not parts or any(x in n for x in parts)}
    tables = [x[len("--only="):] for x in arguments if x.startswith("--only=")]
    if tables:
        rows = [line.rstrip("\n").split("\t")[:2] for path in tables for line in open(path)]
        return {n: [s for m, s in rows if m == n] for n in chosen if any(m == n for m, _ in rows)}
    return {n: [""] if "--chosen" in arguments else candidates(n, p) for n, p in chosen.items()}


def main():
    agc, out, schedules = sys.argv[1], sys.argv[2], wanted(sys.argv[3:])
    chosen = {n: problems()[n] for n in schedules}
    with tempfile.TemporaryDirectory() as folder, open(out, "w") as f, ThreadPoolExecutor(os.cpu_count()) as pool:
        prepared = {n: pool.submit(prepare, agc, n, p, schedules[n], folder) for n, p in chosen.items()}
        pool.shutdown()  # nothing else runs while kernels are timed
        for name, problem in chosen.items():
            try:
                rows = measure(agc, name, problem, prepared[name].result(), folder)
            except RuntimeError as error:
                print(name, error)
                continue
            for row in rows:
                text = "\t".join([row[0], row[1], f"{row[2]:.1f}" if row[2] == row[2] else "WRONG", f"{row[3]:.2f}"])
                f.write(text + "\n")
            f.flush()
            for row in rows[:4]:
                print(f"{row[0]:28s} {row[2]:9.1f} us {row[3]:7.2f} TFLOP/s  {row[1]}", flush=True)


if __name__ == "__main__":
    main()
