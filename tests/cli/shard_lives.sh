#!/usr/bin/env bash
# Parameter servers are killed, and training continues with the state that they held: no step is made twice, and the
# digest is that of an undisturbed run. Jobs whose state is not kept go back to the newest checkpoint.
# usage: shard_lives.sh BUILD_FOLDER [KILLS]     KILLS: at random moments (5)
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
kills=${2:-5}

# Each step is in the curves, and no step but the last is saved.
settings=(--train_steps 60 --save_summary_steps 1 --save_checkpoints_secs 0 --train_batch_size 8 --hidden_units "256,128")
export XDG_RUNTIME_DIR=$work # sockets are below it

trains() { # FAULT FLAGS…
    local fault=$1
    shift
    rm -rf killed
    run_ok env BELFRY_FAULT="$fault" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" "$@"
    equal "digest with $fault $*" "$(digest killed)" "$whole"
}

continues() { # FAULT FLAGS…: nothing is loaded, and each step is in the curves once
    trains "$@"
    check "it continues after $*" grep -q 'back with [a-z]* state: training continues at step' err.txt
    check "it does not go back after $*" test "$(grep -c 'going back' err.txt)" = 0
    equal "steps in the curves" "$(steps_of_curves killed | tr '\n' ' ')" "$(seq 60 | tr '\n' ' ')"
}

goes_back() { # FAULT FLAGS…
    trains "$@"
    check "it goes back after $*" grep -q 'going back from step' err.txt
}

evaluated() { grep -o 'eval at step.*' err.txt || true; }

alone() { # FLAGS…: the digest and the evaluations to expect
    rm -rf whole
    run_ok train whole "${settings[@]}" --num_workers 2 "$@"
    whole=$(digest whole)
    evaluations=$(evaluated)
}

# --- Slots and averages, and rules that need a norm: at every moment of a chunk's pass
alone --optimizer adam --moving_average_decay 0.9
for point in shard_passes#30@ps-1 shard_passed#31@ps-1 shard_kept_piece#45@ps-1 shard_kept_piece#46@ps-1; do
    continues "crash:$point" --optimizer adam --moving_average_decay 0.9
done
continues crash:shard_kept_piece#50 --optimizer adam --moving_average_decay 0.9 # both
continues crash:shard_kept_piece#47@ps-1 --optimizer adam --moving_average_decay 0.9 --lane grpc
alone --optimizer momentum --clip_global_norm 1
for point in shard_passes#61@ps-1 shard_passed#62@ps-1 shard_kept_piece#45@ps-1; do
    continues "crash:$point" --optimizer momentum --clip_global_norm 1
done

# --- Shard 0, with curves that it has not reported
for point in shard_passes#61@ps-0 shard_decides#13@ps-0 shard_kept_piece#45@ps-0; do
    continues "crash:$point" --optimizer momentum --clip_global_norm 1
done

# --- A server without parameters, as the model is small
settings=("${settings[@]::6}" --train_batch_size 8 --hidden_units 32)
alone --optimizer adam
continues crash:shard_decides#20@ps-0 --optimizer adam
for index in 0 1; do
    rm -rf killed
    BELFRY_FAULT=slow:tower_step#10 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 2 \
        --job_dir killed -- "${digits[@]}" "${settings[@]}" --optimizer adam >out.txt 2>err.txt </dev/null &
    job=$!
    until grep -q 'generation' killed/job.journal 2>/dev/null; do nap 0.02; done
    sleep 0.2
    kill -9 "$(pgrep -P "$job" -f "ps-$index")"
    code=0
    wait "$job" || code=$?
    equal "exit code when ps $index is killed" "$code" 0
    check "ps $index continues" grep -q 'back with [a-z]* state' err.txt
    equal "digest when ps $index is killed" "$(digest killed)" "$whole"
done

# --- A request to stop soon after a kill: the step that some chunks have made is finished before the save
settings=("${settings[@]::6}" --train_batch_size 8 --hidden_units "256,128" --train_steps 120)
alone --optimizer adam
tries=${BELFRY_THOROUGH:+6}
for try in $(seq "${tries:-2}"); do
    rm -rf killed
    BELFRY_FAULT=slow:tower_step#2,crash:shard_passes#$((40 + try))@ps-1 "$BUILD/tools/belfry" local train --distributed \
        --worker_count 2 --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" \
        --optimizer adam >out.txt 2>err.txt </dev/null &
    job=$!
    until grep -q 'was killed by signal' err.txt || ! kill -0 "$job" 2>/dev/null; do nap 0.005; done
    kill -INT "$job" 2>/dev/null || true
    wait "$job" || true
    run_ok belfry local train --distributed --worker_count 2 --parameter_server_count 2 --job_dir killed \
        -- "${digits[@]}" "${settings[@]}" --optimizer adam
    equal "digest after a kill, a stop and a resume ($try)" "$(digest killed)" "$whole"
done

# --- At random moments
settings=("${settings[@]::6}" --train_batch_size 8 --hidden_units "256,128")
settings+=(--train_steps 400 --save_summary_steps 1000)
alone --optimizer momentum
rm -rf killed
BELFRY_FAULT=slow:tower_step#5 "$BUILD/tools/belfry" local train --distributed --worker_count 2 --parameter_server_count 2 \
    --job_dir killed -- "${digits[@]}" "${settings[@]}" --optimizer momentum >out.txt 2>err.txt </dev/null &
job=$!
for _ in $(seq "$kills"); do
    python3 -c 'import random, time; time.sleep(random.uniform(0.1, 0.4))'
    for pid in $(pgrep -P "$job"); do
        if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "ps-$((RANDOM % 2))"; then
            kill -9 "$pid" 2>/dev/null || true
        fi
    done
