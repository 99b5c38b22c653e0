#!/usr/bin/env bash
# Completion in bash (zsh and fish if installed) and the manual's pages, made from the tables of verbs and
# flags.
# usage: completion.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export XDG_STATE_HOME=$work/state
PATH=$BUILD/tools:$PATH

run_ok belfry completion bash
cp out.txt script.bash
# shellcheck disable=SC1091 # made here
source ./script.bash
answers() { # WORDS…: bash's offers for the last one, which bash splits at "="
    COMP_WORDS=("$BUILD/tools/belfry" "$@")
    COMP_CWORD=$#
    _belfry
    echo "${COMPREPLY[*]}"
}
equal "verbs" "$(answers tr)" "train_and_evaluate train"
equal "groups, once" "$(answers jo)" jobs
equal "words of a group" "$(answers jobs s)" "submit scale stream-logs"
equal "a third word" "$(answers jobs submit '')" training
equal "flags" "$(answers train --train_st)" --train_steps
equal "flags as they are written" "$(answers train --train-st)" --train-steps
equal "a switch that is on" "$(answers train --no_head)" --no_header
equal "not those of other verbs" "$(answers version --train_st)" ""
equal "values" "$(answers train --optimizer ada)" "adam adagrad adamw adadelta"
equal "values after =" "$(answers train --optimizer = sg)" sgd
equal "all of them" "$(answers train --log_format =)" "text json"
equal "no value for a file" "$(answers train --train_files '')" ""
equal "a switch has no value" "$(answers train --quiet --log_fo)" --log_format
equal "training flags after --" "$(answers local train --worker_count 2 -- --train_st)" --train_steps
equal "a program has separate flags" "$(answers local train -- ./program --train_st)" ""
equal "verbs of help" "$(answers help local r)" ranks
equal "shells" "$(answers completion '')" "bash zsh fish"
printf 'workers: {count: 1}\n' >c.yaml
run_ok belfry jobs submit training a-job --config c.yaml --job_dir m --wait -- "${digits[@]}" --train_steps 2
equal "names of jobs" "$(answers jobs describe '')" a-job
run_ok belfry complete -- train --optimizer=sg
check "a single offer has its description" grep -qx -- $'--optimizer=sgd\toptimizer' out.txt

for shell in zsh fish; do
    run_ok belfry completion "$shell"
    command -v "$shell" >/dev/null || continue
    check "$shell takes its script" "$shell" -n out.txt
done
if command -v fish >/dev/null; then
    equal "fish offers" "$(fish --no-config -c "$(belfry completion fish); complete -C 'belfry jobs sc'" |
        cut -f 1)" scale
fi
run_fails 2 'expected a shell, bash, zsh or fish, got tcsh' belfry completion tcsh
run_fails 2 'expected a shell, bash, zsh or fish, got nothing' belfry completion

run_ok belfry manual pages
equal "a page for each verb, and one of all" "$(find pages -name 'belfry*.1' | wc -l)" \
    "$(($(belfry help | grep -cE '^  [a-z_]+( [a-z_-]+)*  ') + 1))"
check "it names flags" grep -q '^\\fB\\-\\-train_files' pages/belfry-train.1
check "and defaults" grep -q 'default: 128; examples; ' pages/belfry-train.1
if command -v man >/dev/null; then
    for page in pages/*; do
        capture man --warnings -l "$page"
        check "man accepts $page" test ! -s err.txt
    done
fi
finish
