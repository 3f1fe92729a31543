"""exits.py CODE COMMAND...: runs the command and fails unless its exit code is CODE: `not` takes any but 0."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    print(f"exit code {code}, {sys.argv[1]} expected")
sys.exit(code != int(sys.argv[1]))
