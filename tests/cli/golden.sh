#!/usr/bin/env bash
# Files that programs of earlier commits wrote are still read (tests/golden/make.sh). Checkpoints give their original
# numbers. Packages with another interface are refused, and load after they are compiled again. Files of clusters plan
# the same processes.
# usage: golden.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

cp -r "$SOURCE/tests/golden/c41e6b8" old
cp -r "$SOURCE/examples/data" old/data
cd old

line() { sed -n "s/^$1 //p" "$2"; }
same_numbers() { # TXT: has the numbers of out.txt
    local name
    for name in global_step loss accuracy examples; do
        equal "$1: $name" "$(line $name out.txt)" "$(line $name "$1")"
    done
}

# --- Checkpoints and their package
for model in packaged clicks; do
    run_ok belfry inspect $model --digest
    equal "$model: the digest" "$(cat out.txt)" "$(cat $model.digest)"
done
evaluate=(belfry evaluate --model_dir packaged --package my_model.so --eval_files data/digits-eval.csv
    --label_column digit --feature_scale 0.0625)
run_fails 2 'was compiled for package ABI 3, this belfry has|compile it again' "${evaluate[@]}"
run_ok "${CC:-cc}" -shared -fPIC -I"$SOURCE/include" -o my_model.so "$SOURCE/examples/my_model/my_model.c"
run_ok "${evaluate[@]}"
same_numbers packaged.txt
run_ok belfry evaluate --model_dir clicks --eval_files clicks.csv
same_numbers clicks.txt

# Sums are different now, and so are the bits: resuming needs a flag.
cp -r packaged changed
again=(belfry train_and_evaluate --config_file packaged/job.yaml --model_dir changed --train_steps 60)
run_fails 2 'arithmetic was' "${again[@]}"
run_ok "${again[@]}" --allow_changes
equal "it resumes" "$(line global_step out.txt)" 60
run_ok belfry inspect changed --digest
equal "the old checkpoint stays" "$(belfry inspect packaged --digest)" "$(cat packaged.digest)"

# --- Files of clusters
plan() { # prints the roles, their towers and the counts
    awk '/this host/ { print $2 ~ /^[0-9]+$/ ? $1 " " $2 " " $5 : $1 " " $4 } /^T = /' "$1"
}
for file in own ai-platform; do
    run_ok belfry local train --config $file.yaml --job_dir none --dry_run -- --train_files data/digits-train.csv
    equal "the plan of $file.yaml" "$(plan out.txt)" "$(plan $file.txt)"
done
finish
