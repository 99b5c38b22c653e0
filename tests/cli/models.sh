#!/usr/bin/env bash
# ONNX models by the command: inspect describes one, bench measures its speed.
# usage: models.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

for name in linear unknown lenet; do
    run_ok "$BUILD/tests/make_onnx" "$name" "$name.onnx"
done
mkdir exported
cp linear.onnx exported/model.onnx

# --- inspect
run_ok belfry inspect lenet.onnx
check "inputs" grep -qE '^  x +f32 +\[\?, 1, 28, 28\]$' out.txt
check "a row for each node" test "$(grep -cE ' (Conv|Relu|MaxPool|Flatten|Gemm) ' out.txt)" -eq 12
check "shapes and parameters" grep -qE ' Conv +\[\?, 16, 28, 28\] +2416$|Conv +\[\?, 16, 14, 14\] +2416$' out.txt
check "totals" grep -qE '^  12 nodes, 107786 parameters$' out.txt
run_ok belfry inspect exported
check "a folder's model" grep -qE '^  2 nodes, 8 parameters$' out.txt
capture belfry inspect unknown.onnx
equal "exit code with a node that cannot be built" "$code" 1
check "it is named" grep -q 'NoSuchOperator): Belfry has no such operator' out.txt
check "nodes before it have shapes" grep -qE ' Gemm +\[\?, 2\] +8$' out.txt
check "nodes that need it have none" test "$(grep -cE ' (NoSuchOperator|Relu) +\? ' out.txt)" -eq 2
run_ok belfry inspect linear.onnx --json
check "as JSON" grep -q '"nodes":\[{"name":"Gemm_y","operator":"Gemm","parameters":8,"shape":\[-1,2\]}' out.txt
run_fails 2 'linear.onnx is a model: --audit, --digest and --rows are for checkpoints' \
    belfry inspect linear.onnx --digest
head -c 40 linear.onnx >cut.onnx
run_fails 3 'cut.onnx: ' belfry inspect cut.onnx

# --- bench
run_ok belfry bench linear.onnx --seconds 0.05
for name in min_us p50_us p90_us p99_us examples_per_second load_ms first_run_ms weights_bytes arena_bytes peak_rss_bytes; do
    check "it prints $name" grep -qE "^$name [0-9.]+$" out.txt
done
grep -E '^(min|p50|p90|p99)_us ' out.txt | cut -d' ' -f2 >times.txt
check "percentiles are in order" sort -c -n times.txt
run_ok belfry bench lenet.onnx --batch 3 --threads 2 --seconds 0.1 --against exported --json
check "two models and a ratio, as JSON" \
    grep -qE '^\{"models":\[\{"model":"lenet.onnx",.*\},\{"model":"exported",.*\}\],"ratio":[0-9.e-]+,"peak_rss_bytes":[0-9]+\}$' out.txt
run_fails 3 'none.onnx' belfry bench none.onnx
run_fails 2 'NoSuchOperator' belfry bench unknown.onnx
run_fails 2 'expected one model' belfry bench

# Integers reach a 64-bit input unchanged: F32 would make them equal.
run_ok "$BUILD/tests/make_onnx" ids ids.onnx
awk 'BEGIN { print "id,y"; for (i = 0; i < 400; i++) print 20000000 + i % 2 "," i % 2 }' >ids.csv
run_ok belfry train_and_evaluate --model ids.onnx --train_files ids.csv --eval_files ids.csv --label_column y \
    --train_steps 200 --learning_rate 0.1 --model_dir ids --no_report
check "large ids are distinguished" grep -qx 'accuracy 1' out.txt
run_ok belfry evaluate --eval_files ids.csv --model_dir ids
check "also when they are evaluated" grep -qx 'accuracy 1' out.txt
sed '3s/^[0-9]*/1.5/' ids.csv >broken.csv
run_fails 3 'broken.csv:3:1: column "id": expected an integer, got "1.5"' \
    belfry evaluate --eval_files broken.csv --model_dir ids
run_fails 2 'batch' belfry bench linear.onnx --batch 0
finish
