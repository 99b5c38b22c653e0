#!/usr/bin/env bash
# The encoder: it learns from hidden tokens and classifies texts, to the same bits in every deal, killed and resumed.
# Classes by name, texts that are cut or empty, and inputs that are refused.
# usage: encoder.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# --- A table of lines, each with the kind of file that it is from
lines() { # KIND FILE…: its lines, as rows of CSV
    local kind=$1
    shift
    sed 's/^ *//; s/ *$//' "$@" | awk -v kind="$kind" 'length >= 25 && length <= 100 && !seen[$0]++ && count++ < 400 {
        gsub(/"/, "\"\""); printf "\"%s\",%s\n", $0, kind }'
}
{
    lines columns "$SOURCE"/src/columns/g*.c
    lines models "$SOURCE"/src/models/*.c
    lines shell "$SOURCE"/tests/cli/[c-e]*.sh
    lines prose "$SOURCE"/docs/[c-m]*.md
} >rows.csv
rows=$(wc -l <rows.csv)
check "rows of each kind" test "$rows" -eq 1600
{ echo line,kind; cat rows.csv; } >table.csv
run_ok belfry tokens train "$SOURCE"/docs/t*.md "$SOURCE"/src/columns/*.c --vocabulary 600 --out tokenizer.json
sizes=(--model encoder --layers 2 --heads 2 --token_width 32)
run=("${sizes[@]}" --num_threads 1 --no_report --min_shard_bytes 0)

# --- Hidden tokens
printf -v list '%s,' "$SOURCE"/docs/t*.md
texts=(--train_files "${list%,}" --tokenizer tokenizer.json --eval_share 0.1)
hidden=("${texts[@]}" "${run[@]}" --context 32 --train_batch_size 4 --train_steps 20 --dropout 0.1)
run_ok belfry train_and_evaluate "${hidden[@]}" --num_gpus 4 --model_dir alone
check "the token of hidden ones" grep -q 'a hidden token becomes token 600, the one after those of the tokenizer' err.txt
check "defaults are named" grep -q 'defaults of --model encoder: --vocabulary 601 --optimizer adamw' err.txt
for name in perplexity accuracy; do check "$name" grep -qE "^$name [0-9.]+$" out.txt; done
cp out.txt alone.txt
one=$(digest alone)
run_ok belfry train_and_evaluate "${hidden[@]}" --num_workers 2 --num_gpus 2 --model_dir two
equal "2 x 2" "$(digest two)" "$one"
killed_and_resumed() { # MODEL_DIR flags…
    BELFRY_FAULT=crash:tower_step#50 capture belfry train_and_evaluate "${@:2}" --num_gpus 4 --save_checkpoints_steps 5 --model_dir "$1"
    check "the process dies" test "$code" -ne 0
    run_ok belfry train_and_evaluate "${@:2}" --num_gpus 4 --model_dir "$1"
    check "it continues" grep -qE 'steps (5|10|15) to 20' err.txt
    equal "$1: killed and resumed" "$(digest "$1")" "$one"
}
killed_and_resumed resumed "${hidden[@]}"
run_ok env BELFRY_FAULT=crash:tower_step#12@worker-1 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
    --parameter_server_count 3 --job_dir killed -- "${hidden[@]}" --num_gpus 2
equal "two workers, three shards, one killed" "$(digest killed)" "$one"
run_ok belfry train_and_evaluate "${hidden[@]}" --no_bias --train_steps 1 --model_dir unbiased
for batch in 1 7; do
    run_ok belfry evaluate --model_dir alone --held_out --eval_batch_size $batch
    check "the same tokens are hidden in batches of $batch" awk -v a="$(sed -n 's/^loss //p' out.txt)" \
        -v b="$(sed -n 's/^loss //p' alone.txt)" 'BEGIN { d = a - b; exit !(d < 1e-4 && d > -1e-4) }'
done
run_ok belfry predict --model_dir alone --held_out
check "a state for each context" grep -q '^state_0,.*,state_31$' out.txt

# --- Classes of texts
of=(--train_files table.csv --text_column line --label_column kind --eval_share 0.25)
classes=("${of[@]}" "${run[@]}" --tokenizer tokenizer.json --context 32 --train_batch_size 8 --train_steps 20 --dropout 0.1)
run_ok belfry train_and_evaluate "${classes[@]}" --num_gpus 4 --model_dir c-alone
check "texts that are cut" grep -qE 'table.csv: [0-9]+ of 400 texts "line" have more than 32 tokens, and are cut$' err.txt
one=$(digest c-alone)
run_ok belfry train_and_evaluate "${classes[@]}" --num_workers 2 --num_gpus 2 --model_dir c-two
equal "classes: 2 x 2" "$(digest c-two)" "$one"
killed_and_resumed c-resumed "${classes[@]}"
run_ok env BELFRY_FAULT=crash:tower_step#12@worker-1 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
    --parameter_server_count 3 --job_dir c-killed -- "${classes[@]}" --num_gpus 2
equal "classes: two workers, three shards, one killed" "$(digest c-killed)" "$one"

# A body that has learned without classes
run_ok belfry train_and_evaluate "${classes[@]}" --warm_start alone --model_dir warm
check "the body" grep -q 'warm start: 28 of 30 variables from alone/ckpt-00000020' err.txt
check "a new head" grep -q 'the head, "logits/kernel", begins anew: --warm_start alone has learned without classes' err.txt
run_ok belfry train_and_evaluate "${classes[@]}" --warm_start c-alone --model_dir warmer
check "with its head" grep -q 'warm start: 30 of 30 variables from c-alone' err.txt

# Better than the share of a class (0.25), and not below hashed words
right() { sed -n 's/^accuracy //p' out.txt; }
run_ok belfry train_and_evaluate "${of[@]:0:2}" --label_column kind --eval_share 0.25 --no_report --model_dir words
hashed=$(right)
run_ok belfry train_and_evaluate "${of[@]}" "${sizes[@]}" --no_report --tokenizer tokenizer.json --context 40 --train_batch_size 16 \
    --num_epochs 8 --model_dir learned
check "accuracy $(right), of hashed words $hashed" awk -v a="$(right)" -v b="$hashed" 'BEGIN { exit !(a > 0.8 && a > b - 0.02) }'

# A longer training continues, with the rise of its first steps
longer=("${of[@]}" "${sizes[@]}" --no_report --num_threads 1 --tokenizer tokenizer.json --context 16)
run_ok belfry train_and_evaluate "${longer[@]}" --num_epochs 1 --model_dir longer
run_ok belfry train_and_evaluate "${longer[@]}" --num_epochs 2 --model_dir longer
check "the longer schedule is reported" grep -q 'longer from step 38 on: the end of the schedule was 38 and is 7[56]; num_epochs was 1 and is 2' err.txt
check "the first rise" grep -q -- '--warmup_steps 1 ' err.txt
run_fails 2 'param.warmup_steps was 1 and is 2' belfry train_and_evaluate "${longer[@]}" --num_epochs 3 --warmup_steps 2 --model_dir longer

# --- Answers, by the names of the classes
{
    echo line,kind
    grep ',prose$' rows.csv | awk 'length < 50' | head -n 30
    echo ,y
} >new.csv
run_ok belfry predict --model_dir learned --eval_files new.csv --keep_columns kind
equal "header" "$(head -n 1 out.txt)" 'kind,prediction,p_columns,p_models,p_prose,p_shell'
cp out.txt answers.csv
check "classes by their names" test "$(grep -c '^prose,prose,' answers.csv)" -ge 20
check "an empty text" grep -qE '1 (of 31 texts "line" )?have no token' err.txt
run_ok bash -c "'$BUILD/tools/belfry' predict --model_dir learned --eval_files - --json <new.csv"
equal "on standard input" "$(sed -n 's/.*"class":"\([a-z]*\)".*/\1/p' out.txt)" "$(tail -n +2 answers.csv | cut -d, -f2)"
run_ok belfry evaluate --model_dir learned --held_out
run_ok belfry export --model_dir learned --export_dir exported
check "ids and lengths" grep -q '"name":"tokens","dtype":"i64","shape":\["N",40\]' exported/signature.json
check "ids and lengths" grep -q '"name":"length","dtype":"i64","shape":\["N"\]' exported/signature.json
printf 'line,grade\naa bb,1.5\ncc,2.25\ndd,3\n' >numbers.csv
run_ok belfry train_and_evaluate --train_files numbers.csv --eval_files numbers.csv --text_column line --label_column grade "${run[@]}" \
    --train_steps 3 --model_dir numbers
check "labels that are numbers" grep -q 'label "grade", a number' err.txt
check "their metric" grep -q '^mean_absolute_error ' out.txt

# --- The same table as JSONL, with a text of two lines
begin=(belfry train_and_evaluate "${run[@]}" --train_steps 1 --model_dir bad)
/usr/bin/python3 - table.csv >table.jsonl <<'PYTHON'
import csv, json, sys

for i, row in enumerate(csv.DictReader(open(sys.argv[1]))):
    print(json.dumps(dict(reversed(row.items())) if i % 2 else row, ensure_ascii=i % 3 == 0))
PYTHON
objects=(--train_files table.jsonl "${classes[@]:2}" --train_steps 5)
run_ok belfry train_and_evaluate "${classes[@]}" --train_steps 5 --model_dir rows
run_ok belfry train_and_evaluate "${objects[@]}" --model_dir objects
check "it says so" grep -q 'table.jsonl: 1600 objects with 2 members are held in memory' err.txt
equal "the same table" "$(digest objects)" "$(digest rows)"
gzip -c table.jsonl >table.jsonl.gz
run_ok belfry evaluate --model_dir objects --eval_files table.jsonl.gz
cp out.txt packed.txt
run_ok belfry evaluate --model_dir objects --eval_files table.csv
equal "packed" "$(grep -v step packed.txt)" "$(grep -v step out.txt)"
printf '{"line":"a\\nb, \\"c\\"","kind":"prose","n":1.5}\n{"kind":null,"line":"d"}\n{"line":"e","kind":"prose","m":true}\n\n' >few.jsonl
run_ok belfry predict --model_dir objects --eval_files few.jsonl --keep_columns line,n,m
equal "its cells" "$(cut -d, -f1-4 out.txt | tr '\n' '/' | sed 's/,[a-z]*\//\//g')" 'line,n,m/"a/b, ""c""",1.5/d,,/e,,true/'
broken() { # LINE MESSAGE
    { head -n 2 table.jsonl; echo "$1"; } >broken.jsonl
    run_fails 3 "broken.jsonl:3$2" belfry evaluate --model_dir objects --eval_files broken.jsonl
}
broken '{"line": ["a"], "kind": "prose"}' ': "line": expected a text, a number, true, false or null, got a list'
broken '[1]' ': expected an object'
broken '"a"' ':1:3: not valid JSON'
broken '{"line": "a"' ':1:12: not valid JSON'
broken '{"line": "a", "kind": "python"}' ': label "kind": expected a class'
run_fails 2 'its objects name the columns' "${begin[@]}" --train_files table.jsonl --no_header --label_column 1 --text_column 0
run_fails 2 '--train_files: table.csv: with --input_format jsonl expected names' "${begin[@]}" "${of[@]}" --input_format jsonl
run_fails 2 '--train_files: table.jsonl: with --input_format csv expected names' "${begin[@]}" "${objects[@]}" --input_format csv
run_fails 2 'table.jsonl: its objects have no delimiter, but one was given' "${begin[@]}" "${objects[@]}" --delimiter ';'
mkdir pattern
ln table.jsonl pattern/a.jsonl
run_ok belfry evaluate --model_dir objects --eval_files "$PWD/pattern/*" --input_format jsonl

# --- A mask token of the tokenizer
sed 's/"added_tokens": \[/&{"id": 600, "content": "[MASK]", "special": true},/' tokenizer.json >masked.json
run_ok belfry train_and_evaluate "${hidden[@]}" --tokenizer masked.json --train_steps 1 --model_dir masked
check "its own" grep -q "a hidden token becomes token 600, the tokenizer's" err.txt
run_ok belfry tokens encode "$SOURCE"/docs/tour.md --tokenizer tokenizer.json --out all.bin
run_ok belfry train "${run[@]}" --train_files all.bin --vocabulary 601 --train_steps 1 --model_dir ids
check "without a tokenizer" grep -q 'a hidden token becomes token 600, the last of --vocabulary' err.txt
run_fails 3 'expected a number below 500' belfry train "${run[@]}" --train_files all.bin --vocabulary 501 --train_steps 1 --model_dir bad

# --- Errors
run_fails 2 'no column "lines"; did you mean "line"' "${begin[@]}" --train_files table.csv --text_column lines
run_fails 2 'column "line" is asked for twice' "${begin[@]}" --train_files table.csv --text_column line --label_column line
run_fails 2 '--numeric has no effect with --text_column' "${begin[@]}" "${of[@]}" --numeric line
printf 'id,text\n1,aa\n2,bb\n3,cc\n' >numbered.csv
run_fails 2 'the columns have no label|--label_column' "${begin[@]}" --train_files numbered.csv --text_column text
printf 'text,kind\n,a\n,b\n,a\n' >empty.csv
run_fails 2 'the text "text" has no value in any row' "${begin[@]}" --train_files empty.csv --text_column text
run_fails 2 '--no_tied has no effect' "${begin[@]}" --train_files table.csv --no_tied
check "a table without its columns" grep -q 'table.csv: the whole file is learned as a text' err.txt
run_fails 2 '--text_column is for tables whose columns are looked at' "${begin[@]}" "${of[@]}" --class_count 4
run_fails 2 '--text_column has no effect without --model encoder' belfry train "${of[@]:0:6}" --model dnn --train_steps 1 --model_dir bad
run_fails 2 '--class_count has no effect with --model encoder and without --text_column' "${begin[@]}" "${texts[@]}" --class_count 3
for flag in '--kv_heads 1' --no_tied '--preset nano'; do
    # shellcheck disable=SC2086 # a flag and its value
    run_fails 2 'has no effect without --model gpt' "${begin[@]}" "${of[@]}" $flag
done
run_fails 2 '--tokenizer chars is for files of texts' "${begin[@]}" "${of[@]}" --tokenizer chars
run_fails 2 '--context 16: the columns have 32 tokens of "line"' belfry train_and_evaluate "${classes[@]}" --context 16 --model_dir c-alone
run_fails 2 '--context 2000000: with --text_column expected at most 1048576 tokens' "${begin[@]}" "${of[@]}" --context 2000000
mkdir llama.hf
echo '{"model_type": "gpt2"}' >llama.hf/config.json
run_fails 2 '--warm_start llama.hf is a folder of Hugging Face, which only --model gpt reads' "${begin[@]}" "${of[@]}" --warm_start llama.hf
run_fails 2 '--text_column text: the training began with "line"' belfry train_and_evaluate "${classes[@]}" --text_column text --model_dir c-alone
run_fails 2 'expected at least the 601 tokens of the tokenizer and that of hidden ones, got 600' "${begin[@]}" "${texts[@]}" --vocabulary 600
printf 'text\na\n' >other.csv
sed '2,200s/,shell$/,python/; 2,$s/,prose$/,python/' table.csv >unknown.csv
run_fails 3 'expected a class, one of "columns" "models" "prose" "shell", got "python"|more of 1600 rows have other classes' \
    belfry evaluate --model_dir learned --eval_files unknown.csv
run_fails 2 'no column "line", with which the model was trained' belfry predict --model_dir learned --eval_files other.csv
printf 'columns:\n  - {name: line, kind: tokens}\n  - {name: kind, kind: label, classes: [a, b]}\n' >columns.yaml
run_fails 2 'expected a "most" beside it' "${begin[@]}" --train_files table.csv --columns columns.yaml
printf 'columns:\n  - {name: line, kind: tokens, most: 9}\n  - {name: n, kind: number}\n  - {name: kind, kind: label, classes: [a, b]}\n' >columns.yaml
run_fails 2 'beside the tokens of "line" no column is learned from' "${begin[@]}" --train_files table.csv --columns columns.yaml
sed -i '/name: n,/d' columns.yaml
run_fails 2 '--model dnn does not read tokens' belfry train --model dnn --train_files table.csv --columns columns.yaml --model_dir bad
run_fails 2 '--model gpt learns from files of texts, and has no columns' belfry train --model gpt --train_files table.csv \
    --columns columns.yaml --model_dir bad
printf 'columns:\n  - {name: line, kind: text}\n  - {name: kind, kind: label, classes: [a, b]}\n' >columns.yaml
run_fails 2 '--model encoder learns from the tokens of a text, and no column is of kind tokens' "${begin[@]}" --train_files table.csv \
    --columns columns.yaml
finish
