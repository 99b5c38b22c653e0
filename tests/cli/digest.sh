#!/usr/bin/env bash
# Same bits: equal digests for equal runs, with any threads, towers, workers and shards.
# usage: digest.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

run_ok train a --train_steps 30 --dropout 0.2
run_ok digest a
first=$(cat out.txt)
check "a digest is 32 hex digits" grep -qE '^[0-9a-f]{32}$' out.txt
run_ok train b --train_steps 30 --dropout 0.2
equal "the same flags again" "$(digest b)" "$first"
run_ok train c --train_steps 30 --dropout 0.2 --num_threads 3 --parameter_server_count 3
equal "other threads and shards" "$(digest c)" "$first"
run_ok train e --train_steps 30 --dropout 0.2 --num_threads 2 --executor async
equal "the asynchronous executor" "$(digest e)" "$first"
run_ok train d --train_steps 30 --dropout 0.2 --seed 2
check "another seed gives another digest" test "$(digest d)" != "$first"

run_ok train two --train_steps 30 --train_batch_size 16 --num_workers 2
run_ok train one --train_steps 30 --train_batch_size 16 --num_gpus 2
check "num_gpus without a GPU is announced" grep -q 'no GPU is used' err.txt
equal "1 worker of 2 towers, 2 workers of 1" "$(digest one)" "$(digest two)"
run_ok train three --train_steps 10 --train_batch_size 8 --towers_of_workers 3,1
run_ok train four --train_steps 10 --train_batch_size 8 --num_workers 4
equal "workers of 3 and 1 towers, 4 workers" "$(digest three)" "$(digest four)"

# A tower that has finished updates parameters; slower towers may still read them.
side_by_side=(--hidden_units "256,256,256" --train_batch_size 100 --train_steps 192 --num_threads 2
    --executor async)
run_ok train three-of-one "${side_by_side[@]}" --num_gpus 3
for i in 1 2; do
    run_ok train "three-$i" "${side_by_side[@]}" --towers_of_workers 3
    equal "towers of a single worker, run $i" "$(digest "three-$i")" "$(digest three-of-one)"
done

digits_for others
# Convolutions and moving statistics: the same, for threads, shards, towers and workers.
for model in "cnn --filters 20,16 --window 3 --dense_units 24" "resnet --blocks 1 --width 8"; do
    read -r -a words <<<"$model"
    name=${words[0]}
    image_flags=(--model "${words[@]}" --train_batch_size 16 --train_steps 12)
    run_ok train "$name-one" "${image_flags[@]}" --num_gpus 4
    run_ok train "$name-two" "${image_flags[@]}" --num_workers 2 --num_gpus 2 --num_threads 2 \
        --executor async
    run_ok train "$name-odd" "${image_flags[@]}" --num_workers 2 --towers_of_workers 3,1 \
        --num_threads 3 --parameter_server_count 3
    equal "$name: 2 workers of 2 towers, threads, executor" "$(digest "$name-two")" "$(digest "$name-one")"
    equal "$name: workers of 3 and 1 towers, shards" "$(digest "$name-odd")" "$(digest "$name-one")"
done

