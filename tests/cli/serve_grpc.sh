#!/usr/bin/env bash
# belfry serve over gRPC, called by Debian's python3-grpcio with the messages that protoc makes.
# usage: serve_grpc.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"
skip_without() { # WORDS COMMAND…
    "${@:2}" >/dev/null 2>&1 || {
        echo "skipped: $1"
        exit 77
    }
}
python=/usr/bin/python3
skip_without "python3-grpcio is absent" $python -c 'import grpc, google.protobuf'
skip_without "protoc is absent" protoc --version

ask() { run_ok timeout -k 5 "$patience" $python "$SOURCE/tests/cli/grpc_check.py" "$1" "$grpc" "${@:2}"; }

protoc -I "$SOURCE/proto" --python_out=. inference.proto
run_ok train m --train_steps 60
run_ok belfry export --model_dir m --export_dir digits/60
run_ok belfry predict --model_dir m --eval_files "$EVAL_CSV" --feature_scale 0.0625 --eval_batch_size 7
mv out.txt predicted.csv
penguins=$SOURCE/examples/data/penguins.csv
run_ok belfry train_and_evaluate --train_files "$penguins" --label_column Species --train_steps 50 --eval_share 0.2 \
    --model_dir p --no_report
run_ok belfry export --model_dir p --export_dir penguins
run_ok belfry predict --model_dir p --eval_files "$penguins" --eval_batch_size 32
mv out.txt predicted-penguins.csv

start digits penguins --grpc_port 0 --max_body 2 --access_log access.log --max_examples 400
ask metadata
ask same_bits "$EVAL_CSV" predicted.csv
ask table "$penguins" predicted-penguins.csv
ask wrong
ask patient
check "the log has the calls" grep -q '"path":"/inference.GRPCInferenceService/ModelInfer","model":"digits","version":60,"code":200' access.log
check "the metrics have them" sh -c "curl -sf -m 5 '$url/metrics' | grep -q 'requests_total{model=\"digits\",code=\"400\"}'"
run_fails 1 'cannot serve models over gRPC|another --grpc_port' belfry serve digits --port 0 --grpc_port "${grpc##*:}"
stop TERM

BELFRY_FAULT=slow:serves#50 start digits --grpc_port 0 --threads 1 --queue 0
ask full "$EVAL_CSV"
stop INT

start digits --grpc_port 0 --connections 2 --timeout_secs 2
ask unread
stop TERM

# The client's deadline bounds the wait for others.
start digits --grpc_port 0 --max_batch 2 --batch_delay_us 10000000 --timeout_secs 60
ask early "$EVAL_CSV"
stop TERM

# Calls in progress are answered when the server stops, unless the time for that is over: then it ends without them.
all_received() { # the four calls: they wait, or a run has them
    [ "$(curl -sf -m 5 "$url/metrics" | awk '/^belfry_serve_(waiting|run_requests_total)/ { n += $2 } END { print n + 0 }')" -ge 4 ]
}
begin_calls() {
    timeout -k 5 "$patience" $python "$SOURCE/tests/cli/grpc_check.py" stopping "$grpc" "$EVAL_CSV" >late.out 2>&1 &
    late=$!
    check "calls have begun" until_true grep -q begun late.out
    check "one is computed" until_true sh -c "! curl -sf -m 5 '$url/metrics' | grep -q 'belfry_serve_runs_total 0'"
    check "all have come" until_true all_received
}
start digits --grpc_port 0 --threads 1 --drain_secs 0
begin_calls
stop TERM
wait "$late" || true
start digits --grpc_port 0 --threads 1
begin_calls
stop TERM
wait "$late" || true
check "they are answered" grep -q '^answered 4' late.out
finish
