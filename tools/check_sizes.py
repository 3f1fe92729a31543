#!/usr/bin/env python3
"""Checks that files and functions stay small: warns from 400 lines a file and 60 a function, fails at 600 and 100.

  check_sizes.py ROOT          warnings and offences, one a line; exit 1 if there is an offence
  check_sizes.py --self-test   plants offences and expects them to be found

A function is a block of braces at namespace or class level whose header ends in a parameter list; tables and classes
are not functions. clang-format's layout is assumed: the closing brace stands where the line of the header began.
"""
import argparse
import os
import re
import sys
import tempfile

DIRECTORIES = ("ir", "passes", "codegen", "compiler", "runtime", "tools", "test", "examples")
FILE_WARN, FILE_FAIL, FUNCTION_WARN, FUNCTION_FAIL = 400, 600, 60, 100
# The line that opens a body: "...) {", with const, noexcept, a trailing type or an initialiser list in between.
OPENS = re.compile(r"^(?P<indent> *)(?P<header>\S.*)\{\s*$")
NOT_FUNCTIONS = re.compile(r"^(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|return)\b|[=\[]\s*$|^\}")
STRINGS = re.compile(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'')
RAW = re.compile(r'R"(\w*)\(')


def sources(root):
    for top in DIRECTORIES:
        for directory, subdirectories, files in os.walk(os.path.join(root, top)):
            subdirectories.sort()
            for file in sorted(files):
                if file.endswith((".h", ".cc", ".py")):
                    yield os.path.relpath(os.path.join(directory, file), root).replace(os.sep, "/")


def without_literals(lines):
    """The same lines with comments, strings and raw strings emptied, so that braces in them do not count."""
    end = None
    for line in lines:
        if end is not None:
            if end not in line:
                yield ""
                continue
            line, end = line[line.index(end) + len(end):], None
        raw = RAW.search(line)
        if raw and (")" + raw[1] + '"') not in line[raw.end():]:
            end = ")" + raw[1] + '"'
            line = line[:raw.start()] + '""'
        yield STRINGS.sub('""', line).split("//")[0].rstrip()


def functions(lines):
    """(first line, last line, name) of every C++ function."""
    clean = list(without_literals(lines))
    number = 0
    while number < len(clean):
        opened = OPENS.match(clean[number])
        if not opened or ")" not in header(clean, number) or NOT_FUNCTIONS.search(opened["header"].strip()):
            number += 1
            continue
        first = number
        while first > 0 and len(clean[first]) - len(clean[first].lstrip()) > 0 and continues(clean, first):
            first -= 1
        depth, last = 0, number
        while last < len(clean):
            depth += clean[last].count("{") - clean[last].count("}")
            if depth <= 0:
                break
            last += 1
        name = re.search(r"([\w:~]+)\s*\(", " ".join(clean[first:number + 1]))
        yield first + 1, last + 1, name[1] if name else clean[first].strip()
        number = last + 1


def continues(clean, number):
    """Whether a line goes on from the one before, as the parameters of a long header do."""
    before = clean[number - 1].rstrip()
    return bool(before) and not before.endswith((";", "{", "}", ":")) and not before.lstrip().startswith("#")


def header(clean, number):
    first = number
    while first > 0 and continues(clean, first) and number - first < 12:
        first -= 1
    return " ".join(clean[first:number + 1])


def check(root):
    warnings, offences = [], []
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        if len(lines) > FILE_WARN:
            (offences if len(lines) > FILE_FAIL else warnings).append(
                f"{path}: {len(lines)} lines (warning from {FILE_WARN}, failure from {FILE_FAIL})")
        for first, last, name in functions(lines) if path.endswith((".h", ".cc")) else []:
            size = last - first + 1
            if size > FUNCTION_WARN:
                (offences if size > FUNCTION_FAIL else warnings).append(
                    f"{path}:{first}: {name} has {size} lines (warning from {FUNCTION_WARN}, failure from {FUNCTION_FAIL})")
    return warnings, offences


def body(lines):
    return ["  int x = 0;" for _ in range(lines)]


def self_test():
    table = ["constexpr Op kOps[] = {"] + ["    {.name = \"x\", .at = [](At& s) { return s; }}," for _ in range(150)] + ["};"]
    planted = {
        "ir/long.cc": ["int a;"] * 601,
        "ir/longish.cc": ["int a;"] * 401,
        "ir/table.cc": table,
        "ir/function.cc": ["namespace agc {", "absl::StatusOr<int> Big(int a,", "                        int b) {"] + body(120) + ["}", "}  // namespace agc"],
        "ir/warned.cc": ["void Warned() {"] + body(70) + ["}"],
        "ir/method.h": ["class A {", " public:", "  void Method() const {"] + body(110) + ["  }", "};"],
        "ir/small.cc": ["void A() {"] + body(40) + ["}", "void B() {"] + body(40) + ["}", "void C() { F(\"{\"); }", "void D() {"] + body(40) + ["}"],
        "ir/nested.cc": ["TEST(A, B) {", "  for (int i = 0; i < 3; ++i) {"] + body(105) + ["  }", "}"],
    }
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "ir"))
        for path, lines in planted.items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        warnings, offences = check(root)
    expected = (["ir/longish.cc", "ir/warned.cc:1"], ["ir/function.cc:2", "ir/long.cc", "ir/method.h:3", "ir/nested.cc:1"])
    found = tuple(sorted(line.split(": ")[0] for line in lines) for lines in (warnings, offences))
    if found != expected:
        print(f"self-test failed: expected {expected}, found {found}")
    return 0 if found == expected else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--agc", help="not used; every check takes it")
    parser.add_argument("root", nargs="?", default=".")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    warnings, offences = check(options.root)
    for line in warnings:
        print(f"warning: {line}")
    print("\n".join(offences) if offences else "sizes: ok")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
