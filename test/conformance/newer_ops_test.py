#!/usr/bin/python3
"""Operators of newer opsets than Debian's test data has, and forms of older ones that it leaves out, on a Vulkan device:
models are written here, expectations computed with numpy from the definitions of the standard.

  AGC=build/agc test/conformance/newer_ops_test.py [NAME...]     exit 1 with a line per difference
"""
# LABELS: vulkan
import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import case_runner
import newer_cases
import onnx_file


def write_case(folder, case):
    """model.onnx, input_N.pb and output_N.pb of one case."""
    os.makedirs(folder)
    inputs, outputs = case["inputs"], case["outputs"]
    data = onnx_file.model(case["nodes"], inputs, list(outputs), case["opset"], case.get("initializers"),
                           case.get("domains"), case.get("functions", ()))
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(data)
    for kind, values in (("input", inputs), ("output", outputs)):
        for k, (name, array) in enumerate(values.items()):
            with open(os.path.join(folder, f"{kind}_{k}.pb"), "wb") as file:
                file.write(onnx_file.tensor(name, array))


def main():
    agc = os.environ.get("AGC", os.path.join(HERE, "..", "..", "build", "agc"))
    np.random.seed(1)
    chosen = {name: case for name, case in newer_cases.ALL.items() if not sys.argv[1:] or name in sys.argv[1:]}
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, case in chosen.items():
            path = os.path.join(folder, name)
            write_case(path, case())
            paths.append((os.path.join(path, "model.onnx"), path))
        for name, result in zip(chosen, case_runner.run(agc, paths)):
            passed = result["status"] == "passed"
            outcomes.append((name, None if passed else f"{result['status']}: {result.get('reason', '')}"))
    wrong = [(name, why) for name, why in outcomes if why]
    for name, why in wrong:
        print(f"{name}: {why}")
    print(f"{len(outcomes) - len(wrong)} of {len(outcomes)} cases pass")
    if os.environ.get("AGC_RESULTS"):
        case_runner.junit(os.path.join(os.environ["AGC_RESULTS"], "newer_ops_test.xml"), "newer_ops", outcomes)
    return 1 if wrong or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
