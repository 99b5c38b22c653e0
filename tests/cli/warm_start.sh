#!/usr/bin/env bash
# A warm start needs the classes, the columns and the sizes of the training that it begins with. Shapes do not show a
# difference: values would be read for other meanings.
# usage: warm_start.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

table=$SOURCE/examples/data/penguins.csv
sed 's/Gentoo/Aentoo/' "$table" >classes.csv
sed 's/Biscoe/Ziscoe/' "$table" >values.csv
awk -F, -v OFS=, '{ t = $3; $3 = $4; $4 = t; print }' "$table" >order.csv
awk -F, -v OFS=, 'NR == 1 { print "a,b," $0; next } { print NR % 2, int(NR / 2) % 2, $0 }' "$table" >labels.csv
flags=(--num_threads 1 --no_report --train_steps 3)

refused() { # PARTS COMMAND…: begins in folder `bad`, and writes nothing there
    rm -rf bad
    run_fails 2 "$@" --model_dir bad
    check "nothing is written" test ! -e bad
}

# --- Classes and columns of tables
for model in linear dnn wide_deep; do
    units=()
    test $model = linear || units=(--hidden_units 4)
    any=(belfry train "${flags[@]}" --model "$model" "${units[@]}")
    of=("${any[@]}" --label_column Species)
    run_ok "${of[@]}" --train_files "$table" --model_dir $model
    of+=(--warm_start "$model")
    run_ok "${of[@]}" --train_files "$table" --model_dir $model.same
    check "$model: all values" grep -qE 'warm start: ([0-9]+) of \1 variables' err.txt
    refused 'class 1 is "Chinstrap" there, but "Aentoo" here' "${of[@]}" --train_files classes.csv
    refused 'column "Island": value 0 is "Biscoe" there, but "Ziscoe" here' "${of[@]}" --train_files values.csv
    refused 'input column 1 is "Beak Length (mm)" there, but "Beak Depth (mm)" here' "${of[@]}" --train_files order.csv
    refused 'learned classes, but these are numbers' "${any[@]}" --warm_start $model --train_files "$table" \
        --label_column 'Body Mass (g)'
    refused 'learned classes, but these are several labels' "${any[@]}" --warm_start $model --train_files labels.csv \
        --label_columns a,b
done
run_ok "${any[@]}" --train_files labels.csv --label_columns a,b --model_dir labels
sed '1s/a,b,/b,a,/' labels.csv >swapped.csv
refused 'label 0 is "a" there, but "b" here' "${any[@]}" --train_files swapped.csv --label_columns a,b --warm_start labels
of=(belfry train "${flags[@]}" --model dnn --hidden_units 4 --label_column Species --warm_start dnn)
run_ok "${of[@]}" --train_files classes.csv --warm_start_variables 'dense_*' --model_dir body
refused 'input column 1' "${of[@]}" --train_files order.csv --warm_start_variables 'dense_*'
run_ok "${of[@]}" --train_files order.csv --warm_start_variables 'logits/*' --model_dir head
run_fails 2 'class 1 is "Chinstrap"' "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 1 \
    --job_dir job -- "${of[@]:2}" --train_files classes.csv
check "no checkpoint" test ! -e job/ckpt-00000000
rm -rf dnn # a resumed training does not read it
run_ok "${of[@]}" --train_files "$table" --train_steps 4 --model_dir dnn.same

# --- Sizes of models of language
sizes=(--layers 2 --heads 2 --token_width 16 --context 16)
text=(belfry train "${flags[@]}" --train_files "$SOURCE/docs/tour.md" --train_batch_size 2)
for model in gpt encoder; do
    run_ok "${text[@]}" --model $model "${sizes[@]}" --positions rotary --model_dir $model
    begin=("${text[@]}" --model "$model" --warm_start "$model")
    run_ok "${begin[@]}" --model_dir $model.same
    check "$model: sizes are taken" grep -q "taken from --warm_start $model: --layers 2 --heads 2 --token_width 16 --context 16 .*--positions rotary" err.txt
    refused 'heads is 2 there, but --heads is 4' "${begin[@]}" --heads 4
    refused 'positions is rotary there, but --positions is learned' "${begin[@]}" --positions learned
    refused 'norm is layer there, but --norm is rms' "${begin[@]}" --norm rms
    refused 'layers is 2 there, but --layers is 3' "${begin[@]}" --layers 3
    run_ok "${begin[@]}" --context 24 --layers 1 --model_dir $model.short
    check "$model: layers that are left out" grep -q "$model has 2 layers, and this model 1: h.1 to h.1 are left out" err.txt
    mkdir -p $model.lone
    cp -r $model/ckpt-* $model.lone
    rm -rf bad
    run_fails 3 'there is no tokenizer.json' "${text[@]}" --model $model --warm_start $model.lone --model_dir bad
    check "nothing is written" test ! -e bad
done
refused 'kv_heads is 2 there, but --kv_heads is 1' "${text[@]}" --model gpt --warm_start gpt --kv_heads 1

# --- An encoder's classes
row=(belfry train "${flags[@]}" --model encoder --text_column Island --label_column Species)
run_ok "${row[@]}" --train_files "$table" --warm_start encoder --model_dir islands
check "sizes are taken" grep -q 'taken from --warm_start encoder: --layers 2' err.txt
refused 'class 1 is "Chinstrap" there, but "Aentoo" here' "${row[@]}" --train_files classes.csv --warm_start islands
run_ok "${row[@]}" --train_files classes.csv --warm_start islands/ckpt-00000003 --warm_start_variables '*.*' --model_dir other
finish
