// The models gru and lstm (40 numbers a step, 128 units, 10 classes) with SGD momentum on synthetic
// sequences of 20 to 100 steps, padded batches of 32: examples per second of the whole training
// path. usage: bench_train_rnn gru|lstm THREADS [ROUNDS]; bench/train runs it beside PyTorch
// and prints the ratio. With 0 rounds it trains, with Adam, on a task that needs memory: of items
// in noise one is marked, and its value is the class. It prints the accuracy on other sequences.
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/rng.h"
#include "figures.h"
#include "mlp.h"

enum {
    RECORDS = 4096,
    HELD_OUT = 512,
    LEAST = 20,
    MOST = 100,
    WIDTH = 40,
    CLASSES = 10,
    BATCH = 32,
    STEPS = 40
};

static float x[RECORDS + HELD_OUT][MOST][WIDTH];
static int64_t lengths[RECORDS + HELD_OUT], labels[RECORDS + HELD_OUT];

// Fills the numbers of a step: an item of CLASSES, whether it is the marked one, noise.
static void fill(void)
{
    bel_rng_key key = bel_rng_key_make(1, "bench", 0);
    uint64_t at = 0;
    for (int i = 0; i < RECORDS + HELD_OUT; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, at++, words);
        lengths[i] = LEAST + words[0] % (MOST - LEAST + 1);
        int64_t marked = words[1] % lengths[i];
        for (int64_t t = 0; t < lengths[i]; t++) {
            for (int64_t d = 0; d < WIDTH; d += 4) {
                bel_rng_block(key, 0, at++, words);
                for (int k = 0; k < 4; k++)
                    x[i][t][d + k] = d + k > CLASSES ? bel_rng_unit(words[k]) - 0.5f : 0.0f;
            }
            x[i][t][words[0] % CLASSES] = 1;
            x[i][t][CLASSES] = t == marked;
            if (t == marked) labels[i] = words[0] % CLASSES;
        }
    }
}

static bel_status *open_input(void *user, const bel_estimator *estimator, bel_mode mode,
                              bel_dataset **out_dataset)
{
    (void)user, (void)estimator;
    int64_t first = mode == BEL_MODE_TRAIN ? 0 : RECORDS;
    int64_t count = mode == BEL_MODE_TRAIN ? RECORDS : HELD_OUT;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(count, MOST, WIDTH), x[first]}},
        {BEL_LENGTH_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(count), lengths + first}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(count), labels + first}}};
    *out_dataset = bel_dataset_from_memory(fields, 3);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// Trains, and evaluates if `evaluate`.
static bel_status *train(const char *model, int threads, int64_t steps, bool evaluate,
                         bel_result *out_result)
{
    const bel_param params[] = {{"optimizer", evaluate ? "adam" : "momentum"},
                                {"learning_rate", evaluate ? "0.003" : "0.01"},
                                {"clip_global_norm", evaluate ? "1" : "0"},
                                {"class_count", "10"}};
    bel_train_spec spec = {.size = sizeof spec, .input_fn = open_input, .max_steps = steps};
    bel_eval_spec eval_spec = {.size = sizeof eval_spec, .input_fn = open_input};
    return bench_run(model, params, 4, threads, &spec, evaluate ? &eval_spec : NULL, out_result);
}

static bel_status *remember(const char *model, int threads)
{
    enum { LEARNING_STEPS = 2500 };
    bel_result result = {.size = sizeof result};
    BEL_TRY(train(model, threads, LEARNING_STEPS, true, &result));
    printf("{\"bench\":\"train_rnn\",\"model\":\"%s\",\"steps\":%d,\"held_out_accuracy\":%.4f}\n",
           model, LEARNING_STEPS, result.metrics[0].value);
    return NULL;
}

static bel_status *measure(const char *model, int threads, int rounds)
{
    enum { MOST_ROUNDS = 64 };
    double rates[MOST_ROUNDS];
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "0 to %d rounds", MOST_ROUNDS);
    }
    for (int i = 0; i < rounds; i++) {
        bel_result result = {.size = sizeof result};
        BEL_TRY(train(model, threads, STEPS, false, &result));
        rates[i] = STEPS * BATCH / result.train_seconds;
    }
    printf(
        "{\"bench\":\"train_rnn\",\"model\":\"%s\",\"threads\":%d,\"examples_per_second\":%.0f}\n",
        model, threads, bench_median(rates, rounds));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3 || bel_model_find(argv[1]) == NULL) {
        fprintf(stderr, "usage: %s gru|lstm THREADS [ROUNDS]\n", argv[0]);
        return 2;
    }
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    fill();
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    int threads = (int)strtol(argv[2], NULL, 10);
    return bench_end(rounds == 0 ? remember(argv[1], threads) : measure(argv[1], threads, rounds));
}
