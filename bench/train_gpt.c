// The model gpt on random tokens, AdamW with clipping: examples per second of the whole training
// path; an example is a context of 64 tokens.
//   nano  nanoGPT's recipe for CPUs: 4 layers and 4 heads of 128 numbers, batches of 12, 65 tokens
//   gpt2  GPT-2's 124 million parameters by llm.c's recipe: batches of 4, 50,257 tokens
// usage: bench_train_gpt nano|gpt2 THREADS [ROUNDS]; bench/train runs it beside PyTorch and prints
// the ratio.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rng.h"
#include "belfry/tokens.h"
#include "figures.h"
#include "mlp.h"

enum { RECORDS = 1024, CONTEXT = 64 };

typedef struct recipe {
    const char *preset, *vocabulary;
    int batch, steps;
} recipe;

static const recipe recipes[] = {{"nano", "65", 12, 40}, {"gpt2", "50257", 4, 6}};

static int64_t tokens[RECORDS][CONTEXT], labels[RECORDS][CONTEXT];

static void fill(uint32_t vocabulary)
{
    bel_rng_key key = bel_rng_key_make(1, "bench", 0);
    for (int i = 0; i < RECORDS; i++)
        for (int t = 0; t < CONTEXT; t++) {
            uint32_t words[4];
            bel_rng_block(key, (uint64_t)i, (uint64_t)t, words);
            tokens[i][t] = words[0] % vocabulary;
            if (t > 0) labels[i][t - 1] = tokens[i][t];
        }
}

static bel_status *open_input(void *user, const bel_estimator *estimator, bel_mode mode,
                              bel_dataset **out_dataset)
{
    const recipe *r = user;
    (void)estimator, (void)mode;
    const bel_memory_field fields[] = {
        {BEL_TOKENS_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(RECORDS, CONTEXT), tokens}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(RECORDS, CONTEXT), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, r->batch);
    return NULL;
}

static bel_status *measure(recipe r, int threads, int rounds)
{
    enum { MOST_ROUNDS = 64 };
    double rates[MOST_ROUNDS];
    const bel_param params[] = {{"preset", r.preset},      {"vocabulary", r.vocabulary},
                                {"optimizer", "adamw"},    {"learning_rate", "0.001"},
                                {"weight_decay", "0.1"},   {"beta2", "0.99"},
                                {"clip_global_norm", "1"}, {"context", "64"}};
    bel_train_spec spec = {
        .size = sizeof spec, .input_fn = open_input, .input_user = &r, .max_steps = r.steps};
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "1 to %d rounds", MOST_ROUNDS);
    }
    for (int i = 0; i < rounds; i++) {
        bel_result result = {.size = sizeof result};
        BEL_TRY(bench_run("gpt", params, 8, threads, &spec, NULL, &result));
        rates[i] = r.steps * r.batch / result.train_seconds;
    }
    double rate = bench_median(rates, rounds);
    printf("{\"bench\":\"train_gpt\",\"preset\":\"%s\",\"threads\":%d,\"examples_per_second\":%.1f,"
           "\"tokens_per_second\":%.0f}\n",
           r.preset, threads, rate, rate * CONTEXT);
    return NULL;
}

int main(int argc, char **argv)
{
    const recipe *r = &recipes[argc > 1 && strcmp(argv[1], recipes[1].preset) == 0];
    if (argc < 3 || strcmp(argv[1], r->preset) != 0) {
        fprintf(stderr, "usage: %s nano|gpt2 THREADS [ROUNDS]\n", argv[0]);
        return 2;
    }
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    fill((uint32_t)strtol(r->vocabulary, NULL, 10));
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 5;
    return bench_end(measure(*r, (int)strtol(argv[2], NULL, 10), rounds));
}
