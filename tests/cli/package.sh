#!/usr/bin/env bash
# Packages: examples/my_model, built against an installed Belfry as its README says, trains.
# usage: package.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

prefix=$work/prefix
run_ok cmake --install "$BUILD" --prefix "$prefix"
pc=$(find "$prefix" -name belfry.pc)
check "belfry.pc is installed" test -f "$pc"
check "the headers are installed" test -f "$prefix/include/belfry/belfry.h"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

cp -r "$SOURCE/examples/my_model" .
run_ok cmake -S my_model -B my_model/build
run_ok cmake --build my_model/build

belfry() { timeout -k 5 120 "$prefix/bin/belfry" "$@"; }
digits=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --feature_scale 0.0625
    --train_batch_size 32)
run_ok train m --train_steps 20 --package my_model/build/my_model.so --param units=16
run_ok belfry inspect m
check "its parameter is remembered" grep -qE 'param.units +16' out.txt
check "its name is remembered" grep -qE 'param.model +my_model' out.txt
check "its variables are saved" grep -qE 'block/a/kernel +f32 +\[16, 16\]' out.txt

run_ok train m --train_steps 200 --package my_model/build/my_model.so --param units=16
accuracy=$(sed -n 's/^accuracy //p' out.txt)
check "it learns: accuracy $accuracy" awk "BEGIN { exit !($accuracy > 0.9) }"
run_fails 2 'was trained with a package' belfry evaluate --model_dir m --eval_files "$EVAL_CSV"
run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --package my_model/build/my_model.so
equal "evaluate takes the parameters from the checkpoint" \
    "$(sed -n 's/^accuracy //p' out.txt)" "$accuracy"
run_fails 2 'expected units >= 1' train n --train_steps 1 --package my_model/build/my_model.so \
    --param units=0

finish
