#!/usr/bin/env python3
"""Adds up test results and prints `N passed, N failed` as its last line.

  count_results.py [--passed N] [--failed N] DIRECTORY[=STATUS]...

Each directory holds the JUnit files of GoogleTest and lit, and ctest's own ctest.xml; STATUS is how the run that wrote
them ended. A ctest entry that wrote no file of its own (a script, or a program that crashed) counts as one test; a run
that ended badly without a failed test, or that ran nothing, counts as one failure. Exits 0 only if nothing failed.
"""
import argparse
import os
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    """(name, outcome) of every testcase element; outcome is passed, failed or skipped."""
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            yield name, "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            yield name, "skipped"
        else:
            yield name, "passed"


def ctest_entries(path):
    """(name, outcome) of ctest's entries; an entry that could not be started failed, one that asked to be skipped did not."""
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None and "SKIP_" in (skipped.get("message") or ""):
            yield case.get("name"), "skipped"
        elif case.get("status") == "run" and case.find("failure") is None:
            yield case.get("name"), "passed"
        elif case.get("status") == "disabled":
            yield case.get("name"), "skipped"
        else:
            yield case.get("name"), "failed"


def add_up(directory):
    """All outcomes below one results directory: {"passed": [names], "failed": [names], "skipped": [names]}."""
    total = {"passed": [], "failed": [], "skipped": []}
    failed_files = {}
    for file in sorted(os.listdir(directory) if os.path.isdir(directory) else []):
        if not file.endswith(".xml") or file == "ctest.xml":
            continue
        name = file[:-len(".xml")]
        try:
            found = list(cases(os.path.join(directory, file)))
        except ElementTree.ParseError:
            found = []  # cut off by a crash: counted by its ctest entry
        for case, outcome in found:
            total[outcome].append(f"{name}: {case}")
        if found:
            failed_files[name] = any(outcome == "failed" for _, outcome in found)
    ctest = os.path.join(directory, "ctest.xml")
    for name, outcome in ctest_entries(ctest) if os.path.exists(ctest) else []:
        if name not in failed_files or (outcome == "failed" and not failed_files[name]):
            total[outcome].append(name)
    return total


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passed", type=int, default=0)
    parser.add_argument("--failed", type=int, default=0)
    parser.add_argument("directories", nargs="*")
    options = parser.parse_args(arguments)
    passed, failed, skipped = options.passed, options.failed, 0
    for argument in options.directories:
        directory, _, status = argument.partition("=")
        total = add_up(directory)
        if not total["failed"] and status not in ("", "0"):
            total["failed"].append(f"the run of {directory} ended with status {status}")
        elif not total["failed"] and not total["passed"]:
            total["failed"].append(f"no test ran in {directory}")
        passed += len(total["passed"])
        failed += len(total["failed"])
        skipped += len(total["skipped"])
        for outcome in ("skipped", "failed"):
            for name in total[outcome]:
                print(f"{outcome}: {name}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
