#!/usr/bin/env bash
# belfry serve with a model that classifies texts: the text of a request becomes the tokens that a training makes of it.
# Answers of an export and of a training's folder are compared with belfry predict.
# usage: serve_texts.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

penguins=$SOURCE/examples/data/penguins.csv
run_ok belfry tokens train "$penguins" --vocabulary 300 --out tokenizer.json
run_ok belfry train --train_files "$penguins" --text_column Island --label_column Species --model encoder --layers 2 --heads 2 \
    --token_width 32 --context 4 --tokenizer tokenizer.json --num_epochs 5 --no_report --model_dir model
run_ok belfry export --model_dir model --export_dir export
printf 'Island\nDream\nBiscoe\n"  Torgersen, and on"\n""\n' >texts.csv # the third is cut
run_ok belfry predict --model_dir model --eval_files texts.csv
mapfile -t classes < <(tail -n +2 out.txt | cut -d, -f1)
tail -n +2 out.txt | cut -d, -f2- | paste -sd, >expected.txt

ask() { curl -s --max-time 20 "$url$1" ${2:+-d "$2"}; } # PATH [BODY]
numbers() { # of an answer in rows or in columns
    sed 's/"class":\[[^]]*\]//g; s/"class":"[^"]*"//g' | grep -o '[0-9][0-9.e-]*' | paste -sd,
}
for folder in export model; do
    start --name texts "$folder"
    ask /v1/models/texts:predict '{"instances": ["Dream", {"Island": "Biscoe"}]}' >mixed.txt
    ask /v1/models/texts:predict '{"instances": ["Dream", "Biscoe", "Torgersen, and on", null]}' >plain.txt
    ask /v1/models/texts:predict '{"instances": [{"Island": "Dream"}, {"Island": "Biscoe"}, {"Island": "Torgersen, and on"}, {"Island": null}]}' \
        >rows.txt
    check "$folder: an example as the first" grep -q 'expected a text, a number, true, false or null' mixed.txt
    equal "$folder: the numbers of predict" "$(numbers <plain.txt)" "$(cat expected.txt)"
    check "$folder: rows" cmp plain.txt rows.txt
    equal "$folder: classes" "$(grep -o '"class":"[^"]*"' rows.txt | cut -d'"' -f4 | paste -sd' ')" "${classes[*]}"
    ask /v1/models/texts:predict '{"inputs": {"Island": ["Dream", "Biscoe", "Torgersen, and on", null]}}' >columns.txt
    equal "$folder: columns" "$(numbers <columns.txt)" "$(cat expected.txt)"
    ask /v2/models/texts/infer '{"inputs": [{"name": "Island", "datatype": "BYTES", "shape": [4],
        "data": ["Dream", "Biscoe", "Torgersen, and on", null]}], "outputs": [{"name": "predictions"}]}' | grep -o '"data".*' >v2.txt
    equal "$folder: the open protocol" "$(numbers <v2.txt)" "$(cat expected.txt)"
    check "$folder: metadata" grep -qF '"inputs":[{"name":"Island","datatype":"BYTES","shape":[-1]}]' <(ask /v2/models/texts)
    belfry tokens encode <(printf Dream) --tokenizer tokenizer.json --out dream.bin >/dev/null 2>&1
    list=$(tail -c +1025 dream.bin | od -An -v -tu2 -w2 | head -n -1 | tr -d ' ' | head -n 4 | paste -sd,) # without the end
    count=$(tr ',' '\n' <<<"$list" | grep -c .)
    padded=$list$(printf ',0%.0s' $(seq 4) | cut -c "1-$((2 * (4 - count)))")
    ask /v1/models/texts:predict "{\"instances\": [{\"tokens\": [$padded], \"length\": $count}]}" >tokens.txt
    ask /v1/models/texts:predict '{"instances": ["Dream"]}' >one.txt
    check "$folder: tokens" cmp tokens.txt one.txt
    ask /v1/models/texts:predict '{"instances": [{"Island": "Dream", "length": 1}]}' >both.txt
    check "$folder: both" grep -qF 'instance 0: expected \"Island\" as a text, or its tokens, got \"length\", too' both.txt
    ask /v1/models/texts:predict '{"instances": [{"text": "Dream"}]}' >other.txt
    check "$folder: its inputs" grep -qF 'or as a text \"Island\"' other.txt
    { printf '{"instances": ["'; head -c 1100000 /dev/zero | tr '\0' a; printf '"]}'; } >long.json
    ask /v1/models/texts:predict @long.json >long.txt
    check "$folder: a long text" grep -qF 'expected a text of at most 1048576 bytes' long.txt
    check "$folder: no warning" test "$(grep -c 'requests send its' serve.err)" -eq 0
    stop TERM
done

start --name texts --max_body 1 --max_examples 200000 export
{ printf '{"instances": [null'; printf ',null%.0s' $(seq 180000); printf ']}'; } >nulls.json
ask /v1/models/texts:predict @nulls.json >nulls.txt
check "few bytes, many tokens" grep -qF '180001 texts become 4 tokens each, expected at most 524288 tokens' nulls.txt
stop TERM

sed -i 's/"use_regex": true}/"use_regex": false}/' export/tokenizer.json
run_fails 2 'is not the tokenizer of the training' belfry serve export --port 0
rm export/tokenizer.json
start --name texts export
check "tokens are needed" grep -q 'the column "Island" is of kind tokens; requests send its tokens' serve.err
check "its inputs" grep -qF '"name":"tokens"' <(ask /v2/models/texts)
stop TERM
finish
