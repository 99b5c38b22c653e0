#!/usr/bin/env bash
# A model that is too small for its parameter servers is on fewer of them: the same bits, and the others end.
# usage: cluster_small.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

settings=(--train_steps 40 --save_checkpoints_steps 10 --train_batch_size 8)
least=(--min_shard_bytes 262144) # the default; `digits` has 0
run_ok train alone "${settings[@]}" --num_workers 2
whole=$(digest alone)

cluster() { # MODEL_DIR [flags of local train] -- [training flags]
    belfry local train --distributed --worker_count 2 --job_dir "$@"
}
says() { # SENTENCE
    check "it says: $1" grep -qF "$1" err.txt
}

for flags in "--parameter_server_count 3" "--parameter_server_count 3 --tcp" "--parameter_server_count 0"; do
    read -ra words <<<"$flags"
    rm -rf many
    run_ok cluster many "${words[@]}" -- "${digits[@]}" "${settings[@]}" "${least[@]}"
    equal "digest with $flags" "$(digest many)" "$whole"
    [ "$flags" = "--parameter_server_count 0" ] && all=2 || all=3
    says "1 of $all shards holds the 9.4 KiB of parameters; $((all - 1))"
    check "one file of parameters with $flags" test "$(echo many/ckpt-00000040/shard-*)" = \
        many/ckpt-00000040/shard-00000-of-00001.safetensors
    check "none is started again with $flags" test "$(grep -c 'started again' err.txt)" = 0
done

# 2,410 parameters are 9,640 bytes.
run_ok cluster two --parameter_server_count 3 -- "${digits[@]}" "${settings[@]}" --min_shard_bytes 4000
equal "digest on two of three" "$(digest two)" "$whole"
says "2 of 3 shards hold the 9.4 KiB of parameters; 1 is not needed"
run_ok cluster all --parameter_server_count 3 -- "${digits[@]}" "${settings[@]}" --min_shard_bytes 3000
check "all of three" test "$(grep -c 'not needed' err.txt)" = 0
run_ok train threads "${settings[@]}" "${least[@]}" --num_workers 2 --parameter_server_count 3
says "1 of 3 shards holds"
equal "digest of one process" "$(digest threads)" "$whole"
run_ok cluster planned --parameter_server_count 3 --dry_run -- "${digits[@]}" "${least[@]}"
check "a plan shows the servers without parameters" grep -qE '^ps 2 .* 0 B ' out.txt

# Rows of tables are on all.
make_clicks
run_ok cluster rows --parameter_server_count 2 -- "${clicks[@]}" --train_steps 5
check "tables are on all" test "$(echo rows/ckpt-00000005/shard-* | wc -w)" = 2

# Kills: the supervisor keeps the state of a process with a shard.
killed() { # FAULT FLAGS…
    rm -rf killed
    run_ok env BELFRY_FAULT="$1" timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
        --job_dir killed "${@:2}" -- "${digits[@]}" "${settings[@]}" "${least[@]}"
    says 'killed on purpose'
    equal "digest with $*" "$(digest killed)" "$whole"
}
killed crash:tower_step#15@worker-1 --parameter_server_count 0
says "worker 1 is back and continues with step"
killed crash:shard_passes#15@worker-0 --parameter_server_count 0
says "shard 0 is back with its state: training continues at step 14"
check "nothing goes back" test "$(grep -c 'going back' err.txt)" = 0
killed crash:shard_passes#15@ps-0 --parameter_server_count 3
says "shard 0 is back with its state: training continues at step 14"
check "nothing goes back" test "$(grep -c 'going back' err.txt)" = 0
killed crash:master_saves#2@master-0 --parameter_server_count 3
check "nothing goes back" test "$(grep -c 'going back' err.txt)" = 0

# A server that another launcher starts late, while the job runs, ends successfully.
BELFRY_FAULT=slow:tower_compute#200 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
    --parameter_server_count 2 --job_dir late -- "${digits[@]}" "${settings[@]}" "${least[@]}" >late.out 2>late.err &
job=$!
for _ in $(seq "$naps"); do
    [ "$(roles worker 0)" != "" ] && [ -e late/ckpt-00000010 ] && break
    sleep 0.05
done
worker=$(roles worker 0)
check "the unused server has ended" test -z "$(roles ps 1)"
task=$(tr '\0' '\n' <"/proc/$worker/environ" | sed -n 's/^BELFRY_TASK=//p')
task=$(sed -E 's/"role":"worker","index":0/"role":"ps","index":1/; s/"incarnation":[0-9]+/"incarnation":5/
    s/"supervisor":[0-9]+/"supervisor":0/; s/"local_rank":0/"local_rank":-1/' <<<"$task")
secret=$(tr '\0' '\n' <"/proc/$worker/environ" | grep '^BELFRY_SECRET=')
run_ok env "$secret" BELFRY_TASK="$task" timeout -k 5 "$patience" "$BUILD/tools/belfry" train_and_evaluate --model_dir late \
    "${digits[@]}" "${settings[@]}" "${least[@]}"
wait "$job" || complain "the job with a late server"
equal "digest with a late server" "$(digest late)" "$whole"

# A server loads one file of a checkpoint of as many shards. It reads the file twice, first to check it.
large=("${digits[@]}" --train_batch_size 8 --hidden_units "512,512" --optimizer adam)
run_ok cluster large --parameter_server_count 3 -- "${large[@]}" --train_steps 2
rm large/board.json
BELFRY_FAULT=slow:tower_compute#1000 "$BUILD/tools/belfry" local train --distributed --worker_count 2 \
    --parameter_server_count 3 --job_dir large -- "${large[@]}" --train_steps 4 >large.out 2>large.err &
job=$!
for _ in $(seq "$naps"); do
    grep -q '"step":2' large/board.json 2>/dev/null && server=$(roles ps 1) && [ -n "$server" ] &&
        grep -q computes large/board.json && break
    sleep 0.05
done
have=$(sed -n 's/^rchar: //p' "/proc/$server/io")
own=$(stat -c %s large/ckpt-00000002/shard-00001-of-00003.safetensors)
check "a server reads one file: $have bytes for one of $own" test "$have" -lt $((3 * own))
wait "$job" || complain "the job that reads"

check "none is left" nothing_left
finish
