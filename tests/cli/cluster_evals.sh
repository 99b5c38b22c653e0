#!/usr/bin/env bash
# Evaluations while a cluster trains: many of them, for models of one chunk and of several, on one to three
# parameter servers, over every kind of lane. The results are those of the same run in one process.
# usage: cluster_evals.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 26 --train_batch_size 16 --save_checkpoints_steps 13)
evals() { grep -o 'eval at step .*' err.txt; }

evaluate_all() { # HIDDEN_UNITS EVERY SHARDS:LANE…
    local units=$1 every=$2 case places training expected
    shift 2
    training=("${digits[@]}" "${settings[@]}" --hidden_units "$units" --eval_every_steps "$every")
    run_ok belfry train_and_evaluate --model_dir "alone-$units" "${training[@]}" --num_workers 2
    expected=$(evals)
    for case in "$@"; do
        places=(--parameter_server_count "${case%:*}")
        [ "${case#*:}" = tcp ] && places+=(--tcp)
        run_ok belfry local train --distributed --worker_count 2 "${places[@]}" --job_dir "$units-$case" \
            -- "${training[@]}" --lane "$([ "${case#*:}" = shm ] && echo shm || echo grpc)"
        equal "evaluations of $units-$case" "$(evals)" "$expected"
    done
}

# Values are sent in chunks of at least 16 Ki elements: here 1, 4 and 11 of them.
evaluate_all 8 1 1:shm 3:grpc
evaluate_all 256,128 2 1:grpc 2:tcp
evaluate_all 512,256 2 1:shm 1:tcp 3:grpc

# --- Evaluations end a training: at the same step and digest in any deal, over kills, and once it has
# finished.
stopping=("${digits[@]}" --hidden_units 16 --learning_rate 0.5 --train_batch_size 16 --train_steps 3000
    --eval_every_steps 20 --save_checkpoints_steps 30 --early_stopping 3 --best_metric accuracy --best_goal max
    --export best --export final)
end_of() { sed -n 's/^global_step //p; s/^digest //p' out.txt | tr '\n' ' '; }
stopped() { # NAME SHARDS:LANE:FAULT
    local shards lane fault
    IFS=: read -r shards lane fault <<<"$2"
    BELFRY_FAULT=$fault run_ok belfry local train --distributed --worker_count 2 --parameter_server_count "$shards" \
        --job_dir "$1" -- "${stopping[@]}" --lane "$lane"
    equal "the end of $1" "$(end_of)" "$expected"
    equal "exports of $1" "$(cd "$1/export" && echo best/* final/*)" "$exports"
}
run_ok belfry train_and_evaluate --model_dir stops "${stopping[@]}" --num_workers 2
check "the log says why it ends" grep -q 'early stopping: accuracy of eval has not been better' err.txt
expected=$(end_of)
step=${expected%% *}
check "it ends early, at a step that it saves or evaluates: $step" test $((step < 3000 && (step % 20 == 0 || step % 30 == 0))) = 1
exports=$(cd stops/export && echo best/* final/*)
run_ok belfry inspect "stops/export/final/$step" --digest
equal "the export is of the end" "$(cat out.txt)" "$(echo "$expected" | cut -d' ' -f2)"
stopped shm 1:shm:
stopped grpc 3:grpc:
stopped killed-worker "1:shm:crash:tower_step#$((step - 10))@worker-1"
stopped killed-shard "2:grpc:crash:shard_passes#$((step - 5))@ps-0"
stopped killed-master "1:shm:crash:master_saves#3@master-0"
# If each checkpoint is evaluated, the one to go back to may lack its evaluation, or have the one that ends.
each=("${stopping[@]}" --save_checkpoints_steps 20)
run_ok belfry train_and_evaluate --model_dir each "${each[@]}" --num_workers 2
expected=$(end_of)
step=${expected%% *}
for back in 21 19 15 11 1; do
    BELFRY_FAULT=crash:shard_passes#$((step - back))@ps-0 run_ok belfry local train --distributed --worker_count 2 \
        --parameter_server_count 1 --job_dir "each-$back" -- "${each[@]}"
    equal "the end if a shard is killed $back steps before" "$(end_of)" "$expected"
    check "it was killed" grep -q 'ps 0 (pid .*it is started again' err.txt
done
run_ok belfry train_and_evaluate --model_dir each "${each[@]}" --num_workers 2
equal "no more steps are trained" "$(end_of)" "$expected"
run_fails 2 'eval has no metric "recall"' belfry train_and_evaluate --model_dir x "${stopping[@]}" --best_metric recall
run_fails 2 '--export: expected best, latest or final' belfry train_and_evaluate --model_dir x "${stopping[@]}" --export all
run_fails 2 '--early_stopping has no effect without --eval_files' belfry train_and_evaluate --model_dir x \
    --train_files "$TRAIN_CSV" --train_steps 5 --early_stopping 3

# --- An evaluator exports the checkpoints that it evaluates; at the end only those kept then
exporting=("${digits[@]}" "${settings[@]}" --export "best,latest,final")
with_evaluator=(belfry local train --distributed --worker_count 1 --evaluator_count 1)
run_ok "${with_evaluator[@]}" --job_dir exported -- "${exporting[@]}"
equal "the final export" "$(ls exported/export/final)" 26
check "its evaluations are in one event file" test "$(find exported/eval -name 'events*' | wc -l)" -eq 1
check "the last evaluation is exported" test -f exported/export/latest/26/model.onnx
check "the best is exported" test -f "exported/export/best/$(ls exported/export/best)/evaluation.json"
run_ok belfry inspect exported/export/final/26 --digest
equal "the evaluator exports the end" "$(cat out.txt)" "$(digest exported)"
BELFRY_FAULT=slow:tower_step#100 "$BUILD/tools/belfry" "${with_evaluator[@]:1}" --job_dir interrupted -- "${exporting[@]}" \
    --train_steps 400 >out.txt 2>err.txt </dev/null &
job=$!
until [ -d interrupted/ckpt-00000013 ] || ! kill -0 "$job"; do nap 0.05; done
kill -TERM "$job"
code=0
wait "$job" || code=$?
equal "a training that is stopped" "$code" 143
check "makes no final export" test ! -e interrupted/export/final
check "but exports evaluated checkpoints" test -d interrupted/export/latest
capture "${with_evaluator[@]}" --job_dir helped -- "${exporting[@]}" --evaluate_on_workers
check "workers cannot help an evaluator" grep -q 'evaluate_on_workers: the job has an evaluator' err.txt

run_ok belfry train_and_evaluate --model_dir clock "${digits[@]}" --train_steps 100000000 --train_secs 0.2
check "a time limit is a regular end" grep -q '^interrupted false' out.txt
# --- An evaluator reads its data for each evaluation. Changed data are reported once.
cp "$EVAL_CSV" own-eval.csv
rm -f err.txt
BELFRY_FAULT=slow:tower_compute#20 belfry local train --distributed --worker_count 2 --evaluator_count 1 --job_dir own \
    -- --train_files "$TRAIN_CSV" --eval_files own-eval.csv --feature_scale 0.0625 --hidden_units 32 \
    --train_batch_size 16 --train_steps 300 --save_checkpoints_steps 50 --eval_start_delay_secs 0 --eval_throttle_secs 0 \
    >out.txt 2>err.txt &
job=$!
until_true grep -qs 'eval at step 50' own/logs/evaluator-0.0.log || true
head -n 200 "$EVAL_CSV" >fewer.csv
mv fewer.csv own-eval.csv
check "the job ends well" wait "$job"
equal "changed data are reported" "$(grep -c 'eval: the data differ from those of the previous evaluation' err.txt)" 1
check "later evaluations use them" grep -q 'eval at step 300: .* (199 examples)' err.txt

finish
