"""The test format of agc's text tests: RUN lines as usual, and every .agir file as a round trip besides.

A .agir file is parsed, printed, parsed and printed again, and the two texts must agree; it needs no RUN line. Files
in errors/ and files with the line `// ROUND-TRIP: no` are left out (they do not parse, or hold several modules).
"""
import os
import subprocess

import lit.formats
import lit.Test

OPT_OUT = "// ROUND-TRIP: no"


class AgcTest(lit.formats.ShTest):
    def __init__(self, agc):
        super().__init__(execute_external=False)
        self.agc = agc

    def execute(self, test, lit_config):
        path = test.getSourcePath()
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        round_trip = path.endswith(".agir") and OPT_OUT not in text and test.path_in_suite[0] != "errors"
        if "RUN:" in text or not round_trip:
            result = super().execute(test, lit_config)
            if result.code is not lit.Test.PASS or not round_trip:
                return result
        environment = dict(os.environ, **test.config.environment)
        once = self.opt(path, None, environment)
        twice = self.opt("-", once.stdout, environment)
        if once.returncode == 0 and twice.returncode == 0 and once.stdout == twice.stdout:
            return lit.Test.Result(lit.Test.PASS, "")
        report = ["round trip of " + path + " failed"]
        for name, run in (("first", once), ("second", twice)):
            report += [f"--- {name}: exit {run.returncode}", run.stdout, run.stderr]
        return lit.Test.Result(lit.Test.FAIL, "\n".join(report))

    def opt(self, path, text, environment):
        """Prints the module at `path` ("-": `text`) as `agc opt` does."""
        try:
            return subprocess.run([self.agc, "opt", path], input=text, capture_output=True, text=True, timeout=60,
                                  env=environment)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(error.cmd, 124, "", "no answer within 60 s")
