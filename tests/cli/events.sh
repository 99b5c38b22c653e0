#!/usr/bin/env bash
# Event files as other programs read them: every record by its frame, every event by protoc.
# usage: events.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

decode() { # FOLDER: writes the text of every event to out.txt, in the order of files and records
    python3 - "$1" "$BELFRY_SOURCE/proto" >out.txt <<'EOF'
import pathlib, struct, subprocess, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("events.out.tfevents.*")):
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        record = data[at + 12 : at + 12 + length]
        assert len(record) == length, "the last record is cut off"
        command = ["protoc", "--decode=events.Event", "-I" + sys.argv[2], "events.proto"]
        print(subprocess.run(command, input=record, stdout=subprocess.PIPE, check=True).stdout.decode())
        at += 16 + length
EOF
}

run_ok belfry train_and_evaluate --model_dir run "${digits[@]}" --train_steps 30 --save_summary_steps 10 \
    --save_checkpoints_steps 20 --num_gpus 2
run_ok decode run
check "the version comes first" test "$(grep -v '^wall_time' out.txt | sed -n '1,2p' | tr '\n' ' ')" = \
    'step: 0 file_version: "brain.Event:2" '
equal "sessions" "$(grep -c 'status: 1' out.txt)" 1
for tag in loss learning_rate examples_per_second global_step/sec; do
    check "a curve of $tag" grep -q "tag: \"$tag\"" out.txt
done
check "the settings are a text" grep -q '| optimizer | adam |' out.txt
check "which the text plugin shows" grep -q 'plugin_name: "text"' out.txt
check "no unknown field" test "$(grep -cE '^ *[0-9]+[:{ ]' out.txt)" = 0
run_ok decode run/eval
equal "evaluations" "$(grep -c 'tag: "accuracy"' out.txt)" 2
equal "confusion matrices" "$(grep -c 'tag: "belfry/confusion"' out.txt)" 2
check "of ten classes" test "$(grep -c 'size: 10$' out.txt)" = 4

# The wall clock names files and labels events. Rates use another clock, which never jumps. Here the wall
# clock runs 10,000 times too fast, and is a day back when the run is resumed.
faketime=$(find /usr/lib -name libfaketime.so.1 | head -n 1)
by_clock() { # CLOCK [flags]
    local clock=$1
    shift
    env LD_PRELOAD="$faketime" FAKETIME="$clock" FAKETIME_DONT_FAKE_MONOTONIC=1 "$BUILD/tools/belfry" "$@"
}
if [ -n "$faketime" ] && by_clock '+0' version >/dev/null 2>&1; then
    run_ok by_clock '+0 x10000' train_and_evaluate --model_dir clock "${digits[@]}" --train_steps 30 --log_format json \
        --json
    rate=$(sed -n 's/.*"examples_per_second":\([0-9]*\).*/\1/p' out.txt)
    shown=$(sed -n 's/.*"event":"progress".*"examples_per_second":\([0-9]*\).*/\1/p' err.txt | tail -n 1)
    check "$shown examples/s at the end, of $rate" test "$((shown * 100))" -gt "$rate"
    run_ok by_clock '-1d' train_and_evaluate --model_dir clock "${digits[@]}" --train_steps 60 --save_summary_steps 10
    run_ok decode clock
    equal "steps that begin sessions, by names" "$(grep -B 2 -A 3 'session_log' out.txt | sed -n 's/^step: //p' | tr '\n' ' ')" \
        "1 31 "
else
    echo "events.sh: clocks that jump are left out: libfaketime does not run here (Debian: faketime)"
fi
finish
