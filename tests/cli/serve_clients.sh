#!/usr/bin/env bash
# belfry serve with clients that others wrote: npm's @grpc/grpc-js, h2load over gRPC and HTTP, wrk. curl and Python's
# clients are in the other tests. Skipped (exit code 77) without them; `tools/install-deps --clients` installs them.
# usage: serve_clients.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

modules=$SOURCE/build/node/node_modules
for need in node wrk h2load "$modules/@grpc/grpc-js/package.json" "$modules/@grpc/proto-loader/package.json"; do
    if ! command -v "$need" >/dev/null && [ ! -e "$need" ]; then
        echo "skipped: $need is absent"
        exit 77
    fi
done

run_ok train m --train_steps 60
run_ok belfry export --model_dir m --export_dir digits
run_ok belfry predict --model_dir m --eval_files "$EVAL_CSV" --feature_scale 0.0625 --eval_batch_size 7
mv out.txt predicted.csv
run_ok belfry certs certs --hosts localhost

call_node() { # ADDRESS FILE…
    run_ok timeout -k 5 "$patience" node "$SOURCE/tests/cli/grpc_client.js" "$modules" "$SOURCE/proto/inference.proto" "$1" "$EVAL_CSV" \
        predicted.csv "${@:2}"
}
load() { # ARGUMENTS…: all requests of h2load are answered with 200
    run_ok timeout -k 5 "$patience" h2load -n 400 -c 4 "$@"
    check "all are answered: h2load $*" grep -q '^requests: 400 total, 400 started, 400 done, 400 succeeded, 0 failed' out.txt
    check "with 200" grep -q '^status codes: 400 2xx' out.txt
}

# A row of zeros, in JSON and as a message of gRPC: a zero byte, the length in four bytes, the message.
printf '{"instances": [[%s0]]}' "$(yes 0, | head -63 | tr -d '\n')" >body.json
python3 -c '
import struct, sys
tensor = b"\x0a\x01x\x12\x04FP32\x1a\x02\x01\x40"
raw = bytes(256)
message = b"\x0a\x06digits\x2a" + bytes([len(tensor)]) + tensor + b"\x3a" + b"\x80\x02" + raw
sys.stdout.buffer.write(b"\0" + struct.pack(">I", len(message)) + message)' >body.bin
cat >post.lua <<'LUA'
wrk.method = "POST"
wrk.body = io.open("body.json"):read("a")
LUA

start digits --grpc_port 0 --queue 1000
call_node "$grpc"
load --h1 -d body.json "$url/v1/models/digits:predict"
load -m 4 -d body.bin -H 'content-type: application/grpc' -H 'te: trailers' \
    "http://$grpc/inference.GRPCInferenceService/ModelInfer"
run_ok timeout -k 5 "$patience" wrk -t 2 -c 16 -d 2s -s post.lua "$url/v1/models/digits:predict"
check "wrk has answers" grep -qE '^ +[1-9][0-9]* requests in' out.txt
check "all are 200" sh -c "! grep -qE 'Non-2xx|Socket errors' out.txt"
check "one call was wrong" sh -c "curl -sf -m 5 '$url/metrics' | grep -q '^belfry_serve_requests_total.*code=\"400\"} 1$'"
stop TERM

start digits --grpc_port 0 --tls_certificate certs/host.pem --tls_key certs/host.key --tls_ca certs/ca.pem
call_node "localhost:${grpc##*:}" certs/ca.pem certs/host.key certs/host.pem
stop TERM
start digits --tls_certificate certs/host.pem --tls_key certs/host.key
load --h1 -d body.json "$url/v1/models/digits:predict"
stop TERM
finish
