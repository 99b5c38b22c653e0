#!/usr/bin/env bash
# examples/voices, built against an installed Belfry by its README's commands. Its package trains on sounds
# that CSV files name, to the same bits however replicas are assigned and whether or not it was stopped in
# between. An error in a sound is reported with its row.
# usage: voices.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

prefix=$work/prefix
run_ok cmake --install "$BUILD" --prefix "$prefix"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name belfry.pc)")
export PKG_CONFIG_PATH
cp -r "$SOURCE/examples/voices" .
run_ok cmake -S voices -B voices/build
run_ok cmake --build voices/build
capture voices/make-data
equal "make-data without a folder" "$code" 2
check "prints its usage" grep -q 'usage: make-data FOLDER' err.txt

# Writes a number in COUNT bytes, the low one first.
bytes() { # COUNT NUMBER
    local i number=$2
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\x$(printf %02x $((number >> 8 * i & 255)))"
    done
}
# 8-bit sound at 8 kHz: a square wave with a period of PERIOD samples.
sound() { # FILE SAMPLES PERIOD
    {
        printf 'RIFF\0\0\0\0WAVEfmt '
        bytes 4 16 && bytes 2 1 && bytes 2 1 && bytes 4 8000 && bytes 4 8000 && bytes 2 1 && bytes 2 8
        printf data
        bytes 4 "$2"
        awk -v n="$2" -v period="$3" 'BEGIN { for (i = 0; i < n; i++) printf "%s", i % period * 2 < period ? "0" : "P" }'
    } >"$1"
}
mkdir sounds
echo path,label >sounds/train.csv
for i in {0..9}; do
    sound "sounds/$i.wav" $((1200 + 317 * i % 1900)) $((6 + 9 * (i % 5)))
    echo "$i.wav,$((i % 5))" >>sounds/train.csv
done

train_voices() { # MODEL_DIR LIST flags…
    local folder=$1 list=$2
    shift 2
    belfry train_and_evaluate --package voices/build/voices.so --train_files "$list" --eval_files sounds/train.csv \
        --train_batch_size 2 --no_report --model_dir "$folder" "$@"
}
run_ok train_voices one sounds/train.csv --num_gpus 4 --train_steps 60
accuracy=$(sed -n 's/^accuracy //p' out.txt)
check "it learns five sounds: accuracy $accuracy" awk "BEGIN { exit !($accuracy > 0.9) }"
digest=$(sed -n 's/^digest //p' out.txt)
run_ok train_voices two sounds/train.csv --num_workers 2 --num_gpus 2 --train_steps 25
run_ok train_voices two sounds/train.csv --num_workers 2 --num_gpus 2 --train_steps 60
equal "the same bits from two workers, stopped in between" "$(sed -n 's/^digest //p' out.txt)" "$digest"

# The same sounds in an object store: named below the table, and by URL.
mkdir -p store/data host
cp -r sounds store/data/
sed '1!s,^,s3://data/sounds/,' sounds/train.csv >urls.csv
# shellcheck source=tests/cli/lib_store.sh
source "$SOURCE/tests/cli/lib_store.sh"
store_begin
for list in s3://data/sounds/train.csv urls.csv; do
    rm -rf from-store
    run_ok on host train_voices from-store "$list" --num_gpus 4 --train_steps 60
    equal "sounds of the store, $list" "$(sed -n 's/^digest //p' out.txt)" "$digest"
done

head -c 1000 sounds/3.wav >sounds/short.wav
sed 's/^3.wav/short.wav/' sounds/train.csv >sounds/bad.csv
capture train_voices bad sounds/bad.csv --train_steps 60
equal "a sound that is cut off is bad data" "$code" 3
check "the error has its row" grep -q 'sounds/bad.csv:5: sounds/short.wav: expected .* bytes of samples, as its header says, got 956' err.txt

finish
