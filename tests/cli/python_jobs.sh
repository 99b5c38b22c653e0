#!/usr/bin/env bash
# The Estimator of Python: its unit tests, then one program as a process, as the processes of a job and as a submitted
# job. Digests are those of the same model in C and of the built-in one. Processes die, stop and raise.
# usage: python_jobs.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
python=/usr/bin/python3
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "python_jobs.sh: skipped: no numpy for $python (Debian: python3-numpy)"
    exit 77
fi
export BELFRY_LIBRARY=$BUILD/libbelfry.so PYTHONPATH=$SOURCE/python PYTHONDONTWRITEBYTECODE=1
export XDG_RUNTIME_DIR=$work XDG_STATE_HOME=$work/state # sockets and records are below it
mkdir bin
ln -s "$python" bin/python3 # for --module_name
export PATH=$work/bin:$PATH BELFRY=$BUILD/tools/belfry
examples=$SOURCE/examples/python

run_ok "$python" "$SOURCE/tests/python/test_estimator.py" "$TRAIN_CSV" "$EVAL_CSV"

# --- The page's examples
ln -s "$SOURCE/examples" examples
awk '/^## / { taken = /Models and training|Datasets/ } /^```/ { inside = taken && /python/; next } inside' \
    "$SOURCE/docs/python.md" >page.py
check "the page has examples" test "$(grep -c . page.py)" -gt 25
run_ok "$python" page.py
check "they print accuracy and digest" grep -qE '^0\.9[0-9]+ [0-9a-f]{32}$' out.txt

# --- The same model in Python, in C, and built in
trains() { # MODEL STEPS: the arguments of a training
    echo "$python $SOURCE/tests/python/train_digits.py $1 $TRAIN_CSV $EVAL_CSV $2"
}
printed_digest() { sed -nE 's/^digest ([0-9a-f]+)$/\1/p' out.txt; }
many=(timeout --foreground -k 5 120 "$BELFRY" local train --distributed --worker_count 2 --parameter_server_count 2)
data=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --label_column digit --class_count 10 --feature_scale 0.0625
    --train_batch_size 32 --train_steps 60 --num_workers 2 --no_report --learning_rate 0.01)
# shellcheck disable=SC2046 # of words
run_ok $(trains dnn 60) --model_dir alone --num_workers 2
whole=$(printed_digest)
check "it prints a digest" test "${#whole}" -eq 32
run_ok belfry train_and_evaluate "${data[@]}" --hidden_units 32 --optimizer adam --model_dir built_in
equal "digest of the built-in model" "$(printed_digest)" "$whole"
# shellcheck disable=SC2046
run_ok $(trains my_model 60) --model_dir mine --num_workers 2
mine=$(printed_digest)
run_ok belfry train_and_evaluate "${data[@]}" --package_path "$SOURCE/examples/my_model" --model_dir package
equal "digest of the package in C" "$(printed_digest)" "$mine"

