#!/usr/bin/env bash
# belfry graph: a step's operations, its memory beside the least possible, its times; bad input.
# usage: graph.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

make_clicks
small=(--columns none --train_files "$TRAIN_CSV" --hidden_units 32 --train_batch_size 16)
run_ok belfry graph "${small[@]}"
equal "products of the step" "$(grep -c ' Gemm ' out.txt)" 5
check "the first result" grep -qE '^ +0 +Gemm +\[16, 32\] +1  dense_0/' out.txt
check "nothing is measured" sh -c '! grep -q "us on one thread" out.txt'
check "nothing is written" test "$(find . -type f | wc -l)" -eq 4
for model in "dnn --train_files $TRAIN_CSV" "linear --train_files $TRAIN_CSV" \
    "cnn --train_files $TRAIN_CSV --filters 4,8 --dense_units 16" "resnet --train_files $TRAIN_CSV --blocks 1 --width 4" \
    "wide_deep --train_files clicks-train.csv --id_columns user,item --class_count 2 --optimizer adagrad"; do
    read -ra words <<<"$model"
    run_ok belfry graph --model "${words[@]}" --cost
    ratio=$(sed -nE 's/.*memory .*, ([0-9.]+) times the largest live set.*/\1/p' out.txt)
    check "${words[0]}: memory is ${ratio:-?} times the largest live set" \
        awk "BEGIN { exit !(${ratio:-9} >= 1 && ${ratio:-9} <= 1.1) }"
    read -r shares expected <<<"$(awk '/^ +[0-9]+  / { shares += $(NF - 3); expected += $(NF - 2) } END { print shares, expected }' out.txt)"
    check "${words[0]}: shares add up to $shares" awk "BEGIN { exit !($shares > 97 && $shares < 103) }"
    total=$(sed -nE 's/.*exchange; ([0-9.]+) expected, .*/\1/p' out.txt)
    check "${words[0]}: $expected us are expected in all, the last line says ${total:-?}" \
        awk "BEGIN { exit !($expected > 0 && $expected > 0.99 * ${total:-0} - 1 && $expected < 1.01 * ${total:-0} + 1) }"
done
memory_of() { # [flags]: KiB of a deep model's step
    run_ok belfry graph --model resnet --blocks 2 --width 16 --train_batch_size 64 --train_files "$TRAIN_CSV" "$@" >&2
    sed -nE 's/.*; memory ([0-9.]+) (KiB|MiB),.*/\1 \2/p' out.txt | awk '{ print int($1 * ($2 == "MiB" ? 1024 : 1)) }'
}
whole=$(memory_of) bf16=$(memory_of --precision bf16)
check "activations in bf16: $bf16 KiB for $whole" test "$((bf16 * 100))" -lt "$((whole * 70))"
tight=$(memory_of --activation_memory 3)
check "a step in 3 MiB takes $tight KiB" test "$tight" -le 3072
check "recomputed operations are counted" grep -qE '^[1-9][0-9]* operations run again to save memory$' out.txt
run_ok belfry graph "${small[@]}" --dump --l2 0.01
cp out.txt dump.txt
check "the graph before and after" test "$(grep -cE '^(before|after):$' out.txt)" -eq 2
check "a built operation" grep -qE '^gradients/CountRatio_[0-9]+ = CountRatio\(' out.txt
check "an operation after the passes" grep -qE '^gradients/.* = Fused \{steps=Add\+.*\[64, 32\]$' out.txt
check "the count of each pass" \
    grep -qE '^[0-9]+ operations before, [0-9]+ after; simplify [1-9][0-9]*, fold [1-9][0-9]*, same 0, concat 0, fuse [1-9][0-9]*, chunk 0$' out.txt
run_ok belfry graph "${small[@]}" --dump --l2 0.01
check "the same text again" cmp out.txt dump.txt
run_ok belfry graph "${small[@]}" --dump --l2 0.01 --passes none
check "no passes, the same graph" sh -c 'grep -qE "; simplify 0, fold 0, same 0, concat 0, fuse 0, chunk 0$" out.txt && ! grep -q Fused out.txt'
run_ok belfry graph "${small[@]}" --l2 0.01 --passes fold,same
check "a program without fusing" sh -c '! grep -q Fused out.txt'
# On GPUs, which a stand-in plays: the same operations as launches of kernels, measured there.
export BELFRY_CUDA_PATH=$BUILD/tests/cuda_double XDG_CACHE_HOME=${BELFRY_TEST_CACHE:-$BUILD/tests/cuda_double/cache} CUDA_DOUBLE_CHECKS=0
capture belfry graph "${small[@]}" --device cuda
if ! grep -q "BELFRY_CUDA=OFF" err.txt; then
    check "a line of the first result" grep -qE '^ +0 +Gemm +\[16, 32\] +[1-9] +dense_0/Gemm_4' out.txt
    equal "products on a GPU" "$(grep -c ' Gemm ' out.txt)" 5
    launches=$(awk '/^ +[0-9]+  / { all += $(NF - 1) } END { print all }' out.txt)
    check "$launches launches in $(grep -c '^ ' out.txt) calls" grep -qE "instructions in [0-9]+ groups, $launches launches; memory [0-9.]+ KiB on cuda:0," out.txt
    check "nothing is measured" sh -c '! grep -q " us " out.txt'
    for model in "dnn --hidden_units 8" "resnet --blocks 1 --width 2 --batch_norm sync"; do # sync: with an exchange
        read -ra words <<<"$model"
        run_ok belfry graph --train_files "$TRAIN_CSV" --model "${words[@]}" --train_batch_size 2 --num_gpus 1 --gpus 1 --cost
        shares=$(awk '/^ +[0-9]+  / { shares += $(NF - 1) } END { print shares }' out.txt)
        check "${words[0]}: shares add up to $shares" awk "BEGIN { exit !(${shares:-0} > 97 && ${shares:-0} < 103) }"
        check "${words[0]}: all of them" grep -qE '^[0-9.]+ us as a run replays them on cuda:1, ' out.txt
    done
    CUDA_DOUBLE_DEVICES=0 run_fails 3 "finds no GPU" belfry graph "${small[@]}" --device cuda --cost
    CUDA_DOUBLE_MEMORY=9000 run_fails 1 "largest values|dense_0/Gemm_4|free" belfry graph "${small[@]}" --device cuda --cost
fi
unset BELFRY_CUDA_PATH XDG_CACHE_HOME CUDA_DOUBLE_CHECKS

run_fails 2 "did you mean fuse" belfry graph "${small[@]}" --passes fold,fusee
run_fails 2 "train_files" belfry graph
run_fails 2 "hidden_units" belfry graph "${small[@]}" --hidden_units 0
finish
