#!/usr/bin/env bash
# The page of belfry serve in a headless browser: models and their forms, a prediction of each, the chart, the token.
# Skipped (exit code 77) without Chromium; `tools/install-deps --browser` installs it.
# usage: serve_page.sh BUILD_FOLDER [PICTURES]    PICTURES: a folder for screenshots
# shellcheck source=tests/cli/browser_lib.sh
source "$(dirname "$0")/browser_lib.sh"
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

export HOME=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work
browse() { # ARGUMENTS…: its messages, with the console's, go to err.txt
    timeout -k 5 "$patience" "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking \
        --no-first-run --hide-scrollbars --user-data-dir="$work/profile" --enable-logging=stderr --window-size=1000,1600 \
        --virtual-time-budget=4000 "$@"
}
shows() { # PATTERN: the page, with its lines joined, has it
    tr '\n' ' ' <out.txt >page.txt
    check "the page has $1" grep -q -- "$1" page.txt
}

run_ok train m --train_steps 20
run_ok belfry export --model_dir m --export_dir digits
run_ok belfry train_and_evaluate --train_files "$SOURCE/examples/data/penguins.csv" --label_column Species --train_steps 20 \
    --eval_share 0.2 --model_dir p --no_report
run_ok belfry export --model_dir p --export_dir penguins

start digits penguins
curl -s -m 5 -d '{"instances": [[1]]}' "$url/v1/models/digits:predict" >out.txt
check "a wrong request" grep -q error out.txt
# "#try" presses every button, as a user would.
run_ok browse --dump-dom "$url/#try"
shows '<h2>digits</h2>.*<h2>penguins</h2>'
shows '<td>x</td><td>FP32</td><td>? × 64</td>'
shows '<canvas height="8" width="8">'
shows '<pre>{"predictions":\[\['
shows '<pre>{"predictions":\[{"'
shows '"class":"'
shows '1 answers by time'
shows '<rect '
check "no errors in the console" sh -c "! grep -q CONSOLE err.txt"
if [ -n "$pictures" ]; then run_ok browse --screenshot="$pictures/serve.png" "$url/#try"; fi
stop TERM

(umask 077 && openssl rand -hex 32 >token)
start digits --token_file token
run_ok browse --dump-dom "$url/"
shows '401: expected the header Authorization'
shows '<form id="door"><label>'
check "names of models need the token" sh -c '! grep -q "<h2>digits" out.txt'
stop TERM
finish
