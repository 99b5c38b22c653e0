#!/usr/bin/env bash
# A worker is lost for good, is refused, or fails. If no shard has begun the next version, the job's state is
# saved first, and a run resumed from it has the bits of an undisturbed run.
# usage: cluster_rescue.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it

settings=(--train_steps 300 --save_checkpoints_steps 1000 --train_batch_size 8)
crash=crash:tower_step#170@worker-1 # while it computes step 169
saved_alone() { # FOLDER: the checkpoint saved beside the first; more are an error
    local all
    all=$(cd "$1" && echo ckpt-*)
    [[ $all =~ ^ckpt-00000000\ ckpt-([0-9]{8})$ ]] && echo "${BASH_REMATCH[1]}"
}

run_ok train three --optimizer adam "${settings[@]}" --num_workers 3
three=$(digest three)

# --- The job ends, and the same command resumes from the step that was not made
for flags in "--parameter_server_count 1" "--parameter_server_count 3 --tcp"; do
    rm -rf lost
    read -r -a words <<<"$flags"
    lost=(local train --distributed "${words[@]}" --worker_count 3 --restarts 0 --job_dir lost -- "${digits[@]}" --optimizer adam "${settings[@]}")
    run_fails 1 'worker 1 (pid|was killed by signal 9' env BELFRY_FAULT=$crash "$BUILD/tools/belfry" "${lost[@]}"
    check "the log says that it saves ($flags)" grep -q 'no shard has begun with step 169, which lacks a worker' err.txt
    equal "the saved checkpoint" "$(saved_alone lost)" 00000169
    run_ok belfry "${lost[@]}"
    equal "digest after that ($flags)" "$(digest lost)" "$three"
done

# --- A shard is lost with it: only the newest checkpoint is left
for ((i = 0; i < 5; i++)); do # whether the loss or a survivor's error arrives first
    rm -rf lost
    run_fails 1 'worker 1 (pid|was killed by signal 9' env BELFRY_FAULT=$crash "$BUILD/tools/belfry" local train \
        --distributed --parameter_server_count 0 --worker_count 3 --restarts 0 --job_dir lost -- "${digits[@]}" "${settings[@]}"
    equal "nothing is saved" "$(cd lost && echo ckpt-*)" ckpt-00000000
done

# --- A table, and moving averages
make_clicks
rows=("${clicks[@]}" "${settings[@]}" --moving_average_decay 0.9)
run_ok belfry train_and_evaluate --model_dir rows "${rows[@]}" --num_workers 3
lost=(local train --distributed --worker_count 3 --restarts 0 --job_dir lost -- "${rows[@]}")
rm -rf lost
run_fails 1 'worker 1 (pid|was killed by signal 9' env BELFRY_FAULT=$crash "$BUILD/tools/belfry" "${lost[@]}"
equal "the saved checkpoint of tables" "$(saved_alone lost)" 00000169
run_ok belfry "${lost[@]}"
equal "digest of tables" "$(digest lost)" "$(digest rows)"

# --- The job continues without it, and makes no step twice
rm -rf lost
run_ok env BELFRY_FAULT=$crash "$BUILD/tools/belfry" local train --distributed --worker_count 3 --restarts 0 \
    --min_workers 2 --job_dir lost -- "${digits[@]}" --optimizer adam "${settings[@]}"
check "from the step that was not made" grep -q '"step":169,.*"replicas":\[2,0,1\]' lost/job.journal
check "it does not go back" test -z "$(grep 'going back' err.txt)"
equal "digest without worker 1" "$(digest lost)" "$three"

# --- Its parameters were reported and updated: only the newest checkpoint is left
rm -rf lost
late=crash:worker_sends_stats#170@worker-1
run_ok env BELFRY_FAULT=$late "$BUILD/tools/belfry" local train --distributed --worker_count 3 --restarts 0 \
    --min_workers 2 --job_dir lost -- "${digits[@]}" --optimizer adam "${settings[@]}"
check "the log says so" grep -q 'not all shards are at the beginning of step 169, which lacks a worker' err.txt
check "it goes back" grep -q 'going back from step 169 to lost/ckpt-00000000' err.txt
equal "digest after that" "$(digest lost)" "$three"

# --- LAMB writes its moments in the first of two passes: a reported chunk is then incomplete
run_ok train lamb --hidden_units 256,64 --optimizer lamb "${settings[@]}" --num_workers 3
for reports in 100 101; do
    rm -rf lost
    run_ok env BELFRY_FAULT=crash:worker_reported#$reports@worker-1 "$BUILD/tools/belfry" local train --distributed \
        --worker_count 3 --parameter_server_count 2 --restarts 0 --min_workers 2 --job_dir lost \
        -- "${digits[@]}" --hidden_units 256,64 --optimizer lamb "${settings[@]}"
    equal "digest of LAMB after report $reports" "$(digest lost)" "$(digest lamb)"
done

# --- An evaluation interrupted by the loss is repeated, and may end the training
slow=slow:evaluates#600,slow:tower_compute#10
evals=("${digits[@]}" --optimizer adam "${settings[@]}" --eval_every_steps 100 --save_checkpoints_steps 100)
evaluated() { sed -n 's/^eval at step \([0-9]*\):.*/\1/p' err.txt | sort -un | tr '\n' ' '; }
rm -rf lost
run_ok env BELFRY_FAULT="crash:tower_compute#109@worker-1,$slow" "$BUILD/tools/belfry" local train --distributed \
    --worker_count 3 --restarts 0 --min_workers 2 --job_dir lost -- "${evals[@]}"
equal "evaluations" "$(evaluated)" "100 200 300 "
equal "digest with evaluations" "$(digest lost)" "$three"

# --- A replacement is refused: its reason is the job's
rm -rf lost
cp "${digits[1]}" own.csv
own=(--train_files own.csv "${digits[@]:2}" --optimizer adam "${settings[@]}")
local_own() { # slow, or as $pace says
    env BELFRY_FAULT="slow:tower_compute#${pace:-40}" "$BUILD/tools/belfry" local train --distributed --worker_count 3 --job_dir lost -- "${own[@]}"
}
rm err.txt
local_own >out.txt 2>err.txt &
job=$!
until_true grep -qs '^step ' err.txt || true
sed '7s/,0/,1/' own.csv >other.csv
ln own.csv same.csv
mv other.csv own.csv # by one rename: a file without a name would end the job
kill -KILL "$(roles worker 1)"
wait "$job" && code=0 || code=$?
equal "its exit code" "$code" 2
check "the reason is reported" grep -q '^belfry: worker .* runs with other settings than the master: input' err.txt
step=$(saved_alone lost)
check "the trained steps are saved" test "${step:-0}" -gt 0
mv same.csv own.csv
pace=0 run_ok local_own
equal "digest of the resumed run" "$(digest lost)" "$three"

finish
