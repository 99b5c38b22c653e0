#!/usr/bin/env bash
# --metrics_port while a job runs, in one process and in a cluster; jobs top NAME; the slowest worker.
# usage: metrics.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_STATE_HOME="$work/state"

fetch() { # ADDRESS FILE
    python3 -c 'import sys, urllib.request as u; open(sys.argv[2], "wb").write(u.urlopen(sys.argv[1], timeout=10).read())' "$@"
}

# Checks the rules of the text format 0.0.4, and of names: counters, and only they, end in _total.
valid() { # FILE
    python3 - "$1" <<'PYTHON'
import re, sys
kinds, helped, samples, current = {}, set(), set(), None
text = open(sys.argv[1]).read()
assert text.endswith("\n")
for line in text.splitlines():
    if line.startswith("# HELP "):
        current, words = line.split(" ", 3)[2:]
        assert words.strip() and current not in helped, line
        helped.add(current)
    elif line.startswith("# TYPE "):
        name, kind = line.split(" ")[2:]
        assert name == current and name not in kinds, line
        assert kind in ("counter", "gauge"), line
        assert (kind == "counter") == name.endswith("_total"), line
        kinds[name] = kind
    else:
        match = re.fullmatch(r'([a-z_]+)(\{([a-z]+="[a-z0-9:]+"(,[a-z]+="[a-z0-9:]+")*)\})? (\S+)', line)
        assert match, line
        assert match[1] == current and current in kinds, line
        assert line.rsplit(" ", 1)[0] not in samples, line
        samples.add(line.rsplit(" ", 1)[0])
        value = float(match[5].replace("Inf", "inf"))
        assert kinds[current] == "gauge" or value >= 0, line
assert kinds and helped == set(kinds)
PYTHON
    if command -v promtool >/dev/null; then promtool check metrics <"$1"; fi
}

has() { grep -qE "^$1 [0-9.e+-]+$" metrics.txt; } # SAMPLE, with braces and quotes as they are


address() { sed -n 's|.*metrics are at \(http://[^ ]*/metrics\).*|\1|p' "$1"; }
knows() { # LOG SAMPLE: the metrics have it by now
    [ -n "$(address "$1")" ] && fetch "$(address "$1")" metrics.txt 2>/dev/null && has "$2"
}

start() { # LOG COMMAND…: in the background
    local log=$1
    shift
    "$@" >"$log.out" 2>"$log" </dev/null &
    job=$!
}
stop() { # the job ends regularly, with the finished steps
    kill -INT "$job"
    wait "$job" || true
}

# GPUs, which a stand-in plays if Belfry is built with CUDA.
export BELFRY_CUDA_PATH=$BUILD/tests/cuda_double XDG_CACHE_HOME=${BELFRY_TEST_CACHE:-$BUILD/tests/cuda_double/cache} CUDA_DOUBLE_CHECKS=0
has_gpus() { "$BUILD/tools/belfry" doctor >doctor.txt && grep -q "CUDA double" doctor.txt; }

# One process.
export BELFRY_FAULT=slow:tower_compute#20
start alone.log "$BUILD/tools/belfry" train --model_dir alone "${digits[@]:0:2}" "${digits[@]:4}" \
    --train_steps 5000 --num_workers 2 --num_gpus 1 --parameter_server_count 2 --metrics_port -1
check "metrics of one process" until_true knows alone.log 'belfry_worker_steps_per_second\{worker="1"\}'
check "its loss" until_true knows alone.log belfry_loss
check "they are valid" valid metrics.txt
for sample in belfry_step belfry_loss belfry_examples_total belfry_examples_per_second \
    'belfry_worker_compute_seconds_total\{worker="0"\}' 'belfry_worker_input_bytes\{worker="1"\}' \
    'belfry_shard_passes_total\{shard="1"\}' \
    'belfry_process_memory_bytes\{role="master",index="0"\}'; do
    check "there is $sample" has "$sample"
