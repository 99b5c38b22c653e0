#!/usr/bin/env bash
# A program with its loop (examples/gan) as processes: the bits of one process, with and without shared
# memory. Whenever any process is killed, the loop resumes from its memory in a checkpoint.
# usage: cluster_loops.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work # sockets are below it
program=$BUILD/tests/own_gan
printed_digest() { sed -nE 's/.*digest ([0-9a-f]+)$/\1/p' out.txt; }

run_ok "$program" "$TRAIN_CSV" 600 --model_dir alone
whole=$(printed_digest)
check "it prints a digest" test "${#whole}" -eq 32
check "a loss of each" grep -qE '^step 600: discriminator 0\.[0-9]+, generator [12]\.[0-9]+$' out.txt
cp out.txt alone.txt

# --- Samples are images, and they change
check "a picture" test "$(head -c 12 alone/samples-600.pgm)" = 'P2 64 16 255'
# shellcheck disable=SC2016 # of awk
check "of 64 by 16 numbers up to 255" awk 'NR > 1 { for (i = 1; i <= NF; i++) { n++; if ($i > 255) exit 1 } }
    END { exit n != 1024 }' alone/samples-600.pgm
check "that change" test "$(cksum <alone/samples-300.pgm)" != "$(cksum <alone/samples-600.pgm)"

# --- It resumes
run_ok "$program" "$TRAIN_CSV" 250 --model_dir=parts
run_ok "$program" "$TRAIN_CSV" 600 --model_dir parts
equal "digest of two runs" "$(printed_digest)" "$whole"
check "with the losses that it remembers" grep -qxF "$(grep '^step 600:' alone.txt)" out.txt
run_fails 2 'trained with other settings|generator' "$BUILD/tools/belfry" train --model_dir parts \
    --train_files "$TRAIN_CSV" --label_column digit --train_steps 700

