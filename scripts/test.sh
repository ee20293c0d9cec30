#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Prints what it is about to do and how long
# each stage took against its budget; the budgets add up to less than 45 minutes on two cores.
#   scripts/test.sh [STAGE...]        stages: setup release sanitize; all of them by default
set -euo pipefail
cd "$(dirname "$0")/.."

stages=("$@")
[ ${#stages[@]} -eq 0 ] && stages=(setup release sanitize)
summary=()

# stage NAME BUDGET_SECONDS COMMAND...
stage() {
  local name=$1 budget=$2 begin=$SECONDS
  shift 2
  echo "== $name (budget ${budget} s): $*"
  "$@"
  local took=$((SECONDS - begin)) note=""
  [ $took -gt "$budget" ] && note="  OVER BUDGET"
  summary+=("$(printf '%-34s %5d s of %5d s%s' "$name" $took "$budget" "$note")")
}

tests() {  # preset, then ctest's own arguments
  ctest --test-dir "build/$1" --output-on-failure --no-tests=error "${@:2}"
}

for name in "${stages[@]}"; do
  case $name in
    setup)
      stage "install packages" 200 scripts/setup.sh test ;;
    release)
      stage "configure release" 15 cmake --preset release
      stage "build release" 930 cmake --build --preset release
      stage "test release" 90 tests release -j2 -LE "soak|compose|cluster|labs"
      # Whole clusters in real time: one at a time.
      stage "test clusters and labs" 540 tests release -L "cluster|labs"
      stage "test compose" 240 tests release -L compose ;;
    sanitize)
      stage "configure asan" 15 cmake --preset asan
      stage "build asan" 270 cmake --build --preset asan --target ranklab_unit_tests
      # KNOWN LEAK, to be mended: ps/client keeps a call that is never answered (its closures hold each other).
      stage "test asan" 60 tests asan -j2 -L "unit|sim|socket" -E AServerWhoseReplicaWasPromotedAnswersNobodyAnyMore
      stage "configure tsan" 15 cmake --preset tsan
      stage "build tsan" 200 cmake --build --preset tsan --target ranklab_unit_tests
      # Virtual time has one thread: nothing there for it to see.
      stage "test tsan" 100 tests tsan -j2 -L "unit|socket" ;;
    *)
      echo "test.sh: no stage $name; setup, release, sanitize" >&2; exit 2 ;;
  esac
done

echo
printf '%s\n' "${summary[@]}"
