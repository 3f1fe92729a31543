# Sourced by tools/test and .ci/run: timed stages with a budget.
#   stage NAME BUDGET_SECONDS COMMAND...
# prints how long COMMAND took and returns its status. With AGC_BUDGETS=1 a stage that takes more than twice its budget
# fails, however well it ended.

stage() {
  local name=$1 budget=$2 start=$SECONDS status=0 took
  shift 2
  printf '== %s\n' "$name"
  "$@" || status=$?
  took=$((SECONDS - start))
  printf '== %s: %d s of a budget of %d s' "$name" "$took" "$budget"
  if [ "$status" -ne 0 ]; then
    printf ', FAILED (exit %d)\n' "$status"
    return "$status"
  fi
  if [ "${AGC_BUDGETS:-0}" = 1 ] && [ "$took" -gt $((2 * budget)) ]; then
    printf ', FAILED: over twice the budget\n'
    return 1
  fi
  printf '\n'
}

# The environment of every run: lavapipe unless a driver is chosen already, and a private runtime directory.
vulkan_environment() {
  if [ -z "${VK_ICD_FILENAMES:-}" ] && [ -z "${VK_DRIVER_FILES:-}" ]; then
    # The manifest is lvp_icd.x86_64.json in Mesa 22 and lvp_icd.json in Mesa 25.
    local manifests=(/usr/share/vulkan/icd.d/lvp_icd*.json)
    if [ -e "${manifests[0]}" ]; then
      export VK_ICD_FILENAMES=${manifests[0]}
    else
      printf 'no Vulkan driver: /usr/share/vulkan/icd.d/lvp_icd*.json does not exist (mesa-vulkan-drivers)\n' >&2
    fi
  fi
  runtime_directory "$1"
}

# Mesa warns on every start when XDG_RUNTIME_DIR is not set.
runtime_directory() {
  if [ -z "${XDG_RUNTIME_DIR:-}" ] || [ ! -d "$XDG_RUNTIME_DIR" ]; then
    export XDG_RUNTIME_DIR=$1/xdg
    mkdir -p -m 700 "$XDG_RUNTIME_DIR"
  fi
}
