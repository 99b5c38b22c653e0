#!/usr/bin/env bash
# Models out and in: exports and refusals, exporters during training, and training that continues from an ONNX
# file, in one process and in many, after kills, to exports again.
# usage: export.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# --- Out
run_ok belfry train_and_evaluate --model_dir m "${digits[@]}" --train_steps 60
run_ok belfry export --model_dir m
equal "it prints the folder" "$(cat out.txt)" "export_dir m/export/60"
equal "three files" "$(find m/export/60 -type f -printf '%f\n' | sort | tr '\n' ' ')" "model.onnx signature.json weights.safetensors "
check "the signature is JSON with inputs and outputs" python3 - <<'END'
import json
s = json.load(open("m/export/60/signature.json"))
assert s["format"] == "belfry-export" and s["step"] == 60 and s["model"] == "dnn"
assert s["inputs"] == [{"name": "x", "dtype": "f32", "shape": ["N", 64], "scale": 0.0625}]
assert s["outputs"] == [{"name": "predictions", "dtype": "f32", "shape": ["N", 10]}]
assert s["columns"]["label"] == "digit" and len(s["columns"]["columns"]) == 64
END
check "weights have the names of variables" python3 - <<'END'
import json, struct
f = open("m/export/60/weights.safetensors", "rb")
header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
header.pop("__metadata__")
assert set(header) == {"dense_0/kernel", "dense_0/bias", "logits/kernel", "logits/bias"}, header
assert header["dense_0/kernel"]["shape"] == [64, 32] and header["dense_0/kernel"]["dtype"] == "F32"
END
equal "the digest is the checkpoint's" "$(sed -n 's/.*"digest":"\([0-9a-f]*\)".*/\1/p' m/export/60/signature.json)" \
    "$(digest m)"
cp -r m/export/60 first
run_ok belfry export --model_dir m
check "the same export has the same bytes" diff -r first m/export/60
run_ok belfry export --checkpoint m/ckpt-00000060 --export_dir here --opset 13
run_ok belfry inspect here/model.onnx
check "an ONNX model is shown by its nodes" grep -q Softmax out.txt
mkdir mine && echo data >mine/file
run_fails 1 "mine is there and is no exported model" belfry export --model_dir m --export_dir mine
equal "existing files stay" "$(cat mine/file)" data
echo '{"format": "belfry-export"}' >mine/signature.json # the folder has another file, too
run_fails 1 "mine is there and is no exported model" belfry export --model_dir m --export_dir mine
mkdir other new.writing && echo '{"format": "another"}' >other/signature.json && echo data >new.writing/keep
run_fails 1 "other is there and is no exported model" belfry export --model_dir m --export_dir other
run_fails 1 "new.writing is there and is no exported model" belfry export --model_dir m --export_dir new
equal "everything stays" "$(cat mine/file new.writing/keep)" "$(printf 'data\ndata')"
rm -r other
# Several exports at once to one folder: those that do not get their turn say so, and the folder is complete.
for _ in 1 2 3; do
    pids=()
    for i in 1 2 3 4; do
        belfry export --model_dir m --export_dir busy >"busy$i.txt" 2>&1 &
        pids+=($!)
    done
    for i in 1 2 3 4; do
        wait "${pids[i - 1]}" || echo failed >>"busy$i.txt"
    done
    equal "each exports or gives the reason" "$(cat busy?.txt | grep -c 'another process exports to')" \
        "$(cat busy?.txt | grep -c '^failed')"
    check "the folder is complete" diff -r first busy
done
equal "nothing is left beside it" "$(echo busy.*)" 'busy.*'
mkdir killed.writing && echo half >killed.writing/signature.json.tmp-1-2 && echo old >killed.writing/weights.safetensors
run_ok belfry export --model_dir m --export_dir killed
check "files left by a killed export do not count" diff -r first killed
run_fails 2 "--opset" belfry export --model_dir m --opset 12
run_fails 3 "no checkpoint" belfry export --model_dir nowhere
run_fails 2 "--model_dir or --checkpoint is needed" belfry export

# Weights read while the model runs; a layer of 512 x 512 is more than half of 1 MiB.
run_ok belfry train_and_evaluate --model_dir deep "${digits[@]}" --hidden_units 256,256,256,256,256,256 --train_steps 1
run_ok belfry export --model_dir deep --export_dir deep.export
run_ok belfry bench deep.export --stage_memory 1 --seconds 0.05
run_ok belfry predict --model_dir deep --eval_files "$EVAL_CSV"
mv out.txt whole.txt
run_ok belfry predict --model_dir deep --eval_files "$EVAL_CSV" --stage_memory 1
check "the same predictions in stages" cmp out.txt whole.txt
run_ok belfry train_and_evaluate --model_dir wide "${digits[@]}" --hidden_units 512,512 --train_steps 1
run_ok belfry export --model_dir wide --export_dir wide.export
run_fails 1 "hint: a memory of" belfry bench wide.export --stage_memory 1 --seconds 0.05

