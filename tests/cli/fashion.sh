#!/usr/bin/env bash
# Fashion-MNIST, 60,000 images: 200 steps of a dnn 512,512 with dropout, Adam and a global clip. They give one
# digest for every assignment of four replicas, for 1, 2 and 3 shards, for 1 and 2 threads, with disturbed
# lanes, killed at a checkpoint and resumed; and other bits under each BELFRY_FAULT. Needs data/fashion-mnist
# (tools/fetch-data fashion_mnist).
# usage: fashion.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

folder=$SOURCE/data/fashion-mnist
if [ ! -e "$folder/train-images-idx3-ubyte.gz" ]; then
    echo "FAILED: no data in $folder; run tools/fetch-data fashion_mnist first"
    exit 1
fi
images=(--train_files "$folder/train-images-idx3-ubyte.gz,$folder/train-labels-idx1-ubyte.gz"
    --feature_scale 0.00392156862745098 --train_batch_size 16 --train_steps 200 --quiet --no_report
    --hidden_units "512,512" --dropout 0.2 --optimizer adam --clip_global_norm 0.5)
run() { # MODEL_DIR flags…
    local model_dir=$1
    shift
    belfry train --model_dir "$model_dir" "${images[@]}" "$@"
}
same() { # TEXT MODEL_DIR flags…
    local text=$1
    shift
    run_ok run "$@"
    equal "$text" "$(digest "$1")" "$first"
}
differs() { # FAULT NAME flags of a run…: under the fault the run must differ from the base
    local fault=$1 name=$2 base
    shift 2
    run_ok env BELFRY_FAULT="$fault" "$BUILD/tools/belfry" train --model_dir "$fault-base" \
        "${images[@]}" --num_gpus 4 --num_threads 1
    base=$(digest "$fault-base")
    run_ok env BELFRY_FAULT="$fault" "$BUILD/tools/belfry" train --model_dir "$fault-$name" \
        "${images[@]}" "$@"
    check "BELFRY_FAULT=$fault must break $name" test "$(digest "$fault-$name")" != "$base"
}

run_ok run base --num_gpus 4 --num_threads 1
first=$(digest base)
same "run to run" again --num_gpus 4 --num_threads 1
same "2 workers of 2 towers" two --num_workers 2 --num_gpus 2 --num_threads 1
same "4 workers" four --num_workers 4 --num_threads 1
same "workers of 3 and 1 towers, 3 shards" odd --num_workers 2 --towers_of_workers 3,1 \
    --parameter_server_count 3 --num_threads 1
same "2 shards, 2 threads" threads --num_gpus 4 --num_threads 2 --parameter_server_count 2
export BELFRY_FAULT=lane:delay+repeat+reorder
same "disturbed lanes" disturbed --num_workers 4 --parameter_server_count 2 --num_threads 1
unset BELFRY_FAULT

capture env BELFRY_FAULT=crash:checkpoint_after_rename "$BUILD/tools/belfry" train --model_dir killed \
    "${images[@]}" --num_gpus 4 --save_checkpoints_steps 60
equal "exit code of a killed run" "$code" 137
same "killed and resumed" killed --num_gpus 4
differs sum_sequential assignments --num_workers 2 --num_gpus 2
differs divide assignments --num_workers 2 --towers_of_workers 3,1
differs threads2 threads --num_gpus 4 --num_threads 2
differs chunk_order shards --num_gpus 4 --parameter_server_count 3 --num_threads 1

finish
