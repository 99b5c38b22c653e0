#!/usr/bin/env bash
# Packages and programs: the examples, built against an installed Belfry by their READMEs' commands, train.
# usage: package.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

prefix=$work/prefix
run_ok cmake --install "$BUILD" --prefix "$prefix"
pc=$(find "$prefix" -name belfry.pc)
check "belfry.pc is installed" test -f "$pc"
check "the headers are installed" test -f "$prefix/include/belfry/belfry.h"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

cp -r "$SOURCE/examples/my_model" .
run_ok cmake -S my_model -B my_model/build
run_ok cmake --build my_model/build

belfry() { timeout -k 5 "$patience" "$prefix/bin/belfry" "$@"; }
digits=(--train_files "$TRAIN_CSV" --eval_files "$EVAL_CSV" --feature_scale 0.0625
    --train_batch_size 32)
run_ok train m --train_steps 20 --package my_model/build/my_model.so --param units=16
run_ok belfry inspect m
check "its parameter is remembered" grep -qE 'param.units +16' out.txt
check "its name is remembered" grep -qE 'param.model +my_model' out.txt
check "its variables are saved" grep -qE 'block/a/kernel +f32 +\[16, 16\]' out.txt

run_ok train m --train_steps 200 --package my_model/build/my_model.so --param units=16
accuracy=$(sed -n 's/^accuracy //p' out.txt)
check "it learns: accuracy $accuracy" awk "BEGIN { exit !($accuracy > 0.9) }"
run_fails 2 'was trained with a package' belfry evaluate --model_dir m --eval_files "$EVAL_CSV"
run_ok belfry evaluate --model_dir m --eval_files "$EVAL_CSV" --package my_model/build/my_model.so
equal "evaluate reads the parameters from the checkpoint" \
    "$(sed -n 's/^accuracy //p' out.txt)" "$accuracy"
run_fails 2 "was trained with a package's model" belfry serve m --port 0
run_ok belfry export --model_dir m --package my_model/build/my_model.so --export_dir exported
run_fails 2 '--package has no effect here' belfry serve exported --port 0 --package my_model/build/my_model.so

# Requests have the columns that the model reads, and a package is for the trainings of its model.
serves() { # ARGUMENTS: a server on these starts; $url
    : >serve.out
    "$prefix/bin/belfry" serve --port 0 "$@" >serve.out 2>serve.err </dev/null &
    server=$!
    until_true grep -q '^url ' serve.out || true
    url=$(sed -n 's/^url //p' serve.out)
}
ends() {
    kill "$server"
    wait "$server"
    server=
}
server=
trap '[ -z "$server" ] || kill -9 "$server"; rm -rf "$work"' EXIT
cat >partial.c <<'END'
#include <belfry/belfry.h>

// Only the loss depends on "x" and on the table "aside".
static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer small = {.kind = BEL_INIT_NORMAL, .value = 0.05};
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
    const bel_shape flat = BEL_SHAPE(BEL_DIM_BATCH, 4);
    bel_value *x = bel_context_feature(context, "x"), *ids = bel_context_feature(context, "ids");
    bel_value *aside = bel_reshape(g, bel_embedding(g, "aside", ids, 4, small), &flat);
    bel_value *rows = bel_reshape(g, bel_embedding(g, "rows", ids, 4, small), &flat);
    bel_value *logits = bel_dense(g, rows, 2, "logits"), *other = bel_dense(g, bel_add(g, aside, x), 2, "other");
    bel_predictions_set(spec, bel_softmax(g, logits));
    bel_value *labels = bel_context_labels(context);
    if (labels != NULL)
        bel_loss_set(spec, bel_mean(g, bel_add(g, bel_softmax_cross_entropy(g, logits, labels),
                                               bel_softmax_cross_entropy(g, other, labels))));
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

BEL_PACKAGE(.name = "partial", .description = "reads some columns", .model_fn = model_fn)
END
# shellcheck disable=SC2046 # flags are words
run_ok cc -shared -fPIC $(pkg-config --cflags belfry) partial.c -o partial.so
awk 'BEGIN { print "who,size,y"; for (i = 0; i < 400; i++) printf "u%d,%d,%d\n", i % 150, i * 7 % 31, (i * 7 % 31 > 15) }' >rows.csv
run_ok belfry columns rows.csv --label_column y
cp out.txt rows.yaml
run_ok belfry train --train_files rows.csv --columns rows.yaml --train_steps 20 --model_dir p --package ./partial.so
run_ok belfry train --train_files rows.csv --columns rows.yaml --train_steps 20 --model_dir plain
run_fails 2 'and these were trained with other models' belfry serve plain --port 0 --package ./partial.so
serves p plain --package ./partial.so
check "each training has its model" test -n "$url"
cp serve.err out.txt
run_ok curl -sf -m 5 "$url/v2/models/p"
check "a column that no output depends on is no input" sh -c "grep -q who out.txt && ! grep -q size out.txt"
run_ok curl -sf -m 5 -d '{"instances": [{"who": "u3"}]}' "$url/v1/models/p:predict"
served=$(grep -oE '[0-9.e-]+, ?[0-9.e-]+' out.txt | tr -d ' ')
run_ok curl -sf -m 5 -d '{"instances": [{"who": "u3", "size": 3}]}' "$url/v1/models/plain:predict"
ends
printf 'who,size,y\nu3,3,0\n' >one.csv
run_ok belfry predict --model_dir p --package ./partial.so --eval_files one.csv
check "its answer is that of predict: $served" sh -c "test -n \"$served\" && grep -qF \"$served\" out.txt"
run_ok belfry train_and_evaluate --config_file m/job.yaml --train_steps 210
run_fails 2 'expected units >= 1' train n --train_steps 1 --package my_model/build/my_model.so \
    --param units=0

