#!/usr/bin/env bash
# The best checkpoint stays: the same one after kills at every point of a run, in one process and in a
# cluster, and with a separate evaluator. Also the verbs that read it, and METRIC:N of --early_stopping.
# usage: keep_best.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# The rate is high enough for ups and downs: the best version is in the middle, where no regular save is due.
run=("${digits[@]}" --learning_rate 0.1 --train_steps 120 --eval_every_steps 10 --save_checkpoints_steps 24
    --keep_checkpoint_max 1 --keep_best accuracy)
kept() { # MODEL_DIR: best.json, the checkpoints, and their digests
    local folder
    cat "$1/best.json"
    for folder in "$1"/ckpt-*; do
        echo "$(basename "$folder") $(digest "$folder")"
    done
}
best_step() { sed -n 's/^{"step": \([0-9]*\),.*/\1/p' "$1/best.json"; }
# In lines "eval at step N: …, accuracy = X (…)" finds the first step with the highest value.
best_told() { # FILE…
    sed -n 's/.*eval at step \([0-9]*\): .*accuracy = \([0-9.e-]*\).*/\1 \2/p' "$@" | sort -n -u |
        awk 'NR == 1 || $2 > most { most = $2; step = $1 } END { print step }'
}

run_ok belfry train_and_evaluate --model_dir whole "${run[@]}" --num_workers 2
step=$(best_step whole)
equal "the best is the first of the best evaluations" "$step" "$(best_told err.txt)"
check "it is neither the last nor a regular checkpoint: $step" test $((step < 120 && step % 24)) -ne 0
expected=$(kept whole)
equal "it and the newest are there" "$(echo "$expected" | grep -c '^ckpt-')" 2
equal "the result is of its step" "$(sed -n 's/^evaluation_step //p' out.txt)" 120

# --- The verbs that read it
accuracy=$(sed -n "s/.*eval at step $step: .*accuracy = \([0-9.]*\).*/\1/p" err.txt)
run_ok belfry inspect whole
check "inspect names it" grep -qE "^best step $step, accuracy ${accuracy:0:5}[0-9]* \(eval\)\$" out.txt
run_ok belfry inspect whole --json
check "as JSON, too" python3 - "$step" <<'END2'
import json, sys
found = json.load(open("out.txt"))
assert found["step"] == 120, found["step"]
assert found["best"]["step"] == int(sys.argv[1]) and found["best"]["metric"] == "accuracy", found["best"]
assert 0 < found["best"]["value"] < 1 and found["best"]["evaluation"] == "eval", found["best"]
END2
run_ok belfry inspect "whole/ckpt-00000120"
check "a single checkpoint is not called the best" test "$(grep -c '^best' out.txt)" -eq 0
evaluated() { sed -n 's/^global_step //p; s/^accuracy //p' out.txt | tr '\n' ' '; }
run_ok belfry evaluate --model_dir whole --eval_files "$EVAL_CSV"
check "the newest is read" grep -qx 'global_step 120' out.txt
run_ok belfry evaluate --checkpoint "$(printf 'whole/ckpt-%08d' "$step")" --eval_files "$EVAL_CSV"
best=$(evaluated)
run_ok belfry evaluate --model_dir whole --eval_files "$EVAL_CSV" --best
equal "evaluate --best" "$(evaluated)" "$best"
check "it is as good as it was: $best" grep -qF "$step ${accuracy:0:5}" <<<"$best"
run_ok belfry predict --checkpoint "$(printf 'whole/ckpt-%08d' "$step")" --eval_files "$EVAL_CSV" --label_column digit
cp out.txt rows
run_ok belfry predict --model_dir whole --eval_files "$EVAL_CSV" --label_column digit --best
check "predict --best" cmp -s out.txt rows
run_fails 2 '--best and --checkpoint exclude each other' belfry evaluate --eval_files "$EVAL_CSV" --best \
    --checkpoint whole/ckpt-00000120
run_ok train plain --train_steps 5
run_fails 3 'plain has no checkpoint that is kept as the best|--keep_best METRIC' belfry evaluate --model_dir plain \
    --eval_files "$EVAL_CSV" --best
cp -r whole gone
rm -r "$(printf 'gone/ckpt-%08d' "$step")"
run_fails 3 "gone: the best checkpoint, that of step $step, is not there" belfry predict --model_dir gone \
    --eval_files "$EVAL_CSV" --label_column digit --best

# --- Kills: the run resumes to the same best, the same newest, the same bits.
killed() { # FAULT
    rm -rf killed
    BELFRY_FAULT=crash:$1 capture belfry train_and_evaluate --model_dir killed "${run[@]}" --num_workers 2
    equal "exit code if killed at $1" "$code" 137
    if [ -e killed/best.json ]; then # then the recorded checkpoint exists
        run_ok belfry evaluate --model_dir killed --eval_files "$EVAL_CSV" --best
    fi
    run_ok belfry train_and_evaluate --model_dir killed "${run[@]}" --num_workers 2
    equal "kept files after a kill at $1" "$(kept killed)" "$expected"
}
better=$(grep -c 'the best checkpoint is' <(belfry train_and_evaluate --model_dir count "${run[@]}" --num_workers 2 2>&1))
check "there is more than one best: $better" test "$better" -gt 2
for ((n = 1; n <= better; n++)); do
    for point in master_counts_best master_states_best; do killed "$point#$n"; done
