#!/usr/bin/env bash
# More workers than --fan_in: their processes add reports on the way to the parameter servers. The bits are those of one
# process, for every shape of the tree, also when a relay, a worker or a server dies, and when training is resumed with
# another one.
# usage: cluster_relays.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
settings=(--train_steps 20 --save_checkpoints_steps 10 --train_batch_size 4)
data=("${digits[@]}")
cluster() { # FAN_IN [flags of the job] -- [flags]: five workers and two servers
    local fan_in=$1 job=()
    shift
    while [ "$1" != -- ]; do
        job+=("$1")
        shift
    done
    run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 5 \
        --parameter_server_count 2 --job_dir tree "${job[@]}" -- "${data[@]}" "${settings[@]}" --lane grpc \
        --fan_in "$fan_in" "${@:2}"
}
same() { # WHAT: the digest is that of one process
    equal "digest $1" "$(digest tree)" "$whole"
}

# --- Shapes: two levels and one worker beside them; one level; a group of one worker
run_ok train whole "${settings[@]}" --num_workers 5
whole=$(digest whole)
cluster 2 --
same "with groups of 2"
check "it says so" grep -q '5 workers: their processes add the reports of groups of 2, on 2 levels' err.txt
rm -rf tree
cluster 3 --tcp --
same "with groups of 3, over TCP"
rm -rf tree
cluster 5 --
same "without relays"
check "no relays" test -z "$(grep 'groups of' err.txt)"
check "no part reads it" grep -q 'fan_in has no effect here' err.txt

# --- Several replicas a worker, whose nodes of the summation tree are not those of groups; state; norms; local steps
others=(--model resnet --blocks 1 --width 4 --clip_global_norm 1 --num_gpus 3 --device cpu)
data=("${any_digits[@]}")
run_ok belfry train_and_evaluate --model_dir residual "${data[@]}" "${settings[@]}" --num_workers 5 "${others[@]}"
whole=$(digest residual)
rm -rf tree
cluster 2 -- "${others[@]}"
same "with state and several replicas"
data=("${digits[@]}")
run_ok train steps "${settings[@]}" --num_workers 5 --local_steps 2 --optimizer adam
whole=$(digest steps)
rm -rf tree
cluster 2 -- --local_steps 2 --optimizer adam
same "with local steps"

# --- Rounded sums and updates, with two levels in one process
for precision in bf16 int8; do
    run_ok train "$precision" "${settings[@]}" --num_workers 5 --exchange_precision "$precision"
    whole=$(digest "$precision")
    rm -rf tree
    cluster 2 -- --exchange_precision "$precision"
    same "with $precision"
done

# --- More than a relay has room for: reports come in parts, and are merged
wide=(--hidden_units "3072,3072" --train_steps 3 --train_batch_size 2 --num_gpus 1)
run_ok train wide "${wide[@]}" --num_workers 5
whole=$(digest wide)
rm -rf tree
cluster 4 -- "${wide[@]}"
same "with reports in parts"

# --- Deaths. No step is lost: training continues at the version of the servers
run_ok train whole "${settings[@]}" --num_workers 5
whole=$(digest whole)
for point in tower_step#9@worker-1 tower_step#9@worker-4 worker_waits#8@worker-3 relay_reported#14@worker-0 \
    relay_reported#14 relay_sent_stats#7@worker-2 relay_passes_on#6@worker-0 relay_passes_on#9@worker-2 \
    shard_passes#14@ps-0 shard_decides#5 master_saves; do
    rm -rf tree
    BELFRY_FAULT=crash:$point cluster 2 --
    same "killed at $point"
    check "killed: $point" grep -qs "^killed on purpose at " tree/logs/*.log
    case $point in
    *@worker-*) check "it continues there: $point" grep -q 'relays begin anew: training continues at step' err.txt ;;
    esac
done

# --- … and so it is while a checkpoint is written or evaluated
for fault in slow:master_saves#400,crash:tower_step#14@worker-4 slow:evaluates#100,crash:relay_reported#27@worker-0; do
    for _ in 1 2 3 4; do # on a slow machine the kill may come too late
        rm -rf tree
        BELFRY_FAULT=$fault cluster 2 -- --eval_every_steps 10
        continued_within && break
    done
    check "the loss comes before the evaluation's end: $fault" continued_within
    same "with $fault"
    check "it continues there: $fault" grep -q 'relays begin anew: training continues at step' err.txt
    check "it does not go back: $fault" test "$(grep -c 'going back' err.txt)" = 0
    equal "evaluations with $fault" "$(grep -c 'eval at step' err.txt)" 2
done

# --- LAMB changes its slots before the update, so no shard makes a step twice: the job goes back to the checkpoint
lamb=(--optimizer lamb --train_steps 12)
run_ok train lamb "${lamb[@]}" --num_workers 5 "${settings[@]:2}"
whole=$(digest lamb)
rm -rf tree
BELFRY_FAULT=crash:relay_reported#14@worker-0 cluster 2 -- "${lamb[@]}"
same "with LAMB, killed"
check "LAMB goes back" test -z "$(grep 'relays begin anew' err.txt)"
check "LAMB's kill" grep -qs "^killed on purpose at " tree/logs/*.log
whole=$(digest whole)

# --- A relay's process that is not replaced: the others play its replicas
rm -rf tree
BELFRY_FAULT=crash:tower_step#9@worker-2 cluster 2 --restarts 0 --min_workers 4 --
same "without a relay's process"

# --- Resumed without relays, and with others
rm -rf tree
cluster 2 -- --train_steps 7
cluster 5 -- --train_steps 13
cluster 4 --
same "resumed with another number"

# --- Refused where there can be none
run_fails 2 "fan_in is 1|no work" train refused --fan_in 1
run_fails 2 "fan_in is 2|through shared memory" train refused --fan_in 2 --lane shm
run_fails 2 "fan_in is 2|not every worker counts" train refused --fan_in 2 --num_workers 3 --mode async
make_clicks
run_fails 2 "fan_in is 2|rows of tables" belfry train_and_evaluate --model_dir refused-rows "${clicks[@]}" --fan_in 2
finish