# --- Like docs/models.md, word for word
awk '/^...c$/ { inside = 1; next } /^...$/ { inside = 0 } inside' "$SOURCE/docs/models.md" >my_model.c
line=$(grep -m 1 '^cc -shared' "$SOURCE/docs/models.md")
check "the manual has a model and its compile line" test -s my_model.c -a -n "$line"
run_ok bash -c "$line"
run_ok train manual --train_steps 20 --package my_model.so --param units=16
run_ok train misspelt --train_steps 2 --package my_model.so --param unit=16 --nesterov
check "a parameter that the model function does not read is named" grep -q 'does not read the parameter "unit"' err.txt
check "a parameter of the command is not" sh -c "! grep 'parameter \"feature_scale\"' err.txt"

sed 's/return bel_relu(g, bel_add(g, h, b))/return bel_dropout(g, bel_relu(g, bel_add(g, h, b)), 0.5)/' my_model/my_model.c >drops.c
# shellcheck disable=SC2046 # flags are words
run_ok cc -shared -fPIC $(pkg-config --cflags belfry) drops.c -o drops.so
run_ok train drops --train_steps 2 --package drops.so --param units=4
check "dropout in an evaluation is named" grep -q 'model function in EVAL: Dropout_[0-9]* drops elements' err.txt
run_ok train manual --train_steps 25 --package my_model.so --param units=16
check "a model without it is not" sh -c "! grep 'drops elements' err.txt"

# --- Packages that end the process
broken() { # NAME STATEMENT
    printf '%s\n' '#include <stdlib.h>' '#include <belfry/belfry.h>' \
        'static bel_status *end(bel_model_context *context, bel_estimator_spec *spec)' \
        "{ (void)context, (void)spec; $2; return NULL; }" 'BEL_PACKAGE(.name = "broken", .description = "ends", .model_fn = end);' >"$1.c"
    # shellcheck disable=SC2046 # flags are words
    run_ok cc -shared -fPIC $(pkg-config --cflags belfry) "$1.c" -o "$1.so"
}
broken fault '*(volatile int *)0 = 1'
run_fails 139 'crashed|package ./fault.so' train f --train_steps 1 --package ./fault.so
broken aborts 'abort()'
run_fails 134 'crashed|package ./aborts.so' train f --train_steps 1 --package ./aborts.so
broken exits 'exit(0)'
run_fails 1 'package ./exits.so called exit' train f --train_steps 1 --package ./exits.so

# --- A user's program, with tables; without a sanitizer it cannot load a library that has one
if ! grep -q '^BELFRY_SANITIZE:[A-Z]*=$' "$BUILD/CMakeCache.txt"; then
    finish
    exit
fi
cp -r "$SOURCE/examples/clicks" .
run_ok cmake -S clicks -B clicks/build
run_ok cmake --build clicks/build
clicks/make_data 8000 1 >train.csv
clicks/make_data 2000 2 >eval.csv
export LD_LIBRARY_PATH=$prefix/lib
run_ok clicks/build/clicks train.csv eval.csv 8 --model_dir one
accuracy=$(sed -nE 's/.*accuracy ([0-9.]+),.*/\1/p' out.txt)
check "rows are learned: accuracy $accuracy" awk "BEGIN { exit !($accuracy > 0.85) }"
cp out.txt first.txt
run_ok clicks/build/clicks train.csv eval.csv 8 --model_dir other
check "the same bits again" cmp -s first.txt out.txt
run_ok belfry inspect one
check "tables are listed" grep -qE '^  user +400 rows of 8: values, adagrad/' out.txt
run_ok belfry inspect one --json
check "and in JSON" grep -q '"name":"popularity","rows":200,"width":1' out.txt
sed -i '5s/^[^,]*/nobody/' train.csv
capture clicks/build/clicks train.csv eval.csv 5 --model_dir bad
check "an invalid line is named" grep -q 'train.csv:5' err.txt

# --- Programs with a loop, and ranks
for name in gan factors actor_learner ddl; do
    cp -r "$SOURCE/examples/$name" .
    run_ok cmake -S "$name" -B "$name/build"
    run_ok cmake --build "$name/build"
done
run_ok gan/build/gan "$TRAIN_CSV" 50 --model_dir gan/run
run_ok factors/build/factors "$TRAIN_CSV" 50 --model_dir factors/run --num_gpus 2
run_ok actor_learner/build/actor_learner 50 --model_dir actor_learner/run
run_ok ddl/build/alone "$TRAIN_CSV" 100
cp out.txt alone.txt
run_ok ddl/build/ranks "$TRAIN_CSV" 100
check "a single rank prints the same as the program before" cmp -s out.txt alone.txt

finish
