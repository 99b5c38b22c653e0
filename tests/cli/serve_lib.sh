# shellcheck shell=bash
# For tests of belfry serve: `source serve_lib.sh "$1"` does the same as lib.sh, and more.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" "$1"

server=
trap '[ -z "$server" ] || kill -9 "$server"; rm -rf "$work"' EXIT

start() { # ARGUMENTS: starts a server; its addresses are in $url, and in $grpc with --grpc_port
    : >serve.out
    "$BUILD/tools/belfry" serve --port 0 --poll_secs 0.05 "$@" >serve.out 2>serve.err </dev/null &
    server=$!
    check "it listens" until_true grep -qE '^(url|grpc) ' serve.out
    url=$(sed -n 's/^url //p' serve.out)
    # shellcheck disable=SC2034 # for the tests
    grpc=$(sed -n 's/^grpc //p' serve.out)
}

stop() { # SIGNAL: the server ends with code 0
    kill -s "$1" "$server"
    code=0
    wait "$server" || code=$?
    equal "the code after $1" "$code" 0
    server=
}

