#!/usr/bin/env bash
# The compose lab for real: an engine, an image, a cluster of containers, labs, faults, and nothing left.
#   scripts/compose_test.sh BUILD_FOLDER      a configured build with the program in it: build/release
# Installs docker.io, docker-compose and debootstrap from Debian where they are missing. Where no engine
# answers it starts one of its own, in namespaces of its own: the machine's firewall, bridges and mounts
# stay as they are, and with the namespace's first process everything goes. What the containers do is
# tests/compose/compose_test.py. Exit code: 0 passed, 77 no engine can run here (says why), else failed.
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?usage: compose_test.sh BUILD_FOLDER}" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ranklab
name=ranklab-compose-$$  # of everything that is made, so that what is left can be found
work=$(mktemp -d "/tmp/$name-XXXXXX")
engine=""  # process id of our own
scenario=""

say() { echo "compose_test: $* (${SECONDS} s)"; }
fail() { say "FAILED: $*" >&2; exit 1; }
skip() { say "SKIPPED: $*"; exit 77; }

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.2
  done
}

engine_answers() { timeout 10 docker version; }

install_packages() {
  local missing=()
  command -v docker >/dev/null && { engine_answers >/dev/null 2>&1 || command -v dockerd >/dev/null; } ||
    missing+=(docker.io iptables)
  command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || missing+=(docker-compose)
  command -v debootstrap >/dev/null || missing+=(debootstrap)
  for tool in python3:python3 ip:iproute2 pgrep:procps; do
    command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
  done
  [ ${#missing[@]} -eq 0 ] && return
  [ "$(id -u)" = 0 ] || skip "needs root to install ${missing[*]}"
  say "installing ${missing[*]}"
  local log=$work/apt.log
  export DEBIAN_FRONTEND=noninteractive
  timeout 300 apt-get install -q -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { timeout 300 apt-get update -q >>"$log" 2>&1 &&
      timeout 300 apt-get install -q -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; } ||
    skip "cannot install ${missing[*]}: $(grep -m1 '^E:' "$log" || tail -n 1 "$log")"
}

start_engine() {
  [ "$(id -u)" = 0 ] || skip "no engine answers, and starting one needs root"
  unshare --mount --net --pid --fork --kill-child --mount-proc sh -c 'ip link set lo up && exec "$@"' sh \
    dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/docker.pid" \
    --host "unix://$work/docker.sock" --cgroup-parent "/$name" >"$work/dockerd.log" 2>&1 &
  engine=$!
  export DOCKER_HOST=unix://$work/docker.sock
  wait_for 60 engine_answers ||
    skip "no engine can run here: $(grep -m1 -E 'failed|rror' "$work/dockerd.log" || tail -n 1 "$work/dockerd.log")"
  say "an engine of our own: $(docker info --format '{{.ServerVersion}}, {{.Driver}}, cgroup {{.CgroupVersion}}')"
}

# A Debian 12 to start from, as $name:base: debian:bookworm-slim, or one made by debootstrap, which is kept
# in $cache for the next time. An engine of our own has no network to pull from.
make_base() {
  if [ -z "$engine" ] && timeout 60 docker pull -q debian:bookworm-slim >/dev/null 2>&1; then
    docker tag debian:bookworm-slim "$name:base"
    return
  fi
  local archive=$cache/bookworm-minbase.tar
  if [ ! -f "$archive" ]; then
    [ "$(id -u)" = 0 ] || skip "debian:bookworm-slim cannot be pulled, and debootstrap needs root"
    say "debootstrap, once, kept as $archive"
    timeout 300 debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log" 2>&1 ||
      skip "debian:bookworm-slim cannot be pulled, and debootstrap failed: $(tail -n 1 "$work/debootstrap.log")"
    mkdir -p "$cache"
    tar -C "$work/base" --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
      --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' -cf "$archive.$$" .
    mv "$archive.$$" "$archive"
    rm -rf "$work/base"
  fi
  docker import "$archive" "$name:base" >/dev/null
}

# No compiler in a container: the program that is built already, with the libraries it needs.
make_image() {
  cmake --install "$build" --prefix "$work/program" --strip >"$work/install.log" 2>&1 ||
    fail "cmake --install: $(tail -n 3 "$work/install.log")"
  DOCKER_BUILDKIT=0 docker build --quiet -f "$source/docker/Dockerfile" --target prebuilt \
    --build-arg "BASE=$name:base" -t "$name:program" "$work/program" >"$work/build.log" 2>&1 ||
    fail "docker build: $(tail -n 5 "$work/build.log")"
  # The other file, over the same base: NVIDIA's is not here.
  DOCKER_BUILDKIT=0 docker build --quiet -f "$source/docker/Dockerfile.cuda" --build-arg "BASE=$name:base" \
    --build-arg "PROGRAM=$name:program" -t "$name:cuda" "$source/docker" >>"$work/build.log" 2>&1 ||
    fail "docker build of Dockerfile.cuda: $(tail -n 5 "$work/build.log")"
  say "image of $(docker image inspect --format '{{.Size}}' "$name:program" | awk '{printf "%.0f MB", $1 / 1e6}')"
}

# What the compose project and this script have made in an engine, also one that is not ours.
empty_engine() {
  local label=label=com.docker.compose.project=$name
  docker ps -aq --filter "$label" | xargs -r docker rm -f -v
  docker network ls -q --filter "$label" | xargs -r docker network rm
  docker rmi -f "$name:cuda" "$name:program" "$name:base"
}

remove_cgroups() {
  find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} +
  [ -z "$(find /sys/fs/cgroup -type d -path "*/$name*")" ]
}

# Whatever has happened.
clean_up() {
  local code=$? left
  trap '' INT TERM
  [ -z "$scenario" ] || kill -TERM "$scenario" 2>/dev/null || true
  if engine_answers >/dev/null 2>&1; then
    export -f empty_engine
    export name
    timeout 60 bash -c empty_engine >/dev/null 2>&1 || true
  fi
  if [ -n "$engine" ]; then
    kill -KILL "$engine" 2>/dev/null || true  # unshare: the namespace and all that is in it go too
    wait "$engine" 2>/dev/null || true
    wait_for 10 remove_cgroups || true
  fi
  [ $code -eq 0 ] || [ $code -eq 77 ] || tail -n 5 "$work/dockerd.log" 2>/dev/null || true
  rm -rf "$work"
  if [ $code -eq 0 ]; then
    left=$(pgrep -af "$name" || true)
    [ -z "$left" ] || { say "FAILED: left behind: $left"; exit 1; }
    left=$(find /sys/fs/cgroup -type d -path "*/$name*" 2>/dev/null || true)
    [ -z "$left" ] || { say "FAILED: left behind: $left"; exit 1; }
    say "passed; nothing is left"
  fi
  exit $code
}

trap clean_up EXIT
trap 'exit 130' INT TERM
install_packages
engine_answers >/dev/null 2>&1 || start_engine
make_base
make_image
# Every wait inside has its own deadline; this one is for what hangs in spite of them.
RANKLAB_IMAGE=$name:program timeout --kill-after=30 330 \
  python3 "$source/tests/compose/compose_test.py" "$work/lab" "$name" &
scenario=$!  # waited for, so that a signal is acted on at once
wait "$scenario" || fail "see above"
