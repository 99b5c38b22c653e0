#!/usr/bin/env bash
# A program whose processes call each other (examples/ddl): the same numbers with any launcher; ranks that
# die, fail, or are told to end.
# usage: ranks.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
program=$BUILD/tests/own_ranks

# --- With 1, 2 and 4 ranks
for count in 1 2 4; do
    run_ok belfry local ranks --rank_count "$count" -- "$program" "$TRAIN_CSV" 300
    cp out.txt "ranks-$count.txt"
    equal "lines of $count ranks: only one prints" "$(wc -l <out.txt)" 3
    run_ok mpirun --allow-run-as-root --oversubscribe -np "$count" "$program" "$TRAIN_CSV" 300
    check "mpirun's $count ranks print the same" cmp -s out.txt "ranks-$count.txt"
done
run_ok "$program" "$TRAIN_CSV" 300
check "one rank prints the same without a launcher" cmp -s out.txt ranks-1.txt
check "more ranks learn more in a step" test "$(tail -n 1 ranks-4.txt)" '<' "$(tail -n 1 ranks-1.txt)"

# --- torchrun's variables
play_torchrun() { # RANK
    env RANK="$1" LOCAL_RANK="$1" WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT="test-$$" "$program" "$TRAIN_CSV" 300
}
play_torchrun 1 >second.txt &
run_ok play_torchrun 0
wait
check "torchrun's ranks print the same" cmp -s out.txt ranks-2.txt
check "and the second one nothing" test ! -s second.txt

# --- Hosts, played by groups of two; the exchanged data have the same bits
# A port that no other process gets: it stays bound here, without a listener.
python3 -c '
import signal, socket
held = socket.socket()
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
held.bind(("127.0.0.1", 0))
print(held.getsockname()[1], flush=True)
signal.pause()' >port.txt &
holder=$!
until [ -s port.txt ]; do sleep 0.05; done
port=$(cat port.txt)
play_host_rank() { # RANK
    env BELFRY_RANK="$1" BELFRY_SIZE=4 BELFRY_LOCAL_RANK=$(($1 % 2)) BELFRY_LOCAL_SIZE=2 \
        BELFRY_JOB="hosts-$$" BELFRY_ADDRESS="127.0.0.1:$port" BELFRY_SECRET="between-these-hosts" \
        "$program" "$TRAIN_CSV" 300
}
others=()
for rank in 1 2 3; do
    play_host_rank "$rank" >"rank-$rank.txt" &
    others+=("$!")
done
run_ok play_host_rank 0
wait "${others[@]}"
kill "$holder"
check "two hosts of two ranks print the same as four ranks of one" cmp -s out.txt ranks-4.txt

# --- Other ways to compute a sum
export BELFRY_DDL_OPTIONS='mode=m order=fast check=1e-5' XDG_CACHE_HOME=$PWD/cache
run_ok env LSAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -np 2 "$program" "$TRAIN_CSV" 300 # MPI leaks
check "Open MPI's two ranks have the same sums" cmp -s out.txt ranks-2.txt
run_fails 1 ') ended with exit code 1' belfry local ranks --rank_count 2 -- "$program" "$TRAIN_CSV" 300
check "mode m is for ranks of mpirun" grep -q '^ranks: mode m: expected ranks that mpirun has started' err.txt
BELFRY_DDL_OPTIONS='mode=p'
run_ok belfry local ranks --rank_count 4 -- "$program" "$TRAIN_CSV" 300
check "mode p measures, and has the same bits" cmp -s out.txt ranks-4.txt
choices=$(echo cache/belfry/ddl-*.json)
check "choices name their dependencies" grep -q 'Belfry .*mode p.*cores' "$choices"
sed -E -i 's/"s:4x1x1"/"X"/; s/"o:4x1x1"/"s:4x1x1"/; s/"X"/"o:4x1x1"/' "$choices" # the other way
cp "$choices" kept.json
run_ok belfry local ranks --rank_count 4 -- "$program" "$TRAIN_CSV" 300
check "the next job has the same bits, too" cmp -s out.txt ranks-4.txt
check "and uses the kept choices" cmp -s "$choices" kept.json
run_ok belfry local ranks --rank_count 2 -- "$program" "$TRAIN_CSV" 300
equal "other ranks choose for themselves: files" "$(find cache/belfry -name 'ddl-*.json' | wc -l)" 2
for file in cache/belfry/ddl-*.json; do echo 'no JSON' >"$file"; done
run_ok belfry local ranks --rank_count 2 -- "$program" "$TRAIN_CSV" 300
check "an unreadable file is reported, and measured again" grep -q 'mode p: .*ddl-.*all is measured' err.txt
unset BELFRY_DDL_OPTIONS XDG_CACHE_HOME