# Statistics of all replicas: the same bits for towers and turns, and the loss of one replica with the whole
# batch.
loss() { sed -nE 's/^loss ([0-9.]+)$/\1/p' out.txt; }
norms=(--model resnet --blocks 1 --width 8 --train_steps 12)
for kind in merged sync; do
    run_ok train "$kind-four" "${norms[@]}" --batch_norm "$kind" --train_batch_size 16 --num_gpus 4
    four=$(loss)
    run_ok train "$kind-turns" "${norms[@]}" --batch_norm "$kind" --train_batch_size 16 --replicas_to_aggregate 4
    equal "batch norm $kind: a tower in four turns" "$(digest "$kind-turns")" "$(digest "$kind-four")"
    run_ok train "$kind-two" "${norms[@]}" --batch_norm "$kind" --train_batch_size 16 --num_workers 2 --num_gpus 2
    equal "batch norm $kind: two workers" "$(digest "$kind-two")" "$(digest "$kind-four")"
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir "$kind-cluster" -- \
        "${digits[@]}" "${norms[@]}" --batch_norm "$kind" --train_batch_size 16 --num_gpus 2
    equal "batch norm $kind: a cluster" "$(digest "$kind-cluster")" "$(digest "$kind-four")"
    run_ok train "$kind-half" "${norms[@]}" --batch_norm "$kind" --train_batch_size 16 --num_gpus 2 \
        --replicas_to_aggregate 2 --precision bf16 --activation_memory 1
    check "batch norm $kind: a loss of ${four:-?}, with parts $(loss)" \
        awk "BEGIN { exit !($(loss) > 0.98 * ${four:-9} && $(loss) < 1.02 * ${four:-0}) }"
done
run_ok train sync-one "${norms[@]}" --batch_norm sync --train_batch_size 64
check "batch norm sync: a loss of ${four:-?} with four replicas, with one $(loss)" \
    awk "BEGIN { exit !($(loss) > 0.99999 * ${four:-9} && $(loss) < 1.00001 * ${four:-0}) }"

# Less memory for activations: recomputed with the same bits, or kept as bf16 with other bits.
deep=(--model resnet --blocks 2 --width 16 --train_batch_size 64 --train_steps 8)
run_ok train deep "${deep[@]}" --num_gpus 2
exact=$(loss)
run_ok train deep-again "${deep[@]}" --num_workers 2 --activation_memory 3
equal "some values are recomputed" "$(digest deep-again)" "$(digest deep)"
run_ok train half "${deep[@]}" --num_gpus 2 --precision bf16
check "a loss of ${exact:-?}, with bf16 $(loss)" \
    awk "BEGIN { exit !($(loss) > 0.98 * ${exact:-9} && $(loss) < 1.02 * ${exact:-0}) }"
check "bf16 has other bits" test "$(digest half)" != "$(digest deep)"
run_ok train half-again "${deep[@]}" --num_workers 2 --num_threads 2 --parameter_server_count 3 --precision bf16 \
    --activation_memory 3
equal "bf16: workers, threads, shards, recomputed" "$(digest half-again)" "$(digest half)"
run_ok train half-async "${deep[@]}" --num_gpus 2 --num_threads 2 --executor async --precision bf16
equal "bf16: the asynchronous executor" "$(digest half-async)" "$(digest half)"
run_fails 2 "precision was bf16" train half "${deep[@]}" --num_gpus 2 --train_steps 16
run_fails 2 "activation_memory needs the synchronous executor" train none "${deep[@]}" --executor async \
    --activation_memory 3
run_fails 1 "MiB, but may take only 1.0 MiB" train none "${deep[@]}" --activation_memory 1

# Recurrent layers over eight steps of eight pixels: the same, and for threads.
for model in "gru --recurrent_units 24" "lstm --recurrent_units 20,16"; do
    read -r -a words <<<"$model"
    name=${words[0]}
    sequence_flags=(--model "${words[@]}" --sequence_width 8 --train_batch_size 16 --train_steps 12)
    run_ok train "$name-one" "${sequence_flags[@]}" --num_gpus 2
    run_ok train "$name-two" "${sequence_flags[@]}" --num_workers 2 --num_threads 2 \
        --parameter_server_count 3
    equal "$name: workers, threads and shards" "$(digest "$name-two")" "$(digest "$name-one")"
done
run_fails 2 'multiple of sequence_width 7' \
    train none --model gru --sequence_width 7 --train_steps 1
