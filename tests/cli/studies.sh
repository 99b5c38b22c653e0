#!/usr/bin/env bash
# cross_validate and tune, and the rows that --eval_share holds out. All trainings that they start are
# ordinary ones, so their results are those of the same training by hand. After an interruption or a kill, the
# same command continues.
# usage: studies.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

json() { python3 -c 'import json, sys; rows = [json.loads(line) for line in open("out.txt")]
print(eval(sys.argv[1]))' "$1"; }

awk 'BEGIN {
    srand(3)
    print "size,color,grade"
    for (i = 0; i < 400; i++) {
        size = rand() * 10
        color = rand() < 0.5 ? "red" : "blue"
        high = size + (color == "red" ? 3 : 0) + rand() * 2 > 8
        printf "%.3f,%s,%s\n", size, color, (high ? "high" : "low")
    }
}' >all.csv
base=(--train_files all.csv --label_column grade --num_epochs 20 --no_report)
one() { # MODEL_DIR [flags]
    local dir=$1
    shift
    belfry train_and_evaluate "${base[@]}" --model_dir "$dir" --json "$@"
}

trainings() { # PIDs of this test's trainings: processes of belfry in its folder that are not studies
    local pid
    for pid in $(pgrep -x belfry || true); do
        [ "$(readlink "/proc/$pid/cwd" || true)" = "$work" ] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null |
            grep -q train_and_evaluate && echo "$pid"
    done
    true
}

# --- A share of the rows
run_ok one share --eval_share 0.25
equal "examples held out" "$(json 'rows[0]["examples"]')" 100
check "the others are trained on" grep -q 'all.csv: 300 rows' err.txt
share=$(json 'rows[0]["digest"]')
run_ok one again --eval_share 0.25 --num_threads 2
equal "the same rows" "$(json 'rows[0]["digest"]')" "$share"
run_ok one other --eval_share 0.25 --eval_seed 2
check "another seed, other rows" test "$(json 'rows[0]["digest"]')" != "$share"
run_ok belfry local train --distributed --job_dir cluster -- "${base[@]}" --eval_share 0.25
equal "in processes, the same examples" "$(sed -n 's/^examples //p' out.txt)" 100
run_fails 2 'was trained with other settings|input' one share --eval_share 0.3
run_fails 2 '--eval_share and --eval_files exclude each other' one bad --eval_share 0.2 --eval_files all.csv
for wrong in 0 1 -1 x 5/5 0/1 1/ /2 0/2x; do
    run_fails 2 '--eval_share: expected a share in (0, 1) such as 0.2' one bad "--eval_share=$wrong"
done
run_fails 2 '--eval_seed has no effect without --eval_share' one bad --eval_seed 3
mkfifo pipe
timeout 20 sh -c 'cat all.csv >pipe' &
run_fails 2 '--eval_share: pipe is no regular file' belfry train_and_evaluate --train_files pipe --eval_share 0.2 \
    --model_dir bad --feature_scale 1
kill $! 2>/dev/null || true
wait $! 2>/dev/null || true
# Files of numbers, too.
run_ok belfry train_and_evaluate --train_files "$TRAIN_CSV" --eval_share 0.1 --feature_scale 0.0625 --train_steps 20 \
    --model_dir digits --hidden_units 16 --json
equal "digits held out" "$(json 'rows[0]["examples"]')" \
    "$(($(($(wc -l <"$TRAIN_CSV") - 1)) / 10))"

