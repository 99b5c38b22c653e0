# shellcheck shell=bash
# For tests of the command: `source lib.sh "$1"`, then checks, then `finish`. A failed check is printed and
# counted, and the script continues. It runs in a separate folder, which is removed at the end.
set -euo pipefail

BUILD=$(cd "$1" && pwd)
SOURCE=${BELFRY_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
TRAIN_CSV=$SOURCE/examples/data/digits-train.csv
EVAL_CSV=$SOURCE/examples/data/digits-eval.csv

export CUDA_VISIBLE_DEVICES= # the same everywhere: this machine's GPUs are hidden
export BELFRY_ENABLE_FAULTS=1 # enables BELFRY_FAULT; tests/cli/faults.sh tests the switch itself

export patience=300            # seconds until something that should happen has failed: a loaded machine needs less
naps=$((patience * 20))          # of loops that sleep 0.05 s
belfry() { # the command; a hang is a failure with exit code 124
    timeout -k 5 "$patience" "$BUILD/tools/belfry" "$@"
}

# Waits without a process, which costs more than a look at a file.
exec {never}<> <(:)
nap() { read -rt "$1" -u "$never" _ || true; } # SECONDS

checks=0
failures=0
work=$(mktemp -d "${TMPDIR:-/tmp}/belfry-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export BELFRY_CACHE_DIR=${BELFRY_CACHE_DIR:-$work} # not the one of this user's jobs

complain() { # TEXT: counts a failure and shows the output of the last command
    failures=$((failures + 1))
    echo "FAILED: $1"
    sed 's/^/  stdout| /' out.txt | head -n 20
    sed 's/^/  stderr| /' err.txt | tail -n 20
    grep -m 1 -A 15 'ERROR: .*Sanitizer' err.txt | sed 's/^/  sanitizer| /' || true
}

# Runs a command; its exit code is in $code, its output in out.txt and err.txt.
capture() {
    code=0
    "$@" >out.txt 2>err.txt </dev/null || code=$?
}

run_ok() { # COMMAND…: must succeed
    checks=$((checks + 1))
    capture "$@"
    [ "$code" -eq 0 ] || complain "exit code $code, expected 0: $*"
}

# The command must end with CODE and one line "belfry: …" on stderr that contains each PART (separated by
# '|').
run_fails() { # CODE PARTS COMMAND…
    local expected=$1 parts=$2 line part
    shift 2
    checks=$((checks + 1))
    capture "$@"
    if [ "$code" -ne "$expected" ]; then
        complain "exit code $code, expected $expected: $*"
        return
    fi
    line=$(grep '^belfry: ' err.txt || true)
    if [ "$(grep -c '^belfry: ' err.txt)" -ne 1 ]; then
        complain "expected one line that begins with \"belfry: \": $*"
        return
    fi
    while IFS= read -r part; do
        [[ "$line" == *"$part"* ]] || complain "the message does not say \"$part\": $*"
    done < <(tr '|' '\n' <<<"$parts")
}

check() { # TEXT COMMAND…: the condition must hold
    local text=$1
    shift
    checks=$((checks + 1))
    "$@" || complain "$text"
}

equal() { # TEXT A B
    checks=$((checks + 1))
    [ "$2" = "$3" ] || complain "$1: \"$2\" is not \"$3\""
}

# True for two of three numbers of similar checks that take long, except with BELFRY_THOROUGH.
spares() { [ -z "${BELFRY_THOROUGH:-}" ] && (($1 % 3)); } # NUMBER

until_true() { # COMMAND…: until it succeeds, for at most $patience seconds
    local end=$((SECONDS + patience))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        nap 0.05
    done
}

# slow: in BELFRY_FAULT counts from now on until `release`. So a job lasts as long as a test needs it, on any machine.
brake() {
    export BELFRY_FAULT_WHILE=$work/brake
    : >"$BELFRY_FAULT_WHILE"
}
release() { rm -f "$work/brake"; }

# A small run on the digits: train MODEL_DIR [flags]. For another model than dnn call `digits_for MODEL`
# first. The model is on all shards, although it is small.
any_digits=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --feature_scale 0.0625
    --train_batch_size 32 --num_threads 1 --no_report --min_shard_bytes 0)
digits_for() { # MODEL
    digits=("${any_digits[@]}")
    [ "$1" != dnn ] || digits+=(--hidden_units 32)
}
digits_for dnn
# The same on ids, for tables: call `make_clicks` first.
clicks=(--train_files clicks-train.csv --eval_files clicks-eval.csv --model wide_deep --id_columns user,item
    --class_count 2 --hidden_units 8 --embedding_width 8 --optimizer adagrad --learning_rate 0.1
    --initial_accumulator 1e-6 --num_threads 1 --no_report)
make_clicks() { # lines user,item,hour,clicked; some items are clicked on, more often by some users
    local file first
    for file in train eval; do
        first=$([ "$file" = train ] && echo 0 || echo 100000)
        awk -v first="$first" -v lines="$([ "$file" = train ] && echo 4000 || echo 500)" 'BEGIN {
            print "user,item,hour,clicked"
            for (i = first; i < first + lines; i++) {
                user = i * 7919 % 401; item = i * 104729 % 199; hour = i % 24
                printf "u%d,i%d,%.3f,%d\n", user, item, hour / 24, (item % 5 + user % 3 > 3)
            }
        }' >clicks-$file.csv
    done
}

