#!/usr/bin/env bash
# Trains each of Belfry's models, exports it, and compares onnxruntime's results with those of `belfry
# predict`. It is for developers who change exports; no test needs it.
#
#   npm install --ignore-scripts onnxruntime-node onnxruntime-common     (in some folder, ORT)
#   ORT=… tests/onnx/exported.sh build/release
set -euo pipefail
belfry=$(cd "$1" && pwd)/tools/belfry
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../examples/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0

one() { # NAME EVAL_FILE training flags…
    local name=$1 file=$2
    shift 2
    "$belfry" train --quiet --no_report --model_dir "$name" "$@" >/dev/null
    "$belfry" export --model_dir "$name" --export_dir "$name.export" >/dev/null
    "$belfry" predict --model_dir "$name" --eval_files "$file" >"$name.predicted"
    node "$here/exported.mjs" "$name.export" "$file" "$name.predicted" || failed=1
}
digits() { # MODEL flags…
    local model=$1
    shift
    one "$model" "$data/digits-eval.csv" --train_files "$data/digits-train.csv" --label_column digit \
        --feature_scale 0.0625 --train_steps 60 --model "$model" "$@"
}

digits linear
digits dnn --dropout 0.2 --moving_average_decay 0.9
digits cnn
digits resnet --blocks 2
digits gru --sequence_width 8
digits lstm --sequence_width 8 --recurrent_units 32,16
one penguins "$data/penguins.csv" --train_files "$data/penguins.csv" --label_column Species
one mass "$data/penguins.csv" --train_files "$data/penguins.csv" --label_column 'Body Mass (g)'

one texts "$data/penguins.csv" --train_files "$data/penguins.csv" --label_column Species --model encoder --text_column Island \
    --context 8 --train_steps 60
one rotary "$data/penguins.csv" --train_files "$data/penguins.csv" --label_column Species --model encoder --text_column Sex \
    --context 8 --train_steps 60 --positions rotary --norm rms --activation swiglu --no_bias

# Transformers that generate, with the keys and values of earlier tokens as inputs.
past() { # NAME training flags…
    local name=$1
    shift
    "$belfry" train --quiet --no_report --model gpt --train_files "$here/../../docs/tour.md" --context 24 --token_width 32 --heads 4 \
        --layers 2 --train_steps 60 --model_dir "$name" "$@" >/dev/null
    "$belfry" export --model_dir "$name" --with_past --export_dir "$name.export" >/dev/null
    "$belfry" tokens encode "$here/../../docs/tour.md" --tokenizer bytes --out text.bin >/dev/null
    "$belfry" predict --model_dir "$name" --eval_files text.bin >"$name.predicted"
    tail -c +1025 text.bin >text.ids # without the header
    CONTEXT=24 node "$here/exported_past.mjs" "$name.export" text.ids "$name.predicted" || failed=1
}
past gpt2
past llama --positions rotary --norm rms --activation swiglu --no_bias --no_tied --kv_heads 2

# All kinds of columns that need no hash of a text.
cat >columns.yaml <<'END'
columns:
  - {name: plain, kind: number, mean: 3.7, deviation: 1.9, indicator: true}
  - {name: log, kind: number, scale: log, mean: 0.3, deviation: 1.1, fill: 0}
  - {name: range, kind: number, scale: min_max, low: -2, high: 9, clip: 0.75, fill: 1}
  - {name: size, kind: number, scale: buckets, bounds: [1, 2.5, 4], fill: 0}
  - {name: raw, kind: number, scale: none, fill: 0.1}
  - {name: color, kind: category, values: [red, green, blue], missing: value}
  - {name: town, kind: category, values: [a, b, c], as: embedding}
  - {name: y, kind: label, classes: ["no", "yes"]}
END
awk 'BEGIN {
    split("red green blue  gray", colors, " "); split("a b c d", towns, " ")
    print "plain,log,range,size,raw,color,town,y"
    for (i = 0; i < 400; i++) {
        for (n = 0; n < 5; n++) printf "%s,", (i + n) % 7 == 0 ? "" : ((i * 37 + n * 11) % 101) * 0.17 - 3.1
        print colors[i % 5 + 1] "," towns[i * 3 % 4 + 1] "," (i % 3 == 0 ? "yes" : "no")
    }
}' >table.csv
one table table.csv --train_files table.csv --columns columns.yaml --train_steps 100
exit "$failed"
