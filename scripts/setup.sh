#!/usr/bin/env bash
# Installs what ranklab builds and runs with, all of it from Debian 12's packages. Does nothing when
# everything is there. Needs root, or sudo.
#   scripts/setup.sh [build|test]      test adds what only the tests use
set -euo pipefail

what=${1:-build}
packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libabsl-dev libboost1.81-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
  libdnnl-dev libssl-dev zlib1g-dev libxxhash-dev libpugixml-dev
  libgtest-dev libgmock-dev googletest libbenchmark-dev
)
commands=(npm)
if [ "$what" = test ]; then
  packages+=(clang clang-format clang-tidy libclang-rt-14-dev python3 python3-grpcio python3-protobuf
             chromium fonts-dejavu-core procps)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
# Node may come from elsewhere than Debian: the command counts, not the package.
for command in "${commands[@]}"; do
  command -v "$command" >/dev/null || missing+=("$command")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: needs root or sudo to install: ${missing[*]}" >&2; exit 2; }
  run=(sudo)
fi
echo "setup: installing ${#missing[@]} packages from Debian: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -q >/dev/null
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/tmp/ranklab-setup.log 2>&1 ||
  { tail -n 20 /tmp/ranklab-setup.log >&2; echo "setup: the installation failed; the whole log is /tmp/ranklab-setup.log" >&2; exit 2; }