# --- Ranks that end
cat >rank.sh <<'END'
#!/usr/bin/env bash
# usage: rank.sh RANK COMMAND PROGRAM ARGUMENTS…: that rank runs the command instead of the program
if [ "$BELFRY_RANK" = "$1" ]; then eval "$2"; fi
exec "${@:3}"
END
chmod +x rank.sh
run_fails 7 ') ended with exit code 7' \
    belfry local ranks --rank_count 3 -- ./rank.sh 1 'exit 7' "$program" "$TRAIN_CSV" 100000000
run_fails 137 'rank 2 (pid |) was killed by signal 9 (Killed)' \
    belfry local ranks --rank_count 3 -- ./rank.sh 2 '(sleep 0.5; kill -9 $$) &' "$program" "$TRAIN_CSV" 100000000
check "the others name the lost rank" grep -q '^ranks: rank 2 of 3 has exited; it was waited for in' err.txt
"$BUILD/tools/belfry" local ranks -- "$program" "$TRAIN_CSV" 100000000 >out.txt 2>err.txt &
sleep 0.5
kill -TERM $!
wait $! && code=0 || code=$?
equal "exit code after SIGTERM" "$code" 143
check "it says why" grep -q 'stopped by signal 15' err.txt
"$BUILD/tools/belfry" local ranks -- "$program" "$TRAIN_CSV" 100000000 >out.txt 2>err.txt &
sleep 0.5
kill -KILL $!
wait $! 2>/dev/null || true
for _ in $(seq "$naps"); do
    pgrep -f "^$program $TRAIN_CSV 100000000" >/dev/null || break
    sleep 0.1
done
check "ranks end with the process that started them" test -z "$(pgrep -f "^$program $TRAIN_CSV 100000000")"
run_ok belfry local ranks -- "$program" "$TRAIN_CSV" 100
# Other tests' memory disappears without this test.
mapfile -t left < <(find /dev/shm -name 'belfry-ddl-*' -newer rank.sh)
all_gone() {
    local file
    for file in "${left[@]}"; do [ ! -e "$file" ] || return 1; done
}
for _ in $(seq "$naps"); do
    all_gone && break
    sleep 0.1
done
check "killed ranks leave no memory" all_gone

# --- A job that is suspended as a whole for longer than its grace period, while its ranks end
if [ -n "${BELFRY_THOROUGH:-}" ]; then
    cat >slow_end.sh <<'END'
trap 'touch asked-$BELFRY_RANK; sleep 1; touch ended-$BELFRY_RANK; exit 0' TERM
touch begun-$BELFRY_RANK
while :; do sleep 0.1; done
END
    "$BUILD/tools/belfry" local ranks --rank_count 2 -- /bin/bash slow_end.sh >out.txt 2>err.txt &
    job=$!
    wait_for_both() { # NAME: of files of the ranks
        until [ -e "$1-0" ] && [ -e "$1-1" ]; do
            kill -0 "$job" || break
            sleep 0.05
        done
    }
    wait_for_both begun
    mapfile -t ranks < <(pgrep -P "$job")
    kill -TERM "$job"
    wait_for_both asked
    kill -STOP "$job" "${ranks[@]}"
    sleep 17
    kill -CONT "${ranks[@]}" "$job"
    wait "$job" || true
    check "the ranks of a suspended job end in order" test -e ended-0 -a -e ended-1
fi

# --- Impossible starts
run_fails 2 'expected a program after --, got nothing' belfry local ranks
run_fails 2 'expected a program after --, got ranks' belfry local ranks ranks -- "$program"
run_fails 2 'rank_count' belfry local ranks --rank_count 65 -- "$program"
run_fails 3 'there is no program ./nothing' belfry local ranks -- ./nothing
capture env RANK=2 WORLD_SIZE=2 "$program" "$TRAIN_CSV"
check "an impossible rank" grep -qx 'ranks: environment variable RANK: expected from 0 to 1, got 2' err.txt
finish