done
for ((n = 1; n <= 12; n += 2)); do killed "master_saves#$n"; done
for point in evaluates#9 checkpoint_before_rename#4 checkpoint_after_rename#4 master_finishes tower_step#77; do
    killed "$point"
done
# Any point, including those of files: every write of best.json, too.
for n in 300 401 502 603 704; do
    rm -rf killed
    BELFRY_FAULT="crash:*#$n" capture belfry train_and_evaluate --model_dir killed "${run[@]}" --num_workers 2
    run_ok belfry train_and_evaluate --model_dir killed "${run[@]}" --num_workers 2
    equal "kept files after a kill at point $n" "$(kept killed)" "$expected"
done

# --- Processes
cluster() { # NAME FAULT [FLAGS]
    local name=$1 fault=$2
    shift 2
    BELFRY_FAULT=$fault run_ok belfry local train --distributed --worker_count 2 --job_dir "$name" "$@" -- "${run[@]}"
    equal "kept by a cluster ($name)" "$(cat "$name/best.json")" "$(cat whole/best.json)"
    equal "the newest and the best of $name" "$(digest "$name") $(belfry evaluate --model_dir "$name" --eval_files \
        "$EVAL_CSV" --best | sed -n 's/^accuracy //p')" "$(digest whole) $(echo "$best" | cut -d' ' -f2)"
}
cluster together ''
cluster master-counts crash:master_counts_best#2@master-0 --parameter_server_count 2
cluster master-states crash:master_states_best#2@master-0
cluster server crash:shard_passes#63@ps-0
cluster worker crash:tower_step#63@worker-1

# --- A separate evaluator evaluates the newest checkpoints. While it is slow, saves continue, and its
# checkpoint stays.
alone=("${digits[@]}" --learning_rate 0.3 --train_steps 400 --save_checkpoints_steps 5 --keep_checkpoint_max 1
    --keep_best accuracy)
evaluator() { # NAME FAULT
    BELFRY_FAULT=$2 run_ok belfry local train --distributed --worker_count 1 --evaluator_count 1 --job_dir "$1" -- "${alone[@]}"
    check "$1: several checkpoints were evaluated" test "$(cat "$1"/logs/master-0.*.log | grep -c 'eval at step')" -gt 1
    equal "$1: the best that the evaluator reported" "$(best_step "$1")" "$(best_told "$1"/logs/master-0.*.log)"
    run_ok belfry evaluate --model_dir "$1" --eval_files "$EVAL_CSV" --best
    check "$1: it is there" grep -qx "global_step $(best_step "$1")" out.txt
    equal "$1: the checkpoints" "$(find "$1" -maxdepth 1 -name 'ckpt-*' | wc -l)" \
        "$([ "$(best_step "$1")" = 400 ] && echo 1 || echo 2)"
}
slow=slow:evaluates#200,slow:tower_step#10
evaluator alone "$slow"
evaluator alone-killed "$slow,crash:master_saves#30@master-0"
capture belfry local train --distributed --worker_count 1 --evaluator_count 1 --job_dir none -- "${alone[@]}" --keep_best recall
equal "exit code for an absent metric" "$code" 2
check "the evaluator lists the metrics" grep -q 'keep_best: eval has no metric "recall"; it has loss, accuracy' err.txt
check "nothing was trained for it" test ! -e none/ckpt-00000400

# --- Names and directions
run_fails 2 'keep_best: eval has no metric "recall"; it has loss, accuracy' train x --train_steps 5 --keep_best recall
run_fails 2 '--keep_best has no effect without --eval_files' belfry train_and_evaluate --model_dir x \
    --train_files "$TRAIN_CSV" --train_steps 5 --keep_best loss
stops=("${digits[@]}" --learning_rate 0.1 --train_steps 3000 --eval_every_steps 10 --save_checkpoints_steps 30)
end_of() { # FLAGS
    rm -rf stops
    run_ok belfry train_and_evaluate --model_dir stops "${stops[@]}" "$@" >&2
    sed -n 's/^global_step //p; s/^digest //p' out.txt | tr '\n' ' '
}
by_accuracy=$(end_of --early_stopping accuracy:4)
check "it ends early: $by_accuracy" test "${by_accuracy%% *}" -lt 3000
equal "METRIC:N is --best_metric METRIC and N" "$(end_of --early_stopping 4 --best_metric accuracy)" "$by_accuracy"
equal "its direction can be set" "$(end_of --early_stopping 4 --best_metric accuracy --best_goal max)" "$by_accuracy"
equal "--best_goal belongs to --best_metric" "$(end_of --early_stopping accuracy:4 --best_goal min)" "$by_accuracy"
turned=$(end_of --early_stopping 4 --best_metric accuracy --best_goal min)
check "and counts there: $turned" test "$turned" != "$by_accuracy"
equal "a number means the loss" "$(end_of --early_stopping 4)" "$(end_of --early_stopping loss:4)"
for text in accuracy :3 loss:x loss: -1 1000001 loss:-2 2.5; do
    run_fails 2 "--early_stopping: expected a number of evaluations in [0, 1000000], or METRIC:NUMBER, got \"$text\"" \
        train x --train_steps 5 "--early_stopping=$text"
done
finish
