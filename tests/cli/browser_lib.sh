# shellcheck shell=bash
# Finds a browser for tests of pages: `source browser_lib.sh` sets $browser and, if a second argument names a folder for
# them, $pictures. Without a browser the test is skipped.
browser=
for name in chromium chromium-headless-shell chromium-browser google-chrome; do
    browser=$(command -v "$name") && break
done
if [ -z "$browser" ]; then
    echo "SKIPPED: no Chromium; tools/install-deps --browser installs it" >&2
    exit 77
fi
# shellcheck disable=SC2034 # for the tests
pictures=${2:+$(mkdir -p "$2" && cd "$2" && pwd)}
