#!/usr/bin/env bash
# An epoch is complete: the last step has the rest of the data. Its bits do not depend on the assignment of
# replicas, of which the last ones have a short batch or none.
# usage: remainder.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# 1,438 records: 19 batches of 75 and one of 13; four replicas make five steps of them. Two epochs have 39
# batches, so the last step has one replica without examples.
model=(--train_batch_size 75 --dropout 0.2 --clip_global_norm 1 --no_report)
steps() { sed -n 's/^global_step //p' out.txt; }
examples() { # counted by the job: its speed times its time
    awk '$1 == "train_seconds" { s = $2 } $1 == "examples_per_second" { r = $2 } END { printf "%.0f", s * r }' out.txt
}

for epochs in 1 2; do
    run_ok train "alone-$epochs" "${model[@]}" --num_epochs $epochs --num_gpus 4
    equal "steps of $epochs epochs" "$(steps)" $((epochs * 5))
    equal "examples of $epochs epochs" "$(examples)" $((epochs * 1438))
    expected=$(digest "alone-$epochs")
    run_ok train "assigned-$epochs" "${model[@]}" --num_epochs $epochs --num_workers 3 --towers_of_workers 1,2,1 \
        --parameter_server_count 2
    equal "digest of another assignment" "$(digest "assigned-$epochs")" "$expected"
    run_ok train "turns-$epochs" "${model[@]}" --num_epochs $epochs --num_workers 2 --replicas_to_aggregate 4
    equal "digest of workers in turns" "$(digest "turns-$epochs")" "$expected"
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 3 --job_dir "cluster-$epochs" \
        -- "${digits[@]}" "${model[@]}" --num_epochs $epochs --num_gpus 2
    equal "digest of a cluster" "$(digest "cluster-$epochs")" "$expected"
    equal "examples of a cluster" "$(examples)" $((epochs * 1438))
done
run_ok train again "${model[@]}" --num_epochs 1 --num_gpus 4
equal "a finished run stays as it is" "$(digest again)" "$(digest alone-1)"
run_ok belfry local train --distributed --worker_count 4 --parameter_server_count 1 --job_dir grpc \
    -- "${digits[@]}" "${model[@]}" --num_epochs 2 --lane grpc
equal "digest over gRPC, with a worker without examples" "$(digest grpc)" "$(digest alone-2)"

# A step that is less than one batch of one replica.
run_ok train tiny "${model[@]}" --train_batch_size 2000 --num_epochs 1 --num_gpus 4
run_ok train one "${model[@]}" --train_batch_size 2000 --num_epochs 1
equal "steps of less than a batch" "$(steps)" 1

# Statistics of batches, and tables with rows by key.
for kind in "resnet --blocks 1 --width 4" "gru --recurrent_units 12 --sequence_width 8"; do
    read -ra flags <<<"--model $kind --train_batch_size 100 --num_epochs 1"
    digits_for "${flags[1]}"
    run_ok train "${flags[1]}" "${flags[@]}" --num_gpus 4
    run_ok train "${flags[1]}-assigned" "${flags[@]}" --num_workers 2 --towers_of_workers 3,1 --parameter_server_count 2
    equal "digest of ${flags[1]}" "$(digest "${flags[1]}-assigned")" "$(digest "${flags[1]}")"
done
digits_for dnn
make_clicks
for mean in replicas contributors; do
    table=("${clicks[@]}" --train_batch_size 150 --num_epochs 1 --table_mean "$mean")
    run_ok belfry train_and_evaluate --model_dir "clicks-$mean" "${table[@]}" --num_gpus 4
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir "cluster-$mean" \
        -- "${table[@]}" --num_gpus 2
    equal "digest of tables, mean over $mean" "$(digest "cluster-$mean")" "$(digest "clicks-$mean")"
done

# The other behaviors, by flag.
run_ok train whole "${model[@]}" --num_epochs 2 --num_gpus 4 --drop_remainder
equal "complete steps" "$(steps)" 9
check "the dropped examples are reported" grep -q 'drop_remainder: 176 of 2876 examples' err.txt
run_ok train replicas "${model[@]}" --num_epochs 1 --num_gpus 4 --average replicas
check "each replica counts once: other bits" test "$(digest replicas)" != "$(digest alone-1)"
run_ok train even "${model[@]}" --train_steps 4 --num_gpus 4
run_ok train even-once "${model[@]}" --train_steps 4 --num_gpus 4 --average replicas
run_ok belfry bisect even even-once

# The sum of four replicas' gradients at a rate is their mean at four times the rate, bit for bit; also with
# two passes over the gradients, and for rows.
rows=(--train_files clicks-train.csv --eval_files clicks-eval.csv --model wide_deep --id_columns "user,item"
    --class_count 2 --hidden_units 8 --embedding_width 8 --num_threads 1)
for rate in "0.25 replicas" "0.0625 sum"; do
    read -r rate average <<<"$rate"
    flags=(--optimizer sgd --learning_rate "$rate" --average "$average" --train_batch_size 32 --train_steps 8 --no_report)
    run_ok train "rate-$average" "${flags[@]}" --num_gpus 4
    run_ok belfry train_and_evaluate --model_dir "rows-$average" "${rows[@]}" "${flags[@]}" --num_gpus 4
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir "members-$average" \
        -- "${digits[@]}" "${flags[@]}" --num_gpus 2
    run_ok train "bound-$average" "${flags[@]}" --num_gpus 4 --clip_global_norm 1000000
done
for kind in rate rows members bound; do
    equal "sum and mean, $kind" "$(digest $kind-sum)" "$(digest $kind-replicas)"
done
run_fails 2 "would count it twice" belfry local train --distributed --job_dir twice --parameter_server_count 1 -- \
    "${digits[@]}" --train_steps 2 --elastic_rescale --average sum

# --- Another batch size continues at the same record: 11 steps of 2 × 10, then the rest of the epoch
changed=(--train_batch_size 25 --num_epochs 1 --no_report --allow_changes)
run_ok train changed --num_gpus 2 --train_batch_size 10 --train_steps 11 --no_report
cp -r changed changed-cluster
run_ok train changed --num_gpus 2 "${changed[@]}"
check "the log names the record" grep -q 'batches of 25 records instead of 10: training continues after the 220 records' err.txt
equal "examples that are left" "$(examples)" $((1438 - 220))
equal "steps of both" "$(steps)" $((11 + 25))
run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 1 --job_dir changed-cluster --tcp \
    -- "${digits[@]}" "${changed[@]}"
equal "examples that are left to a cluster" "$(examples)" $((1438 - 220))
equal "digest of a cluster with another batch size" "$(digest changed-cluster)" "$(digest changed)"
run_ok train changed --num_gpus 2 "${changed[@]}" --train_batch_size 30 --num_epochs 2
equal "examples of the second epoch" "$(examples)" 1438

# In every mode all of the data are read, and no process waits for ever.
for mode in "--mode async" "--mode bounded --max_staleness 0" "--replicas_to_aggregate 2" \
    "--mode async --replicas_to_aggregate 2"; do
    read -ra flags <<<"$mode"
    run_ok train "mode-${mode//[^a-z]/}" "${model[@]}" --num_epochs 1 --num_workers 3 "${flags[@]}"
    reports=$(sed -n 's/^\([0-9]*\) reports counted.*; \([0-9]*\) came too late.*/\1 + \2/p' err.txt)
    equal "reports with $mode" $((reports)) 20
done
finish
