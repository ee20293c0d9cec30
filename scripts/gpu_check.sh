#!/usr/bin/env bash
# Everything that needs a GPU, in one run on a machine with nothing but NVIDIA's driver, and what it
# lacks named: the gpu tests, gpt on one GPU with its MFU, two workers over TCP, gRPC and NCCL, the
# compare lab natively, and NCCL's collectives. Prints one table. Takes less than six minutes: what
# there is no time for is said to be skipped.
#   scripts/gpu_check.sh [FOLDER | FOLDER.tar.gz]    the portable folder; default: that of this script,
#                                                    or the build's
# Exit code: 0 all well, 1 something failed, 2 a mistake in the arguments, 4 there is no GPU here.
set -uo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
given=${1:-$source_dir}
[ -x "$given/bin/ranklab" ] || given=${1:-$source_dir/build/portable_gpu/ranklab-portable}
most_seconds=345
begin=$SECONDS
work=$(mktemp -d "${TMPDIR:-/tmp}/ranklab-gpu-check.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
rows=()

row() { rows+=("$(printf '%-34s %-8s %5s s  %s' "$1" "$2" "$3" "$4")"); printf '%s\n' "${rows[-1]}"; }

# stage NAME SECONDS COMMAND...: standard output is what a row says (its last line), and kept in
# $work/NAME.log with the errors.
stage() {
  local name=$1 limit=$2 left=$((most_seconds - SECONDS + begin)) started=$SECONDS code=0
  shift 2
  if [ "$left" -lt 5 ]; then
    row "$name" skipped 0 "the check's $most_seconds s are over"
    failed=1
    return
  fi
  [ "$limit" -gt "$left" ] && limit=$left
  timeout --kill-after=5 "$limit" "$@" >"$work/log" 2>&1 || code=$?
  local said
  said=$(grep -v '^[[:space:]]*$' "$work/log" | tail -n 1)
  case $code in
    0) row "$name" passed $((SECONDS - started)) "$said" ;;
    124 | 137) row "$name" FAILED $((SECONDS - started)) "not done in $limit s: $said"; failed=1 ;;
    *) row "$name" FAILED $((SECONDS - started)) "exit code $code: $said"; failed=1 ;;
  esac
}

skip() { row "$1" skipped 0 "$2"; }

unpack() {
  case $given in
    *.tar.gz | *.tgz)
      [ -f "$given" ] || { echo "gpu_check: there is no $given" >&2; exit 2; }
      tar -xzf "$given" -C "$work" || exit 2
      folder=$(dirname "$(dirname "$(find "$work" -path '*/bin/ranklab' | head -n 1)")") ;;
    *) folder=$given ;;
  esac
  [ -x "$folder/bin/ranklab" ] || {
    echo "gpu_check: no bin/ranklab in $given; cmake --preset portable_gpu && cmake --build --preset portable_gpu --target portable makes it" >&2
    exit 2
  }
  folder=$(cd "$folder" && pwd)
  local mib=$(($(du -sk "$folder" | cut -f1) / 1024))
  [ "$mib" -le 60 ] || { echo "gpu_check: $folder has $mib MiB; at most 60" >&2; exit 2; }
  row unpack passed $((SECONDS - begin)) "$("$folder/bin/ranklab" --version), $mib MiB"
}

# Each program of gpu tests; those that skip themselves say why.
gpu_tests() {
  local ran=0 bad=0 program
  for program in "$folder"/bin/gpu_tests/*; do
    [ -x "$program" ] || continue
    ran=$((ran + 1))
    "$program" --gtest_brief=1 || bad=$((bad + 1))
  done
  local skipped
  echo "$ran programs, $bad failed"
  [ "$ran" -gt 0 ] && [ "$bad" -eq 0 ]
}

# lab NAME LAB [--set ...]: runs it; a line for each row of its table, samples/s and step.
lab() {
  local out=$work/runs/$1 code=0
  "$folder/bin/ranklab" run "$2" --out "$out" "${@:3}" || code=$?
  local table
  table=$(find "$out" -name table.md 2>/dev/null | head -n 1)
  [ -n "$table" ] && awk -F' *[|] *' '
    /^\| part/ { for (i = 1; i <= NF; ++i) column[$i] = i; next }
    /^\| :?-/ { next }
    /^\|/ { line = line (line == "" ? "" : "; ") $column["exchange"] " " $column["workers"] ": " \
                   $column["samples/s"] " samples/s, step " $column["step"] }
    END { print line }' "$table"
  return "$code"
}

mfu() { "$folder/bin/ranklab" device --device cuda --run "$(find "$work/runs/one" -mindepth 1 -maxdepth 1 -type d | head -n 1)"; }

# Columns of nccl-tests, all rows verified: the largest size's row and the word on wrong elements.
collective() {
  local code=0
  "$folder/bin/ranklab" collective --transport nccl --ranks 2 -b 1K -e 64M -f 16 -n 10 "$@" >"$work/table" || code=$?
  cat "$work/table"
  echo "64 MiB all_reduce: $(awk '$1 ~ /^[0-9]+$/ { last = $8 " GB/s busbw out of place, wrong " $9 } END { print last }' "$work/table")"
  return "$code"
}

report() {
  echo
  echo "gpu_check of $(date -u +%Y-%m-%d) on $device"
  printf '%s\n' "${rows[@]}"
  echo "$((SECONDS - begin)) s in all; of $most_seconds s"
}

export -f gpu_tests lab mfu collective
unpack
export folder work
labs=$folder/labs
[ -d "$labs" ] || labs=$source_dir/labs

if ! gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1); then
  device="a machine without a GPU"
  why="no GPU: $(head -n 1 <<<"$gpus")"
  # The programs start here all the same, and say why they test nothing.
  stage "gpu tests" 60 bash -c gpu_tests
  for name in "gpt on one GPU" "MFU" "two workers: TCP, gRPC, NCCL" "compare natively" "collective over NCCL"; do
    skip "$name" "$why"
  done
  report
  [ "$failed" -eq 0 ] && exit 4
  exit 1
fi
device="$(head -n 1 <<<"$gpus" | sed 's/, /, driver /') ($(wc -l <<<"$gpus") of them)"
shared=true share=(--shared-gpu)
[ "$(wc -l <<<"$gpus")" -ge 2 ] && shared=false share=()

stage "gpu tests" 100 bash -c gpu_tests
stage "gpt on one GPU" 60 bash -c 'lab one "$0/gpu_one.yaml"' "$labs"
stage "MFU" 40 bash -c mfu
stage "two workers: TCP, gRPC, NCCL" 90 bash -c 'lab two "$0/gpu_two.yaml" --set cluster.shared_gpu=$1' "$labs" "$shared"
stage "compare natively" 60 bash -c 'lab compare "$0/gpu_compare.yaml" --set cluster.shared_gpu=$1' "$labs" "$shared"
stage "collective over NCCL" 40 bash -c 'collective "$@"' _ "${share[@]}"
report
exit "$failed"
