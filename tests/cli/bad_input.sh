#!/usr/bin/env bash
# Bad input: one line with the error and its place, the right exit code, and no loss of saved data.
# usage: bad_input.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

# Trains on FILE with its flags, for data that must be refused.
train_on() { # FILE FLAGS…
    local file=$1
    shift
    rm -rf model
    belfry train --feature_scale 1 --model_dir model --train_files "$file" --train_batch_size 2 --train_steps 4 \
        --hidden_units 4 "$@"
}

# --- The command line
run_fails 2 'expected a verb' belfry
run_fails 2 'unknown verb trian|did you mean train?' belfry trian
run_fails 2 'unknown verb evalute|did you mean evaluate?' belfry evalute
run_fails 2 'unknown flag --trian_files|did you mean --train_files?' belfry train --trian_files x
run_fails 2 'flag --train_steps belongs to another command' belfry evaluate --train_steps 1
run_fails 2 'flag --num_gpus belongs to another command|put flags of the training after --' \
    belfry local train --distributed --num_gpus 2 -- --train_files x
run_fails 2 '--train_batch_size: expected an integer in [1, 2147483647], got "0"' \
    belfry train --train_batch_size 0
run_fails 2 '--dropout: expected a number in [0, 1), got "1"' belfry train --dropout 1
run_fails 2 '--learning_rate: expected a number|got "fast"' belfry train --learning_rate fast
run_fails 2 '--optimizer: expected one of sgd, momentum, adam, adagrad, rmsprop, adamw, ftrl, lamb, lars, adadelta, got "adagard"' \
    belfry train --optimizer adagard
run_fails 2 '--train_steps: expected an integer|got nothing' belfry train --train_steps
run_fails 2 'unexpected argument "runs"' belfry train runs
run_fails 2 '--model_dir is needed' belfry train --train_files "$TRAIN_CSV"
run_fails 2 '--train_files is needed' belfry train --model_dir x
run_fails 2 '--param learning_rate=1: use --learning_rate' train x --param learning_rate=1
run_fails 2 'schedule_formula (--schedule_formula)' train x --schedule formula
# A long value is named by its beginning and its end.
long=$(head -c 10000 /dev/zero | tr '\0' x)
for flag in 2:learning_rate 1:warm_start 2:label_column 2:package "2:$long"; do
    run_fails "${flag%%:*}" "xx…xx" train x "--${flag#*:}" "$long"
    check "the line for ${flag:0:20} is short" test "$(grep '^belfry: ' err.txt | wc -c)" -lt 1000
done
# A flag without effect is refused.
run_fails 2 '--nesterov has no effect without --optimizer momentum' train x --optimizer sgd --nesterov
run_fails 2 '--boundaries has no effect without --schedule piecewise' train x --boundaries 10
run_fails 2 '--decay_rate has no effect without --schedule exponential' train x --decay_rate 0.5
run_fails 2 '--momentum has no effect without --optimizer momentum or lars, and that is adam' train x --momentum 0.5
run_fails 2 '--max_staleness has no effect without --mode bounded, and that is sync' train x --max_staleness 2
run_fails 2 '--image_shape has no effect without --model cnn or resnet, and that is dnn' train x --image_shape 1,8,8
run_fails 2 '--batch_norm has no effect without --model resnet, and that is dnn' train x --batch_norm sync
run_fails 2 '--batch_norm' train x --model resnet --batch_norm global
run_fails 2 '--hidden_units has no effect without --model dnn or wide_deep, and that is cnn' train x --model cnn
run_fails 2 '--save_checkpoints_secs has no effect with --save_checkpoints_steps' train x --save_checkpoints_steps 5 \
    --save_checkpoints_secs 5
idx() { belfry train --model_dir x --train_files "$TRAIN_CSV,$TRAIN_CSV" --input_format idx "$@"; }
run_fails 2 '--label_column has no effect without --input_format csv, and that is idx' idx --label_column y
run_fails 2 '--no_header has no effect without --input_format csv, and that is idx' idx --no_header
run_fails 2 'IDX files have no columns, and --id_columns' idx --model wide_deep --id_columns a
run_fails 2 '--label_column has no effect without --input_format csv, and that is idx' \
    belfry train --model_dir x --train_files a-images-idx3-ubyte --label_column y
