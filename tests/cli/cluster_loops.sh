#!/usr/bin/env bash
# A program with a loop of its own (examples/gan) as processes: the bits of one process, with and without shared
# memory; whichever process is killed, and whenever, the loop goes on from what a checkpoint remembers of it.
# usage: cluster_loops.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_RUNTIME_DIR=$work # sockets lie below it
program=$BUILD/tests/own_gan
printed_digest() { sed -nE 's/.*digest ([0-9a-f]+)$/\1/p' out.txt; }

run_ok "$program" "$TRAIN_CSV" 600 alone
whole=$(printed_digest)
check "it says a digest" test "${#whole}" -eq 32
check "a loss of each" grep -qE '^step 600: discriminator 0\.[0-9]+, generator [12]\.[0-9]+$' out.txt
cp out.txt alone.txt

# --- Samples are images, and not the same ones
check "a picture" test "$(head -c 12 alone/samples-600.pgm)" = 'P2 64 16 255'
# shellcheck disable=SC2016 # of awk
check "of 64 by 16 numbers up to 255" awk 'NR > 1 { for (i = 1; i <= NF; i++) { n++; if ($i > 255) exit 1 } }
    END { exit n != 1024 }' alone/samples-600.pgm
check "that change" test "$(cksum <alone/samples-300.pgm)" != "$(cksum <alone/samples-600.pgm)"

# --- It goes on where it was
run_ok "$program" "$TRAIN_CSV" 250 parts
run_ok "$program" "$TRAIN_CSV" 600 parts
equal "digest of two runs" "$(printed_digest)" "$whole"
check "with the losses that it remembers" grep -qxF "$(grep '^step 600:' alone.txt)" out.txt
run_fails 2 'trained with other settings|generator' "$BUILD/tools/belfry" train --model_dir parts \
    --train_files "$TRAIN_CSV" --label_column digit --train_steps 700

# --- Processes
survives() { # FAULT FLAGS…
    rm -rf cluster
    run_ok env BELFRY_FAULT="$1" timeout -k 5 120 "$BUILD/tools/belfry" local train "${@:2}" --job_dir cluster -- \
        "$program" "$TRAIN_CSV" 600
    equal "digest with $*" "$(printed_digest)" "$whole"
    check "losses with $*" grep -qxF "$(grep '^step 600:' alone.txt)" out.txt
    check "samples with $*" cmp -s cluster/samples-600.pgm alone/samples-600.pgm
    [ -z "$1" ] || [[ $1 != crash:* ]] || check "it was killed ($1)" grep -q 'killed on purpose' cluster/logs/*.log
}
many=(--distributed --worker_count 2 --parameter_server_count 2)
survives '' "${many[@]}" --tcp
survives '' --distributed --worker_count 2 --parameter_server_count 0
for words in delay+repeat+reorder break; do
    survives "lane:$words" "${many[@]}" --tcp
done
survives crash:tower_step#100@worker-0 "${many[@]}"
survives crash:worker_sends_stats#301@worker-1 "${many[@]}" --tcp
survives crash:worker_sent_stats#402@worker-0 "${many[@]}"
survives crash:shard_passes#411@ps-0 "${many[@]}"
survives crash:shard_decides#333@ps-0 "${many[@]}" --tcp
survives crash:shard_passed#300@ps-1 "${many[@]}"
survives crash:shard_snapshot#2@ps-1 "${many[@]}"
survives crash:master_saves#2@master-0 "${many[@]}"
survives crash:master_saves#4@master-0 "${many[@]}" --tcp
survives crash:shard_decides#200@worker-0 --distributed --worker_count 2 --parameter_server_count 0

# --- A worker is lost for good: the other plays its replica, and the loop goes on where it is
printf 'workers: {count: 2}\nlimits: {restarts: 0, min_workers: 1}\n' >once.yaml
for flags in --distributed --tcp; do
    survives crash:tower_step#111@worker-1 --config once.yaml "$flags"
    check "the other goes on" grep -q 'goes on with 1 worker' err.txt
done

# --- Actors and a learner: what comes from a queue differs from run to run, and is learned all the same
learner=$BUILD/tests/own_actor_learner
learned() { # COMMAND…: chance gets 0.25
    run_ok timeout -k 5 120 "$@"
    # shellcheck disable=SC2016 # of awk
    check "rewards of $1" awk '/^step [0-9]+: reward / { last = $4 } END { exit !(last > 0.7) }' out.txt
}
learned "$learner" 1000 queue
learned "$BUILD/tools/belfry" local train "${many[@]}" --job_dir queues -- "$learner" 1000
learned env BELFRY_FAULT=crash:tower_step#400@worker-1 "$BUILD/tools/belfry" local train "${many[@]}" \
    --job_dir killed -- "$learner" 1000
finish
