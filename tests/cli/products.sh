#!/usr/bin/env bash
# Products by OpenBLAS: one digest for any assignment, threads and shards, with one version and core type.
# Others are refused.
# usage: products.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
unset OPENBLAS_CORETYPE OPENBLAS_NUM_THREADS

settings=(--train_steps 20 --train_batch_size 8 --products openblas --save_checkpoints_steps 10)
run_fails 2 'products|expected one of belfry, openblas' train none --products mkl
capture train one "${settings[@]}" --num_gpus 4
if grep -q 'libopenblas.so.0' err.txt && ! ldconfig -p | grep -q 'libopenblas.so.0'; then
    run_fails 2 'products by OpenBLAS|libopenblas0-pthread' train one "${settings[@]}"
    echo "the rest is left out: OpenBLAS is not installed"
    finish
    exit
fi
run_ok train one "${settings[@]}" --num_gpus 4
run_ok train two "${settings[@]}" --num_workers 2 --num_gpus 2 --num_threads 3 --parameter_server_count 3 \
    --executor async
equal "workers, threads, shards, executor" "$(digest two)" "$(digest one)"
run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir cluster -- \
    "${digits[@]}" "${settings[@]}" --num_gpus 2
equal "a cluster" "$(digest cluster)" "$(digest one)"
run_ok belfry inspect cluster
check "the checkpoint has version and core type" grep -qE 'products +OpenBLAS [0-9.]+ [A-Za-z]+' out.txt
run_ok belfry train_and_evaluate --config_file cluster/job.yaml --model_dir again
equal "job.yaml keeps the choice" "$(digest again)" "$(digest one)"

run_ok train own --train_steps 20 --train_batch_size 8 --num_gpus 4
check "Belfry's products have other bits" test "$(digest own)" != "$(digest one)"
run_fails 2 'products was OpenBLAS|is not set|--allow_changes' train one "${settings[@]}" --train_steps 30 \
    --num_gpus 4 --products belfry
other=Haswell # a core type that all but the first of the processors below support
if [ "$(uname -m)" = x86_64 ]; then
    grep -q 'Haswell' <(belfry inspect one) && other=Nehalem
    export OPENBLAS_CORETYPE=$other
    run_fails 2 "products was OpenBLAS|and is OpenBLAS" train one "${settings[@]}" --train_steps 30 --num_gpus 4
    unset OPENBLAS_CORETYPE
fi
run_ok train one "${settings[@]}" --train_steps 30 --num_gpus 4
finish