run_fails 2 '--param has no effect without --package' train x --param units=3
run_fails 2 '--best_goal has no effect without --early_stopping or --export or --keep_best' train x --best_goal max
run_fails 2 '--best_metric has no effect without' train x --best_metric accuracy
run_fails 2 '--keep_checkpoint_every_n_hours has no effect with --keep_checkpoint_max 0' train x \
    --keep_checkpoint_max 0 --keep_checkpoint_every_n_hours 2
run_fails 2 '--clip_each_replica has no effect without --clip_value or' train x --clip_each_replica
run_fails 2 '--eval_batch_size has no effect without --eval_files or' belfry train_and_evaluate --model_dir x \
    --train_files "$TRAIN_CSV" --eval_batch_size 5
run_fails 2 '--towers_of_workers: expected a number for each of 2 workers, got 3' \
    train x --num_workers 2 --towers_of_workers 1,1,1
run_fails 2 'clip_norm and clip_global_norm' train x --clip_norm 1 --clip_global_norm 1
run_fails 2 'lamb takes norms itself' train x --clip_norm 1 --optimizer lamb
run_fails 2 'class_count must be an integer from 2' train x --class_count 0
run_fails 2 '--model and --package exclude' train x --model dnn --package x.so
run_fails 2 'inspect: expected one folder' belfry inspect
run_fails 2 'bisect: expected two folders (model_dirs or checkpoints), got 1' belfry bisect x
run_fails 2 '--cost has no effect with --dump: give one of the two' \
    belfry graph --train_files "$TRAIN_CSV" --cost --dump
run_fails 2 'image_shape must be a list of at most 3 integers' \
    belfry train --model_dir x --train_files "$TRAIN_CSV" --model cnn --image_shape 1,8,8,1
if [ -w /dev/full ]; then
    full() { belfry version >/dev/full; }
    run_fails 1 'cannot write to stdout' full
fi

# --- Words of other trainers, if the verb has such a flag
run_fails 2 'unknown flag --lr; did you mean --learning_rate?' belfry train --lr 0.1
run_fails 2 'unknown flag --batch-size; did you mean --train_batch_size?' belfry train --batch-size=8
run_fails 2 'unknown flag --workers; did you mean --num_workers?' belfry train --workers 2
run_fails 2 'unknown flag --workers; did you mean --worker_count?' belfry local train --workers 2 -- x
run_fails 2 'unknown flag --epochs; --help lists all flags' belfry version --epochs 2
run_fails 3 "$work is a folder, expected a file; hint: a pattern, such as '$work/*.csv'" belfry train --model_dir m \
    --train_files "$work"
printf 'a,b,a,y\n1,2,3,0\n' >double.csv
run_ok belfry train --columns none --model_dir double --train_files double.csv --train_steps 1
check "repeated names are reported" grep -q 'double.csv: two columns are called "a", so other files must' err.txt
printf '0.5,2,1\n1.5,3,0\n' >bare.csv
run_ok belfry train --columns none --model_dir bare --train_files bare.csv --train_steps 1
check "a header of numbers is reported" grep -q 'bare.csv: the first row contains only numbers.*--no_header' err.txt
run_ok belfry train --columns none --model_dir named --train_files bare.csv --no_header --train_steps 1
check "not with a real header" sh -c "! grep -q 'contains only numbers' err.txt"
printf '0,1,2\n1.5,3,0\n' >counted.csv
run_ok belfry train --columns none --model_dir counted --train_files counted.csv --train_steps 1
check "not if its numbers count columns" sh -c "! grep -q 'contains only numbers' err.txt"

# --- Settings files
printf 'seed: 1\ntrain_steps: many\n' >bad.yaml
run_fails 2 'bad.yaml:2:14: train_steps: expected an integer|got "many"' \
    belfry train --config_file bad.yaml
printf 'seed: 1\ntrain_stpes: 5\n' >bad.yaml
run_fails 2 'bad.yaml:2:1: unknown key "train_stpes"|did you mean train_steps?' \
    belfry train --config_file bad.yaml
printf 'seed: 1\ntrain_files: [a, b\nmodel: dnn\n' >bad.yaml
run_fails 2 'bad.yaml:3:|not valid YAML' belfry train --config_file bad.yaml
printf 'seed: 1\nseed: 2\n' >bad.yaml
run_fails 2 'bad.yaml:2:1: key "seed" already exists in line 1' \
    belfry train --config_file bad.yaml
