#!/usr/bin/env bash
# Texts: tokenizers by the command, a transformer that trains from each form of files to the same bits in every
# deal, killed and resumed, and texts that it generates.
# usage: text.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

texts=("$SOURCE"/docs/t*.md)
sizes=(--model gpt --layers 2 --heads 2 --token_width 32 --context 32)
run=("${sizes[@]}" --train_batch_size 4 --train_steps 20 --num_threads 1 --no_report --min_shard_bytes 0)

# --- Tokenizers
run_ok belfry tokens train "${texts[@]}" --vocabulary 400 --out tokenizer.json
check "its size" grep -qx 'vocabulary 400' out.txt
run_ok belfry tokens train "${texts[@]}" --vocabulary 400 --out again.json --num_threads 3
check "threads change nothing" cmp tokenizer.json again.json
for tokenizer in bytes tokenizer.json; do
    run_ok belfry tokens encode "${texts[@]}" --tokenizer "$tokenizer" --out t.bin
    run_ok belfry tokens decode t.bin --tokenizer "$tokenizer"
    cat "${texts[@]}" >all.txt
    check "the texts come back ($tokenizer)" cmp out.txt all.txt
done
equal "a header as llm.c's" "$(od -An -tu4 -N8 t.bin | tr -s ' ')" ' 20240520 1'
printf 'ab' >ab.txt
run_ok belfry tokens encode ab.txt
check "numbers on stdout" grep -qx '97 98 256' out.txt
printf '{"text":"a"}\n' >a.jsonl
run_ok belfry tokens encode a.jsonl
check "JSONL by its name" grep -qx '97 256' out.txt
printf '\357\273\277{"text":"a"}\n' >marked.jsonl
printf '\357\273\277ab' >marked.txt
run_ok belfry tokens encode marked.jsonl
check "JSONL after a byte order mark" grep -qx '97 256' out.txt
check "it says so" grep -q 'a byte order mark at the beginning of 1 of 1 files is left out' err.txt
run_ok belfry tokens encode marked.txt
check "a text after a byte order mark" grep -qx '97 98 256' out.txt
printf 'a\0b' >program
run_ok belfry tokens encode 'progra*' ab.txt
check "a file that is no text" grep -q '1 of 2 files have zero bytes, as texts do not: program; their tokens are used' err.txt
run_fails 2 '--text_key has no effect' belfry tokens encode ab.txt --text_key body
run_fails 2 'expected files with texts' belfry tokens encode
run_fails 2 '--out is needed' belfry tokens train ab.txt
run_fails 3 'token 3: expected a number below 257' belfry tokens decode <(printf '\0\1\0\1\0\1\1\1') --tokenizer bytes