# --- Processes; some of them die
for fault in '' crash:tower_step#30@worker-1 crash:shard_passes#35@ps-0 crash:master_saves#2; do
    rm -rf cluster
    # shellcheck disable=SC2046
    run_ok env BELFRY_FAULT="$fault" "${many[@]}" --job_dir cluster -- $(trains dnn 60)
    equal "digest with $fault" "$(printed_digest)" "$whole"
    [ -z "$fault" ] || check "it was killed ($fault)" grep -q 'killed on purpose' cluster/logs/*.log
done
equal "results of a job" "$(grep -c accuracy out.txt)" 1

# --- A job that is stopped, and started again
# shellcheck disable=SC2046
"${many[@]}" --job_dir stopped -- $(trains dnn 1000000) >out.txt 2>err.txt &
supervisor=$!
until [ -d stopped/ckpt-00000040 ] || ! kill -0 "$supervisor"; do :; done
kill -INT "$supervisor"
code=0
wait "$supervisor" || code=$?
equal "exit code of a job that was stopped" "$code" 130
check "it says where it stopped" grep -q 'stopped by .* at step' err.txt
check "no traceback" test -z "$(grep Traceback err.txt)"
step=$(belfry inspect stopped 2>/dev/null | sed -nE 's/^step +([0-9]+)$/\1/p' | tail -1)
check "its last step is saved" test "${step:-0}" -gt 40
cat >two.yaml <<'YAML'
workers: {count: 2}
parameter_servers: {count: 1}
YAML
# shellcheck disable=SC2046
run_ok timeout -k 5 "$patience" "$BELFRY" jobs submit training again --config two.yaml --job_dir stopped --wait -- \
    $(trains dnn $((step + 20)))
check "a submitted job resumes" grep -q "resuming from .*ckpt-0*$step\$" state/belfry/jobs/again/logs/*.log

# --- Errors: one traceback, one message, the exit code of the command
fails() { # CODE TRACEBACKS MODEL WORDS
    rm -rf broken
    code=0
    # shellcheck disable=SC2046
    "${many[@]}" --job_dir broken -- $(trains "$3" 60) >out.txt 2>err.txt || code=$?
    equal "exit code of $3" "$code" "$1"
    # A member that still starts when the job ends is interrupted, and Python may say so.
    equal "tracebacks of $3" "$(grep -c '^Traceback' err.txt)" "$2"
    check "members do not repeat it" test -z "$(grep -E '^\[.*(LookupError|NoneType)' err.txt)"
    check "$3 says: $4" grep -qE "^belfry: .*$4" err.txt
}
fails 1 1 raises 'model function in TRAIN: LookupError: the model has no data \(train_digits.py:[0-9]+\)'
check "the frames are those of the program" grep -q 'in model_fn' err.txt
check "and not those of the package" test -z "$(grep -v "^\[" err.txt | grep /belfry/estimator.py)"
fails 2 1 returns_nothing 'expected it to return a belfry.EstimatorSpec in mode train, got NoneType'
# the hook's name is missing if the master ends the job before the worker has returned
fails 1 0 raises_in_worker 'LookupError: worker 1 has no more data'
check "its log has the traceback" grep -q 'in worker_after_step' broken/logs/worker-1*.log
fails 2 0 other_each_time 'worker [01] on .* runs with other settings than the master: variables'

# --- The article's program, as a package of Python
"$python" - <<'PYTHON'
import os
import wave
import numpy as np
rng = np.random.default_rng(3)
os.mkdir("sounds")
for part, count in (("train", 24), ("eval", 8)):
    with open(f"sounds/{part}.csv", "w") as csv:
        csv.write("path,label\n")
        for i in range(count):
            t = np.arange(rng.integers(1200, 2400)) / 8000
            sound = np.sin(2 * np.pi * (300 + 500 * (i % 4)) * t) * 0.3 + rng.normal(size=len(t)) * 0.05
            with wave.open(f"sounds/{part}{i}.wav", "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes((sound * 32000).astype("<i2").tobytes())
            csv.write(f"{part}{i}.wav,{i % 4}\n")
PYTHON
mkdir trainer
cp "$examples/quantiphi.py" trainer/main.py
touch trainer/__init__.py
sounds=(--train_files "$work/sounds/train.csv" --eval_files "$work/sounds/eval.csv" --train_steps 30 --class_count 4)
run_ok "$python" "$examples/quantiphi.py" "${sounds[@]}" --model_dir sounding --num_workers 2
whole=$(printed_digest)
run_ok belfry local train --package-path trainer/ --module-name trainer.main --job-dir one -- "${sounds[@]}" \
    --num_workers 2
equal "digest of one process" "$(printed_digest)" "$whole"
run_ok timeout -k 5 "$patience" "$BELFRY" jobs submit training sounds --package-path trainer --module-name trainer.main \
    --region us-central1 --job-dir submitted --config two.yaml --wait -- "${sounds[@]}" --num_workers 2
equal "digest of a submitted job" "$(digest submitted)" "$whole"
mkdir lost && cp -r trainer lost/ # a host without the module
cat >lost/python3 <<SCRIPT
#!/bin/sh
rm -f '$work/lost/trainer/main.py'
exec '$python' "\$@"
SCRIPT
chmod +x lost/python3
PATH=$work/lost:$PATH run_fails 1 'expected the module trainer.main in|lost/trainer/main.py, got no such file' \
    belfry local train --package-path lost/trainer --module-name trainer.main --job-dir lost_job -- "${sounds[@]}"
run_fails 3 'nothing to build; hint: a module of Python' belfry local train --package-path trainer --module-name trainer.other --job-dir x -- "${sounds[@]}"
run_fails 2 'builds a package for belfry, and the program python3 follows' belfry local train --package-path trainer \
    --module-name trainer.main --job-dir x -- python3 trainer/main.py

# --- A loop of steps: that of examples/gan
run_ok "$BUILD/tests/own_gan" "$TRAIN_CSV" 60 --model_dir gan
whole=$(printed_digest)
run_ok "$python" "$examples/gan.py" "$TRAIN_CSV" 60 --model_dir gan_python
equal "digest of the loop in Python" "$(printed_digest)" "$whole"
check "its picture is the same" cmp -s <(tail -n +2 gan/samples-60.pgm) <(tail -n +2 gan_python/samples-60.pgm)
run_ok "${many[@]}" --job_dir gan_job -- "$python" "$examples/gan.py" "$TRAIN_CSV" 60 --min_shard_bytes 0
equal "digest of its processes" "$(printed_digest)" "$whole"
finish
