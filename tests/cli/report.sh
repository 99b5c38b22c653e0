#!/usr/bin/env bash
# report.html of complete runs: its contents, that it is well-formed, and that every chart has points.
# tests/cli/browser.sh checks it in a browser.
# usage: report.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_RUNTIME_DIR=$work # sockets are below it
page() { # MODEL_DIR TEXT…
    python3 "$SOURCE/tests/cli/report_page.py" "$1/report.html" "${@:2}"
}

# --- One process; odd or even, so that there is a curve of an area
for part in train eval; do
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "digit") at = i } NR > 1 { $at %= 2 } { print }' \
        "$SOURCE/examples/data/digits-$part.csv" >odd-$part.csv
done
odd=(--train_files odd-train.csv --eval_files odd-eval.csv --label_column digit --feature_scale 0.0625 --hidden_units 16
    --class_count 2)
run_ok belfry train_and_evaluate --model_dir alone "${odd[@]}" --train_steps 40 --eval_every_steps 10 \
    --save_summary_steps 5 --num_workers 2 --audit_input
run_ok page alone 'One process with' 'worker 0 40' 'worker 1 40' 'shard 0 41' 'ROC of auc, eval' 'Confusion matrix, eval' \
    'optimizer adam' 'Every record was read exactly once in each epoch: 80 batches.'
equal "sections" "$(cut -d';' -f2 out.txt)" \
    " Curves, The last evaluation, Where the time of a step goes, Workers and shards, What was read, Settings that determine the result, Other settings"
check "charts" test "$(cut -d' ' -f1 out.txt)" -ge 6
run_ok page alone input compute push apply pull wait other
matrix() { sed -n '/class="matrix/,/<\/figure>/p' "$1/report.html"; }
before=$(matrix alone)
equal "examples in the matrix" "$(grep -oE '<span>[0-9]+</span>' <<<"$before" | tr -dc '0-9\n' |
    awk '{ n += $1 } END { print n }')" 359

check "a parameter that the model does not read is not among its settings" test "$(grep -c 'param.dropout' alone/report.html)" = 1 \
    -a "$(grep -c 'param.image_shape' alone/report.html)" = 0
awk -F, -v OFS=, 'NR == 1 { at = NF } NR > 1 { $at = $at == 1 ? "odd" : "even" } { print }' odd-train.csv >words.csv
run_ok belfry train_and_evaluate --model_dir words --train_files words.csv --eval_share 0.2 --label_column digit --num_epochs 2
run_ok page words 'words.csv, 1151 examples; label "digit", 2 classes' 'even' 'odd'

# --- Nothing is left to train: the evaluation is shown all the same
run_ok belfry train_and_evaluate --model_dir alone "${odd[@]}" --train_steps 40 --eval_every_steps 10 --num_workers 2
run_ok page alone 'ROC of auc, eval'
equal "the matrix of the run before" "$(matrix alone)" "$before"

# --- A cluster that loses a process
run_ok env BELFRY_FAULT='crash:tower_compute#9@worker-1' timeout -k 5 "$patience" "$BUILD/tools/belfry" local train --distributed \
    --worker_count 2 --parameter_server_count 2 --evaluator_count 1 --job_dir killed -- "${odd[@]}" --train_steps 40 \
    --audit_input --min_shard_bytes 0
run_ok page killed '1 restart of processes, 1 lost connection, seen by this master' 'shard 1 41' 'worker 1' \
    'Every record was read exactly once in each epoch: 80 batches'
equal "restarts by process" "$(sed -n 's/^<tr><td>\([a-z]* [0-9]\)<\/td><td class="n">'"$(uname -n)"'<\/td>.*<td class="n">\([0-9]\)<\/td><\/tr>$/\1: \2/p' \
    killed/report.html | sort | tr '\n' ' ')" "evaluator 0: 0 master 0: 0 ps 0: 0 ps 1: 0 worker 0: 0 worker 1: 1 "
run_ok page killed 'ROC of auc, eval' 'at step 40' 'num_workers 2' # evaluator's
check "its shards counted every report" grep -q '<td>worker 0</td>.*<td class="n">40</td><td class="n">0</td>' \
    killed/report.html

# --- A page that cannot be written is reported once, however often it is tried
mkdir -p blocked/report.html
run_ok belfry train_and_evaluate --model_dir blocked "${odd[@]}" --train_steps 40 --eval_every_steps 10
equal "warnings of one run" "$(grep -c 'no report is written' err.txt)" 1

# --- A defective page: the error is named
rm killed/audit/worker-0.0
run_ok belfry train_and_evaluate --model_dir unread "${odd[@]}" --train_steps 5
run_ok belfry train_and_evaluate --model_dir unread "${odd[@]}" --train_steps 9 --audit_input
check "an audit with missing notes is a warning" grep -q 'audit: step 0, replica 0: no worker noted' err.txt
run_ok page unread 'What was read step 0, replica 0: no worker noted that block 0 was read'
run_fails_page() { # PAGE SAYS
    checks=$((checks + 1))
    capture python3 "$SOURCE/tests/cli/report_page.py" "$1"
    { [ "$code" -ne 0 ] && grep -q "$2" err.txt; } || complain "expected: $2"
}
sed 's/ d="M[^"]*"/ d=""/' alone/report.html >empty.html
run_fails_page empty.html 'without points'
sed 's/ d="M[0-9.]* / d="Mnan /' alone/report.html >nowhere.html
run_fails_page nowhere.html 'has d=Mnan'
sed 's/<h2>Settings/<div><h2>Settings/' alone/report.html >open.html
run_fails_page open.html 'closes what is not open'
sed 's/<main>/<main><img src="https:\/\/x.example\/a.png"\/>/' alone/report.html >outward.html
run_fails_page outward.html 'leads elsewhere'
finish
