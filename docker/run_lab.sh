#!/bin/sh
# `ranklab run` in the service `lab`, as the owner of labs/, who is the one that called: what it writes
# to runs/ is then theirs. The engine makes a folder runs/ that is not there as root.
#   run_lab.sh LAB [ranklab run's flags]
set -eu
owner=$(stat -c %u:%g labs)
[ "$(stat -c %u runs)" != 0 ] || chown "$owner" runs
exec setpriv --reuid "${owner%:*}" --regid "${owner#*:}" --clear-groups \
  ranklab run --coordinator coordinator:7070 "$@"
