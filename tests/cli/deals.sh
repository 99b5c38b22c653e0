#!/usr/bin/env bash
# Checks every training flag in every way to run a job: it is read, refused, or a line says that nothing reads
# it.
# usage: deals.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

cd "$work"
python3 "$SOURCE/tests/cli/deals.py" "$BUILD" "$SOURCE/tests/cli/deals.txt"
