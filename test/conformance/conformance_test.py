#!/usr/bin/python3
"""The test data of the ONNX standard (Debian's libonnx-testdata) on a Vulkan device.

  AGC=build/agc test/conformance/conformance_test.py            compares with expected.tsv and docs/onnx.md; exit 1 on a
                                                               difference
  AGC=build/agc test/conformance/conformance_test.py --write    writes the table of docs/onnx.md

expected.tsv lists what does not pass: test, status, and why. A test that passes although it is listed is a difference
too. The environment: AGC, the program; AGC_RESULTS, a directory for a JUnit file with a test case for each test.
"""
# LABELS: vulkan slow
import collections
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import case_runner
import onnx_file

DATA = "/usr/share/libonnx-testdata/data"
CATEGORIES = ("node", "simple", "pytorch-operator", "pytorch-converted")
MARKER = "<!-- what follows is written by test/conformance/conformance_test.py --write -->\n"


def find_cases():
    """(name, model, data) of every test, by category and name."""
    for category in CATEGORIES:
        folder = os.path.join(DATA, category)
        for test in sorted(os.listdir(folder)):
            for data in sorted(os.listdir(os.path.join(folder, test))):
                if data.startswith("test_data_set"):
                    yield f"{category}/{test}", os.path.join(folder, test, "model.onnx"), os.path.join(folder, test, data)


def read_expected():
    expected = {}
    with open(os.path.join(HERE, "expected.tsv"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, status, reason = line.rstrip("\n").split("\t")
                expected[name] = (status, reason)
    return expected


def operators_of(path):
    with open(path, "rb") as file:
        return sorted(set(onnx_file.operators(file.read())))


def reasons_table(results, expected):
    lines = ["## Tests that do not pass", "", "| tests | status | reason |", "|---|---|---|"]
    groups = collections.defaultdict(list)
    for name in sorted(results):
        if name in expected:
            groups[expected[name]].append(name.split("/")[1].removeprefix("test_"))
    for (status, reason), names in sorted(groups.items(), key=lambda g: g[1]):
        lines.append(f"| {', '.join(names)} | {status} | {reason} |")
    return lines


def operator_table(agc, results, operators):
    """Per operator: since which opset, tests of models with it that pass, and that do not."""
    counts = collections.defaultdict(lambda: [0, 0])
    for name, result in results.items():
        for op in operators[name]:
            counts[op][result["status"] != "passed"] += 1
    lines = ["## Operators", "", "| operator | opsets | tests passed | not passed | refused |", "|---|---|---|---|---|"]
    listed = subprocess.run([agc, "ops", "--onnx"], capture_output=True, text=True, check=True).stdout
    known = set()
    for line in listed.splitlines():
        domain, name, since, refused = line.split("\t")
        known.add((domain, name))
        passed, other = counts[(domain, name)]
        lines.append(f"| {domain + '.' if domain else ''}{name} | {since}+ | {passed} | {other or ''} | {refused} |")
    for domain, name in sorted(set(counts) - known):
        passed, other = counts[(domain, name)]
        functions = f"{passed} as a function" if passed else ""
        lines.append(f"| {domain + '.' if domain else ''}{name} | - | {functions} | {other or ''} | all of it |")
    return lines


def page(agc, results, operators, expected):
    passed = sum(r["status"] == "passed" for r in results.values())
    summary = f"{passed} of {len(results)} tests pass; {len(expected)} do not, for the reasons below."
    with open(os.path.join(ROOT, "docs", "onnx.md"), encoding="utf-8") as file:
        text = file.read()
    head = text.split(MARKER)[0]
    lines = [summary, ""] + reasons_table(results, expected) + [""] + operator_table(agc, results, operators)
    return text, head + MARKER + "\n" + "\n".join(lines) + "\n"


def main():
    agc = os.environ.get("AGC", os.path.join(ROOT, "build", "agc"))
    if not os.path.isdir(DATA):
        print(f"there is no {DATA}: tools/install tests installs libonnx-testdata")
        return 1
    found = list(find_cases())
    results = dict(zip((name for name, _, _ in found), case_runner.run(agc, [case[1:] for case in found])))
    expected, outcomes = read_expected(), []
    for name, _, _ in found:
        result = results[name]
        want = expected.get(name, ("passed", ""))[0]
        why = None if result["status"] == want else f"{result['status']}, expected {want}: {result.get('reason', '')}"
        outcomes.append((name, why))
    for name in set(expected) - set(results):
        outcomes.append((name, "is in expected.tsv, and there is no such test"))
    stored, printed = page(agc, results, {name: operators_of(model) for name, model, _ in found}, expected)
    if "--write" in sys.argv:
        with open(os.path.join(ROOT, "docs", "onnx.md"), "w", encoding="utf-8") as file:
            file.write(printed)
    elif stored != printed:
        outcomes.append(("docs/onnx.md", "is stale; test/conformance/conformance_test.py --write writes it"))
    wrong = [(name, why) for name, why in outcomes if why]
    for name, why in wrong:
        print(f"{name}: {why}")
    counts = collections.Counter(r["status"] for r in results.values())
    print(", ".join(f"{n} {status}" for status, n in sorted(counts.items())), f"of {len(results)};", f"{len(wrong)} not as expected")
    if os.environ.get("AGC_RESULTS"):
        case_runner.junit(os.path.join(os.environ["AGC_RESULTS"], "conformance_test.xml"), "conformance", outcomes)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