run_fails 2 'missing.yaml' belfry train --config_file missing.yaml

# --- CSV
run_fails 3 'missing.csv' train_on missing.csv
printf 'a,b,y\n1,2,0\n3,4\n' >ragged.csv
run_fails 3 'ragged.csv:3:' train_on ragged.csv
printf 'a,b,y\n1,2,0\n3,high,1\n' >text.csv
run_fails 3 'text.csv:3:3|high' train_on text.csv
printf 'a,b,y\n1,2,0\n3,4,10\n' >label.csv
run_fails 3 'label.csv:3:5|10' train_on label.csv
printf 'a,b,y\n1,2,0\n3,"4,1\n' >quote.csv
run_fails 3 'quote.csv:3:|quote' train_on quote.csv
: >empty.csv
run_fails 3 'empty.csv' train_on empty.csv
printf 'a,b,y\n' >header.csv
run_fails 3 'header.csv' train_on header.csv
printf 'a,b,y\n1,2,0\n3,4,1\n' >good.csv
run_fails 2 'good.csv|"digit"' train_on good.csv --label_column digit
run_fails 2 'batch size 100|has only 2' train_on good.csv --train_batch_size 100 --drop_remainder --num_epochs 1
run_fails 2 'batch size 100|has only 2' train_on good.csv --train_batch_size 100 --drop_remainder --train_steps 0
mkdir locked
run_fails 2 'another run trains in locked' flock locked/job.lock \
    "$BUILD/tools/belfry" train --model_dir locked --train_files "$TRAIN_CSV" --train_steps 1
mkdir -p barred/job.lock # a folder in which no file can be opened for writing
run_fails 1 'cannot open barred/job.lock' "$BUILD/tools/belfry" train --model_dir barred \
    --train_files "$TRAIN_CSV" --train_steps 1
check "a lock that cannot be opened is not another run" test "$(grep -c 'another run' err.txt)" = 0
run_fails 3 'missing.csv' env BELFRY_SECRET=0123456789abcdef TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"],
    "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"]}, "task": {"type": "worker", "index": 0}}' \
    "$BUILD/tools/belfry" train --model_dir model --train_files missing.csv
run_fails 2 '--towers_of_workers is for one process' env BELFRY_TASK='{"role": "master", "index": 0, "worker_count": 1,
    "parameter_server_count": 1, "master": "127.0.0.1:1"}' "$BUILD/tools/belfry" train --model_dir model \
    --train_files "$TRAIN_CSV" --towers_of_workers 2
run_fails 3 'folder/missing.csv' train_on missing.csv --data_dir folder
gzip -k good.csv
run_ok train_on good.csv.gz
# A run that could not begin leaves nothing that disturbs the next one.
printf 'a,b,y\n1,2,0\n3,4,1\n5,high,1\n' >late.csv
over_again() { # FILE
    belfry train --columns none --model_dir again --train_files "$1" --train_batch_size 1 --num_epochs 1 --hidden_units 4 --no_report
}
run_fails 3 'late.csv:4:3|high' over_again late.csv
BELFRY_FAULT=crash:tower_step capture over_again good.csv
equal "exit code of a run killed before its first step" "$code" 137
printf '5,6,1\n' | cat good.csv - >corrected.csv
run_ok over_again corrected.csv
check "which the log says" grep -q 'nothing was trained in again yet' err.txt
run_fails 2 'trained with other settings' over_again good.csv
printf 'a,b,y\n1,2,0\n3,4,1\n5,7,1\n' >swapped.csv # with the size of corrected.csv
run_fails 2 'input (the data, their order, the number of epochs) was' over_again swapped.csv
head -c 30 good.csv.gz >cut.csv.gz
run_fails 3 'cut.csv.gz' train_on cut.csv.gz