# Lengths from a column; the values after them do not matter.
sed 's/^[^,]*,/3,/; 1s/^3,/steps,/' "$TRAIN_CSV" >steps-train.csv
sed 's/^[^,]*,/3,/; 1s/^3,/steps,/' "$EVAL_CSV" >steps-eval.csv
awk -F, -v OFS=, 'NR > 1 { $64 = 99 } 1' steps-eval.csv >garbage-eval.csv
steps_flags=(--model gru --recurrent_units 8 --sequence_width 9 --length_column steps --no_report)
run_ok belfry train_and_evaluate --model_dir steps "${steps_flags[@]}" --train_steps 12 \
    --train_files steps-train.csv --eval_files steps-eval.csv
run_ok belfry predict --model_dir steps --eval_files steps-eval.csv --label_column digit
cp out.txt steps.txt
run_ok belfry predict --model_dir steps --eval_files garbage-eval.csv --label_column digit
check "no value after a length counts" cmp -s out.txt steps.txt

# In two parts, or in one.
digits_for dnn
run_ok train part --train_steps 13 --dropout 0.2
run_ok train part --train_steps 30 --dropout 0.2
equal "resumed" "$(digest part)" "$first"

run_ok belfry bisect a b
equal "bisect of equals" "$(head -n 1 out.txt)" equal
capture belfry bisect a d
equal "exit code of bisect" "$code" 1
check "bisect names a tensor" grep -q 'differs at element' out.txt
capture belfry bisect a three
check "bisect of other optimizer state" test "$code" -eq 1

# job.yaml contains every flag: another run from only this file gives the same bits.
run_ok belfry train_and_evaluate --config_file a/job.yaml --model_dir replayed
equal "replayed from job.yaml" "$(digest replayed)" "$first"
run_ok belfry train_and_evaluate --config_file a/job.yaml --model_dir replayed --train_steps 35

# It exists from the beginning, and a refused run leaves it unchanged.
BELFRY_FAULT=crash:checkpoint_after_rename#2 capture train killed --train_steps 30 --save_checkpoints_steps 10
equal "killed on the way" "$code" 137
check "job.yaml of a killed run" grep -q '^train_steps: 30' killed/job.yaml
cp killed/job.yaml first.yaml
run_fails 2 "was trained with other settings" train killed --train_steps 40 --seed 9
check "job.yaml after a refused run" cmp -s killed/job.yaml first.yaml
run_ok belfry train_and_evaluate --config_file killed/job.yaml
check "job.yaml of the resumed run" grep -q '^train_steps: 30' killed/job.yaml

# The digest printed after training is the checkpoint's; evaluate repeats the last evaluation's numbers.
run_ok train e --train_steps 30 --dropout 0.2
equal "printed digest" "$(sed -n 's/^digest //p' out.txt)" "$first"
trained=$(grep -E '^(loss|accuracy|examples) ' out.txt)
run_ok belfry evaluate --model_dir e --eval_files "$EVAL_CSV"
equal "evaluate" "$(grep -E '^(loss|accuracy|examples) ' out.txt)" "$trained"
run_ok belfry evaluate --checkpoint e/ckpt-00000030 --eval_files "$EVAL_CSV"
equal "evaluate --checkpoint" "$(grep -E '^(loss|accuracy|examples) ' out.txt)" "$trained"

# Prediction: one line per example, in order, with the accuracy of the evaluation.
run_ok belfry predict --model_dir e --eval_files "$EVAL_CSV" --label_column digit
equal "predictions" "$(wc -l <out.txt)" "$(($(wc -l <"$EVAL_CSV") - 1))"
right=$(paste -d, <(cut -d, -f1 out.txt) <(tail -n +2 "$EVAL_CSV" | sed 's/.*,//') |
    awk -F, '$1 == $2 { n++ } END { printf "%.6f", n / NR }')
equal "accuracy of the predictions" "$right" \
    "$(sed -n 's/^accuracy //p' <<<"$trained" | awk '{ printf "%.6f", $1 }')"
