#!/usr/bin/env bash
# The experiment with batch normalization over replicas: every number is inside its window, for several seeds.
# The two ways to read moving statistics have separate windows.
# usage: experiment.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

number() { sed -nE "s/^$1  +([0-9.e+-]+) .*/\1/p" out.txt; }
mkdir temporary
export TMPDIR=$PWD/temporary
for seed in 1 2 3; do
    run_ok belfry experiment batch_norm --seed "$seed"
    equal "seed $seed: comparisons" "$(wc -l <out.txt)" 16
    equal "seed $seed: numbers outside" "$(grep -c OUTSIDE out.txt)" 0
    cp out.txt "$seed.txt"
    local=$(number 'inference, each replica by its moving statistics')
    mean=$(number 'inference, by the mean of the moving statistics')
    check "seed $seed: inference is off by ${local:-?} with each replica's statistics, by ${mean:-?} with their mean" \
        awk "BEGIN { exit !(${local:-0} >= 0.076 && ${mean:-9} <= 0.046) }"
done
check "other seeds, other numbers" test "$(cat 1.txt)" != "$(cat 2.txt)"
run_ok belfry experiment batch_norm --seed 3
check "the same seed, the same numbers" cmp -s out.txt 3.txt
equal "files left in the temporary folder" "$(ls temporary)" ""

run_ok belfry experiment batch_norm --json
check "one object" grep -qx '{"seed":1,"rows":\[{"name":"training, each.*\],"inside":true}' out.txt
run_fails 2 'experiment: expected one of: batch_norm; got nothing' belfry experiment
run_fails 2 'unknown verb experiment batchnorm; did you mean experiment batch_norm' belfry experiment batchnorm
finish
