#!/usr/bin/python3
"""Writes the corpus of onnx_fuzz: the models of test/conformance, and the smallest of Debian's ONNX test data if they
are there.

  make_onnx_corpus.py DIRECTORY
"""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import newer_cases
import onnx_file
import refusals_test


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    files = {name: data for name, (data, _) in refusals_test.CASES.items()}
    for name, make in newer_cases.ALL.items():
        case = make()
        files[name] = onnx_file.model(case["nodes"], case["inputs"], list(case["outputs"]), case["opset"],
                                      case.get("initializers"), case.get("domains"), case.get("functions", ()))
    for path in glob.glob("/usr/share/libonnx-testdata/data/node/*/model.onnx"):
        if os.path.getsize(path) < 2000:
            with open(path, "rb") as file:
                files[path.split("/")[-2]] = file.read()
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    print(f"{len(files)} files in {folder}")


if __name__ == "__main__":
    main()