cut -d, -f1-64 "$EVAL_CSV" >unlabeled.csv
cp out.txt labeled.txt
run_ok belfry predict --model_dir e --eval_files unlabeled.csv
check "a file without labels gives the same" cmp -s out.txt labeled.txt

# Every rule: other shards and workers, and a run in two parts.
for rule in sgd adagrad lamb lars "rmsprop --rmsprop_momentum 0.5 --rmsprop_centered" adamw ftrl adadelta; do
    read -r -a words <<<"$rule"
    name=${words[0]}
    rule_flags=(--optimizer "${words[@]}" --learning_rate 0.01 --weight_decay 0.01 --train_batch_size 16)
    run_ok train "$name-one" --train_steps 20 "${rule_flags[@]}" --num_gpus 2
    run_ok train "$name-two" --train_steps 8 "${rule_flags[@]}" --num_workers 2
    run_ok train "$name-two" --train_steps 20 "${rule_flags[@]}" --num_workers 2 --parameter_server_count 3
    equal "digest with $name" "$(digest "$name-two")" "$(digest "$name-one")"
done

# Settings of an optimizer that belong to steps and variables: the same.
settings=("--schedule piecewise --boundaries 5,12 --rates 0.01,0.003,0.001"
    "--schedule polynomial --decay_steps 6 --decay_power 2 --decay_cycle"
    "--schedule cosine_restarts --decay_steps 4 --m_mul 0.5 --warmup_steps 3"
    "--optimizer adamw --weight_decay 0.01 --lr_mult dense_0/*=0.1 --decay_mult */bias=0"
    "--moving_average_decay 0.9 --moving_average_ramp"
    "--optimizer ftrl --lr_mult log*=0.1 --lr_mult dense_?/kernel=2")
for words in "${settings[@]}"; do
    read -r -a rule_flags <<<"$words"
    rule_flags+=(--train_batch_size 16)
    rm -rf in-one in-parts
    run_ok train in-one --train_steps 20 "${rule_flags[@]}" --num_gpus 2
    run_ok train in-parts --train_steps 8 "${rule_flags[@]}" --num_workers 2
    run_ok train in-parts --train_steps 20 "${rule_flags[@]}" --num_workers 2 --parameter_server_count 3
    equal "digest with $words" "$(digest in-parts)" "$(digest in-one)"
done
# The linear rule: R times the rate, for towers, workers and turns; an explicit rate of that size gives the
# same steps.
scaled=(--train_steps 20 --train_batch_size 16 --optimizer sgd --learning_rate 0.0625)
run_ok train scaled "${scaled[@]}" --num_gpus 4 --scale_learning_rate linear
check "the log names the factor" grep -q 'scale_learning_rate: 4 times the learning rate' err.txt
run_ok train scaled-turns "${scaled[@]}" --num_workers 2 --accumulate_steps 2 --scale_learning_rate linear
equal "digest of a scaled rate with turns" "$(digest scaled-turns)" "$(digest scaled)"
run_ok train scaled-by-hand "${scaled[@]}" --num_gpus 4 --learning_rate 0.25
equal "digest of four times the rate" "$(digest scaled-by-hand)" "$(digest scaled)"
run_ok train rising "${scaled[@]}" --num_gpus 4 --scale_learning_rate linear --warmup_steps 8
run_ok train rising-by-hand "${scaled[@]}" --num_gpus 4 --schedule formula \
    --schedule_formula 'step < 8 ? 1 + 3 * step / 8 : 4'
equal "digest of a rate that rises to it" "$(digest rising)" "$(digest rising-by-hand)"
run_ok train one-replica "${scaled[@]}" --scale_learning_rate linear --warmup_steps 8
run_ok train one-replica-by-hand "${scaled[@]}"
equal "one replica has nothing to rise to" "$(digest one-replica)" "$(digest one-replica-by-hand)"
run_fails 2 'scale_learning_rate was linear and is not set' \
    train scaled "${scaled[@]}" --num_gpus 4 --train_steps 30
