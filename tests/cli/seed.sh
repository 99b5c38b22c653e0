#!/usr/bin/env bash
# Command lines of users of Google's AI Platform (gcloud ml-engine), word for word after the program's name: a
# package by its folder, dashes for underscores, and flags without a meaning here. And `belfry new`, whose
# package they train.
# usage: seed.sh BUILD_FOLDER
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh" "$1"

export XDG_STATE_HOME=$work/state

# --- A package to begin with
run_ok belfry new trainer
for file in trainer.c CMakeLists.txt package.yaml make_data test.sh README.md; do
    check "it has $file" test -s "trainer/$file"
    check "no placeholder is left in $file" sh -c "! grep -q @NAME@ trainer/$file"
done
run_fails 2 'trainer is there already; nothing was changed' belfry new trainer
run_fails 2 'expected one name of small letters' belfry new A-b
run_fails 2 'expected one name of small letters|got nothing' belfry new
trainer/make_data 1000 1 >train.csv
trainer/make_data 300 2 >eval.csv

# --- As in the article: local, then submitted
run_ok belfry local train \
    --package-path trainer/ \
    --module-name trainer.main \
    --job-dir job \
    -- \
    --train_files train.csv \
    --eval_files eval.csv \
    --train_batch_size 8 \
    --eval_batch_size 8 \
    --model_dir checkpoints \
    --train_steps 400
check "the log says that checkpoints do not go to the job's folder" grep -q 'checkpoints go to --model_dir checkpoints, not to --job_dir job' err.txt
package=$(echo checkpoints/packages/*/main.so)
check "the package is kept by its digest" test -s "$package"
run_ok belfry inspect checkpoints
check "and was trained" grep -q 'param.model *trainer' out.txt
check "with the defaults of its flags" grep -q 'param.units *32' out.txt

# --- The same package from elsewhere, and by the training verbs
short=(--train_files "$work/train.csv" --train_batch_size 8 --train_steps 10 --no_report)
mkdir far
cp -r trainer far/
kept() { basename "$(dirname "$(echo "$1"/packages/*/*.so)")"; }
run_ok env -C far/trainer "$BUILD/tools/belfry" train --package_path . --model_dir "$work/here" "${short[@]}"
run_ok belfry train --package_path far/trainer --module_name trainer.main --model_dir there "${short[@]}"
equal "the same sources have the same digest, in any folder" "$(kept here)" "$(kept there)"
equal "and the same as in the job" "$(kept here)" "$(kept checkpoints)"
rm far/trainer/package.yaml
cp -r far/trainer "far/trainer 2"
sed -i 's/MODULE trainer.c/MODULE trainer.c where.c/' far/trainer*/CMakeLists.txt
echo 'const char *where_it_is(void) { return __FILE__; }' | tee far/trainer/where.c >"far/trainer 2/where.c"
run_ok belfry train --package_path far/trainer --module_name trainer.trainer --model_dir cmade "${short[@]}"
run_ok belfry train --package_path "far/trainer 2" --module_name "trainer 2.trainer" --model_dir cmade2 "${short[@]}"
equal "also with CMake" "$(kept cmade)" "$(kept cmade2)"
check "its path is not a parameter" sh -c "! grep 'parameter \"package_path\"' err.txt"
run_ok belfry train --package_path trainer --model_dir here "${short[@]}" --train_steps 12
check "it resumes, whatever the path of its sources" grep -q '^global_step 12' out.txt
run_ok belfry local train --distributed --worker_count 1 --job_dir here -- --config_file here/job.yaml --train_steps 14
check "also from its job.yaml, in processes" grep -q '^global_step 14' out.txt
for verb in evaluate predict export; do
    files=(--eval_files eval.csv)
    [ $verb != export ] || files=()
    run_ok belfry $verb --model_dir here "${files[@]}"
    check "$verb loads the package from the model's folder" grep -q "package is .*/here/packages/.*/trainer.so" err.txt
done
mv here moved
run_ok belfry evaluate --checkpoint moved/ckpt-00000014 --eval_files eval.csv
check "also after the folder was moved" grep -q 'package is .*/moved/packages/' err.txt
rm -r moved/packages
run_fails 2 'was trained with a package' belfry evaluate --model_dir moved --eval_files eval.csv

