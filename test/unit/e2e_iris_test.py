#!/usr/bin/python3
# LABELS: vulkan
"""examples/mlp_iris learns the flowers: at least 93 % of the 30 it has not seen, and the loss falls; a data file that is
no Iris file is refused with its name.

  AGC=build/agc test/unit/e2e_iris_test.py
"""
import os
import re
import subprocess
import tempfile
import unittest

BUILD = os.path.dirname(os.path.abspath(os.environ.get("AGC", "build/agc")))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*arguments):
    return subprocess.run([os.path.join(BUILD, "mlp_iris"), *arguments], capture_output=True, text=True, cwd=ROOT,
                          check=False)


class Iris(unittest.TestCase):
    def test_learns(self):
        done = run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("device: ", done.stdout)
        accuracy = float(re.search(r"test accuracy: ([\d.]+)%", done.stdout).group(1))
        losses = [float(x) for x in re.findall(r"loss ([\d.]+)", done.stdout)]
        self.assertGreaterEqual(accuracy, 93)
        self.assertLess(losses[-1], losses[0] / 4)

    def test_refuses_other_files(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("150,4,a,b,c\n1,2,3,4,5\n")
            file.flush()
            done = run("--data", file.name)
        self.assertEqual(done.returncode, 2)
        self.assertIn(file.name + ": expected a header and 150 lines", done.stderr)


if __name__ == "__main__":
    unittest.main()
