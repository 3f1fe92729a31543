"""Wrong uses of every op that computes, made from its sample: an operand too few and too many, an attribute that it does
not have, a required one left out, and every operand in turn as a scalar, of an integer, and of another dtype. Each is
either accepted or refused with a message that starts with the op's name and says where.

  wrong_uses.py AGC [--all]      by default other types are tried for the first operand only
"""
import json
import re
import subprocess
import sys

PLACE = "wrong.agir:3: error: "


def attributes(values):
    def text(v):
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, str):
            return v if re.fullmatch(r"-?inf|nan|[iuf]\d+|bf16|bool", v) else f'"{v}"'
        return "[" + ", ".join(text(x) for x in v) + "]" if isinstance(v, list) else repr(v)
    return "{" + ", ".join(f"{k} = {text(v)}" for k, v in values.items()) + "}" if values else ""


def module(op, types, values, results):
    """Line 3 is the op. Results that are no longer right are an error of the line too."""
    params = ", ".join(f"input %x{i}: {t}" for i, t in enumerate(types))
    operands = ", ".join(f"%x{i}" for i in range(len(types)))
    result = results[0] if len(results) == 1 else "(" + ", ".join(results) + ")"
    return (f"module @m {{\n  graph @g({params}) -> () {{\n"
            f"    %0: {result} = {op} {operands} {attributes(values)}\n  }}\n}}\n")


def wrong_uses(op, every):
    sample = op["graphs"][0]
    types, values = [i["type"] for i in sample["inputs"]], sample["attrs"]
    results = [o["type"] for o in sample["outputs"]]
    if types:
        yield "an operand too few", types[:-1], values, results
    yield "operands too many", types + ["f32[2]"] * 70, values, results
    yield "an unknown attribute", types, {**values, "no_such": 1}, results
    for attr in op["attrs"]:
        if attr["default"] is None:
            yield f"no {attr['name']}", types, {k: v for k, v in values.items() if k != attr["name"]}, results
    for i, t in enumerate(types if every else types[:1]):
        dtype = t.split("[")[0]
        for other in [f"{dtype}[]", re.sub(r"^\w+", "i16", t), re.sub(r"^\w+", "bool", t)]:
            if other != t:
                yield f"operand {i} is {other}", types[:i] + [other] + types[i + 1:], values, results


def main():
    agc, every, tried, failed = sys.argv[1], "--all" in sys.argv, 0, 0
    ops = [op for op in json.loads(subprocess.check_output([agc, "ops", "--json"])) if op["graphs"]]
    for op in ops:
        refused = False
        for what, types, values, results in wrong_uses(op, every):
            done = subprocess.run([agc, "opt", "-"], input=module(op["name"], types, values, results), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            message = done.stderr.replace("<stdin>", "wrong.agir").splitlines()[0] if done.stderr else ""
            named = message.startswith(PLACE + op["name"])
            tried += 1
            refused = refused or done.returncode == 2
            if not (done.returncode == 0 or (done.returncode == 2 and named)):
                failed += 1
                print(f"{op['name']} with {what}: status {done.returncode}: {message}")
        if not refused:
            failed += 1
            print(f"{op['name']}: nothing was refused")
    print(f"{tried - failed} of {tried} wrong uses of {len(ops)} ops are accepted or have a message")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