# --- Processes
faulty=()
survives() { # FAULT FLAGS…
    rm -rf cluster
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train "${@:2}" --job_dir cluster -- \
        "${faulty[@]}" "$program" "$TRAIN_CSV" 600 --min_shard_bytes 0
    equal "digest with $*" "$(printed_digest)" "$whole"
    check "losses with $*" grep -qxF "$(grep '^step 600:' alone.txt)" out.txt
    check "samples with $*" cmp -s cluster/samples-600.pgm alone/samples-600.pgm
    [ -z "$1" ] || [[ $1 != crash:* ]] || check "it was killed ($1)" grep -q 'killed on purpose' cluster/logs/*.log
}
all_survive() { # FAULTS FLAGS…: one a role (tests/support/with_faults)
    faulty=("$SOURCE/tests/support/with_faults")
    FAULTS=$1 survives '' "${@:2}"
    faulty=()
    check "each of $1 was killed" killed_all cluster/logs "$1"
}
many=(--distributed --worker_count 2 --parameter_server_count 2)
survives '' "${many[@]}" --tcp
survives '' --distributed --worker_count 2 --parameter_server_count 0
# A master that begins after everything is done and all others have exited: its loop requests nothing.
task='{"role":"master","index":0,"incarnation":1,"master":"unix:'$work'/m","listen":"unix:'$work'/m",
    "worker_count":2,"parameter_server_count":2,"recovers":1,"join_timeout_ms":500}'
again=(timeout -k 5 "$patience" env BELFRY_TASK="$task" "$program" "$TRAIN_CSV")
run_ok "${again[@]}" 600 --model_dir cluster --num_gpus 1
check "nothing is left to train" grep -q 'nothing to train' err.txt
equal "digest of the existing checkpoint" "$(printed_digest)" "$whole"
run_fails 1 'no word from' "${again[@]}" 601 --model_dir cluster --num_gpus 1
for words in delay+repeat+reorder break; do
    survives "lane:$words" "${many[@]}" --tcp
done
all_survive "worker-0=crash:tower_step#100 ps-1=crash:shard_snapshot#2 ps-0=crash:shard_passes#411" "${many[@]}"
all_survive "master-0=crash:master_saves#2 worker-0=crash:worker_sent_stats#402" "${many[@]}"
all_survive "worker-1=crash:worker_sends_stats#301 ps-0=crash:shard_decides#333 master-0=crash:master_saves#4" "${many[@]}" --tcp
survives crash:shard_passed#300@ps-1 "${many[@]}"
survives crash:shard_decides#200@worker-0 --distributed --worker_count 2 --parameter_server_count 0

# --- A worker is lost for good: the other plays its replica, and the loop continues
printf 'workers: {count: 2}\nlimits: {restarts: 0, min_workers: 1}\n' >once.yaml
for flags in --distributed --tcp; do
    survives crash:tower_step#111@worker-1 --config once.yaml "$flags"
    check "the other continues" grep -q 'continues with 1 worker' err.txt
done

# --- Modes with a ledger: every step is made, whatever is killed; the bits depend on timing
finishes() { # FAULT FLAGS… -- FLAGS…
    local places=()
    for word in "${@:2}"; do [ "$word" = -- ] && break; places+=("$word"); done
    rm -rf modes
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train "${places[@]}" --job_dir modes -- \
        "${faulty[@]}" "$program" "$TRAIN_CSV" 600 --min_shard_bytes 0 "${@:3+${#places[@]}}"
    check "all steps with $*" grep -qE '^step 600: discriminator [01]\.[0-9]+, generator [0-3]\.[0-9]+$' out.txt
    [ -z "$1" ] || check "it was killed ($1)" grep -q 'killed on purpose' modes/logs/*.log
}
more=(--distributed --worker_count 3 --parameter_server_count 2)
for mode in '--mode async' '--mode bounded --max_staleness 1' '--replicas_to_aggregate 2'; do
    read -ra flags <<<"$mode"
    [ "$mode" != '--mode async' ] || finishes '' "${more[@]}" -- "${flags[@]}"
    finishes crash:tower_step#101@worker-1 "${more[@]}" --tcp -- "${flags[@]}"
    faults="worker-0=crash:worker_sends_stats#150 ps-1=crash:shard_passes#411 master-0=crash:master_saves#2"
    faulty=("$SOURCE/tests/support/with_faults")
    FAULTS=$faults finishes '' "${more[@]}" -- "${flags[@]}"
    faulty=()
    check "each of $faults was killed" killed_all modes/logs "$faults"
done
run_ok "$program" "$TRAIN_CSV" 600 --model_dir alone-async --mode async
equal "one worker, async" "$(printed_digest)" "$whole"
run_fails 2 '--mode: expected sync|async|bounded, got "fast"' "$program" "$TRAIN_CSV" --model_dir x --mode fast
run_fails 2 '--mode: its value is missing' "$program" "$TRAIN_CSV" --model_dir x --mode
run_fails 2 '--nun_workers: there is no such flag; did you mean --num_workers?' \
    "$program" "$TRAIN_CSV" 100 --nun_workers 4 --model_dir x
run_fails 2 '--steps: there is no such flag' "$BUILD/tests/own_factors" "$TRAIN_CSV" --steps --model_dir x
run_fails 2 '--entirely: there is no such flag' "$BUILD/tests/own_actor_learner" --entirely --model_dir x
for steps in 0 1e3 -3 100x; do # not a number of steps
    for words in "gan $TRAIN_CSV" "factors $TRAIN_CSV" actor_learner; do
        read -ra call <<<"$words"
        capture "$BUILD/tests/own_${call[0]}" "${call[@]:1}" "$steps" --model_dir x
        check "usage of ${call[0]} with $steps" grep -q "^usage: ${call[0]} " err.txt
        equal "its exit code" "$code" 2
    done
done
check "and nothing was trained" test ! -e x
run_fails 2 'num_gpus must be in [0, 256]' "$program" "$TRAIN_CSV" --model_dir x --num_gpus=-1

# --- Two functions that update a table each (examples/factors)
factors=("$BUILD/tests/own_factors" "$TRAIN_CSV" 300)
run_ok "${factors[@]}" --model_dir rows --num_gpus 2
two=$(printed_digest)
check "a digest of rows" test "${#two}" -eq 32
rows_survive() { # FAULT FLAGS…
    rm -rf tables
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train "${@:2}" --job_dir tables -- \
        "${factors[@]}"
    equal "digest of rows with $*" "$(printed_digest)" "$two"
}
rows_survive '' "${many[@]}" --tcp
rows_survive crash:tower_step#100@worker-0 "${many[@]}"
rows_survive crash:worker_rows_reported#201@worker-1 "${many[@]}"
rows_survive crash:shard_decides#205@ps-0 "${many[@]}"
rows_survive crash:shard_snapshot#1@ps-1 "${many[@]}"
rows_survive crash:master_saves#2@master-0 "${many[@]}"
run_ok timeout -k 5 "$patience" "$BUILD/tools/belfry" local train "${more[@]}" --job_dir rows-async -- "${factors[@]}" --mode async
check "all steps of rows" grep -q '^step 300: ' out.txt

# --- Actors and a learner: the queue's content differs from run to run, and is learned all the same
learner=$BUILD/tests/own_actor_learner
learned() { # COMMAND…: chance gets 0.25
    run_ok timeout -k 5 "$patience" "$@"
    # shellcheck disable=SC2016 # of awk
    check "rewards of $1" awk '/^step [0-9]+: reward / { last = $4 } END { exit !(last > 0.7) }' out.txt
}
learned "$learner" 1000 --model_dir queue
learned "$BUILD/tools/belfry" local train "${many[@]}" --job_dir queues -- "$learner" 1000
learned env BELFRY_FAULT=crash:tower_step#400@worker-1 "$BUILD/tools/belfry" local train "${many[@]}" \
    --job_dir killed -- "$learner" 1000
finish