# --- Exporters
run_ok belfry train_and_evaluate --model_dir e "${digits[@]}" --train_steps 60 \
    --save_checkpoints_steps 20 --export best,final
best=$(ls e/export/best)
for folder in e/export/best/$best e/export/final/60; do
    check "$folder has a checkpoint and a model" test -s "$folder/manifest.json" -a -s "$folder/model.onnx"
done
run_ok belfry export --checkpoint e/export/final/60 --export_dir again
check "an exporter's model is the one of export" cmp again/model.onnx e/export/final/60/model.onnx

# --- Tables: columns are inputs
penguins=$SOURCE/examples/data/penguins.csv
run_ok belfry train --model_dir t --train_files "$penguins" --label_column Species --train_steps 50 --no_report
run_ok belfry export --model_dir t --export_dir table
check "inputs are columns, classes have their names" python3 - <<'END'
import json
s = json.load(open("table/signature.json"))
by_name = {i["name"]: i for i in s["inputs"]}
assert by_name["Sex"]["kind"] == "category" and by_name["Sex"]["values"] == ["MALE", "FEMALE"]
assert by_name["Body Mass (g)"] == {"name": "Body Mass (g)", "dtype": "f64", "shape": ["N"], "kind": "number"}
assert s["label"] == "Species" and s["classes"] == ["Adelie", "Chinstrap", "Gentoo"]
END

# --- In: a model of a file is trained further. The export accepts the file's numbers, so no scale is set.
in=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit --no_report --train_batch_size 32
    --num_threads 1 --train_steps 40)
run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV"
expected=$(sed -n 's/^loss //p' out.txt)
run_ok belfry train_and_evaluate --model_dir o "${in[@]}" --model m/export/60/model.onnx
run_ok belfry evaluate --checkpoint o/ckpt-00000000 --eval_files "$EVAL_CSV"
equal "it begins with the file's weights" "$(sed -n 's/^loss //p' out.txt)" "$expected"
rm -r m/export # the model's folder has the file
run_ok belfry evaluate --model_dir o --eval_files "$EVAL_CSV"
run_ok belfry predict --model_dir o --eval_files "$EVAL_CSV"
equal "a line for each example" "$(wc -l <out.txt)" 359
run_ok belfry export --model_dir o --export_dir out
check "a trained model is exported" test -s out/model.onnx
whole=$(digest o)

# Interrupted and resumed; many processes.
run_ok belfry train_and_evaluate --model_dir parts "${in[@]}" --model first/model.onnx --train_steps 17
run_ok belfry train_and_evaluate --model_dir parts "${in[@]}" --model first/model.onnx
equal "the same bits in two parts" "$(digest parts)" "$whole"
run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir many -- "${in[@]}" \
    --model first/model.onnx --train_steps 20
run_ok belfry train_and_evaluate --model_dir two "${in[@]}" --model first/model.onnx --train_steps 20 --num_workers 2
equal "the same bits in processes" "$(digest many)" "$(digest two)"

run_ok belfry train_and_evaluate --model_dir frozen "${in[@]}" --model first/model.onnx --freeze 'dense_*'
check "frozen variables stay" python3 - <<'END'
import glob, json, struct
def tensor(folder, name):
    f = open(glob.glob(folder + "/shard-*")[0], "rb")
    n = struct.unpack("<Q", f.read(8))[0]
    at = json.loads(f.read(n))[name]["data_offsets"]
    f.seek(8 + n + at[0])
    return f.read(at[1] - at[0])
before, after = "frozen/ckpt-00000000", "frozen/ckpt-00000040"
assert tensor(before, "dense_0/kernel") == tensor(after, "dense_0/kernel")
assert tensor(before, "logits/kernel") != tensor(after, "logits/kernel")
END

# An exporter's checkpoint can be read without the ONNX file.
cp first/model.onnx gone.onnx
run_ok belfry train_and_evaluate --model_dir kept "${in[@]}" --model gone.onnx --export final
rm gone.onnx
run_ok belfry evaluate --checkpoint kept/export/final/40 --eval_files "$EVAL_CSV"
run_ok belfry train_and_evaluate --model_dir kept "${in[@]}" --model "kept/source-$(belfry inspect kept --json |
    sed -n 's/.*"param.onnx_digest": *"\([0-9a-f]*\)".*/\1/p').onnx" --train_steps 44
