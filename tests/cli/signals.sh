#!/usr/bin/env bash
# Signals: after the first one the run saves and exits with 128 + its number. The same command then resumes to
# the bits of an undisturbed run.
# usage: signals.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

steps=${BELFRY_SIGNAL_STEPS:-8000} # long enough for a signal in the middle
length=(--train_steps "$steps" --eval_every_steps "$steps" --save_checkpoints_steps 200)
mkfifo log

# Starts training in the background and waits until it has saved a checkpoint.
start() { # MODEL_DIR [FLAGS]
    "$BUILD/tools/belfry" train_and_evaluate --model_dir "$1" "${digits[@]}" "${length[@]}" "${@:2}" \
        --log_level debug >out.txt 2>log &
    pid=$!
    exec 3<log
    while IFS= read -r line <&3; do
        if [[ "$line" == *"saved checkpoint at step 200"* ]]; then break; fi
    done
    cat <&3 >err.txt & # the rest of the log
    reader=$!
    exec 3<&-
}

end() { # sets $code
    code=0
    { wait "$pid" || code=$?; } 2>/dev/null # without bash's line about a killed job
    wait "$reader" || true
}

run_ok train whole "${length[@]}"
whole=$(digest whole)

for signal in TERM INT HUP; do
    named=${signal/HUP/TERM} # SIGHUP counts as SIGTERM
    expected=$((128 + $(kill -l "$named")))
    start "by-$signal"
    kill "-$signal" "$pid"
    end
    equal "exit code after SIG$signal" "$code" "$expected"
    check "the log says how to resume" grep -q "stopped by SIG$named at step .*same command again" err.txt
    check "the result says so" grep -q '^interrupted true$' out.txt
    check "and has no evaluation" test "$(grep -cE '^(evaluation_step|loss) null$' out.txt)" -eq 2
    run_ok belfry inspect "by-$signal" --json
    at=$(python3 -c 'import json; print(json.load(open("out.txt"))["step"])')
    check "stopped in the middle, at step $at" test "$at" -lt "$steps"
    check "a checkpoint of the step that was announced" \
        test -e "by-$signal/$(printf 'ckpt-%08d' "$at")/manifest.json"
    run_ok train "by-$signal" "${length[@]}"
    equal "resumed after SIG$signal" "$(digest "by-$signal")" "$whole"
done

# The result of a stopped run has its last evaluation, and that evaluation's step.
start evaluated --eval_every_steps 200
kill -INT "$pid"
end
equal "exit code of a run that evaluates" "$code" 130
told=$(grep 'eval at step' err.txt | tail -n 1)
at=$(sed -n 's/^evaluation_step //p' out.txt)
check "the last evaluation is at step $at: $told" grep -q "eval at step $at:" <<<"$told"
accuracy=$(sed -n 's/^accuracy //p' out.txt)
check "its accuracy" grep -qF "accuracy = $(awk -v x="$accuracy" 'BEGIN { printf "%.5g", x }') (" <<<"$told"
check "the run came further" test "$(sed -n 's/^global_step //p' out.txt)" -ge "$at"

# After SIGKILL the newest checkpoint counts, and the bits are the same.
start killed
kill -KILL "$pid"
end
equal "exit code after SIGKILL" "$code" 137
run_ok train killed "${length[@]}"
equal "resumed after SIGKILL" "$(digest killed)" "$whole"

# A signal while the data are still being read ends the run at once: there is no step to save.
mkfifo pipe.csv
"$BUILD/tools/belfry" train --model_dir early --train_files pipe.csv \
    --train_batch_size 32 --hidden_units 32 --train_steps "$steps" >out.txt 2>err.txt &
pid=$! reader=$!
exec 4>pipe.csv # returns when the other side has opened it
kill -TERM "$pid"
end
exec 4>&-
equal "exit code after a signal while reading" "$code" 143

# --- A scheduler's warning before its time limit: the run saves and exits; the signal that follows counts as
# the first
for signal in USR1 USR2; do
    start "by-$signal"
    kill "-$signal" "$pid"
    end
    equal "exit code after SIG$signal" "$code" 143
    check "it says how to resume" grep -q 'stopped by a request at step .*same command again' err.txt
    run_ok train "by-$signal" "${length[@]}"
    equal "resumed after SIG$signal" "$(digest "by-$signal")" "$whole"
done

# --- Data that never come: one signal ends the job, and so does the death of its supervisor
mkfifo never.csv
wait_for_data() { # in the background; waits until $supervisor and all of its processes exist
    "$BUILD/tools/belfry" local train --distributed --worker_count 1 --job_dir never -- --train_files never.csv \
        --label_column y --feature_scale 1 --train_steps 5 >out.txt 2>err.txt </dev/null &
    supervisor=$!
    until [ -n "$(roles master 0)" ] && [ -n "$(roles worker 0)" ]; do sleep 0.05; done
}
wait_for_data
kill -TERM "$supervisor"
code=0
wait "$supervisor" || code=$?
equal "a job that waits for its data ends by one signal" "$code" 143
wait_for_data
kill -KILL "$supervisor"
wait "$supervisor" || true
for _ in $(seq "$naps"); do
    [ -n "$(roles)" ] || break
    sleep 0.05
done
equal "processes of a supervisor that was killed" "$(roles)" ""

finish
