#!/usr/bin/env bash
# Is a folder made by the target `portable` whole? Nothing of its program may come from outside but
# glibc, it must start with an empty environment, and it has a size to keep.
#   scripts/check_portable.sh FOLDER
set -euo pipefail

folder=$(cd "$1" && pwd)
most_mib=60
fail() { echo "check_portable: $*" >&2; exit 1; }

glibc='linux-vdso|ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv)\.so'
outside=$(env -i ldd "$folder/bin/ranklab" | grep -vE "$glibc" | grep -vF "=> $folder/" || true)
[ -z "$outside" ] || fail "libraries from outside $folder:"$'\n'"$outside"
version=$(env -i "$folder/bin/ranklab" --version) || fail "bin/ranklab does not start"
mib=$(($(du -sk "$folder" | cut -f1) / 1024))
[ "$mib" -le "$most_mib" ] || fail "$folder has $mib MiB; at most $most_mib"
echo "$folder: $version, $mib MiB, glibc alone from outside"