cat >config.yaml <<'END'
scaleTier: CUSTOM
masterType: standard_p100
workerType: standard_p100
parameterServerType: complex_model_m
workerCount: 3
parameterServerCount: 1
END
JOB_NAME=voices
run_ok belfry jobs submit training $JOB_NAME \
    --package-path trainer \
    --module-name trainer.main \
    --region us-central1 \
    --job-dir job \
    --scale-tier CUSTOM \
    --config config.yaml \
    --runtime-version 1.4 \
    -- \
    --train_files train.csv \
    --eval_files eval.csv \
    --train_batch_size 16 \
    --eval_batch_size 16 \
    --model_dir submitted \
    --train_steps 100 \
    --data_dir . \
    --num_gpus 4 \
    --num_workers 3
check "a flag without a meaning is reported once" \
    grep -q 'without meaning here, and passed over: --region us-central1, --runtime_version 1.4$' err.txt
run_ok belfry jobs stream-logs $JOB_NAME
run_ok belfry jobs describe $JOB_NAME
check "the job has succeeded" grep -q '^state SUCCEEDED' out.txt
run_ok belfry inspect submitted
check "the same package, in all processes" test -s submitted/packages/"$(basename "$(dirname "$package")")"/main.so
check "16 replicas: three workers, and the master, of four towers" grep -q 'ckpt-00000100' out.txt

# --- Refusals
submit() { belfry jobs submit training "$@"; }
run_fails 2 '--config is needed' submit x --scale-tier CUSTOM --job-dir d
run_fails 2 '--scale_tier BASIC: config.yaml has scaleTier: CUSTOM' submit x --scale-tier basic --config config.yaml --job-dir d
printf 'hyperparameters:\n  goal: MAXIMIZE\n' >tuned.yaml
run_ok submit x --scale-tier basic-gpu --config tuned.yaml --job-dir d --dry_run -- --train_files train.csv
check "the tier works with a file that has none" grep -q '^master .* 1  *[0-9]* *yes$' out.txt
run_fails 2 'tuned.yaml|needs masterType' submit x --scale-tier CUSTOM --config tuned.yaml --job-dir d
sed 's/^workerCount:.*/&\nworkerConfig: {acceleratorConfig: {count: 2}}/' config.yaml >counted.yaml
run_ok submit x --config counted.yaml --job-dir d --dry_run -- --train_files train.csv
check "GPUs of a machine are its towers" grep -q '^worker 1 .* 2  *[0-9]* *-$' out.txt
run_fails 2 '4 towers are asked for each worker|standard_p100 has 2 devices' submit x --config counted.yaml --job-dir d --dry_run \
    -- --train_files train.csv --num_gpus 4
run_fails 2 'expected BASIC, BASIC_GPU' submit x --scale-tier LARGE --job-dir d
run_fails 2 'package trainer|modules trainer.NAME' belfry local train --package-path trainer --module-name other.main --job-dir d --
run_fails 3 'package nowhere|nowhere' belfry local train --package-path nowhere --job-dir d --
run_fails 2 '--package_path trainer needs a folder' belfry local train --package-path trainer -- --train_steps 1
run_fails 2 '--package_path belongs before --' belfry local train --distributed --job-dir d -- --package_path trainer
mkdir empty broken strange
run_fails 3 'package empty|neither package.yaml nor CMakeLists.txt nor any *.c' belfry local train --package-path empty --job-dir d --
echo 'int' >broken/a.c
run_fails 1 'package broken|exit code 1 of: ' belfry local train --package-path broken --job-dir d --
printf 'sourcse: [a.c]\n' >strange/package.yaml
run_fails 2 'strange/package.yaml:1:1|unknown key sourcse' belfry local train --package-path strange --job-dir d --
check "nothing was made" test ! -e d

# --- A job loads the package that it was started with
echo >>"$package"
run_fails 2 'so it is not what the job was started with' belfry evaluate --model_dir checkpoints --eval_files eval.csv --package "$package"

# --- Flags of a package
run_ok belfry local train --package-path trainer --module-name trainer.main --job-dir other -- --train_files train.csv \
    --train_steps 10 --units 8