done
if has_gpus; then check "the worker's GPU" has 'belfry_device_towers\{worker="1",device="cuda:1"\}'; fi
check "no file is written" test ! -e alone/board.json
port=$(address alone.log | sed 's|.*:\([0-9]*\)/.*|\1|')
run_fails 1 "cannot serve metrics on 127.0.0.1:$port|--metrics_port" \
    train second --train_steps 5 --metrics_port "$port"
stop

# The GPUs of each worker of a job, and their memory.
numbers_of() { sed -n "s/^belfry_device_${1}{worker=\"$2\",device=\"cuda:$3\"} //p" metrics.txt; }
memory_of() { # WORKER DEVICE: memory taken, free and in total
    local taken free all
    taken=$(numbers_of taken_bytes "$1" "$2") free=$(numbers_of free_bytes "$1" "$2")
    all=$(numbers_of memory_bytes "$1" "$2")
    [ "${taken:-0}" -gt 10000 ] && [ "$((taken + free))" -le "$all" ] && [ "$all" -eq 268435456 ]
}
all_have() { knows gpus.log belfry_step && memory_of 0 0 && memory_of 0 1 && memory_of 1 0 && memory_of 1 1; }
towers_of() { for gpu in 0 1; do numbers_of towers "$1" $gpu; done | xargs; }
if has_gpus; then
    start gpus.log "$BUILD/tools/belfry" local train --distributed --worker_count 2 --job_dir gpus -- "${digits[@]}" \
        --train_steps 5000 --num_gpus 3 --virtual_devices --metrics_port -1
    check "memory of GPUs" until_true all_have
    check "valid with GPUs" valid metrics.txt
    equal "towers of worker 0 on each GPU" "$(towers_of 0)" "2 1"
    equal "towers of worker 1" "$(towers_of 1)" "1 2"
    stop
fi

# A cluster: worker 2 is slow. One is killed.
export BELFRY_FAULT=slow:tower_compute#5,slow:tower_compute#40@worker-2
cat >cluster.yaml <<'YAML'
workers: {count: 3}
parameter_servers: {count: 2}
YAML
run_ok belfry jobs submit training one --config cluster.yaml --job_dir one --metrics_port -1 -- \
    "${digits[@]}" --train_steps 5000
log=state/belfry/jobs/one/logs/supervisor.log
check "metrics of a cluster" until_true knows $log 'belfry_worker_steps_per_second\{worker="2"\}'
check "valid, too" valid metrics.txt
check "shards" has 'belfry_shard_received_bytes_total\{shard="1"\}'
check "their memory" has 'belfry_process_memory_bytes\{role="shard",index="1"\}'
for pid in $(roles worker 1); do kill -9 "$pid"; done
check "a restart is counted" until_true knows $log 'belfry_restarts_total'
restarted() { knows $log belfry_restarts_total && grep -q '^belfry_restarts_total 1$' metrics.txt; }
check "one restart" until_true restarted
check "one loss" grep -q '^belfry_losses_total 1$' metrics.txt

top_says() { belfry jobs top one >top.txt && grep -qE "$1" top.txt; }
check "jobs top names the slow worker" until_true top_says \
    '^worker 2 is the slowest: compute [0-9.]+ ms of [0-9.]+ \(others [0-9.]+\)$'
check "and the awaited versions" until_true top_says '^0 .*waits for version [0-9]+ of shard'
check "rows of shards" grep -qE '^1 +[0-9.]+ +[0-9.]+' top.txt
run_ok belfry jobs top one --json
check "as JSON" python3 -c 'import json; b = json.load(open("out.txt")); assert len(b["rows"]) == 6 and b["step"] > 0'
run_fails 2 "at most one name" belfry jobs top one two
run_fails 3 "there is no job" belfry jobs top nobody
run_ok belfry jobs cancel one
ended() { ! belfry jobs describe one | grep -qE '^state (RUNNING|QUEUED)'; }
check "it ends" until_true ended
check "the log names the slowest" grep -qE 'worker 2 is the slowest: compute' $log
export BELFRY_FAULT=slow:tower_compute#100 # far more than a busy processor adds to one worker's mean
run_ok train even --train_steps 10 --num_workers 2
check "no worker is slow" test -z "$(grep 'is the slowest' err.txt)"
check "no process is left" nothing_left
finish