run_ok belfry export --model_dir m --export_dir apart --external_data
run_ok belfry inspect apart
run_fails 2 "apart/model.onnx has values in other files" belfry train_and_evaluate --model_dir bad "${in[@]}" \
    --model apart/model.onnx

# The number of classes is the model's.
run_ok "$BUILD/tests/make_onnx" linear two.onnx
{
    echo a,b,c,label
    for i in $(seq 40); do echo "$((i % 3)),$((i % 5)),$((i % 7)),$((i % 2))"; done
} >two.csv
run_ok belfry train --model_dir pair --model two.onnx --train_files two.csv --train_steps 3 --train_batch_size 8
run_ok belfry evaluate --model_dir pair --eval_files two.csv
check "two classes have an auc" grep -q '^auc ' out.txt

# If a file closes the batch at one example, it describes the computation of one. So no row depends on its
# batch, even if the model computes across all dimensions.
run_ok "$BUILD/tests/make_onnx" closed closed.onnx
run_ok "$BUILD/tests/make_onnx" running running.onnx
run_ok belfry train --model_dir single --model closed.onnx --train_files two.csv --train_steps 3 --train_batch_size 8
run_ok belfry predict --model_dir single --eval_files two.csv --eval_batch_size 1
cp out.txt by_one.txt
run_ok belfry predict --model_dir single --eval_files two.csv --eval_batch_size 7
check "rows do not depend on their batch" cmp out.txt by_one.txt
run_ok belfry export --model_dir single --export_dir single.export
check "the export has an open batch" grep -qF '"shape":["N",3]' single.export/signature.json
run_fails 2 'input "x" is closed at 4 in dimension 0, and node 0 "CumSum_v1" (CumSum) works across that' \
    belfry train --model_dir bad --model running.onnx --train_files two.csv --train_steps 3

# A written-out softmax is recognized. If a factor follows it, the factor is named, and is no weight.
for name in logits written_out scaled; do
    run_ok "$BUILD/tests/make_onnx" "$name" "$name.onnx"
    run_ok belfry train --model_dir "head.$name" --model "$name.onnx" --train_files two.csv --train_steps 5
done
equal "the same weights" "$(digest head.written_out)" "$(digest head.logits)"
check "the log lists the trained variables" grep -q '2 variables are trained (8 parameters).*are no weights by their use: "w4"' err.txt
check "probabilities are named" grep -q 'computed from probabilities (Softmax_[0-9]*, then Mul_[0-9]*)' err.txt
run_ok belfry train --model_dir factor --model scaled.onnx --train_files two.csv --train_steps 1 --train 'w4'
check "a constant is trained on request" grep -q '3 variables are trained (9 parameters)' err.txt
run_fails 2 'train: "k*" matches no float constant; those that are no weights by their use: "w4"' \
    belfry train --model_dir bad --model scaled.onnx --train_files two.csv --train_steps 1 --train 'k*'

# --- Models that do not fit
cp -r o other
run_fails 2 "param.onnx_digest was|and is" belfry train_and_evaluate --model_dir other "${in[@]}" --model here/model.onnx
run_fails 2 "is not the model that|was trained with" belfry evaluate --model_dir o --model here/model.onnx \
    --eval_files "$EVAL_CSV"
run_fails 2 'freeze: "dens" matches no variable; there are "dense_0/kernel"' \
    belfry train_and_evaluate --model_dir bad "${in[@]}" --model first/model.onnx --freeze dens
run_fails 2 "--freeze has no effect without --model onnx" belfry train_and_evaluate --model_dir bad "${digits[@]}" --freeze 'd*'
run_fails 2 "f32 [batch, 12]|f32 [?, 10]|hint: --class_count" belfry train_and_evaluate --model_dir bad "${in[@]}" --model first/model.onnx \
    --class_count 12
cp "$EVAL_CSV" text.onnx
run_fails 3 "text.onnx: this is no ONNX model" belfry train_and_evaluate --model_dir bad "${in[@]}" --model text.onnx
run_fails 3 "missing.onnx" belfry train_and_evaluate --model_dir bad "${in[@]}" --model missing.onnx
run_fails 2 "*.onnx, got \"net.pt\"" belfry train_and_evaluate --model_dir bad "${in[@]}" --model net.pt

finish