so=$(echo other/packages/*/main.so)
run_ok belfry inspect other
check "its flag is a parameter of the model" grep -q 'param.units *8' out.txt
run_ok belfry train --config_file other/job.yaml --train_steps 20
run_fails 2 '--units: expected an integer in [1, 4096]' belfry train --package "$so" --model_dir x --units 0
run_fails 2 'unknown flag --unit|did you mean --units' belfry train --package "$so" --model_dir x --unit 8
run_fails 2 '--param units=8: use --units' belfry train --package "$so" --model_dir x --param units=8 --train_files train.csv
run_ok belfry evaluate --model_dir other --package "$so" --eval_files eval.csv
capture belfry train --package "$so" --model_dir y --train_files train.csv --train_steps 1 --header
check "a flag that its input does not read is reported" grep -q 'the input function does not read --header' err.txt

# --- Features from files that rows name: of different lengths, found beside the CSV file
mkdir -p listed/files sounds
for i in $(seq 60); do
    echo "files/$i,$((i % 2))"
    for ((k = 0; k < 3 + i % 5; k++)); do echo "$((i % 2 * 2 - 1))"; done >listed/files/"$i"
done >rows.txt
{ echo path,label && cat rows.txt; } >listed/train.csv
cat >sounds/sounds.c <<'END'
#include <stdio.h>
#include <belfry/belfry.h>
static int opened; // `user` points to it
static bel_status *feature_fn(void *user, const char *path, bel_record *record)
{
    float numbers[16];
    int64_t count = 0;
    if (user != &opened) return BEL_ERR(BEL_INTERNAL, "another user");
    FILE *file = fopen(path, "r");
    if (file == NULL) return BEL_ERR(BEL_NOT_FOUND, "cannot open %s", path);
    while (count < 16 && fscanf(file, "%f", &numbers[count]) == 1) count++;
    fclose(file);
    float *x = bel_record_add(record, "x", BEL_DTYPE_F32, &BEL_SHAPE(count));
    for (int64_t i = 0; i < count; i++) x[i] = numbers[i];
    return NULL;
}
static bel_status *model_fn(bel_model_context *c, bel_estimator_spec *s)
{
    bel_graph *g = bel_context_graph(c);
    const int64_t time = 1;
    if (bel_estimator_config(bel_context_estimator(c))->user != &opened)
        return BEL_ERR(BEL_INTERNAL, "another user");
    if (bel_context_batch_size(c) != 8 && bel_context_mode(c) == BEL_MODE_TRAIN)
        return BEL_ERR(BEL_INTERNAL, "another batch size");
    bel_value *sum = bel_reduce_sum(g, bel_context_only_feature(c), &time, 1, true);
    bel_value *scores = bel_dense(g, sum, 2, "scores");
    bel_predictions_set(s, bel_softmax(g, scores));
    bel_value *labels = bel_context_labels(c);
    if (labels != NULL) {
        bel_loss_set(s, bel_mean(g, bel_softmax_cross_entropy(g, scores, labels)));
        bel_metric_accuracy(c, s, "accuracy", labels, bel_arg_max(g, scores, 1), NULL);
    }
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
    bel_optimizer_use(s, NULL, &sgd);
    return NULL;
}
BEL_PACKAGE(.name = "sounds", .description = "", .model_fn = model_fn, .feature_fn = feature_fn, .user = &opened)
END
features=(--train_files listed/train.csv --eval_files listed/train.csv --train_batch_size 8 --train_steps 60 --num_workers 2)
run_ok belfry local train --package_path sounds --job_dir f -- "${features[@]}"
equal "it learns from files" "$(sed -n 's/^accuracy //p' out.txt)" 1
digest=$(sed -n 's/^digest //p' out.txt)
so=$(echo f/packages/*/sounds.so)
run_ok belfry local train --distributed --job_dir g -- --package "$so" "${features[@]}"
equal "the same bits from processes" "$(sed -n 's/^digest //p' out.txt)" "$digest"
{ echo path && cut -d, -f1 rows.txt; } >listed/predict.csv
run_ok belfry predict --model_dir f --package "$so" --eval_files listed/predict.csv
equal "a line for each file" "$(wc -l <out.txt)" 60
rm listed/files/9
run_fails 3 'listed/train.csv:10: cannot open listed/files/9' belfry evaluate --model_dir f --package "$so" \
    --eval_files listed/train.csv
sed "1s/ring/label/" eval.csv >no-path.csv
run_fails 2 'no column "path"' belfry evaluate --model_dir f --package "$so" --eval_files no-path.csv
run_fails 2 '--feature_scale are for numbers of a CSV' belfry train --package "$so" --model_dir h "${features[@]:0:2}" \
    --feature_scale 2

finish