# --- IDX: 3 images of 2 x 2, then labels
printf '\0\0\10\3\0\0\0\3\0\0\0\2\0\0\0\2abcdefghijkl' >t-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\3\0\1\2' >t-labels-idx1-ubyte
run_ok train_on t-images-idx3-ubyte
printf '\0\0\10\1\0\0\0\2\0\1' >two-labels
run_fails 3 'two-labels|2|3' train_on t-images-idx3-ubyte,two-labels
head -c 20 t-images-idx3-ubyte >cut-images-idx3
run_fails 3 'cut-images-idx3' train_on cut-images-idx3,t-labels-idx1-ubyte
printf '\0\0\10\1\0\0\0\3\0\1\12' >high-labels
run_fails 3 'high-labels|10' train_on t-images-idx3-ubyte,high-labels
run_fails 3 'good.csv|IDX' train_on good.csv,t-labels-idx1-ubyte --input_format idx
run_fails 2 'IDX images need labels' train_on good.csv --input_format idx
run_fails 2 'one pair of IDX files' train_on t-images-idx3-ubyte,a,b

# --- Folders
: >file
run_fails 2 'cannot create folder file/model|a file is in the way' train file/model --train_steps 1
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    run_fails 1 'locked/model|denied' train locked/model --train_steps 1
fi
mkdir hollow
run_fails 3 'hollow holds no checkpoint' belfry inspect hollow
run_fails 3 'hollow holds no checkpoint' \
    belfry evaluate --model_dir hollow --eval_files "$EVAL_CSV"
run_fails 3 'no folder gone' belfry inspect gone
run_fails 2 '--model_dir or --checkpoint is needed' belfry evaluate --eval_files "$EVAL_CSV"

# --- Resuming with other settings
digits_of() { # UNITS MODEL_DIR FLAGS…: train with another hidden layer
    local units=$1 model_dir=$2
    shift 2
    belfry train --model_dir "$model_dir" --train_files "$TRAIN_CSV" --feature_scale 0.0625 \
        --train_batch_size 32 --hidden_units "$units" "$@"
}
run_ok train good --train_steps 20
before=$(digest good)
run_fails 2 'train_batch_size was 32 and is 16|good/ckpt-00000020|--allow_changes' \
    train good --train_steps 40 --train_batch_size 16
run_fails 2 'learning_rate was 0.001 and is 0.1' train good --train_steps 40 --learning_rate 0.1
run_fails 2 'seed was 1 and is 2' train good --train_steps 40 --seed 2
run_fails 2 'param.hidden_units was 32 and is 16' digits_of 16 good --train_steps 40
run_fails 3 'dense_0|[64, 16]|[64, 32]' \
    digits_of 16 good --train_steps 40 --allow_changes
run_fails 3 'dense_0|[64, 16]|[64, 32]' \
    belfry evaluate --model_dir good --eval_files "$EVAL_CSV" --hidden_units 16
cut -d, -f2- "$EVAL_CSV" >narrow.csv
run_fails 2 'one checkpoint|--model_dir good|--checkpoint good/ckpt-' \
    belfry evaluate --checkpoint good --eval_files "$EVAL_CSV"
run_fails 2 'narrow.csv|"p0"' belfry evaluate --model_dir good --eval_files narrow.csv
equal "the checkpoint after refusals" "$(digest good)" "$before"

# --- The disk is full at the n-th write: saved data stay. A checkpoint that cannot be written fails the run;
# curves and reports are written later.
full_disk() { # N: the n-th write fails
    BELFRY_FAULT=write:$1 train full --train_steps 40 --save_checkpoints_steps 5 \
        --keep_checkpoint_max 0
}
for n in 1 2 3 4 5 6 7 8; do
    rm -rf full && cp -r good full
    capture full_disk "$n"
    checks=$((checks + 1))
    case $code in
    0) grep -qE '^warning: (curves are not written for now|no report is written): .*No space left' err.txt ||
        complain "write $n fails silently" ;;
    1) grep -q '^belfry: .*full/.*No space left' err.txt || complain "write $n fails without its file" ;;
    *) complain "exit code $code after failed write $n" ;;
    esac
    ends="${ends:-}$code"
    checks=$((checks + 1))
    belfry inspect full/ckpt-00000020 --digest >saved.txt 2>&1 || true
    [ "$(cat saved.txt)" = "$before" ] || complain "the checkpoint after failed write $n"
done
check "some failed writes end a run, others do not: $ends" [ "${ends//0/}" != "$ends" -a "${ends//1/}" != "$ends" ]
run_ok train full --train_steps 40 --save_checkpoints_steps 5 --keep_checkpoint_max 0
run_ok train good --train_steps 40
equal "resumed after full disks" "$(digest full)" "$(digest good)"

