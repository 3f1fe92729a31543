#!/usr/bin/python3
"""Optional operands and attributes of normalisation, attention, recurrence and losses against their references: what
one sample per row cannot show. Each case is evaluated op by op and as a compiled plan by the loop executor.

  AGC=build/agc test/ops/variants_test.py [OP...]
"""
import inspect
import os
import re
import subprocess
import sys
import tempfile
from xml.sax.saxutils import quoteattr

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sweep_test import REFERENCES, error_of, from_bf16, parse_type, random_input, save  # noqa: E402

MODES = {"op by op": [], "lavapipe plan": ["--planned", "--target=lavapipe"]}
TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}
SCOPE = {k: v for m in REFERENCES for k, v in vars(m).items() if not k.startswith("_")}
RNN = {"rnn": ("f32[5,3,4] f32[{d},6,4] f32[{d},6,6] f32[{d},12]", "f32[5,{d},3,6] f32[{d},3,6]", 1),
       "gru": ("f32[5,3,4] f32[{d},18,4] f32[{d},18,6] f32[{d},36]", "f32[5,{d},3,6] f32[{d},3,6]", 1),
       "lstm": ("f32[5,3,4] f32[{d},24,4] f32[{d},24,6] f32[{d},48]", "f32[5,{d},3,6] f32[{d},3,6] f32[{d},3,6]", 2)}
QKV = "f32[2,4,3,5] f32[2,2,6,5] f32[2,2,6,7]"

