#!/usr/bin/env bash
# The hook `gctd-check`: the gate in the working copy, by the gctd of this checkout, which the first run installs into it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/deploy/ci/install.sh" "$root/.venv-hook"
exec "$root/.venv-hook/bin/gctd" check "$@"