# --- Damaged checkpoints are named; training resumes from an older good one
run_ok train hurt --train_steps 10
shard=$(ls hurt/ckpt-00000010/*.safetensors)
cp "$shard" whole
head -c 500 whole >"$shard"
run_fails 3 "$shard" belfry inspect hurt/ckpt-00000010
printf 'X' | cat whole - | tail -c +2 >"$shard"
run_fails 3 "$shard" belfry inspect hurt/ckpt-00000010
rm "$shard"
run_fails 3 "$shard" belfry inspect hurt/ckpt-00000010
run_fails 3 "$shard" belfry evaluate --checkpoint hurt/ckpt-00000010 --eval_files "$EVAL_CSV"
run_ok train hurt --train_steps 10
check "the damaged checkpoint is named" grep -q 'is skipped: .*shard-00000-of-00001' err.txt
run_ok belfry inspect hurt --digest
printf '{' >hurt/ckpt-00000010/manifest.json
run_fails 3 'hurt/ckpt-00000010/manifest.json' belfry inspect hurt/ckpt-00000010
rm -r hurt/ckpt-00000000
run_fails 3 'hurt|ckpt-00000010' train hurt --train_steps 20

# --- Divergence
run_fails 1 'not finite' digits_of 32,32 nan --train_steps 400 --optimizer sgd \
    --learning_rate 1e6 --save_checkpoints_steps 1 --keep_checkpoint_max 0
check "the worker and its records are named" \
    grep -qE '^warning: worker 0, replica 0: the loss of its batch is .*; its records, from 0: [0-9]+, ' err.txt
run_ok belfry inspect nan
run_ok belfry evaluate --model_dir nan --eval_files "$EVAL_CSV"

# An overflowed slot would freeze its parameters, with a finite loss.
run_fails 1 'logits/kernel/adam/v" is not finite|nothing was saved' belfry train --model linear --model_dir slot \
    --train_files "$TRAIN_CSV" --label_column digit --feature_scale 1e30 --train_batch_size 32 --train_steps 1
run_fails 1 'the loss is not finite' belfry train --model linear --model_dir slot --train_files "$TRAIN_CSV" \
    --label_column digit --feature_scale 1e30 --train_batch_size 32 --train_steps 10

# --- Packages
compile() { # NAME: compiles the C on stdin to a shared object
    ${CC:-cc} -shared -fPIC -I"$SOURCE/include" -x c -o "$1.so" -
}
echo 'int nothing;' | compile nothing
echo '#include <belfry/belfry.h>
static bel_status *fn(bel_model_context *c, bel_estimator_spec *s) { (void)c, (void)s; return 0; }
BEL_API extern const bel_package bel_package_entry;
const bel_package bel_package_entry = {.abi = 999, .name = "later", .model_fn = fn};' | compile later
echo '#include <belfry/belfry.h>
static bel_status *fn(bel_model_context *c, bel_estimator_spec *s)
{ (void)c, (void)s; return BEL_ERR(BEL_INVALID_ARGUMENT, "the model says no"); }
BEL_PACKAGE(.name = "refusing", .description = "", .model_fn = fn)' | compile refusing
echo '#include <belfry/belfry.h>
static bel_status *fn(bel_model_context *c, bel_estimator_spec *s)
{ (void)c, (void)s; return 0; }
BEL_PACKAGE(.name = "hollow", .description = "", .model_fn = fn)' | compile hollow
echo 'not a shared object' >text.so
run_fails 2 'there is no file ./missing.so' train p --package missing.so
run_fails 2 'text.so as a shared object' train p --package text.so
run_fails 2 'nothing.so does not export bel_package_entry; did you use BEL_PACKAGE?' \
    train p --package nothing.so
run_fails 2 'later.so was compiled for package ABI 999, this belfry has' train p --package later.so
run_fails 2 'the model says no' train p --train_steps 1 --package refusing.so
run_fails 2 'loss in TRAIN' train p --train_steps 1 --package ./hollow.so
check "they saved nothing" test ! -e p/ckpt-00000001

# --- Tables that cannot fit into memory
make_clicks
run_fails 1 'table "deep": 4000000000 ids of a replica|rows of 4096 floats, replicas: 1' \
    belfry train_and_evaluate "${clicks[@]}" --train_steps 1 --model_dir room --train_batch_size 2000000000 \
    --embedding_width 4096

finish
