#!/usr/bin/env bash
# local train: its refusals, the plan of --dry_run, and one process without --distributed.
# usage: local.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

run_ok belfry local train --help
for flag in distributed worker_count parameter_server_count evaluator_count config job_dir tcp dry_run \
    log_dir; do
    check "help names --$flag" grep -q -- "^  --$flag " out.txt
done
check "two workers by default" grep -q 'default: 2; workers' out.txt
run_fails 2 'unknown verb local trian|did you mean local train?' belfry local trian
run_fails 2 'local: expected one of: train, ranks; got nothing' belfry local

# --- Refusals before any process is started
plan() { belfry local train --distributed --dry_run "$@"; }
run_fails 2 'unexpected argument "a.csv"|training flags come after --' plan a.csv
run_fails 2 '--job_dir is needed' plan
run_fails 2 'unknown flag --train_fils|did you mean --train_files?' plan -- --train_fils a.csv
run_fails 2 'after --: expected training flags|or a program; there is no program a.csv' plan --job_dir d -- a.csv
run_fails 2 'unexpected argument "a.csv" among the training flags' plan --job_dir d -- --quiet a.csv
run_fails 2 '--worker_count|[0, 1024]' plan --worker_count 2000
run_fails 2 'flags with the counts of the command line: there are no workers|no process would' plan --worker_count 0 --job_dir d
run_fails 2 "num_workers 3|the cluster has 2 workers" plan --job_dir d -- --num_workers 3
run_ok plan --job_dir d -- --num_workers 2 # the same number as the cluster's
run_fails 2 'parameter_server_count 2|the cluster has 1 shards' plan --job_dir d -- \
    --parameter_server_count 2
run_fails 2 'BELFRY_ISA: expected v2, v3 or v4, got "v9"' env BELFRY_ISA=v9 "$BUILD/tools/belfry" version
run_fails 2 '--towers_of_workers is for one process' plan --job_dir d -- --towers_of_workers 1,2
run_fails 2 '--dry_run|--distributed or --config' belfry local train --dry_run --job_dir d
for clash in '--scale_learning_rate linear --average sum' '--scale_learning_rate linear --mode async' \
    '--scale_learning_rate linear --rate_scale 2' '--check_replicas 5 --mode bounded' \
    '--check_replicas 5 --replicas_to_aggregate 1'; do
    # shellcheck disable=SC2086 # flags
    run_fails 2 '' belfry local train --distributed --job_dir d -- "${digits[@]}" $clash
    check "nothing was started for $clash" test ! -e d
done
run_fails 2 'missing.yaml' belfry local train --config missing.yaml --job_dir d --dry_run
printf 'workers: {count: 2, hosts: [far-away.example]}\n' >far.yaml
run_fails 2 'far.yaml|far-away.example|another machine' belfry local train --config far.yaml \
    --job_dir d --dry_run
printf 'workers: {count: 2, hosts: [localhost, 127.0.0.1]}\n' >hosts.yaml
run_fails 2 'hosts.yaml with the counts of the command line: 2 hosts, but the count of workers is 1' \
    belfry local train --config hosts.yaml --worker_count 1 --job_dir d --dry_run
printf 'workrs: {count: 2}\n' >wrong.yaml
run_fails 2 'wrong.yaml:1:1|workers' belfry local train --config wrong.yaml --job_dir d --dry_run
check "nothing was made" test ! -e d

# --- The plan
# Counts rows of a plan. The digits are passed, as the plan may need the model's size.
rows() { grep -cE "^$1 " out.txt || true; }
run_ok plan --job_dir d -- "${digits[@]}"
equal "masters" "$(rows 'master')" 1
equal "workers" "$(rows 'worker [0-9]+')" 2
equal "parameter servers" "$(rows 'ps [0-9]+')" 1
run_ok plan --job_dir d --worker_count 3 --parameter_server_count 2 --evaluator_count 1 -- \
    "${digits[@]}" --num_gpus 2
equal "workers" "$(rows 'worker [0-9]+')" 3
equal "parameter servers" "$(rows 'ps [0-9]+')" 2
equal "evaluators" "$(rows 'evaluator [0-9]+')" 1
check "two towers each: six replicas" grep -q 'R = 6' out.txt
printf 'workers: {count: 4}\nparameter_servers: {count: 3}\n' >cluster.yaml
run_ok belfry local train --config cluster.yaml --dry_run -- --model_dir d "${digits[@]}"
equal "workers of the file" "$(rows 'worker [0-9]+')" 4
run_ok belfry local train --config cluster.yaml --worker_count 2 --dry_run -- --model_dir d "${digits[@]}"
equal "a flag wins over the file" "$(rows 'worker [0-9]+')" 2
equal "and leaves the rest" "$(rows 'ps [0-9]+')" 3
check "nothing was made" test ! -e d

# --- Training flags that only print
run_ok belfry local train --distributed -- --help
check "help of the training flags" grep -q '^belfry train_and_evaluate ' out.txt
run_ok belfry local train --distributed --job_dir d -- --train_steps 7 --print_config
check "settings of the training flags" grep -q '^train_steps: 7 # command line' out.txt
check "--job_dir is --model_dir" grep -q '^model_dir: "d" # command line' out.txt

# --- One process
run_ok belfry local train --job_dir one --quiet -- "${digits[@]}" --train_steps 5
check "a result" grep -q '^global_step 5$' out.txt
check "--quiet before -- counts" test ! -s err.txt
run_ok belfry local train --json -- --model_dir two "${digits[@]}" --train_steps 5
check "--model_dir is enough to name the folder" test -e two/ckpt-00000005
check "--json before -- counts" grep -q '^{"global_step":5,' out.txt
run_ok belfry local train --worker_count 3 --job_dir one -- "${digits[@]}" --train_steps 6
check "counts without --distributed are announced" \
    grep -q 'warning: --worker_count counts only with --distributed' err.txt

# --- Without gRPC's library: jobs on one host need none, and each process of another one names it
mkdir without
grpc=$(grep -aoE -m 1 'libgrpc\.so\.[0-9]+' "$BUILD/tools/belfry" | head -n 1)
: >"without/$grpc"
export LD_LIBRARY_PATH=$work/without
run_ok belfry local train --job_dir three --quiet -- "${digits[@]}" --train_steps 5
run_ok belfry local train --distributed --worker_count 2 --job_dir four -- "${digits[@]}" --train_steps 5
run_ok belfry local train --distributed --worker_count 2 --job_dir five -- "${digits[@]}" --train_steps 5 --lane grpc
run_fails 2 "$grpc|several hosts|apt-get install libgrpc" belfry local train --distributed --tcp --job_dir six -- "${digits[@]}"
run_ok belfry doctor
check "doctor warns" grep -qE "^warn +grpc +.*$grpc" out.txt
unset LD_LIBRARY_PATH

finish
