#!/usr/bin/env bash
# Help: every verb prints its help on stdout, with defaults; --print_config can be read back.
# usage: help.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

run_ok belfry help
mapfile -t verbs < <(sed -n 's/^  \([a-z_]\+\( [a-z_-]\+\)*\)  .*/\1/p' out.txt)
equal "number of verbs" "${#verbs[@]}" 37
check "help goes to stdout only" test ! -s err.txt
for verb in "${verbs[@]}"; do
    read -ra words <<<"$verb"
    run_ok belfry "${words[@]}" --help
    check "belfry $verb --help names itself" grep -q "^belfry $verb " out.txt
    check "belfry $verb --help names defaults" grep -q '(default: ' out.txt
    equal "lines of belfry $verb --help above 100 columns" "$(grep -cE '^.{101,}' out.txt)" 0
    if [[ "$(head -n 1 out.txt)" =~ (FILE|FOLDER|MODEL|NAME|bash) ]] && [ "$verb" != tune ]; then
        check "a flag of belfry $verb takes no arguments for files" sh -c "! grep -qE -- '^  --[a-z_]+ .* \.\.( |\$)' out.txt"
    fi
    cp out.txt by-flag.txt
    run_ok belfry help "${words[@]}"
    check "belfry help $verb says the same" cmp -s out.txt by-flag.txt
    all=$(grep -c '^  -' out.txt)
    run_ok belfry "${words[@]}" -h
    few=$(grep -c '^  -' out.txt)
    check "belfry $verb -h is short: $few of $all" test "$few" -le 32
    [ "$all" -gt 20 ] || equal "flags of belfry $verb -h" "$few" "$all"
    equal "lines of belfry $verb -h above 100 columns" "$(grep -cE '^.{101,}' out.txt)" 0
done
run_ok belfry help jobs
check "help of a group lists its verbs" grep -q '^  jobs list ' out.txt
check "and no others" test "$(grep -c '^  [a-z]' out.txt)" -eq 10
cp out.txt by-flag.txt
run_ok belfry jobs --help
check "belfry help jobs says the same" cmp -s out.txt by-flag.txt

# Short help: the common flags, and those about a word.
run_ok belfry train -h
check "-h has a common flag" grep -q -- '^  --learning_rate ' out.txt
check "and no rare one" sh -c "! grep -q -- '--beta1 ' out.txt"
check "and refers to the others" grep -q 'belfry train --help WORD' out.txt
run_ok belfry train --help decay schedule
check "a word finds flags" grep -q -- '^  --decay_steps ' out.txt
check "only those that have it" sh -c "! grep -q -- '^  --weight_decay ' out.txt"
cp out.txt by-flag.txt
run_ok belfry help train decay schedule
check "belfry help train WORDS says the same" cmp -s out.txt by-flag.txt
run_ok belfry train --help LR
check "another trainer's name of a flag finds it" grep -q -- '^  --learning_rate ' out.txt
run_fails 2 'no flag of belfry train has "xyzzy" in its name or text' belfry train --help xyzzy
run_ok belfry inspect somewhere --help
check "an argument before --help is not a word" grep -q -- '^  --digest ' out.txt
run_ok belfry local train --job_dir x -- -h
check "flags of training have help, too" grep -q -- '^  --train_files ' out.txt

# Flags that users of gcloud type.
run_ok belfry train_and_evaluate --help
for flag in train_files eval_files train_batch_size eval_batch_size model_dir train_steps data_dir \
    num_gpus num_workers; do
    check "help names --$flag" grep -q -- "^  --$flag " out.txt
done
# Programs accept the same ones (bel_run_config_flags).
sed -nE 's/^    ROW\([A-Z]+, ([a-z_]+),.*/\1/p' "$SOURCE/src/estimator/run_settings.h" >flags.txt
"$BUILD/tools/belfry" evaluate --help | cat out.txt - >both.txt
check "programs have flags of a run" test "$(wc -l <flags.txt)" -gt 30
while read -r flag; do
    check "the command has --$flag, too" grep -qE -- "^  --(\\[no_\\])?$flag( |$)" both.txt
done <flags.txt
tr -s ' \n' ' ' <out.txt >joined.txt # a line may end within the range
check "help says units and ranges" grep -q -- 'default: 128; examples; \[1,' joined.txt

run_ok belfry version
check "version names itself" grep -q '^belfry [0-9]*\.[0-9]*\.[0-9]*$' out.txt
cp out.txt version.txt
run_ok belfry --version
check "--version is version" cmp -s out.txt version.txt

# Settings: the command line wins over the file, and the file over defaults. Each has its origin, and they
# read back.
cat >settings.yaml <<'END'
train-steps: 7
hidden_units: [16, 8]
seed: 3
END
run_ok belfry train --config_file settings.yaml --seed 4 --print_config
check "a default" grep -qx '# momentum: 0.9 # default' out.txt
check "from the file" grep -qx 'train_steps: 7 # settings.yaml:1:14' out.txt
check "a list from the file" grep -qx 'hidden_units: \[16, 8\] # settings.yaml:2:15' out.txt
check "the command line wins" grep -qx 'seed: 4 # command line' out.txt
sed 's/ #.*//' out.txt >first.txt
cp out.txt again.yaml
run_ok belfry train --config_file again.yaml --print_config
sed 's/ #.*//' out.txt >second.txt
check "a dump reads back" cmp -s first.txt second.txt
# One file serves several verbs: flags of other verbs are skipped.
run_ok belfry evaluate --config_file again.yaml --print_config

finish
