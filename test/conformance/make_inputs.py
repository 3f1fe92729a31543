#!/usr/bin/python3
"""Writes the small models of the text tests: test/conformance/Inputs/*.onnx. Run by hand; the files are checked in."""
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from onnx_file import model, node


def main():
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [node("Shape", ["x"], ["s"], "shape"), node("Gather", ["s", "zero"], ["n"], "rows"),
             node("Unsqueeze", ["n", "axes"], ["u"], "rows_1d"), node("Concat", ["u", "rest"], ["t"], "target", axis=0),
             node("MatMul", ["x", "net/w:0"], ["p"], "net/fc/MatMul"), node("Relu", ["p"], ["r"]),
             node("Reshape", ["r", "t"], ["y"], "out")]
    data = model(nodes, {"x": (1, ["batch", 2])}, ["y"], initializers={
        "net/w:0": weight, "zero": np.array(0, np.int64), "axes": np.array([0], np.int64), "rest": np.array([-1], np.int64)})
    with open(os.path.join(HERE, "Inputs", "linear.onnx"), "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