train() {
    local model_dir=$1
    shift
    belfry train_and_evaluate --model_dir "$model_dir" "${digits[@]}" "$@"
}

digest() { "$BUILD/tools/belfry" inspect "$1" --digest; } # without a timeout, which costs a third

# Training continued after a loss while a snapshot of before was being saved or evaluated: err.txt has the result later.
continued_within() {
    awk '/training continues at step/ { n = $NF }
        /eval at step/ { split($0, p, "eval at step "); if (n != "" && p[2] + 0 <= n + 0) hit = 1 }
        END { exit !hit }' err.txt
}

steps_of_curves() { # FOLDER: the step of each value of the loss, in the order of the event files
    python3 - "$1" <<'EOF'
import pathlib, struct, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("events.out.tfevents.*")):
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = data[at + 12 : at + 12 + length]
        at += 16 + length
        if b"\x04loss" not in event: continue
        step, shift, i = 0, 0, 10  # after the wall time: field 2, a varint
        assert event[9] == 0x10, event
        while True:
            step |= (event[i] & 127) << shift
            shift += 7
            i += 1
            if event[i - 1] < 128: break
        print(step)
EOF
}

# PIDs of this test's jobs, which run in its folder. Starts no process, so that a signal comes in time under load.
roles() { # [ROLE INDEX]
    local folder name variable environment
    for folder in /proc/[0-9]*; do
        { read -r name <"$folder/comm"; } 2>/dev/null || continue
        [ "$name" = belfry ] && [ "$folder/cwd" -ef "$work" ] || continue
        { mapfile -d '' -t environment <"$folder/environ"; } 2>/dev/null || continue
        for variable in "${environment[@]}"; do
            [[ "$variable" == BELFRY_TASK=* ]] || continue
            if [ $# -eq 0 ] || [[ "$variable" == *"\"role\":\"$1\",\"index\":$2,"* ]]; then echo "${folder#/proc/}"; fi
        done
    done
}

# Whether a process trains as the role whose BELFRY_TASK has the pattern. It starts no process: a job must not end while
# its processes are looked through.
trains_as() { # PID PATTERN
    local variable environment words
    { mapfile -d '' -t environment <"/proc/$1/environ" && mapfile -d '' -t words <"/proc/$1/cmdline"; } 2>/dev/null ||
        return 1
    [[ "${words[*]}" =~ ^[^\ ]+\ train_and_evaluate ]] || return 1
    for variable in "${environment[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ "$variable" == BELFRY_TASK=$2 ]] && return 0
    done
    return 1
}

none_runs() { [ -z "$(roles)" ]; }
nothing_left() { until_true none_runs; } # waits a moment for processes that are exiting

killed_all() { # LOGS FAULTS of tests/support/with_faults: each kill is in its role's log
    local fault point
    for fault in $2; do
        point=${fault#*=crash:}
        grep -qs "^killed on purpose at ${point%%[#,]*}$" "$1/${fault%%=*}".*.log || return 1
    done
}

# Folder and step of a submitted job, from its record.
job_folder() { echo "$XDG_STATE_HOME/belfry/jobs/$1"; } # NAME
recorded() { # NAME FIELD: as status.json has it, in $field. Starts no process
    local status=
    field=
    # shellcheck disable=SC2034 # several functions read it
    [ ! -e "$XDG_STATE_HOME/belfry/jobs/$1/status.json" ] ||
        { IFS= read -r -d '' status <"$XDG_STATE_HOME/belfry/jobs/$1/status.json" || true; }
    [[ ! "$status" =~ \"$2\":\ *\"?([A-Za-z0-9]+) ]] || field=${BASH_REMATCH[1]}
}
job_step() { recorded "$1" step && echo "$field"; } # NAME
job_reaches() { # NAME STEP
    local end=$((SECONDS + patience))
    until recorded "$1" step && [ "${field:-0}" -ge "$2" ]; do
        [ "$SECONDS" -lt "$end" ] || return 1
        nap 0.05
    done
}

await_state() { # NAME STATES (a pattern); then the job's description is in out.txt
    local state i end=$((SECONDS + patience))
    # The command is asked if the record has such a state, and once a second: a lost job has an old record.
    for ((i = 0; SECONDS < end; i++)); do
        recorded "$1" state
        if [[ "$field" =~ ^($2)$ ]] || ((i % 20 == 0)); then
            run_ok belfry jobs describe "$1" --json
            state=$(sed -n 's/.*"state": *"\([A-Z]*\)".*/\1/p' out.txt)
            if [[ "$state" =~ ^($2)$ ]]; then return 0; fi
        fi
        nap 0.05
    done
    complain "job $1 is $state, expected $2"
}

appears() { # FILE
    until_true [ -e "$1" ] && return 0
    echo "$1 does not appear in $patience s" >out.txt
    return 1
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$failures" -eq 0 ]
}
