#!/usr/bin/env bash
# Parameter servers are killed, and training continues with the state that they held: no step is made twice, and the
# digest is that of an undisturbed run. Jobs whose state is not kept go back to the newest checkpoint.
# usage: shard_lives.sh BUILD_FOLDER [KILLS]     KILLS: at random moments (8)
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
kills=${2:-8}

# Each step is in the curves, and no step but the last is saved.
settings=(--train_steps 60 --save_summary_steps 1 --save_checkpoints_secs 0 --train_batch_size 8 --hidden_units "256,128")
export XDG_RUNTIME_DIR=$work # sockets are below it

trains() { # FAULT FLAGS…
    local fault=$1
    shift
    rm -rf killed
    run_ok env BELFRY_FAULT="$fault" timeout -k 5 120 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" "$@"
    equal "digest with $fault $*" "$(digest killed)" "$whole"
}

steps() { # the step of each value of the loss, in the order of the event files
    python3 - killed <<'EOF'
import pathlib, struct, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("events.out.tfevents.*")):
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = data[at + 12 : at + 12 + length]
        at += 16 + length
        if b"\x04loss" not in event: continue
        step, shift, i = 0, 0, 10  # after the wall time: field 2, a varint
        assert event[9] == 0x10, event
        while True:
            step |= (event[i] & 127) << shift
            shift += 7
            i += 1
            if event[i - 1] < 128: break
        print(step)
EOF
}

continues() { # FAULT FLAGS…: nothing is loaded, and each step is in the curves once
    trains "$@"
    check "it continues after $*" grep -q 'back with [a-z]* state: training continues at step' err.txt
    check "it does not go back after $*" test "$(grep -c 'going back' err.txt)" = 0
    equal "steps in the curves" "$(steps | tr '\n' ' ')" "$(seq 60 | tr '\n' ' ')"
}

goes_back() { # FAULT FLAGS…
    trains "$@"
    check "it goes back after $*" grep -q 'going back from step' err.txt
}

alone() { # FLAGS…: the digest to expect
    rm -rf whole
    run_ok train whole "${settings[@]}" --num_workers 2 "$@"
    whole=$(digest whole)
}

# --- Slots and averages, and rules that need a norm: at every moment of a chunk's pass
alone --optimizer adam --moving_average_decay 0.9
for point in shard_passes#30@ps-1 shard_passed#31@ps-1 shard_kept_piece#45@ps-1 shard_kept_piece#46@ps-1; do
    continues "crash:$point" --optimizer adam --moving_average_decay 0.9
done
continues crash:shard_kept_piece#50 --optimizer adam --moving_average_decay 0.9 # both
continues crash:shard_kept_piece#47@ps-1 --optimizer adam --moving_average_decay 0.9 --lane grpc
alone --optimizer momentum --clip_global_norm 1
for point in shard_passes#61@ps-1 shard_passed#62@ps-1 shard_kept_piece#45@ps-1; do
    continues "crash:$point" --optimizer momentum --clip_global_norm 1
done

# --- Shard 0, with curves that it has not reported
for point in shard_passes#61@ps-0 shard_decides#13@ps-0 shard_kept_piece#45@ps-0; do
    continues "crash:$point" --optimizer momentum --clip_global_norm 1
done

# --- At random moments
settings+=(--train_steps 400 --save_summary_steps 1000)
alone --optimizer momentum
rm -rf killed
BELFRY_FAULT=slow:tower_step#5 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 2 \
    --job_dir killed -- "${digits[@]}" "${settings[@]}" --optimizer momentum >out.txt 2>err.txt </dev/null &
job=$!
for _ in $(seq "$kills"); do
    python3 -c 'import random, time; time.sleep(random.uniform(0.1, 0.4))'
    for pid in $(pgrep -P "$job"); do
        if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "ps-$((RANDOM % 2))"; then
            kill -9 "$pid" 2>/dev/null || true
        fi
    done
done
code=0
wait "$job" || code=$?
equal "exit code after kills at random moments" "$code" 0
equal "digest after kills at random moments" "$(digest killed)" "$whole"

# --- Where the state is not kept, or would lack a snapshot
settings=("${settings[@]::${#settings[@]}-2}")
alone --optimizer lamb
goes_back crash:shard_passes#61@ps-1 --optimizer lamb
settings=("${settings[@]::4}" --train_batch_size 8 --hidden_units "256,128" --save_checkpoints_steps 20)
alone --optimizer momentum
trains crash:shard_snapshot@ps-1 --optimizer momentum
equal "checkpoints" "$(find killed -name 'ckpt-*' -maxdepth 1 | sort | tr '\n' ' ')" \
    "$(find whole -name 'ckpt-*' -maxdepth 1 | sort | sed 's/^whole/killed/' | tr '\n' ' ')"
finish
