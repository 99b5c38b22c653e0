#!/usr/bin/env bash
# belfry serve on the checkpoints of a training with tables: deltas come in while requests arrive.
# usage: serve_live.sh BUILD_FOLDER
# shellcheck source=tests/cli/serve_lib.sh
source "$(dirname "$0")/serve_lib.sh" "$1"

logged() { until_true grep -q -- "$1" serve.err; }
answers() { until_true sh -c "tail -n 1 load.log | grep -qx $1"; } # STEP: it answers the requests of the load
put() { # STEP: the checkpoint appears complete, as when a training saves it
    cp -r "m/ckpt-$(printf %08d "$1")" live/.new
    mv live/.new "live/ckpt-$(printf %08d "$1")"
}
put_damaged() { # STEP
    cp -r "m/ckpt-$(printf %08d "$1")" live/.new
    printf x | dd of="$(ls live/.new/shard-*)" bs=1 seek=5000 conv=notrunc status=none
    mv live/.new "live/ckpt-$(printf %08d "$1")"
}
newest() { curl -sf -m 5 "$url/v2/models/live" | grep -o '"versions":\["[0-9]*"' | tr -dc 0-9; }

# Values of "user" are hashed, those of "item" have rows by number, those of "kind" are columns of 0 and 1.
awk 'BEGIN {
    x = 1
    print "user,item,price,kind,clicked"
    for (i = 0; i < 6400; i++) {
        x = x * 16807 % 2147483647
        user = int(x / 512) % 1500 + int(i / 1600) * 1500
        item = int(x / 65536) % 400
        printf "u%d,i%d,%.2f,%s,%d\n", user, item, x % 1000 / 100, substr("abc", x % 3 + 1, 1), (user + item) % 3 == 0
    }
}' >log.csv
{
    head -n 40 log.csv
    tail -n 40 log.csv
    printf 'never,i1,2,a,0\n,i3,,b,1\nu7,nothing,1,,0\n'
} >ask.csv
flags=(--train_files log.csv --label_column clicked --train_batch_size 32 --train_steps 220 --shuffle_buffer 1
    --save_checkpoints_steps 20 --full_checkpoint_every 5 --table_expire_after 40 --keep_checkpoint_max 0 --no_report
    --schedule constant)
run_ok belfry train "${flags[@]}" --model_dir m
steps="20 40 60 80 100 120 140 160"
pairs=()
for step in $steps; do
    run_ok belfry predict --checkpoint "m/ckpt-$(printf %08d "$step")" --eval_files ask.csv --eval_batch_size 83
    mv out.txt "p$step.csv"
    pairs+=("$step=p$step.csv")
done
run_ok belfry inspect m/ckpt-00000140
check "there are deltas" grep -q '^base step 120, ' out.txt

# Every step appears while requests arrive.
mkdir live
touch load.log
put 20
put 40
start live --keep_versions 1
timeout -k 5 "$patience" python3 "$SOURCE/tests/cli/serve_check.py" live "$url" ask.csv end "${pairs[@]}" >load.out 2>load.err &
load=$!
for step in 40 60 80 100 120 140 160; do
    [ -e "live/ckpt-$(printf %08d $step)" ] || put $step
    # The base is in memory: its file is not read for a delta, and may be damaged.
    if [ $step = 140 ]; then
        printf x | dd of="$(ls live/ckpt-00000120/shard-*)" bs=1 seek=5000 conv=notrunc status=none
    fi
    check "step $step answers" answers $step
done
touch end
code=0
wait "$load" || code=$?
cat load.out load.err >out.txt
equal "every answer has the bits of one checkpoint" "$code" 0
check "a full one is read" logged 'version 120 is loaded in [0-9.]* s: a full checkpoint, [0-9.]* MB of rows'
check "a first delta is read with its base" logged 'version 40 is loaded in .* over version 20, which was read, too'
check "a delta is read without it" logged 'version 160 is loaded in [0-9.]* s: [1-9][0-9]* rows and [1-9][0-9]* removed keys over version 120$'
check "old versions are unloaded" logged 'version 140 is unloaded'
equal "no file of a loaded checkpoint stays open" "$(find "/proc/$server/fd" -lname '*ckpt-*' | wc -l)" 0
curl -sf -m 5 "$url/metrics" >out.txt
check "deltas are counted" grep -qx 'belfry_serve_deltas_total{model="live"} [4-9]' out.txt
check "and their rows" grep -qE '^belfry_serve_delta_rows_total\{model="live"\} [1-9][0-9]{2,}$' out.txt

# Deltas that do not fit are named, and the old version stays.
put_damaged 180
check "a damaged delta is named" logged 'live/ckpt-00000180 does not load: .*the loaded versions stay'
# The answering one may be removed, as by retention: no older one takes its place while the newest do not load.
rm -r live/ckpt-00000160 live/ckpt-00000140
put_damaged 200
check "the next one is named" logged 'live/ckpt-00000200 does not load: '
put_damaged 220
check "and the next, by a later look" logged 'live/ckpt-00000220 does not load: '
equal "160 answers" "$(newest)" 160
rm -r live/ckpt-00000220 live/ckpt-00000200 live/ckpt-00000120
put 220
check "a full one still loads" logged 'version 220 is loaded'
cp -r m/ckpt-00000200 live/.new
sed -i 's/"step": 200/"step": 240/' live/.new/manifest.json
mv live/.new live/ckpt-00000240
check "a wrong manifest is named" logged 'live/ckpt-00000240 does not load: '
equal "220 answers" "$(newest)" 220
rm -r live/ckpt-00000240 live/ckpt-00000220 live/ckpt-00000180
check "a training that went back is followed" until_true sh -c "curl -sf -m 5 $url/v2/models/live/versions/100"
stop TERM

# Two versions on one base read it once. A checkpoint that stepped aside for another of its step counts.
# The training of these has rows on a disk, so they are not loaded.
run_ok belfry train "${flags[@]}" --model_dir disk --table_memory 1 --table_disk .
mkdir two
cp -r disk/ckpt-00000120 disk/ckpt-00000140 two
cp -r disk/ckpt-00000160 two/ckpt-00000160.replaced
start two --keep_versions 2
check "the first reads the base" logged 'version 160 is loaded in .* over version 120, which was read, too'
check "they are in place" logged 'two/ckpt-00000120: [0-9]* rows are read in place'
check "the second does not" logged 'version 140 is loaded in .* over version 120$'

# The index of a value, as an export takes it, is the value.
run_ok belfry export --checkpoint m/ckpt-00000160 --export_dir exported
run_ok timeout -k 5 "$patience" python3 "$SOURCE/tests/cli/serve_check.py" places "$url" exported/signature.json
stop TERM

mkdir alone
cp -r m/ckpt-00000140 alone
run_fails 3 'is a delta on the checkpoint of step 120, which is not whole there' belfry serve alone --port 0
finish
