#!/usr/bin/env bash
# Install the programs of this checkout into an environment, with the requirements of its lock file: install.sh DIRECTORY
# Nothing is installed by a name alone: the lock file has the digest of each package, and gctd itself is this checkout.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
if "$1/bin/gctd" --version > /dev/null 2>&1; then
    exit 0 # a cache had it
fi
rm -rf "$1"
python3 -m venv "$1"
"$1/bin/python" -m pip install --quiet --require-hashes --no-deps --requirement "$root/requirements/runtime.lock"
GCTD_PAGES=skip "$1/bin/python" -m pip install --quiet --no-deps --no-build-isolation "$root"