# (op, operands, results, attributes, range of the operands)
CASES = [
    ("layer_norm", "f32[4,5,6] f32[5,6] f32[5,6]", "f32[4,5,6]", {}, (-3, 3)),
    ("layer_norm", "f16[4,33] f32[33] f32[33]", "f16[4,33]", {"epsilon": 0.125}, (-3, 3)),
    ("layer_norm", "f32[3,1] f32[1] f32[1]", "f32[3,1]", {}, (-3, 3)),
    ("rms_norm", "f32[4,5,6] f32[4,5,6]", "f32[4,5,6]", {}, (-3, 3)),
    ("rms_norm", "bf16[7,65] f32[65]", "bf16[7,65]", {}, (-3, 3)),
    ("mean_variance_norm", "f32[3,4,5]", "f32[3,4,5]", {"axes": [-1, 0], "epsilon": 0.0}, (0, 9)),
    ("mean_variance_norm", "f32[7,9]", "f32[7,9]", {}, (0, 9)),
    ("batch_norm", "f32[5,3] f32[3] f32[3] f32[3] f32[3]", "f32[5,3]", {"epsilon": 0.01}, (0.5, 2)),
    ("batch_norm", "f32[0,3] f32[3] f32[3]", "f32[0,3]", {}, (0.5, 2)),
    ("batch_norm", "f32[4,3] f32[3] f32[3]", "f32[4,3]", {}, (0.5, 2)),
    ("batch_norm", "f16[2,3,4,5] f32[3] f32[3] f32[3] f32[3]", "f16[2,3,4,5]", {}, (0.5, 2)),
    ("batch_norm_train", "f32[5,3] f32[3] f32[3]", "f32[5,3] f32[3] f32[3]", {}, (-2, 5)),
    ("batch_norm_train", "f16[3,2,4,5] f16[2] f16[2]", "f16[3,2,4,5] f32[2] f32[2]", {}, (-2, 5)),
    ("group_norm", "f32[2,6,3,5] f32[6] f32[6]", "f32[2,6,3,5]", {"groups": 3}, (-2, 5)),
    ("group_norm", "f32[3,4] f32[4] f32[4]", "f32[3,4]", {"groups": 1}, (-2, 5)),
    ("instance_norm", "f32[2,3,4,5] f32[3] f32[3]", "f32[2,3,4,5]", {}, (-2, 5)),
    ("lrn", "f32[2,7,3,2]", "f32[2,7,3,2]", {"size": 4, "alpha": 0.75, "beta": 0.5, "bias": 2.0}, (-2, 2)),
    ("lrn", "f32[2,3]", "f32[2,3]", {"size": 9, "alpha": 0.75}, (-2, 2)),
    ("lp_normalize", "f32[4,5,6]", "f32[4,5,6]", {"axis": 1, "p": 1}, (-2, 2)),
    ("masked_softmax", "f32[4,5] bool[1,5]", "f32[4,5]", {}, (-9, 9)),
    ("masked_softmax", "f16[4,5,2] bool[4,5,1]", "f16[4,5,2]", {"axis": 1}, (-9, 9)),
    ("attention", QKV + " bool[3,6]", "f32[2,4,3,7]", {}, (-2, 2)),
    ("attention", QKV + " bool[2,1,1,6]", "f32[2,4,3,7]", {"causal": "lower_right"}, (-2, 2)),
    ("attention", QKV + " f32[2,4,3,6]", "f32[2,4,3,7]", {"causal": "upper_left", "scale": 0.3}, (-2, 2)),
    ("attention", QKV + " f32[1]", "f32[2,4,3,7]", {"softcap": 0.75}, (-4, 4)),
    ("attention", "f32[6,5] f32[3,5] f32[3,2] bool[6,1]", "f32[6,2]", {"causal": "lower_right"}, (-2, 2)),
    ("attention", "f16[2,3,4] f16[1,5,4] f16[1,5,4] f32[3,5]", "f16[2,3,4]", {}, (-2, 2)),
    ("attention", "f32[3,1,2,1,4] f32[3,1,1,1,4] f32[3,1,1,1,3] bool[1]", "f32[3,1,2,1,3]", {}, (-2, 2)),
    ("rotary_embedding", "f32[2,3,7] f32[3,3] f32[3,3]", "f32[2,3,7]", {"interleaved": True}, (-1, 1)),
    ("rotary_embedding", "f32[2,3,4,6] f32[3,1,3] f32[3,1,3]", "f32[2,3,4,6]", {}, (-1, 1)),
    ("rotary_embedding", "f16[3,8] f32[3,2] f32[3,2]", "f16[3,8]", {}, (-1, 1)),
    ("sinusoidal_positions", "u8[5]", "f32[5,8]", {"dim": 8, "base": 100.0}, (0, 50)),
    ("sinusoidal_positions", "f32[2]", "f32[2,2]", {"dim": 2}, (0, 3)),
    ("alibi", "", "f32[8,4,4]", {"shape": [8, 4, 4]}, (0, 1)),
    ("alibi", "", "f32[1,3,2]", {"shape": [1, 3, 2]}, (0, 1)),
    ("bce_with_logits", "f32[3,4] f32[3,4] f32[3,4]", "f32[3,4]", {"reduction": "none"}, (0, 1)),
    ("triplet_margin", "f32[3,4] f32[3,4] f32[3,4]", "f32[3]", {"p": 1, "margin": 0.5, "reduction": "none"}, (-1, 1)),
    ("multi_margin", "f32[3,4] i32[3]", "f32[3]", {"reduction": "none"}, (-1, 4)),
    ("gaussian_nll", "f32[5] f32[5] f32[5]", "f32[]", {"full": True, "epsilon": 0.5, "reduction": "sum"}, (0.1, 2)),
    ("poisson_nll", "f32[5] f32[5]", "f32[]", {"log_input": False, "full": True, "reduction": "sum"}, (0.1, 4)),
    ("kl_div", "f32[5,2] f32[5,2]", "f32[5,2]", {"log_target": True, "reduction": "none"}, (-2, 1)),
    ("smooth_l1", "f32[5,2] f32[5,2]", "f32[]", {"beta": 0.0}, (-2, 1)),
    ("huber", "f16[40] f16[40]", "f16[]", {"delta": 0.25}, (-2, 2)),
    ("sigmoid_focal", "f32[5] f32[5]", "f32[5]", {"alpha": -1.0, "gamma": 1.5, "reduction": "none"}, (0, 1)),
    ("cosine_similarity", "f32[3,4,5] f32[3,4,5]", "f32[3,5]", {"axis": 1}, (-1, 1)),
]
CASES += [("cross_entropy", f"f32{x} {labels}{weight}", "f32[]" if reduction != "none" else f"f32{rows}",
           {"label_smoothing": smoothing, "reduction": reduction, **ignored}, (-1, 4))
          for x, rows in (("[5,3]", "[5]"), ("[2,3,4]", "[2,4]")) for weight in ("", " f32[3]")
          for reduction in ("none", "mean", "sum") for smoothing in (0.0, 0.25)
          for labels, ignored in (("i32" + rows, {}), ("i8" + rows, {"ignore_index": [1]}), ("f32" + x, {}))]
CASES += [("nll", f"f32[4,3,2] u8[4,2]{weight}", "f32[]", {"ignore_index": ignored}, (-2, 3))
          for weight in ("", " f32[3]") for ignored in ([], [2], [255])]
