#!/usr/bin/env python3
"""Checks that the generated pages are what the program prints: docs/ops.md is `agc ops --markdown`, docs/passes.md is
`agc passes --markdown`.

  check_docs.py --agc PROGRAM ROOT            exit 1 with a diff where a page differs or PROGRAM fails; 77 (skipped)
                                              where there is no PROGRAM yet
  check_docs.py --agc PROGRAM --write ROOT    writes the pages
  check_docs.py --self-test                   plants a stale page and expects it to be found
"""
import argparse
import difflib
import os
import subprocess
import sys
import tempfile

PAGES = ("ops", "passes")
SKIPPED = 77


def printed(agc, page):
    """(text, None), or (None, reason) where the program fails to print the page."""
    try:
        run = subprocess.run([agc, page, "--markdown"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if run.returncode != 0:
        return None, f"`agc {page} --markdown` ended with {run.returncode}: {run.stderr.strip()}"
    return run.stdout, None


def check(agc, root, write):
    status = 0
    if not os.path.exists(agc):
        print(f"docs: not checked: there is no {agc}")
        return SKIPPED
    for page in PAGES:
        path = os.path.join(root, "docs", page + ".md")
        text, reason = printed(agc, page)
        if text is None:
            print(f"docs/{page}.md: cannot be checked: {reason}")
            status = 1
            continue
        if write:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        stored = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                stored = file.read()
        if stored != text:
            print(f"docs/{page}.md is stale; write it with: tools/check_docs.py --agc build/agc --write .")
            sys.stdout.writelines(list(difflib.unified_diff(stored.splitlines(True), text.splitlines(True), "stored", "printed"))[:40])
            status = 1
    if status == 0 and not write:
        print("docs: ok")
    return status


def self_test():
    with tempfile.TemporaryDirectory() as root:
        agc = os.path.join(root, "agc")
        with open(agc, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\necho "# $1"\n')
        os.chmod(agc, 0o755)
        os.makedirs(os.path.join(root, "docs"))
        found = [check(agc, root, False), check(agc, root, True), check(agc, root, False)]
        with open(os.path.join(root, "docs", "ops.md"), "a", encoding="utf-8") as file:
            file.write("stale\n")
        found += [check(agc, root, False), check(os.path.join(root, "nowhere"), root, False)]
        with open(agc, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nkill -SEGV $$\n")
        found.append(check(agc, root, False))
    expected = [1, 0, 0, 1, SKIPPED, 1]
    if found != expected:
        print(f"self-test failed: expected {expected}, found {found}")
    return 0 if found == expected else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agc", default="build/agc")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("root", nargs="?", default=".")
    options = parser.parse_args()
    return self_test() if options.self_test else check(options.agc, options.root, options.write)


if __name__ == "__main__":
    sys.exit(main())
