#!/usr/bin/env bash
# From a bare Debian 12 to scaling curves: installs what is missing, builds, runs a lab, says where
# the report lies. The second time it only runs the lab.
#   scripts/demo.sh [LAB] [ranklab run's flags]
set -euo pipefail
cd "$(dirname "$0")/.."

lab=${1:-labs/compare.yaml}
[ $# -gt 0 ] && shift
echo "demo: 1. install missing packages   2. build (the first time about 8 minutes)   3. run $lab"
scripts/setup.sh build
cmake --preset release >build-demo.log 2>&1 || { cat build-demo.log >&2; exit 2; }
rm -f build-demo.log
cmake --build --preset release --target ranklab
exec build/release/ranklab run "$lab" "$@"
