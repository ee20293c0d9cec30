#!/usr/bin/env bash
# The text of the sources: what a reviewer should not have to look for. Prints file:line and the
# remedy for each finding; fails on any.
set -uo pipefail
cd "$(dirname "$0")/.."

found=0
# report REMEDY: reads file:line:text on standard input.
report() {
  local line
  while IFS= read -r line; do
    echo "$line    -> $1"
    found=1
  done
}

mapfile -t sources < <(git ls-files '*.h' '*.cc')
mapfile -t product < <(printf '%s\n' "${sources[@]}" | grep -Ev '^(tests|bench)/')
mapfile -t readmes < <(git ls-files '*/README.md')

report "no tabs" < <(grep -nP '\t' "${sources[@]}")
report "no trailing blanks" < <(grep -nP ' +$' "${sources[@]}")
report "lines of at most 100 columns" < <(grep -nP '^.{101,}$' "${sources[@]}" | grep -v '#include')
report "a thread has an owner that joins it" < <(grep -nE 'std::async|\.detach\(\)' "${sources[@]}")
report "waits are latches, conditions or timers with a deadline" \
  < <(grep -nE 'sleep_for|usleep\(' "${product[@]}" | grep -v '^cli/child_processes.cc')
report "chance comes from core/random" < <(grep -nE '\brand\(\)|std::mt19937|random_device' "${product[@]}" |
  grep -v '^coordinator/control_plane_lab.cc')  # a generation's secret is meant to be unpredictable
report "RANKLAB_CHECK, or a Status" < <(grep -nE '\bassert\(' "${product[@]}")
report "results are printed by cli/ alone" < <(grep -nE 'std::cout|[^f]printf\(' "${product[@]}" |
  grep -vE '^(cli/|core/(log|check)\.cc)|snprintf|StrFormat')
report "#pragma once" < <(for file in "${sources[@]}"; do
  [[ $file == *.h ]] && ! grep -q '^#pragma once' "$file" && echo "$file:1:"
done)
report "files of at most 500 lines" < <(for file in "${sources[@]}"; do
  lines=$(wc -l <"$file")
  [ "$lines" -gt 500 ] && echo "$file:$lines:"
done)
report "a folder's README has at most 30 lines" < <(for file in "${readmes[@]}"; do
  lines=$(wc -l <"$file")
  [ "$lines" -gt 30 ] && echo "$file:$lines:"
done)
report "every folder has a README.md" < <(for folder in core fabric compute transport collectives ps \
  coordinator worker sim experiment report cli labs data scripts tests bench docker protos; do
  [ -f "$folder/README.md" ] || echo "$folder/README.md:1:"
done)

exit $found
