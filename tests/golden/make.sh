#!/usr/bin/env bash
# Makes tests/golden/COMMIT with the program of that commit: its files on users' disks, which later programs
# load (tests/cli/golden.sh). Do not run it again for a commit that exists.
# usage: make.sh COMMIT (in the project's repository; builds below a temporary folder)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
commit=${1:?usage: make.sh COMMIT}
tree=$(mktemp -d)/belfry
trap 'git -C "$here" worktree remove --force "$tree"' EXIT
git -C "$here" worktree add --quiet --detach "$tree" "$commit"
cmake -S "$tree" -B "$tree/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBELFRY_TESTS=OFF >/dev/null
cmake --build "$tree/build" --target belfry_command >/dev/null
golden=$here/$commit
mkdir "$golden"
cp -r "$here/../../examples/data" "$golden/data" # paths below the golden folder end up in job.yaml
cd "$golden"
belfry=$tree/build/tools/belfry

# A package, its checkpoint in two shards with every slot of Adam's, and the numbers of the training.
cp "$tree/examples/my_model/my_model.c" .
cc -O2 -shared -fPIC my_model.c -I"$tree/include" -o my_model.so
"$belfry" train_and_evaluate --model_dir packaged --package my_model.so --param units=4 --optimizer adam \
    --train_files data/digits-train.csv --eval_files data/digits-eval.csv --label_column digit \
    --feature_scale 0.0625 --parameter_server_count 2 --num_threads 1 --no_report --train_steps 40 >packaged.txt
# Tables of ids, which checkpoints of version 2 contain.
awk 'BEGIN {
    print "user,hour,clicked"
    for (i = 0; i < 200; i++) printf "u%d,%.3f,%d\n", i * 7919 % 23, i % 24 / 24, (i % 5 + i % 3 > 3)
}' >data/clicks.csv
"$belfry" train_and_evaluate --model_dir clicks --model wide_deep --id_columns user --class_count 2 \
    --hidden_units 4 --embedding_width 4 --optimizer adagrad --train_files data/clicks.csv \
    --eval_files data/clicks.csv --num_threads 1 --no_report --train_steps 40 >clicks.txt
# Both families of keys (docs/cluster-yaml.md).
cat >own.yaml <<'YAML'
machines:
  box: {cores: 16, memory: 64 GiB, devices: 2}
master: {machine: box, trains: true}
workers: {count: 4, machine: box, devices: 1}
parameter_servers: {count: 2}
evaluators: {count: 1}
environment: {LANG: C.UTF-8}
limits: {join_timeout: 30, silence_timeout: 10, stall_timeout: 300, restarts: 10, min_workers: 2}
YAML
cat >ai-platform.yaml <<'YAML'
trainingInput:
  scaleTier: CUSTOM
  masterType: large_model
  workerType: complex_model_m
  workerCount: 3
  parameterServerType: large_model
  parameterServerCount: 2
YAML
for file in own ai-platform; do
    "$belfry" local train --config $file.yaml --job_dir none --dry_run -- --train_files data/digits-train.csv >$file.txt
done
cp data/clicks.csv .
rm -r my_model.c data packaged/ckpt-00000000 clicks/ckpt-00000000 packaged/job.lock clicks/job.lock ./*/eval ./*/events*
for model in packaged clicks; do
    "$belfry" inspect "$model" --digest >"$model.digest"
done