done
code=0
wait "$job" || code=$?
equal "exit code after kills at random moments" "$code" 0
equal "digest after kills at random moments" "$(digest killed)" "$whole"

# --- A variable that is never updated: its passes are ahead of the others'
cat >frozen.c <<'EOF'
#include <belfry/belfry.h>
static bel_status *model_fn(bel_model_context *ctx, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(ctx);
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *fixed = bel_variable(g, "fixed", &BEL_SHAPE(128, 128), zeros, BEL_VARIABLE_FROZEN);
    bel_value *hidden = bel_tanh(g, bel_dense(g, bel_context_only_feature(ctx), 128, "hidden"));
    bel_value *logits = bel_dense(g, bel_add(g, hidden, bel_matmul(g, hidden, fixed)), 10, "logits");
    bel_predictions_set(spec, bel_softmax(g, logits));
    if (bel_context_labels(ctx) != NULL)
        bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, logits, bel_context_labels(ctx))));
    const bel_optimizer momentum = {
        .size = sizeof momentum, .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.05, .momentum = 0.9};
    bel_optimizer_use(spec, NULL, &momentum);
    return NULL;
}
BEL_PACKAGE(.name = "frozen", .description = "a frozen variable", .model_fn = model_fn)
EOF
cc -shared -fPIC -I"$SOURCE/include" frozen.c -o frozen.so
with_frozen=(--package ./frozen.so --train_files "$TRAIN_CSV" --label_column digit --train_batch_size 8 --train_steps 40
    --save_checkpoints_secs 0 --save_summary_steps 1000 --no_report --min_shard_bytes 0)
run_ok belfry train --model_dir fixed "${with_frozen[@]}" --num_workers 2
for point in shard_passes#20@ps-1 shard_passes#21@ps-0; do
    rm -rf killed
    run_ok env BELFRY_FAULT="crash:$point" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --parameter_server_count 2 --job_dir killed -- "${with_frozen[@]}"
    check "it continues with a frozen variable after $point" grep -q 'back with [a-z]* state' err.txt
    equal "digest with a frozen variable after $point" "$(digest killed)" "$(digest fixed)"
done

# --- Where the state is not kept
settings=("${settings[@]::${#settings[@]}-2}")
alone --optimizer lamb
goes_back crash:shard_passes#61@ps-1 --optimizer lamb

# --- While a checkpoint is written, or evaluated: it is made again, of the same version
checkpoints() { find "$1" -name 'ckpt-*' -maxdepth 1 | sed 's/.*ckpt-//' | sort | tr '\n' ' '; }
keeps_snapshot() { # FAULT FLAGS…
    continues "$@"
    equal "checkpoints after $*" "$(checkpoints killed)" "$(checkpoints whole)"
    equal "evaluations after $*" "$(evaluated)" "$evaluations"
}
settings=("${settings[@]::4}" --train_batch_size 8 --hidden_units "256,128" --eval_steps 4 --keep_checkpoint_max 20)
settings+=(--save_checkpoints_steps 20 --eval_every_steps 20)
alone --optimizer adam --moving_average_decay 0.9
for fault in slow:master_saves#400,crash:shard_passes#27@ps-1 slow:master_saves#400,crash:shard_passes#75@ps-0 \
    slow:master_saves#400,crash:shard_passes#75 slow:evaluates#600,crash:shard_passes#50@ps-0 \
    slow:evaluates#600,crash:shard_passes#28@ps-1; do
    for _ in 1 2 3 4; do # on a slow machine the kill may come too late
        keeps_snapshot "$fault" --optimizer adam --moving_average_decay 0.9
        continued_within && break
    done
    check "the loss comes before the evaluation's end: $fault" continued_within
done
for fault in crash:shard_snapshot#2@ps-0 crash:shard_snapshot@ps-1 crash:checkpoint_shard_written#2@ps-1; do
    keeps_snapshot "$fault" --optimizer adam --moving_average_decay 0.9
done
# --- The same after an earlier run that went further: its curves do not count as this one's
settings=("${settings[@]::4}" --train_batch_size 8 --hidden_units "256,128" --eval_steps 4 --keep_checkpoint_max 20)
settings+=(--save_checkpoints_steps 20 --eval_every_steps 25)
alone --optimizer momentum
rm -rf killed
run_ok train killed "${settings[@]}" --num_workers 2 --optimizer momentum
rm -r killed/ckpt-*40 killed/ckpt-*60
run_ok env BELFRY_FAULT=slow:evaluates#150,crash:shard_passes#8@ps-1 timeout -k 5 "$patience" "$BUILD/tools/belfry" local train \
    --distributed --worker_count 2 --parameter_server_count 2 --job_dir killed -- "${digits[@]}" "${settings[@]}" \
    --optimizer momentum
check "it continues after an earlier run" grep -q 'back with [a-z]* state: training continues at step' err.txt
equal "evaluations after an earlier run" "$(evaluated)" "$evaluations"
settings=("${settings[@]::4}" --train_batch_size 8 --hidden_units "256,128" --save_checkpoints_steps 1)
alone --optimizer momentum
for point in shard_passes#20@ps-1 shard_passes#23@ps-1 shard_kept_piece#45@ps-1; do # of the version that is loaded
    trains "crash:$point" --optimizer momentum
done
settings=("${settings[@]::4}" --train_batch_size 8 --hidden_units "256,128" --save_checkpoints_steps 20)
alone --optimizer momentum
trains crash:shard_snapshot@ps-1 --optimizer momentum
equal "checkpoints" "$(checkpoints killed)" "$(checkpoints whole)"
finish
