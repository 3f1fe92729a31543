#!/usr/bin/python3
"""The hand-written pages are true in what a program can check: links lead somewhere, files and directories named in
`code` exist, tests named `Suite.Name` exist, and code blocks headed by <!-- quoted from FILE --> stand in that file.

  test/unit/docs_test.py          exit 1 with one line per offence; a planted page proves that offences are found
"""
import os
import re
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOPS = ("ir", "passes", "codegen", "compiler", "runtime", "tools", "test", "examples", "docs", ".ci")
# Files that the worked examples make, and what a build makes.
MADE = ("passes/drop_states.cc", "test/passes/drop-states")
QUOTE = re.compile(r"<!-- quoted from (\S+) -->\n```\w*\n(.*?)\n```", re.S)


def test_names(root):
    names = set()
    for name in sorted(os.listdir(os.path.join(root, "test", "unit"))):
        if not name.endswith("_test.cc"):
            continue
        with open(os.path.join(root, "test", "unit", name), encoding="utf-8") as file:
            names |= {f"{suite}.{test}" for suite, test in re.findall(r"^TEST\w*\((\w+), (\w+)\)", file.read(), re.M)}
    return names


def check_page(root, page, tests):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    for source, quoted in QUOTE.findall(text):
        path = os.path.join(root, source)
        if not os.path.exists(path) or quoted not in open(path, encoding="utf-8").read():
            yield f"{page}: the code quoted from {source} does not stand there"
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(page), target)):
            yield f"{page}: links to {target}, which does not exist"
    for code in re.findall(r"`([^`\n]+)`", text):
        path = code.rstrip("/")
        if re.fullmatch(r"[\w./-]+", code) and path.split("/")[0] in TOPS and "/" in code:
            if not os.path.exists(os.path.join(root, path)) and not path.startswith(MADE):
                yield f"{page}: names {code}, which does not exist"
        if re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", code) and code not in tests:
            yield f"{page}: names the test {code}, which does not exist"


def check(root):
    docs = os.path.join(root, "docs")
    pages = ["README.md"] + ["docs/" + name for name in sorted(os.listdir(docs)) if name.endswith(".md")]
    tests = test_names(root)
    return [offence for page in pages if os.path.exists(os.path.join(root, page)) for offence in check_page(root, page, tests)]


def self_test():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "docs"))
        os.makedirs(os.path.join(root, "test", "unit"))
        with open(os.path.join(root, "test", "unit", "a_test.cc"), "w", encoding="utf-8") as file:
            file.write("TEST(Suite, Here) {}\n")
        with open(os.path.join(root, "docs", "a.md"), "w", encoding="utf-8") as file:
            file.write("[x](a.md) [y](b.md) `ir/none.h` `test/unit/` `Suite.Here` `Suite.Gone`\n"
                       "<!-- quoted from docs/a.md -->\n```cpp\nint x;\n```\n<!-- quoted from docs/b.md -->\n```cpp\nint y;\n```\n")
        found = [offence.split(": ", 1)[1].split(",")[0] for offence in check(root)]
    expected = ["the code quoted from docs/b.md does not stand there", "links to b.md", "names ir/none.h", "names the test Suite.Gone"]
    return [] if found == expected else [f"self-test: expected {expected}, found {found}"]


def main():
    offences = self_test() + check(ROOT)
    print("\n".join(offences) if offences else "pages: ok")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