# --- Folds
run_ok belfry cross_validate "${base[@]}" --folds 4 --model_dir cv --json
cp out.txt cv.txt
equal "folds" "$(json 'rows[0]["folds"]')" 4
mean=$(json 'sum(rows[0]["metrics"]["loss"]["folds"]) / 4 == rows[0]["metrics"]["loss"]["mean"]')
equal "the mean is the folds' mean" "$mean" True
spread='abs(__import__("statistics").stdev(rows[0]["metrics"]["accuracy"]["folds"]) - rows[0]["metrics"]["accuracy"]["deviation"])'
check "the deviation is the folds' deviation" test "$(json "$spread < 1e-12")" = True
check "it learns" test "$(json 'rows[0]["metrics"]["accuracy"]["mean"] > 0.8')" = True
fold=$(json 'rows[0]["metrics"]["loss"]["folds"][2]')
run_ok one byhand --eval_share 2/4
equal "a fold is the training by hand" "$(json 'rows[0]["loss"]')" "$fold"
equal "to the bit" "$(digest byhand)" "$(digest cv/fold-2)"
run_ok belfry cross_validate "${base[@]}" --folds 4 --model_dir cv --json --parallel 1
check "a second run trains nothing and prints the same" cmp out.txt cv.txt
run_ok belfry cross_validate "${base[@]}" --folds 4 --model_dir cv
check "as text" grep -q '^accuracy 0\.[0-9]* deviation 0\.[0-9]* folds 0\.[0-9]* ' out.txt
printf 'workers: {count: 2}\nparameter_servers: {count: 1}\n' >cluster.yaml
run_ok belfry cross_validate "${base[@]}" --folds 2 --model_dir jobs --config cluster.yaml --json --parallel 1
check "each fold as a job of processes" test -d jobs/fold-1/logs

# An error is reported with the training's message and exit code.
run_fails 2 'bad/fold-|no column "nosuch"' belfry cross_validate --train_files all.csv --label_column nosuch \
    --model_dir bad
run_fails 2 'flag --eval_files belongs to another command' belfry cross_validate "${base[@]}" --eval_files all.csv --model_dir bad
run_fails 2 '--model_dir is needed' belfry cross_validate "${base[@]}"
run_fails 2 '--train_files is needed' belfry cross_validate --model_dir bad
run_fails 2 '--trace is for one training' belfry cross_validate "${base[@]}" --model_dir bad --trace t.json
run_fails 2 'cv: its trainings began with "folds: 4", and that is not so now' \
    belfry cross_validate "${base[@]}" --folds 5 --model_dir cv
run_fails 2 'cv: its trainings began without "dropout: 0.5"' belfry cross_validate "${base[@]}" --folds 4 --dropout 0.5 --model_dir cv
run_ok belfry cross_validate "${base[@]}" --folds 4 --model_dir cv --num_threads 2 --quiet
check "the existing results stay" test "$(digest cv/fold-2)" = "$(digest byhand)"

# --- A search
search=(belfry tune "${base[@]}" --eval_share 0.25 --best_metric accuracy --try 'learning_rate=log:1e-4:1e-1'
    --try 'hidden-units=8|16,8' --try embedding_width=int:2:4 --try dropout=0:0.5)
run_ok "${search[@]}" --trials 6 --model_dir tuned --json
cp out.txt tuned.txt
equal "trials" "$(json 'sorted(row["trial"] for row in rows)')" '[0, 1, 2, 3, 4, 5]'
equal "best first" "$(json '[row["accuracy"] for row in rows] == sorted((row["accuracy"] for row in rows), reverse=True)')" True
inside='all(1e-4 <= float(f["learning_rate"]) <= 1e-1 and f["hidden_units"] in ("8", "16,8") and f["embedding_width"] in
    ("2", "3", "4") and 0 <= float(f["dropout"]) <= 0.5 for f in (row["flags"] for row in rows) if f)'
