#!/usr/bin/env bash
# Commands of the README and the documents: blocks marked `sh` run, page by page; all flags exist.
# usage: docs.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"
export BELFRY_BUILD=$BUILD PATH=$BUILD/tools:$PATH TMPDIR=$work

cd "$SOURCE"
python3 tests/cli/docs.py check "$BUILD/tools/belfry" README.md CONTRIBUTING.md docs/*.md docs/formats/*.md \
    >"$work/out.txt" 2>"$work/err.txt" || failed=yes
cd "$work"
check "every block has a kind, every flag exists" test -z "${failed:-}"
cat >bad.md <<'PAGE'
```sh
belfry train --no_such_flag
```
```
unmarked
```
PAGE
check "unknown flags and unmarked blocks are found" \
    test "$(python3 "$SOURCE/tests/cli/docs.py" check "$BUILD/tools/belfry" bad.md | grep -c FAILED)" = 2

(cd "$SOURCE" && python3 tests/cli/docs.py sizes include/belfry/*.h README.md docs/*.md docs/formats/*.md) >out.txt 2>&1 ||
    failed=sizes
check "examples set the sizes of structs" test "${failed:-}" != sizes
defaults() { python3 "$SOURCE/tests/cli/docs.py" defaults "$1" "$SOURCE/src/estimator/run_settings.h"; }
check "belfry/run.h has the defaults of the table of settings" defaults "$SOURCE/include/belfry/run.h"
sed 's/0: keep all \[5\]/0: keep all [6]/' "$SOURCE/include/belfry/run.h" >other.h
check "another default is found" test "$(defaults other.h)" = \
    "FAILED: other.h: keep_checkpoint_max has the default 5, not [6]"

# Makes the files that pages name, train.csv and others: penguins, with the label `species`; for tables of ids, clicks.
data_of() { # PAGE
    local penguins=$SOURCE/examples/data/penguins.csv
    if [ "$1" = docs/tables.md ] || [ "$1" = docs/follow.md ]; then
        make_clicks
        mv clicks-train.csv train.csv
        mv clicks-eval.csv eval.csv
        return
    fi
    awk -F, 'BEGIN { OFS = "," } { $1 = NR == 1 ? "species" : $1; print (NR == 1 ? "id" : "p" NR), $0 }' \
        "$penguins" >all.csv
    awk 'NR == 1 || NR % 5' all.csv >train.csv
    awk 'NR == 1 || NR % 5 == 0' all.csv >test.csv
    cut -d, -f1,3- test.csv >new.csv
}

pages=0
for page in $(cd "$SOURCE" && grep -lx '```sh' README.md docs/*.md docs/formats/*.md); do
    pages=$((pages + 1))
    folder=$work/$(basename "$page" .md)
    mkdir -p "$folder/build"
    cd "$folder"
    ln -s "$SOURCE/examples" examples
    ln -s "$BUILD" build/release
    data_of "$page"
    python3 "$SOURCE/tests/cli/docs.py" script "$SOURCE/$page" >commands.sh
    code=0
    timeout -k 5 "$patience" bash -e commands.sh >"$work/out.txt" 2>"$work/err.txt" || code=$?
    cd "$work"
    equal "commands of $page" "$code" 0
done
check "pages have commands" test "$pages" -ge 6
check "the killed job of the tutorial has the digest of the undisturbed one" test \
    "$(digest tutorial/runs/job)" = "$(digest tutorial/runs/alone)"
finish