for rnn, (given, results, states) in RNN.items():
    for way, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        start = f" f32[{d},3,6]" * states
        extra = {"rnn": {"activation": "relu"}, "gru": {"linear_before_reset": True}, "lstm": {}}[rnn]
        holes = f" f32[{d},18]" if rnn == "lstm" else ""
        both = (given.format(d=d), results.format(d=d))
        CASES.append((rnn, both[0].rsplit(" ", 1)[0], both[1], {"direction": way, **extra}, (-1, 1)))
        CASES.append((rnn, both[0] + start + " i32[3]" + holes, both[1], {"direction": way, **extra}, (0, 5)))
    batch_first = re.sub(r"f32\[1,3,6\]", "f32[3,1,6]", results.format(d=1).replace("5,1,3,6", "3,5,1,6"))
    CASES.append((rnn, given.format(d=1).replace("5,3,4", "3,5,4") + " f32[3,1,6]" * states, batch_first,
                  {"batch_first": True}, (-1, 1)))


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def graph_of(k, op, operands, results, attrs):
    inputs = ", ".join(f"input %x{i}: {t}" for i, t in enumerate(operands))
    outputs = ", ".join(f"%y{i}: {t}" for i, t in enumerate(results))
    types = results[0] if len(results) == 1 else f"({', '.join(results)})"
    body = f"    %0: {types} = {op} {', '.join(f'%x{i}' for i in range(len(operands)))}"
    body += f" {{{', '.join(f'{n} = {text_of(v)}' for n, v in attrs.items())}}}\n" if attrs else "\n"
    for i, t in enumerate(results):
        if len(results) > 1:
            body += f"    %{i + 1}: {t} = get %0 {{index = {i}}}\n"
        body += f"    output %y{i} = %{i + 1 if len(results) > 1 else 0}\n"
    return f"  graph @g{k}({inputs}) -> ({outputs}) {{\n{body}  }}\n"


def expected_of(op, inputs, attrs):
    """The reference with the row's defaults where the case gives nothing."""
    defaults = {"epsilon": 1e-5, "causal": "none", "scale": 0.0, "softcap": 0.0, "axis": -1, "interleaved": False,
                "reduction": "mean", "margin": 1.0, "p": 2, "full": False, "log_target": False, "log_input": True,
                "alpha": 1e-4, "beta": 0.75, "bias": 1.0, "base": 10000.0, "gamma": 2.0, "axes": [], "delta": 1.0}
    special = {"multi_margin": {"p": 1}, "lp_normalize": {"epsilon": 1e-12}, "cosine_similarity": {"epsilon": 1e-8},
               "triplet_margin": {"epsilon": 1e-6}, "poisson_nll": {"epsilon": 1e-8}}
    function = SCOPE[op]
    parameters = list(inspect.signature(function).parameters.values())[len(inputs):]
    names = [p.name for p in parameters if p.default is not None]  # operands that are left out are None
    known = {**defaults, **special.get(op, {}), **attrs}
    with np.errstate(all="ignore"):
        result = function(*inputs, **{n: known[n] for n in names if n in known})
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


def load(path, dtype):
    got = np.load(path)
    return from_bf16(got) if dtype == "bf16" else got


def check(agc, cases, work):
    """(name, error, tolerance) per case and mode."""
    rng = np.random.default_rng(1)
    text, expected = "", []
    for k, (op, operands, results, attrs, (lo, hi)) in enumerate(cases):
        operands, results = operands.split(), results.split()
        text += graph_of(k, op, operands, results, attrs)
        exact = []
        for i, t in enumerate(operands):
            exact.append(random_input(rng, t, lo, hi))
            save(os.path.join(work, f"g{k}.x{i}.npy"), t, exact[-1])
        expected.append(expected_of(op, exact, attrs))
    with open(os.path.join(work, "cases.agir"), "w", encoding="utf-8") as file:
        file.write(f"module @cases {{\n{text}}}\n")
    for mode, flags in MODES.items():
        to = os.path.join(work, mode.replace(" ", "_"))
        os.mkdir(to)
        done = subprocess.run([agc, "eval", os.path.join(work, "cases.agir"), f"--all={work}", f"--to={to}", *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(done.stdout)
        print(done.stdout, end="")
        for k, (op, operands, results, attrs, _) in enumerate(cases):
            worst, limit = 0.0, np.inf
            for i, t in enumerate(results.split()):
                path, dtype = os.path.join(to, f"g{k}.y{i}.npy"), parse_type(t)[0]
                have = load(path, dtype).astype(np.float64) if os.path.exists(path) else np.array(np.inf)
                error = error_of(have, expected[k][i].astype(np.float64))
                if error - TOLERANCE[dtype] >= worst - limit:
                    worst, limit = error, TOLERANCE[dtype]
            yield f"{op} {operands} {attrs} ({mode})", worst, limit


def main():
    cases = [c for c in CASES if not sys.argv[1:] or c[0] in sys.argv[1:]]
    failed, lines = [], []
    with tempfile.TemporaryDirectory() as work:
        for name, error, allowed in check(os.environ.get("AGC", "agc"), cases, work):
            lines.append((name, error <= allowed))
            if error > allowed:
                failed.append(name)
                print(f"{name}: error {error:.3g}, tolerance {allowed:.3g}  FAILED")
    if os.environ.get("AGC_RESULTS"):
        with open(os.path.join(os.environ["AGC_RESULTS"], "variants_test.xml"), "w", encoding="utf-8") as file:
            rows = "".join(f"<testcase name={quoteattr(n)}>{'' if ok else '<failure/>'}</testcase>" for n, ok in lines)
            file.write(f"<testsuite name=\"variants\">{rows}</testsuite>\n")
    print(f"{len(lines) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