equal "values are in the requested ranges" "$(json "${inside//$'\n'/ }")" True
equal "the first trial has the flags unchanged" "$(digest tuned/trial-000)" "$share"
rate=$(json '[row["flags"]["learning_rate"] for row in rows if row["trial"] == 3][0]')
check "a trial is trained with its flags" grep -q "^learning_rate: $rate " tuned/trial-003/job.yaml
run_ok "${search[@]}" --trials 6 --model_dir tuned --json --parallel 1
check "a second run prints the same" cmp out.txt tuned.txt
run_ok "${search[@]}" --trials 8 --model_dir tuned --json
equal "more trials, and the old ones" "$(json 'len(rows)')" 8
check "the old ones are unchanged" test -z "$(grep -vFf out.txt tuned.txt || true)"
run_ok belfry tune "${base[@]}" --folds 2 --trials 3 --model_dir folds --try 'dropout=0|0.3' --json
check "choices that are all tried end the search" grep -q 'there are only 3 trials that differ\|^trial 2:' err.txt
equal "a score is the mean over the folds" "$(json 'rows[0]["loss"] > 0')" True
check "each fold has its folder" test -d folds/trial-002/fold-1

run_fails 2 '--best_metric auc: evaluations have no such metric, but loss, root_mean_squared_error' belfry tune --train_files all.csv \
    --label_column size --num_epochs 2 --no_report --eval_share 0.2 --model_dir nometric --best_metric auc \
    --try dropout=0:0.5 --trials 5 --parallel 1
check "the error is found at once" test ! -e nometric/trial-002/result.json
run_ok belfry tune "${base[@]}" --eval_share 0.25 --trials 3 --model_dir threads --try 'num_threads=3|4' --parallel 1
check "a trial's flags win" grep -hq '[34] threads each' threads/trial-001/log.txt

# Folds of which some lack a class.
awk -F, 'NR == 1 { print $0; next } { print $1 "," $2 "," (NR < 5 ? "fraud" : "fine") }' all.csv >rare.csv
run_ok belfry cross_validate --train_files rare.csv --label_column grade --num_epochs 2 --no_report --folds 5 \
    --model_dir rare --json
check "the mean is over the folds that have it" test "$(json 'rows[0]["metrics"]["auc"]["folds"].count(None) == 2 and rows[0]["metrics"]["auc"]["mean"] is not None')" = True
check "and the log says so" grep -q 'auc: 2 of 5 folds have none' err.txt

# A setting absent from the flags would come from checkpoints, so the model would differ before there is one.
run_ok belfry cross_validate "${base[@]}" --folds 2 --hidden_units 2 --dropout 0.4 --model_dir other
rm -r other/fold-1
run_fails 2 'other: its trainings began with "hidden_units: [2]"' \
    belfry cross_validate "${base[@]}" --folds 2 --model_dir other
check "and nothing was trained" test ! -e other/fold-1
run_fails 2 'no column "nosuch"' belfry cross_validate "${base[@]:0:2}" --label_column nosuch --model_dir corrected
run_ok belfry cross_validate "${base[@]}" --folds 2 --model_dir corrected
run_fails 2 'tuned: its trainings began with "try: [|dropout=0:0.5' belfry tune "${base[@]}" --eval_share 0.25 \
    --best_metric accuracy --try learning_rate=log:1e-4:1e-1 --model_dir tuned

# A killed trial does not count as failed: the same command continues.
lone=(belfry tune "${base[@]}" --eval_share 0.25 --trials 3 --parallel 1 --try dropout=0:0.5 --model_dir lone --json)
run_ok "${lone[@]}"
cp out.txt lone.txt
rm -r lone
BELFRY_FAULT=slow:tower_step#20 "$BUILD/tools/belfry" "${lone[@]:1}" >out.txt 2>err.txt </dev/null &
study=$!
until [ -f lone/trial-001/ckpt-00000000/manifest.json ]; do sleep 0.02; done
for pid in $(trainings); do kill -KILL "$pid"; done
code=0
wait "$study" || code=$?
equal "exit code of a search with a killed trial" "$code" 137
check "the log names it" grep -q 'lone/trial-001: it was killed by signal 9' err.txt
run_ok "${lone[@]}"
check "it continues" cmp out.txt lone.txt

# Two at once would change each other's settings.
BELFRY_FAULT=slow:tower_step#20 "$BUILD/tools/belfry" cross_validate "${base[@]}" --folds 2 --model_dir busy \
    --parallel 1 >first.txt 2>first.err </dev/null &
first=$!
until [ -d busy/fold-0 ]; do sleep 0.02; done
run_fails 2 'another cross_validate or tune runs in busy' belfry cross_validate "${base[@]}" --folds 2 --model_dir busy
kill "$first"
wait "$first" 2>/dev/null || true

# A failing trial counts as a bad one. The search fails only if the unchanged flags fail.
run_ok belfry tune "${base[@]}" --eval_share 0.25 --trials 3 --model_dir poor --try 'optimizer=sgd|nosuch' --json
equal "the failed one is the last" "$(json 'rows[-1]["loss"]')" None
check "and the reason is reported" grep -q 'trial .* failed: poor/trial-00.: --optimizer' err.txt
run_fails 2 'bad2/trial-000|no column "nosuch"' belfry tune --train_files all.csv --label_column nosuch \
    --eval_share 0.2 --model_dir bad2 --try dropout=0:0.5
for wrong in dropout dropout=1:0 dropout=a:b lr=log:0:1 width=int:0.5:2 =1:2 dropout=1; do
    run_fails 2 '--try' belfry tune "${base[@]}" --eval_share 0.2 --model_dir bad --try "$wrong"
done
run_fails 2 '--try: train_and_evaluate has no flag --nosuch' belfry tune "${base[@]}" --eval_share 0.2 \
    --model_dir bad --try nosuch=1:2
run_fails 2 '--num_epochs is given, and --try varies it' belfry tune "${base[@]}" --eval_share 0.2 --model_dir bad \
    --try num_epochs=int:1:2
run_fails 2 'dropout is there twice' belfry tune "${base[@]}" --eval_share 0.2 --model_dir bad --try dropout=0:0.5 \
    --try dropout=0:0.4
run_fails 2 'trials are compared on one of|none is given' belfry tune "${base[@]}" --model_dir bad --try dropout=0:0.5
run_fails 2 'trials are compared on one of|more are given' belfry tune "${base[@]}" --model_dir bad \
    --try dropout=0:0.5 --eval_share 0.2 --folds 3
run_fails 2 '--try is needed' belfry tune "${base[@]}" --model_dir bad --eval_share 0.2

# --- Stopped and killed
slow=(belfry cross_validate "${base[@]}" --folds 3 --parallel 2 --model_dir stopped --save_checkpoints_steps 5)
run_ok belfry cross_validate "${base[@]}" --folds 3 --model_dir whole --save_checkpoints_steps 5 --json
cp out.txt whole.txt
for signal in INT TERM KILL; do
    rm -rf stopped
    BELFRY_FAULT=slow:tower_step#20 "$BUILD/tools/belfry" "${slow[@]:1}" >out.txt 2>err.txt </dev/null &
    study=$!
    until [ -f stopped/fold-1/ckpt-00000005/manifest.json ]; do
        kill -0 "$study" || break
        sleep 0.02
    done
    [ "$signal" = INT ] || check "at most two at a time" test "$(trainings | wc -l)" -le 2
    kill "-$signal" "$study"
    code=0
    { wait "$study" || code=$?; } 2>/dev/null
    case $signal in
    INT) equal "exit code" "$code" 130 ;;
    TERM) equal "exit code" "$code" 143 ;;
    KILL) equal "exit code" "$code" 137 ;;
    esac
    for ((i = 0; i < naps; i++)); do
        [ -n "$(trainings)" ] || break
        sleep 0.02
    done
    equal "$signal: no training is left" "$(trainings)" ""
    [ "$signal" = KILL ] || check "$signal: it says how to continue" grep -q 'the same command continues' err.txt
    run_ok "${slow[@]}" --json
    check "$signal: it continues, to the same bits" cmp out.txt whole.txt
done
finish
