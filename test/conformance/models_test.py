#!/usr/bin/python3
"""The models of test/conformance/models on a Vulkan device, within 1e-3 of their expected outputs' largest magnitude,
as they are and exported by agc and read again.

  AGC=build/agc test/conformance/models_test.py      exit 1 with a line per difference
"""
# LABELS: vulkan
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import case_runner


def main():
    agc = os.path.abspath(os.environ.get("AGC", os.path.join(HERE, "..", "..", "build", "agc")))
    folder = os.path.join(HERE, "models")
    names = sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n)))
    with tempfile.TemporaryDirectory() as made:
        runs = []
        for name in names:
            model = os.path.join(folder, name, "model.onnx")
            exported = os.path.join(made, name + ".onnx")
            subprocess.run([agc, "export", model, "-o", exported], check=True)
            runs += [(name, model), (name + ", exported", exported)]
        results = case_runner.run(agc, [(model, os.path.join(folder, name.split(",")[0])) for name, model in runs])
    outcomes = [(name, None if r["status"] == "passed" else f"{r['status']}: {r.get('reason', '')}")
                for (name, _), r in zip(runs, results)]
    for name, why in outcomes:
        print(f"{name}: {why or 'passed'}")
    if os.environ.get("AGC_RESULTS"):
        case_runner.junit(os.path.join(os.environ["AGC_RESULTS"], "models_test.xml"), "models", outcomes)
    return 1 if any(why for _, why in outcomes) or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
