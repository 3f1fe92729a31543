#!/usr/bin/env python3
"""tools/count_results.py: what counts as passed, failed and skipped, and that a crash is not overlooked."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "count_results.py")

GTEST = """<testsuites><testsuite name="A">
<testcase name="ok" classname="A" status="run" result="completed"/>
<testcase name="off" classname="A" status="notrun" result="suppressed"/>
<testcase name="skip" classname="A" status="run" result="skipped"><skipped message="no device"/></testcase>
%s</testsuite></testsuites>"""
FAILURE = '<testcase name="bad" classname="A" status="run"><failure message="x"/></testcase>\n'


def ctest(*entries):
    rows = []
    for name, status in entries:
        inner = '<failure message=""/>' if status == "fail" else ""
        if status == "skip":
            inner, status = '<skipped message="SKIP_RETURN_CODE=77"/>', "notrun"
        elif status == "notrun":
            inner = '<skipped message="Unable to find executable"/>'
        rows.append(f'<testcase name="{name}" classname="{name}" status="{status}">{inner}</testcase>')
    return "<testsuite>" + "".join(rows) + "</testsuite>"


class CountResults(unittest.TestCase):
    def count(self, files, status="", *arguments):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text)
            run = subprocess.run([sys.executable, TOOL, *arguments, directory + status], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.stdout.splitlines()[-1], run.returncode

    def test_adds_programs_and_scripts(self):
        files = {"a.xml": GTEST % "", "ctest.xml": ctest(("a", "run"), ("script", "run"), ("docs", "skip"))}
        self.assertEqual(self.count(files), ("2 passed, 0 failed", 0))

    def test_failure_counts_once(self):
        files = {"a.xml": GTEST % FAILURE, "ctest.xml": ctest(("a", "fail"))}
        self.assertEqual(self.count(files, "=8"), ("1 passed, 1 failed", 1))

    def test_crash_without_results(self):
        self.assertEqual(self.count({"ctest.xml": ctest(("a", "fail"))}), ("0 passed, 1 failed", 1))

    def test_crash_at_exit_and_cut_off_results(self):
        self.assertEqual(self.count({"a.xml": GTEST % "", "ctest.xml": ctest(("a", "fail"))}), ("1 passed, 1 failed", 1))
        self.assertEqual(self.count({"a.xml": "<testsuites><test", "ctest.xml": ctest(("a", "fail"))}), ("0 passed, 1 failed", 1))

    def test_program_that_is_missing(self):
        self.assertEqual(self.count({"ctest.xml": ctest(("a", "run"), ("b", "notrun"))}), ("1 passed, 1 failed", 1))

    def test_nothing_ran(self):
        self.assertEqual(self.count({}), ("0 passed, 1 failed", 1))

    def test_exit_status_alone_fails(self):
        files = {"a.xml": GTEST % "", "ctest.xml": ctest(("a", "run"))}
        self.assertEqual(self.count(files, "=1"), ("1 passed, 1 failed", 1))

    def test_extra_counts(self):
        files = {"ctest.xml": ctest(("a", "run"))}
        self.assertEqual(self.count(files, "=0", "--passed", "3", "--failed", "1"), ("4 passed, 1 failed", 1))

    def test_build_that_failed(self):
        self.assertEqual(self.count({}, "=1", "--passed", "3"), ("3 passed, 1 failed", 1))


if __name__ == "__main__":
    unittest.main()
