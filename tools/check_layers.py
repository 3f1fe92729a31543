#!/usr/bin/env python3
"""Checks who may include what: the layering of docs/architecture.md and the homes of third-party headers.

  check_layers.py ROOT          every offence on one line; exit 1 if there is one
  check_layers.py --self-test   plants offences and expects them to be found
"""
import argparse
import os
import re
import sys
import tempfile

SHARED = {"runtime/format.h", "runtime/status.h", "runtime/plan_check.h", "bundle_generated.h"}
LAYERS = {  # directory -> directories of ours that it may include besides SHARED
    "ir": {"ir"},
    "passes": {"passes", "ir"},
    "codegen": {"codegen", "ir"},
    "compiler": {"compiler", "passes", "codegen", "ir"},
    "runtime": {"runtime"},
    "tools": {"tools", "compiler", "passes", "codegen", "ir", "runtime"},
    "test": {"test", "tools", "compiler", "passes", "codegen", "ir", "runtime"},
    "examples": {"examples", "runtime"},
}
NO_SHARED = {"ir"}
EXTRA = {"examples": {"compiler/agc.h", "ir/base/status.h"}}  # single headers besides; status.h: the AGC_ macros
RUNTIME_ONLY = "examples/runtime_only/"   # shows that running needs no compiler
# Third-party headers -> the path prefixes that may include them.
HOMES = [
    (r"vulkan/", ("runtime/", "test/")),
    (r"(glslang|spirv-tools)/", ("codegen/spirv.cc",)),
    (r"spirv_cross/", ("codegen/reflect.cc", "codegen/export.cc")),
    (r"flatbuffers/|bundle_generated\.h", ("runtime/", "codegen/", "test/")),
    (r"google/protobuf/|.*\.pb\.h", ("compiler/import/",)),
    (r"(gtest|gmock)/", ("test/",)),
    (r"absl/", ("ir/", "passes/", "codegen/", "compiler/", "tools/", "test/", "examples/")),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
GETENV = re.compile(r"\b(secure_)?getenv\s*\(")


def sources(root):
    for layer in sorted(LAYERS):
        for directory, subdirectories, files in os.walk(os.path.join(root, layer)):
            subdirectories.sort()
            for file in sorted(files):
                if file.endswith((".h", ".cc", ".def")):
                    yield os.path.relpath(os.path.join(directory, file), root).replace(os.sep, "/")


def include_offence(path, name):
    """Why `path` may not include `name`, or None."""
    for pattern, homes in HOMES:
        if re.match(pattern, name):
            if path.startswith(RUNTIME_ONLY):
                return "runtime_only uses the runtime only"
            return None if path.startswith(homes) else f"only {', '.join(homes)} may include it"
    layer, target = path.split("/")[0], name.split("/")[0]
    if target not in LAYERS:
        return None  # the standard library
    if path.startswith(RUNTIME_ONLY):
        return None if target in ("runtime", "examples") else "runtime_only uses the runtime only"
    if target in LAYERS[layer] or name in EXTRA.get(layer, ()):
        return None
    if name in SHARED and layer not in NO_SHARED:
        return None
    allowed = sorted(LAYERS[layer]) + sorted(EXTRA.get(layer, ())) + ([] if layer in NO_SHARED else sorted(SHARED))
    return f"{layer}/ may include {', '.join(allowed)}"


def check(root):
    offences, readers = [], {}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                found = INCLUDE.match(line)
                reason = include_offence(path, found[2]) if found else None
                if reason:
                    offences.append(f"{path}:{number}: includes {found[2]}: {reason}")
                if GETENV.search(line.split("//")[0]) and path.split("/")[0] in ("ir", "passes", "codegen", "compiler", "runtime"):
                    readers.setdefault(path, number)
    if len(readers) > 1:
        offences += [f"{path}:{number}: reads the environment; one file may: {', '.join(sorted(readers))}"
                     for path, number in sorted(readers.items())]
    return offences


def self_test():
    planted = {
        "ir/a.cc": ['#include "passes/x.h"', '#include "runtime/format.h"', '#include "ir/b.h"', "#include <vector>"],
        "passes/a.cc": ['#include "codegen/x.h"', '#include "runtime/format.h"', '#include "ir/b.h"'],
        "codegen/spirv.cc": ["#include <glslang/Public/ShaderLang.h>", '#include "runtime/device.h"'],
        "codegen/glsl.cc": ["#include <spirv-tools/libspirv.hpp>", '#include "spirv_cross/spirv_cross_c.h"'],
        "compiler/a.cc": ["#include <vulkan/vulkan.h>", '#include "passes/x.h"', 'f(getenv("A"));'],
        "runtime/a.cc": ["#include <vulkan/vulkan.h>", '#include "absl/status/status.h"', '#include "ir/b.h"', 'f(getenv("A"));'],
        "examples/x/x.cc": ['#include "compiler/agc.h"', '#include "ir/b.h"'],
        "examples/runtime_only/r.cc": ['#include "runtime/device.h"', '#include "compiler/agc.h"'],
    }
    expected = ["codegen/glsl.cc:1", "codegen/glsl.cc:2", "codegen/spirv.cc:2", "compiler/a.cc:1", "compiler/a.cc:3",
                "examples/runtime_only/r.cc:2", "examples/x/x.cc:2", "ir/a.cc:1", "ir/a.cc:2", "passes/a.cc:1",
                "runtime/a.cc:2", "runtime/a.cc:3", "runtime/a.cc:4"]
    with tempfile.TemporaryDirectory() as root:
        for path, lines in planted.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        found = sorted(":".join(offence.split(":")[:2]) for offence in check(root))
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
    offences = check(options.root)
    print("\n".join(offences) if offences else "layers: ok")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