run_fails 2 'scale_learning_rate was not set and is linear' \
    train scaled-by-hand "${scaled[@]}" --num_gpus 4 --learning_rate 0.25 --train_steps 30 --scale_learning_rate linear
run_ok train scaled-sum "${scaled[@]}" --num_gpus 4 --average sum --scale_learning_rate always
run_ok train rates-sum "${scaled[@]}" --num_gpus 4 --average sum --rate_scale 4
equal "digest of a scaled rate of sums" "$(digest scaled-sum)" "$(digest rates-sum)"
for words in "--average sum" "--mode async" "--mode bounded --max_staleness 2" "--rate_scale 2"; do
    read -r -a rule_flags <<<"$words"
    run_fails 2 'scale_learning_rate' train clash "${scaled[@]}" --num_workers 2 --scale_learning_rate linear "${rule_flags[@]}"
    check "nothing was begun with $words" test ! -e clash/ckpt-00000000
done
run_fails 2 'lr_mult: "dense_3/*" matches no trainable variable' \
    train none --train_steps 1 --lr_mult 'dense_3/*=0.1'
run_fails 2 'lr_mult: "lgits/bias" matches|did you mean "logits/bias"?' \
    train none --train_steps 1 --lr_mult lgits/bias=0.1
run_fails 2 'lr_mult was log*=0.1,dense_?/kernel=2 and is log*=0.2' \
    train in-one --train_steps 30 --train_batch_size 16 --num_gpus 2 --optimizer ftrl --lr_mult 'log*=0.2'
run_ok train pieces --train_steps 2 --schedule piecewise --boundaries 5 --rates 0.01,0.001
run_fails 2 'piecewise: 0.01 up to step 5, 0.001 and is piecewise: 0.01 up to step 6, 0.001' \
    train pieces --train_steps 4 --schedule piecewise --boundaries 6 --rates 0.01,0.001

# Averages: saved beside the variables, evaluated during training and afterwards; the parameters themselves on
# request.
run_ok train mean --train_steps 30 --moving_average_decay 0.95
averaged=$(grep -E '^(loss|accuracy) ' out.txt)
run_ok belfry inspect mean
check "averages are saved" grep -q 'dense_0/kernel/average' out.txt
run_ok belfry evaluate --model_dir mean --eval_files "$EVAL_CSV"
equal "evaluated averages" "$(grep -E '^(loss|accuracy) ' out.txt)" "$averaged"
run_ok train plain --train_steps 30
plain=$(grep -E '^(loss|accuracy) ' out.txt)
check "averages differ from parameters" test "$plain" != "$averaged"
run_ok belfry evaluate --checkpoint mean/ckpt-00000000 --eval_files "$EVAL_CSV"
check "and from their first values" test "$(grep -E '^(loss|accuracy) ' out.txt)" != "$averaged"
run_ok belfry evaluate --model_dir mean --eval_files "$EVAL_CSV" --no_averages
equal "evaluated parameters" "$(grep -E '^(loss|accuracy) ' out.txt)" "$plain"
run_ok belfry predict --model_dir mean --eval_files "$EVAL_CSV" --label_column digit
cp out.txt mean.txt
run_ok belfry predict --model_dir plain --eval_files "$EVAL_CSV" --label_column digit
cp out.txt plain.txt
run_ok belfry predict --model_dir mean --eval_files "$EVAL_CSV" --label_column digit --no_averages
check "predictions by parameters" cmp -s out.txt plain.txt
check "predictions by averages" test "$(cat mean.txt)" != "$(cat plain.txt)"
# Averages that begin later begin with the parameters' values.
run_ok train plain --train_steps 30 --moving_average_decay 0.95 --allow_changes
equal "averages of a run that had none" "$(grep -E '^(loss|accuracy) ' out.txt)" "$plain"

finish
