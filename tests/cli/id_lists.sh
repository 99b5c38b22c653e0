#!/usr/bin/env bash
# A column with several ids per row, or none. Training in one process and in several has the same bits, in any
# assignment. Checkpoints remember how the column is read. Errors in a list have a place.
# usage: id_lists.sh BUILD_FOLDER
# shellcheck disable=SC2016 # in awk, $2 is a field
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
for file in train eval; do # the label says whether tag 3 is among the tags
    awk -v first="$([ $file = train ] && echo 0 || echo 70000)" -v lines="$([ $file = train ] && echo 2000 || echo 300)" '
        BEGIN {
            print "tags,hour,liked"
            for (i = first; i < first + lines; i++) {
                list = ""; liked = 0
                for (k = 0; k < i * 7 % 5; k++) {
                    tag = (i * 31 + k * 17 + int(i / 7)) % 23
                    list = list (k > 0 ? "|" : "") "t" tag (i % 3 == 0 ? ":2" : "")
                    if (tag % 8 == 3) liked = 1
                }
                printf "%s,%.3f,%d\n", list, i % 24 / 24, liked
            }
        }' >tags-$file.csv
done
tags=(--train_files tags-train.csv --eval_files tags-eval.csv --model wide_deep --id_list_columns tags --id_list_most 4
    --id_list_weights --class_count 2 --hidden_units 8 --embedding_width 8 --optimizer adagrad --learning_rate 0.1
    --initial_accumulator 1e-6 --num_threads 1 --no_report --train_batch_size 16 --num_epochs 6)

run_ok belfry train_and_evaluate --model_dir alone "${tags[@]}" --num_gpus 2
check "it learns from tags" awk '/^accuracy / { good = $2 > 0.95 } END { exit !good }' out.txt
run_ok belfry train_and_evaluate --model_dir workers "${tags[@]}" --num_workers 2 --parameter_server_count 3
equal "two workers" "$(digest workers)" "$(digest alone)"
for lane in shm grpc; do
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir "job-$lane" \
        -- "${tags[@]}" --lane $lane
    equal "processes over $lane" "$(digest "job-$lane")" "$(digest alone)"
done
for combiner in sum sqrtn; do
    run_ok belfry train_and_evaluate --model_dir "$combiner" "${tags[@]}" --num_gpus 2 --id_list_combiner $combiner
    check "$combiner is another model" test "$(digest $combiner)" != "$(digest alone)"
done

# --- Data of checkpoints
run_ok belfry evaluate --model_dir alone --eval_files tags-eval.csv
check "evaluated with lists" awk '/^accuracy / { good = $2 > 0.95 } END { exit !good }' out.txt
run_ok belfry predict --model_dir alone --eval_files tags-eval.csv
equal "a line for each row" "$(wc -l <out.txt)" 300

# --- Errors
run_fails 3 'tags-train.csv:4:1: column "tags": expected at most 2 ids, each as id or id:weight' \
    belfry train_and_evaluate --model_dir bad "${tags[@]}" --id_list_most 2
run_fails 2 'no column "tag"; did you mean "tags"' belfry train_and_evaluate --model_dir bad "${tags[@]}" --id_list_columns tag
run_fails 2 '--id_list_weights has no effect without --id_list_columns' belfry train --model_dir bad --model wide_deep \
    --train_files tags-train.csv --id_columns tags --class_count 2 --optimizer adagrad --id_list_weights
run_fails 2 'id_list_columns|wide_deep' belfry train_and_evaluate --model_dir bad "${tags[@]}" --model dnn
# --- Rows by name
seq 0 22 | sed 's/^/t/' >names.txt
run_ok belfry inspect alone --rows deep --names tags=names.txt
cp out.txt named.txt
equal "a line for each name" "$(wc -l <named.txt)" 23
equal "in the order of the file" "$(cut -f1 named.txt)" "$(cat names.txt)"
check "with 8 values" awk -F'\t' 'NF != 9 { exit 1 }' named.txt
run_ok belfry inspect workers --rows deep --names tags=names.txt
check "the same from other shards" cmp -s out.txt named.txt
run_ok belfry inspect alone --rows deep
equal "all rows" "$(cut -f2- out.txt | sort | sha256sum)" "$(cut -f2- named.txt | sort | sha256sum)"
check "ascending keys" sort -c -n -k1,1 out.txt
run_ok belfry inspect alone --rows wide --json
check "as JSON" python3 -c 'import json
rows = [json.loads(line) for line in open("out.txt")]
assert len(rows) == 23 and all(len(row["values"]) == 2 and "name" not in row for row in rows)'
printf 't22 \nnone\n\nt3' >some.txt
run_ok belfry inspect alone --rows deep --names tags=some.txt
equal "two of four names" "$(cat out.txt)" "$(grep -E '^(t22)' named.txt; grep -E '^t3\b' named.txt)"
check "the others are counted" grep -q 'some.txt: 2 of 4 names have no row in table "deep" and are left out; the first is "none" in line 2' err.txt
run_ok belfry inspect alone --rows deep --names tags=some.txt --json
check "names in JSON" grep -q '^{"name":"t22","key":-*[0-9]*,"values":\[' out.txt
run_ok belfry inspect alone --rows deep --names tags=some.txt --names tags=names.txt
equal "names of two files" "$(cat out.txt)" "$(grep -E '^(t22)' named.txt; grep -E '^t3\b' named.txt; cat named.txt)"
run_fails 3 'names.txt: no name of 23 has a row|COLUMN' belfry inspect alone --rows deep --names hour=names.txt
run_fails 3 'names.txt: no name of 23 has a row|COLUMN' belfry inspect alone --rows deep --names tags=some.txt \
    --names hour=names.txt
: >empty.txt
run_fails 2 'empty.txt: expected a name a line' belfry inspect alone --rows deep --names tags=empty.txt
run_fails 3 'no table "depe"|tables: deep, wide' belfry inspect alone --rows depe
run_fails 2 'expected COLUMN=FILE, got "names.txt"' belfry inspect alone --rows deep --names names.txt
run_fails 2 'expected COLUMN=FILE, got "tags="' belfry inspect alone --rows deep --names tags=
run_fails 2 '--names has no effect|--rows' belfry inspect alone --names tags=names.txt
run_fails 3 'none.txt' belfry inspect alone --rows deep --names tags=none.txt
printf '\357\273\277t3\n' >marked.txt
run_ok belfry inspect alone --rows deep --names tags=marked.txt
equal "after a byte order mark" "$(cat out.txt)" "$(grep -E '^t3\b' named.txt)"
printf 'a\tb\n' >tab.txt
run_fails 2 'tab.txt:1: the name has a tab' belfry inspect alone --rows deep --names tags=tab.txt
# Names that CSV has in quotes
{
    echo 'who,size,liked'
    for i in $(seq 200); do echo "\"a, $((i % 7))\",$i,$((i % 7 / 4))"; done
} >who.csv
named=(--train_files who.csv --label_column liked --num_threads 1 --train_steps 20 --no_report --embedding_width 4)
run_ok belfry train --model_dir who --model wide_deep --id_columns who --class_count 2 --hidden_units 4 \
    --optimizer adagrad "${named[@]}"
printf 'a, 3\na, 6\n' >who.txt
run_ok belfry inspect who --rows deep --names who=who.txt
equal "names without their quotes" "$(cut -f1 out.txt)" "$(cat who.txt)"
finish
