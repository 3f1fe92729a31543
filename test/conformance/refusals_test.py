#!/usr/bin/python3
"""What is wrong with a file, and what is not supported, is said in one line that names the node and the reason: each
case is a file and a part of the message. No file crashes the program: every truncation of a model, and files with
random bytes in them, end with exit code 0 or 2.

  AGC=build/agc test/conformance/refusals_test.py      exit 1 with a line per difference
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from onnx_file import Graph, field, function, model, node, tensor

X = np.zeros((2, 3), np.float32)
F32, I64, STRING, INT4, FLOAT8 = 1, 7, 8, 22, 17


def relu(**more):
    return model([node("Relu", ["x"], ["y"], "act")], {"x": X}, ["y"], **more)


def typed(dtype, dims=(2,)):
    return model([node("Identity", ["x"], ["y"])], {"x": (dtype, list(dims))}, ["y"])


def weight(data):
    return model([node("Add", ["x", "w"], ["y"], "sum")], {"x": X}, ["y"], initializers={"w": data})


def one(op, inputs, given=None, outputs=("y",), opset=18, initializers=None, **attrs):
    return model([node(op, inputs, list(outputs), "here", **attrs)], given or {"x": X}, ["y"], opset, initializers)


def external(location, **more):
    entries = {"location": location, **more}
    out = field(1, 2) + field(1, 3) + field(2, 1) + field(8, "w") + field(14, 1)
    return out + b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries.items())


NESTED = Graph([node("Relu", ["x"], ["z"])], {}, ["z"])
CALLS_ITSELF = function("F", "here", ["a"], ["b"], [node("F", ["a"], ["b"], domain="here")])

# name: (file, what the message has)
CASES = {
    "empty": (b"", "not an ONNX file: it has no graph"),
    "text": (b"module @m { }", "not an ONNX file: byte"),
    "no_opset": (field(1, 8) + field(7, Graph([], {}, []).data), "names no operator set"),
    "newer_opset": (relu(opset=99), "opset 99 of ai.onnx, 1 to 25 are read"),
    "unknown_operator": (one("Frobnicate", ["x"]), r"node 'here' \(Frobnicate, opset 18\): the operator is not supported"),
    "unknown_domain": (model([node("Magic", ["x"], ["y"], "n", "far.away")], {"x": X}, ["y"]),
                       r"node 'n' \(far.away.Magic, opset 1\): the operator is not supported"),
    "too_old": (one("Gelu", ["x"], opset=13), r"\(Gelu, opset 13\): the operator is not supported"),
    "unknown_attribute": (one("Relu", ["x"], slope=1.0), "attribute slope is not known"),
    "attribute_type": (one("LeakyRelu", ["x"], alpha=1), "attribute alpha has type 2, expected 1"),
    "attribute_missing": (one("Concat", ["x"]), "attribute axis is missing"),
    "attribute_choice": (one("BitShift", ["x", "x"], {"x": X.astype(np.uint8)}, direction="UP"),
                         "attribute direction is 'UP', expected LEFT, RIGHT"),
    "operand_missing": (one("Add", ["x"]), "operand 1 is missing"),
    "operand_too_many": (one("Relu", ["x", "x"]), r"operand 1 \('x'\) is not supported"),
    "unknown_name": (one("Add", ["x", "nowhere"]), "'nowhere' is neither an input, an initialiser nor the result of a node"),
    "unknown_output": (model([], {"x": X}, ["y"]), "output: 'y' is neither"),
    "cycle": (model([node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second")], {"x": X}, ["b"]),
              r"node 'first' \(Add\) needs its own result: the graph has a cycle"),
    "result_of_two_nodes": (model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], {"x": X}, ["y"]),
                            "'y' is the result of two nodes"),
    "result_not_given": (model([node("LSTM", ["x", "w", "r"], ["", "", "", "c"], "rnn", hidden_size=1)],
                               {"x": np.zeros((1, 1, 1), np.float32), "w": np.zeros((1, 4, 1), np.float32),
                                "r": np.zeros((1, 4, 1), np.float32)}, ["c"]), "'c' is a result that its node does not give"),
    "shapes": (one("Add", ["x", "z"], {"x": X, "z": np.zeros((2, 4), np.float32)}), r"shapes do not broadcast"),
    "dtypes": (one("Add", ["x", "z"], {"x": X, "z": X.astype(np.int64)}), "operands are f32.* and i64.*, cast one of them"),
    "string_input": (typed(STRING), "input 'x': element type string is needed, which agc has not"),
    "int4_input": (typed(INT4), "element type int4 is needed"),
    "float8_cast": (one("Cast", ["x"], to=FLOAT8), "element type float8e4m3fn is needed"),
    "unbound_extent": (typed(F32, ["batch", 3]), "extent 0 is not fixed; bind it with --dim batch=N"),
    "unnamed_extent": (model([node("Relu", ["x"], ["y"])], {"x": (F32, [-1, 3])}, ["y"]), "bind it with --dim x.0=N"),
    "unknown_dim": (typed(F32, ["batch", 3]), "no extent of an input is called foo; those to bind are: batch", "--dim", "foo=3"),
    "no_dim": (typed(F32, [2, 3]), "no extent of an input is called x.0; those to bind are: none", "--dim", "x.0=2"),
    "no_shape": (model([node("Relu", ["x"], ["y"])], {"x": (F32, None)}, ["y"]), "input 'x' has no shape"),
    "huge_input": (typed(F32, [1 << 40, 1 << 40]), "more elements than 2\\^40"),
    "huge_weight": (weight(field(1, 1 << 62) + field(1, 8) + field(2, 1) + field(8, "w")), "more elements than 2\\^40"),
    "huge_constant": (one("ConstantOfShape", ["s"], {"x": X}, initializers={"s": np.array([1 << 40, 1 << 40], np.int64)}),
                      "more than 2\\^31 elements"),
    "huge_range": (one("Range", ["a", "b", "c"], initializers={"a": np.array(0, np.int64), "b": np.array(1 << 60, np.int64),
                                                              "c": np.array(1, np.int64)}), "elements"),
    "negative_extent": (weight(field(1, -2) + field(2, 1) + field(8, "w")), "an extent is -2"),
    "short_weight": (weight(tensor("w", X, raw=b"1234")), "tensor 'w': 4 bytes, f32\\[2,3\\] has 24"),
    "bool_weight": (model([node("Not", ["w"], ["y"])], {}, ["y"], initializers={"w": tensor("w", np.zeros(2, bool), raw=b"\1\7")}),
                    "a bool that is neither 0 nor 1"),
    "external_outside": (weight(external("../secret")), "external data lies at '../secret', expected a file beside the model"),
    "external_absolute": (weight(external("/etc/passwd")), "expected a file beside the model"),
    "external_missing": (weight(external("none.bin")), "cannot open .*none.bin"),
    "external_short": (weight(external("short.bin")), "short.bin has 4 bytes, those from 0 to 24 are meant"),
    "external_offset": (weight(external("short.bin", offset="99999999999")), "those from 99999999999"),
    "run_time_shape": (one("Reshape", ["x", "s"], {"x": X, "s": np.zeros(2, np.int64)}),
                       r"shape \(operand 1, 's'\) has to be known when compiling; it depends on input 's'"),
    "run_time_nonzero": (one("NonZero", ["x"]), "has to be known when compiling"),
    "endless_loop": (model([node("Loop", ["", "go", "x"], ["y"], "loop", body=Graph(
        [node("Identity", ["c"], ["d"]), node("Relu", ["v"], ["w"])], {"i": (I64, []), "c": (9, []), "v": (F32, [2, 3])}, ["d", "w"]))],
        {"x": X}, ["y"], initializers={"go": np.array(True)}), "the loop has no end"),
    "function_of_itself": (model([node("F", ["x"], ["y"], domain="here")], {"x": X}, ["y"], domains={"here": 1},
                                 functions=[CALLS_ITSELF]), "functions call each other without an end"),
    "branch_types": (model([node("If", ["c"], ["y"], "choice", then_branch=NESTED, else_branch=Graph(
        [node("Transpose", ["x"], ["z"])], {}, ["z"]))], {"x": X, "c": np.array(True)}, ["y"]),
        "the condition has to be known when compiling"),
    "sequence_as_tensor": (model([node("SequenceConstruct", ["x", "x"], ["s"]), node("Relu", ["s"], ["y"])], {"x": X}, ["y"]),
                           "is a sequence, expected a tensor"),
    "sparse": (one("Constant", [], {"x": X}, sparse_value=X), "sparse"),
    "clip_of_lstm": (one("LSTM", ["x", "w", "r"], {"x": np.zeros((1, 1, 1), np.float32), "w": np.zeros((1, 4, 1), np.float32),
                                                   "r": np.zeros((1, 4, 1), np.float32)}, clip=1.0), "attribute clip"),
    "axis": (one("Flatten", ["x"], axis=7), "axis 7 of rank 2"),
    "kernel_shape": (one("Conv", ["x", "w"], {"x": np.zeros((1, 1, 4, 4), np.float32), "w": np.zeros((1, 1, 3, 3), np.float32)},
                         kernel_shape=[2, 2]), "kernel_shape is not that of the weight"),
}


def compile_file(agc, path, *flags):
    return subprocess.run([agc, "compile", path, "-o", os.devnull, "--target", "lavapipe", *flags], capture_output=True, text=True,
                          check=False, timeout=120)


def check(agc, folder, name, data, message, *flags):
    path = os.path.join(folder, name + ".onnx")
    with open(path, "wb") as file:
        file.write(data)
    run = compile_file(agc, path, *flags)
    lines = run.stderr.strip().splitlines()
    if run.returncode != 2 or len(lines) != 1 or not re.search(message, lines[0]):
        return f"exit code {run.returncode}, expected 2 and '{message}': {run.stderr.strip()[-400:]}"
    return None


def mutations():
    """Truncations of a model, and copies with a few random bytes."""
    whole = CASES["result_of_two_nodes"][0] + CASES["endless_loop"][0] + CASES["function_of_itself"][0]
    whole += model([node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
                   {"x": np.zeros((1, 1, 4, 4), np.float32)}, ["y"], initializers={"w": np.ones((1, 1, 3, 3), np.float32)})
    for end in range(0, len(whole), 17):
        yield whole[:end]
    random = np.random.RandomState(7)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            data[random.randint(len(data))] = random.randint(256)
        yield bytes(data)


def main():
    agc = os.path.abspath(os.environ.get("AGC", os.path.join(HERE, "..", "..", "build", "agc")))
    wrong, mutants = [], 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "short.bin"), "wb") as file:
            file.write(b"1234")
        for name, case in CASES.items():
            why = check(agc, folder, name, *case)
            wrong += [f"{name}: {why}"] if why else []
        for data in mutations():
            mutants += 1
            path = os.path.join(folder, "mutant.onnx")
            with open(path, "wb") as file:
                file.write(data)
            run = compile_file(agc, path)
            if run.returncode not in (0, 2):
                wrong.append(f"mutant {mutants}: exit code {run.returncode}: {run.stderr[-200:]}")
    for line in wrong:
        print(line)
    print(f"{len(CASES)} messages and {mutants} broken files, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
