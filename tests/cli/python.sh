#!/usr/bin/env bash
# The Python package: its table of the C interface, predictors against `belfry predict`, collectives among ranks. With
# PyTorch installed also an optimizer that is distributed, against PyTorch's own.
# usage: python.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
python=/usr/bin/python3
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "python.sh: skipped: no numpy for $python (Debian: python3-numpy)"
    exit 77
fi
export BELFRY_LIBRARY=$BUILD/libbelfry.so PYTHONPATH=$SOURCE/python PYTHONDONTWRITEBYTECODE=1
tests=$SOURCE/tests/python

# --- Predictors give what the command predicts
run_ok train model --train_steps 20 --export final
run_ok belfry predict --model_dir model --eval_files "$EVAL_CSV" --feature_scale 0.0625 --eval_batch_size 359
(echo predictions && cut -d, -f2-11 out.txt) >predictions.csv
paste -d, <(sed 's/,[^,]*$//' "$EVAL_CSV") predictions.csv >rows.csv # an export scales its inputs
run_ok "$python" "$tests/test_belfry.py" "model/export/final/20" rows.csv

# --- Tables: classifiers, regressors, and predictors of tables
cp predictions.csv model/predicted.csv && sed -i 1d model/predicted.csv
cp "$SOURCE/examples/data/penguins.csv" penguins.csv
awk 'BEGIN {
    print "a,b,city,day,y"
    for (i = 0; i < 600; i++) {
        a = (i * 37) % 101 / 10; b = (i * 17) % 29; city = substr("OsloRomeBonnLima", (i * 7) % 4 * 4 + 1, 4)
        y = 3 * a + (city == "Rome" ? 20 : 0) + (i * 5) % 12
        printf "%s,%s,%s,2020-%02d-%02d,%.2f\n", (i % 11 == 5 ? "NA" : a), b, (i % 13 == 7 ? "" : city),
            (i * 5) % 12 + 1, i % 28 + 1, y
    }
}' >mixed.csv
run_ok belfry train --train_files penguins.csv --label_column Species --model_dir penguins
run_ok belfry train --train_files mixed.csv --label_column y --num_epochs 40 --model_dir mixed
sed -i '3s/Torgersen/Elsewhere/; 3s/Biscoe/Elsewhere/' penguins.csv # a text that training did not have
for table in penguins mixed; do
    run_ok belfry predict --model_dir $table --eval_files $table.csv --eval_batch_size 1000
    cp out.txt $table.predicted.csv
    run_ok belfry export --model_dir $table --export_dir $table.export
done
run_ok "$python" "$tests/test_tables.py" . model "$SOURCE/examples/data/digits-train.csv" "$EVAL_CSV"
grep check_estimator out.txt || true

# --- Ranks
ranks=(belfry local ranks --rank_count)
equal_lines() { # COUNT: that many lines on stdout, all the same
    equal "lines of the ranks" "$(wc -l <out.txt)" "$1"
    equal "different lines" "$(sort -u out.txt | wc -l)" 1
}
run_ok "$python" "$tests/ranks.py"
equal_lines 1
run_ok "${ranks[@]}" 3 -- "$python" "$tests/ranks.py"
equal_lines 3
raises() { # WORDS COMMAND…
    code=0
    "${@:2}" >out.txt 2>err.txt || code=$?
    equal "exit code of ${*:2}" "$code" 1
    check "the exception says: $1" grep -q "^[A-Za-z.]*Error: .*$1" err.txt
}
raises 'rank 1 of 2 has given up: a rank raised KeyError' "${ranks[@]}" 2 -- "$python" "$tests/ranks.py" raise
raises 'rank 1 of 2 has given up: a rank ended without finalize' "${ranks[@]}" 2 -- "$python" "$tests/ranks.py" leave
if "$python" -c 'import torch' 2>/dev/null; then
    port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for bytes in 4000 1000000; do
        run_ok "${ranks[@]}" 2 -- "$python" "$tests/torch_ranks.py" "$port" "$bytes"
        equal_lines 2
    done
fi

# --- Loading
raises 'cannot load nowhere.so' env BELFRY_LIBRARY=nowhere.so "$python" -c 'import belfry'
finish
