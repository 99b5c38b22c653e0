#!/usr/bin/env bash
# report.html in a headless browser, light and dark, wide and narrow: no errors, all charts drawn, all text
# legible. Skipped (exit code 77) without Chromium; `tools/install-deps --browser` installs it.
# tests/cli/report.sh checks the page without a browser.
# usage: browser.sh BUILD_FOLDER [PICTURES]    PICTURES: a folder for screenshots
# shellcheck source=tests/cli/browser_lib.sh
source "$(dirname "$0")/browser_lib.sh"
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export HOME=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work
browse() { # dark|light WIDTH ARGUMENTS…: its messages, with the console's, go to err.txt
    local dark_is_0=1
    [ "$1" = light ] || dark_is_0=0
    timeout -k 5 "$patience" "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking \
        --no-first-run --hide-scrollbars --user-data-dir="$work/profile" --enable-logging=stderr \
        --blink-settings=preferredColorScheme="$dark_is_0" --window-size="$2,1400" "${@:3}"
}

# Writes the page with the check at its end. Errors are caught before any other script of the page runs.
with_check() { # PAGE OUT
    {
        sed 's|<head>|<head><script>window.faults=[];addEventListener("error",e=>faults.push(e.message))</script>|; /<\/body>/d; /<\/html>/d' "$1"
        echo "<script>"
        cat "$SOURCE/tests/cli/browser_check.js"
        echo "</script></body></html>"
    } >"$2"
}

look() { # PAGE SCHEME WIDTH: writes the errors to verdict.txt
    with_check "$1" looked.html
    capture browse "$2" "$3" --dump-dom "file://$work/looked.html"
    sed -n '/<pre id="verdict">/,/looked/p' out.txt | sed 's/<[^>]*>//g' >verdict.txt
    grep 'CONSOLE' err.txt | sed 's/.*CONSOLE[^]]*\]/wrong: console:/' >>verdict.txt || true
}

is_good() { # SCHEME WIDTH PAGE
    look "$3" "$1" "$2"
    checks=$((checks + 1))
    if ! grep -qx looked verdict.txt || grep -q '^wrong' verdict.txt; then
        complain "$3, $1, $2 px"
        sed 's/^/  verdict| /' verdict.txt
    fi
}

is_bad() { # PAGE SAYS
    look "$1" light 1200
    checks=$((checks + 1))
    grep -q "^wrong: .*$2" verdict.txt || complain "$1 should be wrong: $2"
}

for part in train eval; do
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "digit") at = i } NR > 1 { $at %= 2 } { print }' \
        "$SOURCE/examples/data/digits-$part.csv" >odd-$part.csv
done
run_ok belfry train_and_evaluate --model_dir run --train_files odd-train.csv --eval_files odd-eval.csv --label_column digit \
    --feature_scale 0.0625 --hidden_units 16 --class_count 2 --train_steps 60 --eval_every_steps 10 --save_summary_steps 5 \
    --num_workers 2 --audit_input
cp run/report.html page.html
is_good light 1200 page.html
light=$(grep '^background' verdict.txt)
check "all charts are there" test "$(sed -n 's/^charts //p' verdict.txt)" -ge 6
is_good dark 1200 page.html
check "light and dark differ" test "$light" != "$(grep '^background' verdict.txt)"
is_good light 520 page.html

# --- Errors are found
sed 's/ d="M[^"]*"/ d="M10 10"/; s/<script>/<script>nobody();/' page.html >broken.html
is_bad broken.html 'nobody is not defined'
sed 's/ d="M[0-9][^"]*" data-points/ d="M10 10" data-points/; s/--ink:#1c1d1f/--ink:#eee/' page.html >faint.html
is_bad faint.html 'no length'
is_bad faint.html 'contrast 1'

if [ -n "$pictures" ]; then
    for scheme in light dark; do
        browse $scheme 1200 --window-size=1200,3200 --screenshot="$pictures/report-$scheme.png" "file://$work/page.html" \
            2>err.txt
    done
fi
finish
