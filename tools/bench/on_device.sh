#!/bin/bash
# What is measured on a GPU machine, in one go, from carried binaries: trains LeNet-5 (the check), profiles its step, and
# runs `agc check` over the modules beside it and the tests of DIR. Usage: tools/bench/on_device.sh DIR, where DIR holds
# agc, lenet5, profile_entry, the shared libraries they need and any e2e_*_test. Runs everything; exits 1, with what failed
# on the last line, where a check or a test says no.
set -u
failed=()
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
export LD_LIBRARY_PATH=$dir XDG_RUNTIME_DIR=/tmp
"$dir/agc" devices
"$dir/lenet5" --data "$here/../../examples/data/mnist" --out /tmp/lenet5.agb || failed+=(lenet5)
"$dir/agc" dump /tmp/lenet5.agb --ir > /tmp/lenet5.agir
for abi in bindings addresses; do
  "$dir/agc" compile /tmp/lenet5.agir --abi $abi -o /tmp/lenet5_$abi.agb && echo "== train_step, $abi" &&
    "$dir/profile_entry" /tmp/lenet5_$abi.agb train_step 50 || failed+=("profile of $abi")
done
for model in "$here"/models/*.agir; do
  for abi in bindings addresses; do
    echo "== check $(basename "$model") $abi"
    "$dir/agc" check "$model" --abi $abi --trusted || failed+=("$(basename "$model") $abi")
  done
done
for test in "$dir"/e2e_*_test; do
  [ -x "$test" ] || continue
  echo "== $(basename "$test")"
  "$test" --without-layers --gtest_brief=1 || failed+=("$(basename "$test")")
done
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[*]}"; exit 1; }
