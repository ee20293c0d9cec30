#!/usr/bin/env bash
# docker/kubernetes.yaml against the published schemas of its kinds, which npm has.
#   kubernetes_test.sh FOLDER PROGRAM      FOLDER keeps npm's packages for the next time
# Exit code: 0 passed, 77 the schemas cannot be had here (says why), else failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
program=$2

command -v npm >/dev/null || { echo "SKIPPED: no npm"; exit 77; }
cp "$here/package.json" "$folder/"
if [ ! -d "$folder/node_modules/kubernetes-models" ]; then
  timeout 300 npm install --prefix "$folder" --no-audit --no-fund --prefer-offline >"$folder/npm.log" 2>&1 ||
    { echo "SKIPPED: npm cannot fetch the schemas: $(grep -m1 ERR "$folder/npm.log" || true)"; exit 77; }
fi
exec node "$here/kubernetes_test.mjs" "$folder" "$here/../../docker/kubernetes.yaml" "$program"
