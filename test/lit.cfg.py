"""Configuration of the text tests: `ctest -R lit`, or `python3 lit.py -v -Dagc=build/agc -Dllvm=/usr/lib/llvm-15/bin test`."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import agc_lit  # a class defined in this file could not be sent to lit's workers

here = os.path.dirname(os.path.abspath(__file__))
agc = os.path.abspath(lit_config.params["agc"])
if not os.path.exists(agc):
    lit_config.fatal(agc + " does not exist: build the target agc first")

config.name = "agc"
config.suffixes = [".agir", ".test"]
config.excludes = ["Inputs", "unit"]
config.test_source_root = here
config.test_exec_root = lit_config.params.get("exec_root", os.path.join(os.path.dirname(agc), "lit"))
config.test_format = agc_lit.AgcTest(agc)

# lit starts tests with an almost empty environment.
config.environment["PATH"] = os.pathsep.join([os.path.dirname(agc), lit_config.params["llvm"], os.environ["PATH"]])
for name in sorted(os.environ):
    if name in ("XDG_RUNTIME_DIR", "VK_ICD_FILENAMES", "VK_DRIVER_FILES", "LP_NATIVE_VECTOR_WIDTH", "HOME") or name.startswith(("AGC_", "VK_LAYER_")) \
            or name.endswith("SAN_OPTIONS"):
        config.environment[name] = os.environ[name]

# %root: the source tree, %build: the build tree.
config.substitutions.append(("%root", os.path.dirname(here)))
config.substitutions.append(("%build", os.path.dirname(agc)))

# `// REQUIRES: vulkan` for a test that runs on a device: where `agc devices` finds one, in the environment of the tests.
if lit_config.params.get("vulkan", "1") == "1":
    devices = subprocess.run([agc, "devices", "--json"], capture_output=True, text=True, check=False,
                             env=dict(config.environment))
    if devices.returncode == 0 and json.loads(devices.stdout):
        config.available_features.add("vulkan")
    else:
        lit_config.note("no Vulkan device: the tests that need one are unsupported")
