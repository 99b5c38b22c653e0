# shellcheck shell=bash
# An object store for tests of the command: `source lib_store.sh` after lib.sh, put objects into store/BUCKET/…, then
# store_begin. A host is a folder of copies: `on HOST COMMAND…`.

store_begin() { # sets $port
    python3 "$SOURCE/tests/support/store_server.py" --folder store --log requests.jsonl >server.txt 2>server.err &
    server=$!
    trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
    until_true grep -q '^port ' server.txt || true
    port=$(awk '{ print $2 }' server.txt)
    export AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test-secret
    export AWS_REGION=us-east-1 no_proxy=127.0.0.1
    check "the store serves" test -n "$port"
}

control() { # JSON: settings of the server
    python3 - "$port" "$1" <<'PY'
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(
    f"http://127.0.0.1:{sys.argv[1]}/_control", data=sys.argv[2].encode(), method="POST"), timeout=20).read()
PY
}

on() { # HOST COMMAND…: with the copies of that host
    local host=$1
    shift
    BELFRY_CACHE_DIR=$work/$host "$@"
}
