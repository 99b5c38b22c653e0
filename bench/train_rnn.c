// The models gru and lstm (40 numbers a step, 128 units, 10 classes) with SGD momentum on synthetic
// sequences of 20 to 100 steps, padded batches of 32: examples per second of the whole training
// path. usage: bench_train_rnn gru|lstm THREADS [ROUNDS]; bench/train_rnn runs it beside PyTorch
// and prints the ratio.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "mlp.h"

enum { RECORDS = 256, LEAST = 20, MOST = 100, WIDTH = 40, BATCH = 32, STEPS = 40 };

static float x[RECORDS][MOST][WIDTH];
static int64_t lengths[RECORDS], labels[RECORDS];

static float noise(uint64_t at)
{
    static bel_rng_key key;
    uint32_t words[4];
    if (at == 0) key = bel_rng_key_make(1, "bench", 0);
    bel_rng_block(key, 0, at, words);
    return 2.0f * bel_rng_unit(words[0]) - 1.0f;
}

static void fill(void)
{
    for (int i = 0; i < RECORDS; i++) {
        lengths[i] = LEAST + i * 7919 % (MOST - LEAST + 1);
        labels[i] = i * 7 % 10;
        for (int64_t t = 0; t < lengths[i]; t++)
            for (int64_t d = 0; d < WIDTH; d++)
                x[i][t][d] = noise((uint64_t)((i * MOST + t) * WIDTH + d));
    }
}

static bel_status *open_input(void *user, bel_mode mode, bel_dataset **out_dataset)
{
    (void)user, (void)mode;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, MOST, WIDTH), x}},
        {BEL_LENGTH_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), lengths}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 3);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

static bel_status *train(const char *model, int threads, double *out_seconds)
{
    const bel_param params[] = {
        {"optimizer", "momentum"}, {"learning_rate", "0.01"}, {"class_count", "10"}};
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) return BEL_ERR(BEL_INTERNAL, "cannot make a folder");
    bel_run_config config;
    bel_run_config_init(&config);
    config.model_dir = folder;
    config.thread_count = threads;
    config.report = false;
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find(model)->model_fn, &config, params, 3, &estimator));
    bel_train_spec spec = {.input_fn = open_input, .max_steps = STEPS};
    bel_result result;
    bel_status *status = bel_train(estimator, &spec, &result);
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp does not matter
    if (status == NULL) *out_seconds = result.train_seconds;
    return status;
}

static bel_status *measure(const char *model, int threads, int rounds)
{
    enum { MOST_ROUNDS = 64 };
    double rates[MOST_ROUNDS];
    if (bel_model_find(model) == NULL || rounds < 1 || rounds > MOST_ROUNDS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "gru or lstm, 1 to %d rounds", MOST_ROUNDS);
    }
    for (int i = 0; i < rounds; i++) {
        double seconds = 1;
        BEL_TRY(train(model, threads, &seconds));
        rates[i] = STEPS * BATCH / seconds;
    }
    printf(
        "{\"bench\":\"train_rnn\",\"model\":\"%s\",\"threads\":%d,\"examples_per_second\":%.0f}\n",
        model, threads, bench_median(rates, rounds));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s gru|lstm THREADS [ROUNDS]\n", argv[0]);
        return 2;
    }
    bench_fill();
    fill();
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    return bench_end(measure(argv[1], (int)strtol(argv[2], NULL, 10), rounds));
}