# --- Training: files of texts, and of the same tokens
printf -v list '%s,' "${texts[@]}"
text=(--train_files "${list%,}" --tokenizer tokenizer.json --eval_share 0.1)
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 4 --model_dir alone
check "defaults are named" grep -q 'defaults of --model gpt --preset nano: --vocabulary 400 --optimizer adamw' err.txt
cp out.txt alone.txt
for name in perplexity bits_per_byte; do check "$name" grep -qE "^$name [0-9.]+$" out.txt; done
one=$(digest alone)
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_workers 2 --num_gpus 2 --model_dir two
equal "2 x 2" "$(digest two)" "$one"
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_workers 4 --export best --model_dir four
equal "4 x 1" "$(digest four)" "$one"
check "the best one has the tokenizer" cmp four/export/best/*/tokenizer.json tokenizer.json
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 4 --model_dir resumed --train_steps 20 --train_secs 0.05
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 4 --model_dir resumed
equal "stopped and resumed" "$(digest resumed)" "$one"
run_ok env BELFRY_FAULT=crash:tower_step#12@worker-1 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
    --parameter_server_count 3 --job_dir killed -- "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 2
equal "two workers, three shards, one killed" "$(digest killed)" "$one"

run_ok belfry tokens encode "${texts[@]}" --tokenizer tokenizer.json --out all.bin
run_ok belfry train_and_evaluate --train_files all.bin --tokenizer tokenizer.json --eval_share 0.1 "${run[@]}" --dropout 0.1 --num_gpus 4 \
    --model_dir ids --shuffle_buffer 1
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 4 --model_dir ordered --shuffle_buffer 1
equal "a token file holds the same tokens" "$(digest ids)" "$(digest ordered)"
run_ok belfry train --train_files all.bin --vocabulary 400 "${run[@]}" --model_dir unknown
check "no tokenizer is needed" grep -q 'tokenizer unknown' err.txt
run_fails 2 'was trained with token files of an unknown tokenizer' belfry generate --model_dir unknown

# --- The host keeps the tokens of texts
mkdir kept
run_ok env BELFRY_CACHE_DIR="$PWD/kept" "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 1 \
    --job_dir shared -- "${text[@]}" "${run[@]}" --dropout 0.1 --num_gpus 2
equal "processes that share the tokens" "$(digest shared)" "$one"
check "one file for all processes" test "$(find kept -type f | wc -l)" -eq 1
check "one of them made it" test "$(cat shared/logs/*.log | grep -c ' tokens"')" -eq 1
run_ok env BELFRY_CACHE_DIR="$PWD/kept" "$BUILD/tools/belfry" evaluate --model_dir alone --held_out
check "another job finds it" grep -q 'tokens, which this host has kept' err.txt
file=$(find kept -type f)
cp "$file" whole
for damage in short empty other; do
    case $damage in
    short) truncate -s 100 "$file" ;;
    empty) : >"$file" ;;
    other) printf 'abc' | dd conv=notrunc bs=1 seek=9 status=none of="$file" ;;
    esac
    run_ok env BELFRY_CACHE_DIR="$PWD/kept" "$BUILD/tools/belfry" evaluate --model_dir alone --held_out
    check "damaged tokens are made anew" grep -q 'are damaged, and are made anew' err.txt
    check "the same tokens" cmp "$file" whole
done
run_fails 2 'cannot create folder|a file is in the way' env BELFRY_CACHE_DIR="$PWD/all.txt" "$BUILD/tools/belfry" evaluate --model_dir alone --held_out

# --- A longer training continues, also from one too short for a rise of the rate
for steps in 10 40 80; do run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --train_steps $steps --model_dir longer; done
check "the longer schedule is reported" grep -q 'longer from step 40 on: the end of the schedule was 40 and is 80' err.txt
run_fails 2 'param.warmup_steps was 0 and is 2' belfry train_and_evaluate "${text[@]}" "${run[@]}" --train_steps 90 --warmup_steps 2 --model_dir longer

# --- Evaluation with the kept tokenizer, and other tokenizers
run_ok belfry evaluate --model_dir alone --eval_files "${texts[0]}"
check "bits per byte of other files" grep -qE '^bits_per_byte [0-9.]+$' out.txt
run_fails 2 'param.tokenizer' belfry train_and_evaluate "${text[@]}" --tokenizer bytes "${run[@]}" --dropout 0.1 --num_gpus 4 --model_dir alone
run_ok belfry evaluate --model_dir alone --held_out
equal "held out contexts" "$(grep '^loss' out.txt)" "$(grep '^loss' alone.txt)"
run_ok belfry predict --model_dir alone --held_out
check "400 probabilities for each" test "$(head -n 1 out.txt | tr ',' '\n' | wc -l)" -eq 401
cp alone/tokenizer.json kept.json
sed -i 's/"use_regex": true}/"use_regex": false}/' alone/tokenizer.json
run_fails 2 'is not the tokenizer of the training' belfry evaluate --model_dir alone --eval_files "${texts[0]}"
cp kept.json alone/tokenizer.json

run_ok belfry train_and_evaluate --train_files "${texts[0]}" --eval_files "${texts[0]}" --tokenizer chars "${run[@]}" --model_dir chars
printf 'Ⅻ' >other.txt
run_fails 3 'other.txt: byte 0: the vocabulary lacks the character U+216B' \
    belfry evaluate --model_dir chars --eval_files other.txt

# --- Generation
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50
check "it continues the prompt" grep -q '^The ' out.txt
cp out.txt first.txt
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50 --num_threads 2
check "the same seed, the same text" cmp out.txt first.txt
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50 --seed 2
check "another seed, another text" test "$(cmp -s out.txt first.txt || echo other)" = other
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50 --temperature 0
cp out.txt greedy.txt
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50 --top_k 1
check "only the likeliest token" cmp out.txt greedy.txt
run_ok belfry generate --model_dir alone --prompt 'The ' --length 50 --top_p 1e-9
check "the same by their sum" cmp out.txt greedy.txt
run_ok belfry generate --model_dir alone --length 3 # without a prompt
run_fails 2 '--top_k has no effect with --temperature 0' belfry generate --model_dir alone --temperature 0 --top_k 3
run_fails 3 'byte 1: the vocabulary lacks the character U+216B' belfry generate --model_dir chars --prompt 'aⅫ'

# --- Another program's weights
run_ok belfry export --model_dir alone --export_dir exported
check "with the tokenizer" cmp exported/tokenizer.json alone/tokenizer.json
run_ok belfry export --model_dir alone --export_dir exported # replaces it
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" --train_steps 1 --learning_rate 1e-30 --warm_start exported/weights.safetensors --model_dir warm
check "all variables" grep -q 'warm start: 28 of 28 variables from exported/weights.safetensors' err.txt
run_fails 3 'exported/weights.safetensors has no tensor "none"' belfry train_and_evaluate "${text[@]}" "${run[@]}" --model_dir cold \
    --warm_start exported/weights.safetensors --warm_start_names 'wte.weight=none'
run_fails 3 'tensor "wpe.weight": expected floats [16, 32], got f32 [32, 32]' belfry train_and_evaluate "${text[@]}" "${run[@]}" --context 16 \
    --model_dir cold --warm_start exported/weights.safetensors

# --- Folders of Hugging Face: GPT-2, Llama, and what is neither
llama=(--positions rotary --norm rms --activation swiglu --no_bias --no_tied --heads 4 --kv_heads 2)
run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" "${llama[@]}" --model_dir llama
run_ok belfry tokens encode "${texts[0]}" --tokenizer tokenizer.json --out eval.bin
tail -c +1025 eval.bin >eval.ids # without llm.c's header
for model in alone llama; do
    run_ok belfry export --model_dir $model --format huggingface --export_dir $model.hf
    check "three files" test "$(cd $model.hf && echo *)" = 'config.json model.safetensors tokenizer.json'
    run_ok belfry evaluate --model_dir $model --eval_files "${texts[0]}"
    ours=$(sed -n 's/^loss //p' out.txt)
    if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
        theirs=$(/usr/bin/python3 "$SOURCE/tests/cli/huggingface.py" $model.hf eval.ids 32)
        check "numpy's loss of $model: $theirs, ours $ours" \
            awk -v a="$ours" -v b="$theirs" 'BEGIN { d = a - b; exit !(d < 2e-5 && d > -2e-5) }'
    fi
    as=()
    [ $model = alone ] || as=("${llama[@]}")
    run_ok belfry train_and_evaluate "${text[@]}" "${run[@]}" "${as[@]}" --train_steps 1 --warm_start $model.hf --model_dir $model.begun
    check "it says so" grep -q "warm start: the values of $model.hf/model.safetensors" err.txt
    run_ok belfry export --model_dir $model.begun --checkpoint $model.begun/ckpt-00000000 --format huggingface --export_dir $model.back
    check "the values come back" cmp $model.hf/model.safetensors $model.back/model.safetensors
done
run_ok belfry export --model_dir alone --format huggingface
check "its folder" grep -qx 'export_dir alone/export/20-huggingface' out.txt
run_fails 1 'this export needs a new folder' belfry export --model_dir alone --format huggingface --export_dir alone.hf
run_ok belfry export --model_dir llama --with_past
check "its folder" grep -qx 'export_dir llama/export/20-with-past' out.txt
check "keys and values are inputs" grep -q '"past_key_values.1.value","dtype":"f32","shape":\["N",2,"d4",8\]' llama/export/*/signature.json
check "and outputs" grep -q '"present.1.value","dtype":"f32","shape":\["N",2,"d3",8\]' llama/export/*/signature.json
run_fails 2 '--with_past has no effect with --format huggingface' belfry export --model_dir alone --format huggingface --with_past
run_fails 2 '--opset has no effect with --format huggingface' belfry export --model_dir alone --format huggingface --opset 14
begin=(belfry train_and_evaluate "${text[@]}" "${run[@]}" --model_dir cold --warm_start alone.hf)
run_fails 2 'n_layer is 2, but --layers is 3' "${begin[@]}" --layers 3
run_fails 2 'n_positions is 32, but --context is 16' "${begin[@]}" --context 16
run_fails 2 'model_type: expected "llama", got "gpt2"' "${begin[@]}" "${llama[@]}"
run_fails 2 'with positions learned expected norm layer as in GPT-2, got rms' "${begin[@]}" --norm rms
run_fails 2 'GPT-2 has 2 kv_heads for 2 heads, got 1' "${begin[@]}" --kv_heads 1
run_fails 2 '--warm_start_variables has no effect' "${begin[@]}" --warm_start_variables 'h.*'
cp -r alone.hf other.hf
sed -i 's/1e-05/1e-06/' other.hf/config.json
run_fails 2 'layer_norm_epsilon: expected 1e-05, got 1e-06' "${begin[@]}" --warm_start other.hf

# --- Sizes and the tokenizer of such a folder, and values in several files
free=(belfry train_and_evaluate --model gpt --train_files "${list%,}" --eval_share 0.1 --train_batch_size 4 --train_steps 1 --num_threads 1
    --no_report)
for model in alone llama; do
    mkdir $model.parts
    cp $model.hf/config.json $model.hf/tokenizer.json $model.parts
    /usr/bin/python3 - $model.hf/model.safetensors $model.parts <<'PYTHON'
import json, struct, sys

data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header, data = json.loads(data[8:8 + length]), data[8 + length:]
header.pop("__metadata__")
index = {}
for part, names in enumerate((sorted(header)[::2], sorted(header)[1::2])):
    made, body = {}, b""
    for name in names:
        begin, end = header[name]["data_offsets"]
        made[name] = dict(header[name], data_offsets=[len(body), len(body) + end - begin])
        body += data[begin:end]
        index[name] = f"model-{part + 1:05}-of-00002.safetensors"
    text = json.dumps(made).encode()
    open(f"{sys.argv[2]}/model-{part + 1:05}-of-00002.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump({"metadata": {}, "weight_map": index}, open(sys.argv[2] + "/model.safetensors.index.json", "w"))
PYTHON
    run_ok "${free[@]}" --warm_start $model.parts --model_dir $model.free
    check "the files" grep -q "the values of $model.parts/model.safetensors.index.json, which has .* tensors in 2 files" err.txt
    check "the tokenizer" grep -q "taken from the warm start: --tokenizer $model.parts/tokenizer.json" err.txt
    cp err.txt $model.free.txt
    run_ok belfry export --model_dir $model.free --checkpoint $model.free/ckpt-00000000 --format huggingface --export_dir $model.same
    check "the same values" cmp $model.hf/model.safetensors $model.same/model.safetensors
done
# A resumed training needs the folder no more: sizes and tokenizer are those of its checkpoint.
mv alone.parts gone
run_ok "${free[@]}" --train_steps 2 --warm_start alone.parts --model_dir alone.free
mv gone alone.parts
check "sizes of GPT-2" grep -q 'taken from --warm_start alone.parts: --layers 2 --heads 2 --token_width 32 --context 32 --vocabulary 400$' alone.free.txt
check "settings of Llama" grep -q -- '--kv_heads 2 .*--no_tied --positions rotary --norm rms --activation swiglu --no_bias$' llama.free.txt
run_fails 2 'n_layer is 2, but --layers is 4' "${free[@]}" --preset nano --warm_start alone.hf --model_dir cold
run_ok "${free[@]}" --warm_start alone.hf --tokenizer bytes --model_dir bytes
check "another tokenizer" grep -q 'has other tokens than alone.hf/tokenizer.json, from token' err.txt
run_ok "${free[@]}" --warm_start alone.hf --tokenizer tokenizer.json --model_dir same
check "the same tokenizer" test "$(grep -c 'has other tokens' err.txt)" -eq 0
rm alone.parts/model-00002*
run_fails 3 'alone.parts/model-00002-of-00002.safetensors' "${free[@]}" --warm_start alone.parts --model_dir cold
echo '{"weight_map": {"a": "../b"}}' >alone.parts/model.safetensors.index.json
run_fails 3 'tensor "a": expected the name of a file beside it' "${free[@]}" --warm_start alone.parts --model_dir cold
sed -i 's/"n_layer": 2/"n_layer": "two"/' alone.parts/config.json
cp -r alone.hf fewer.hf
sed -i 's/"n_layer": 2/"n_layer": 1/' fewer.hf/config.json
run_fails 3 'fewer.hf: config.json describes 1 layers, and the values have a tensor h.1.' "${free[@]}" --warm_start fewer.hf --model_dir cold
run_fails 3 'config.json: n_layer: expected a size' "${free[@]}" --warm_start alone.parts --model_dir cold

# --- Errors
run_fails 2 'ab.txt is of format text by its name, and a.jsonl of format jsonl' \
    belfry train --train_files ab.txt,a.jsonl "${run[@]}" --model_dir bad
run_fails 2 '--class_count has no effect with --model gpt' belfry train_and_evaluate "${text[@]}" "${run[@]}" --class_count 3 --model_dir bad
run_fails 2 '--context has no effect without --model gpt' belfry train --train_files "$TRAIN_CSV" --context 3 --model_dir bad
run_fails 2 'this model reads csv or idx' belfry train --train_files "$TRAIN_CSV" --input_format text --model_dir bad
run_fails 2 '--model gpt reads text, jsonl or tokens' belfry train_and_evaluate "${text[@]}" "${run[@]}" --input_format csv --model_dir bad
run_fails 2 'generate is for model gpt' belfry generate --model_dir "$(train digits >/dev/null 2>&1; echo digits)"
run_fails 2 '--with_past is for model gpt' belfry export --model_dir digits --with_past
run_fails 2 'expected at least the 400 tokens' belfry train_and_evaluate "${text[@]}" "${run[@]}" --vocabulary 300 --model_dir bad
run_fails 3 'expected at least 33 tokens' belfry train --train_files ab.txt "${run[@]}" --model_dir bad
finish
