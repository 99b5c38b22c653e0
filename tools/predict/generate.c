// Verb generate: continues a text with a model of language, token by token. The model computes one
// token at a time, from the keys and values of those before, which are kept here. So the first
// token and the thousandth come from the same program, and the prompt is read in the same way.
//
// When the context is full, its second half is read again as the beginning of a new one: a model
// has no places after its context.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/real.h"
#include "base/rng.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "predict/gpt_features.h"
#include "setup/setup.h"

typedef struct candidate {
    float logit;
    int64_t token;
} candidate;

typedef struct generate_state {
    const bel_tokenizer *tokenizer;
    bel_predictor *predictor;
    bel_gpt_sizes sizes;
    int64_t token, position; // bound as features
    float *keys, *values;
    int64_t *tokens; // the context
    candidate *candidates;
    double temperature, top_p;
    int64_t top_k;
    bel_rng_key key;
} generate_state;

// --- The model ----------------------------------------------------------------------------------

// From feature 2 on, each layer has its keys and then its values.
static bel_status *bind(generate_state *g)
{
    const bel_shape one = BEL_SHAPE(1, 1),
                    kept = BEL_SHAPE(1, g->sizes.kv_heads, g->sizes.context, g->sizes.width);
    const int64_t layer_floats = g->sizes.kv_heads * g->sizes.context * g->sizes.width;
    const bel_tensor fields[] = {{BEL_DTYPE_I64, one, &g->token},
                                 {BEL_DTYPE_I64, one, &g->position}};
    for (int i = 0; i < 2; i++)
        BEL_TRY(bel_predictor_bind(g->predictor, i, &fields[i]));
    for (int i = 0; i < 2 * (int)g->sizes.layers; i++) {
        float *all = i % 2 == 0 ? g->keys : g->values;
        const bel_tensor its = {BEL_DTYPE_F32, kept, all + i / 2 * layer_floats};
        BEL_TRY(bel_predictor_bind(g->predictor, 2 + i, &its));
    }
    return NULL;
}

static bel_status *make_predictor(const bel_setup *setup, generate_state *g)
{
    bel_gpt_features features = bel_gpt_features_of_step(&g->sizes);
    bel_status *status = bel_estimator_predictor(setup->estimator, features.items, features.count,
                                                 setup->checkpoint, &g->predictor);
    bel_free(features.items);
    return status;
}

static bel_status *open_model(const bel_options *options, bel_setup *setup, generate_state *g)
{
    BEL_TRY(bel_gpt_sizes_read(setup, "generate", &g->sizes));
    if (setup->tokenizer == NULL) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s was trained with token files of an unknown tokenizer; hint: --tokenizer "
                       "when you train",
                       setup->checkpoint);
    }
    void *keys, *values;
    BEL_TRY(bel_pages_create(g->sizes.kept_bytes, false, "keys", &keys));
    g->keys = keys;
    BEL_TRY(bel_pages_create(g->sizes.kept_bytes, false, "values", &values));
    g->values = values;
    g->tokenizer = setup->tokenizer;
    g->temperature = bel_options_double(options, "temperature");
    g->top_k = bel_options_int(options, "top_k");
    g->top_p = bel_options_double(options, "top_p");
    g->key = bel_rng_key_make((uint64_t)bel_options_int(options, "seed"), "generate", 0);
    BEL_TRY(make_predictor(setup, g)); // which checks the other sizes
    g->tokens = bel_xcalloc((size_t)g->sizes.context, sizeof *g->tokens);
    g->candidates = bel_xcalloc((size_t)g->sizes.vocabulary, sizeof *g->candidates);
    return bind(g);
}

static void generate_deinit(generate_state *g)
{
    bel_predictor_destroy(g->predictor);
    bel_pages_destroy(g->keys, g->sizes.kept_bytes);
    bel_pages_destroy(g->values, g->sizes.kept_bytes);
    bel_free(g->tokens);
    bel_free(g->candidates);
}

// Keeps the output [1, layers, kv_heads, 1, width] at the position of [layers, kv_heads, context,
// width], where the next tokens read it.
static void keep_output(const generate_state *g, const char *name, float *kept)
{
    int output = bel_predictor_find_output(g->predictor, name);
    const float *rows = bel_predictor_output(g->predictor, output).data;
    for (int64_t r = 0; r < g->sizes.layers * g->sizes.kv_heads; r++)
        memcpy(kept + (r * g->sizes.context + g->position) * g->sizes.width,
               rows + r * g->sizes.width, (size_t)g->sizes.width * sizeof *kept);
}

// Computes the logits after one more token of the context.
static bel_status *add_token(generate_state *g, int64_t token)
{
    g->token = token;
    BEL_TRY(bel_predictor_run(g->predictor));
    keep_output(g, BEL_GPT_KEYS, g->keys);
    keep_output(g, BEL_GPT_VALUES, g->values);
    g->tokens[g->position++] = token;
    return NULL;
}

// Adds a token; a full context begins anew with its second half.
static bel_status *read_token(generate_state *g, int64_t token)
{
    if (g->position == g->sizes.context) {
        int64_t half = g->sizes.context / 2, first = g->sizes.context - half;
        g->position = 0;
        for (int64_t i = 0; i < half; i++)
            BEL_TRY(add_token(g, g->tokens[first + i]));
    }
    return add_token(g, token);
}

// --- Drawing ------------------------------------------------------------------------------------

// Equal logits: the lower number first.
static bool is_better(const candidate *x, const candidate *y)
{
    return x->logit != y->logit ? x->logit > y->logit : x->token < y->token;
}

// Restores the heap of `count` candidates, whose best is at 0, below place `at`.
static void sift_down(candidate *heap, int64_t count, int64_t at)
{
    candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_better(&heap[child + 1], &heap[child])) child++;
        if (!is_better(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

// Takes the best of `count` candidates out of the heap: it moves to the place after the others.
static const candidate *take_best(candidate *heap, int64_t count)
{
    candidate best = heap[0];
    heap[0] = heap[count - 1];
    heap[count - 1] = best;
    sift_down(heap, count - 1, 0);
    return &heap[count - 1];
}

static double uniform(const generate_state *g, int64_t number)
{
    uint32_t words[4];
    bel_rng_block(g->key, 0, (uint64_t)number, words);
    return ((double)words[0] + (double)words[1] * 0x1p-32) * 0x1p-32;
}

static bel_status *read_candidates(generate_state *g)
{
    int output = bel_predictor_find_output(g->predictor, BEL_GPT_LOGITS);
    const float *logits = bel_predictor_output(g->predictor, output).data;
    for (int64_t t = 0; t < g->sizes.vocabulary; t++) {
        if (isnan(logits[t]))
            return BEL_ERR(BEL_DATA_LOSS,
                           "the logit of token %lld is not a number; hint: the "
                           "training diverged",
                           (long long)t);
        g->candidates[t] = (candidate){logits[t], t};
    }
    return NULL;
}

// Draws among the best candidates: at most top_k of them, and the fewest whose probabilities add up
// to top_p. A heap gives them in order, so the many unlikely ones are never sorted.
static bel_status *draw(generate_state *g, int64_t number, int64_t *out_token)
{
    candidate *list = g->candidates;
    int64_t all = g->sizes.vocabulary, most = g->top_k > 0 && g->top_k < all ? g->top_k : all,
            kept = 0;
    double sum = 0, total = 0;
    BEL_TRY(read_candidates(g));
    for (int64_t i = all / 2; i-- > 0;)
        sift_down(list, all, i);
    double best = list[0].logit;
    *out_token = list[0].token;
    if (g->temperature == 0) return NULL;
    for (; most < all && kept < most; kept++)
        total += bel_real_exp((take_best(list, all - kept)->logit - best) / g->temperature);
    for (int64_t i = 0; i < all && most == all; i++)
        total += bel_real_exp((list[i].logit - best) / g->temperature);
    int64_t taken = kept;
    for (kept = 0; g->top_p < 1 && kept < most && (kept == 0 || sum < g->top_p * total); kept++) {
        if (kept == taken) take_best(list, all - taken++);
        sum += bel_real_exp((list[all - 1 - kept].logit - best) / g->temperature);
    }
    if (g->top_p >= 1) {
        kept = most;
        sum = total;
    }
    double target = uniform(g, number) * sum;
    for (int64_t i = 0; i < kept && target >= 0; i++) {
        if (i == taken) take_best(list, all - taken++);
        *out_token = list[all - 1 - i].token;
        target -= bel_real_exp((list[all - 1 - i].logit - best) / g->temperature);
    }
    return NULL;
}

// --- The verb -----------------------------------------------------------------------------------

// Without a prompt, the text begins as a document does: after the end of another.
static bel_status *read_prompt(const bel_options *options, generate_state *g, int64_t *out_count)
{
    const char *prompt = bel_options_string(options, "prompt");
    int64_t *tokens = NULL, end = bel_tokenizer_end(g->tokenizer);
    size_t count = 0;
    if (prompt == NULL && end < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--prompt is needed: the tokenizer has no end of a document to begin after");
    }
    *out_count = 1;
    if (prompt == NULL) return read_token(g, end);
    BEL_TRY_CTX(bel_tokenizer_encode(g->tokenizer, prompt, strlen(prompt), &tokens, &count),
                "--prompt");
    bel_status *status = bel_results_write_bytes(prompt, strlen(prompt));
    for (size_t i = 0; i < count && status == NULL; i++)
        status = read_token(g, tokens[i]);
    bel_tokens_free(tokens);
    *out_count = (int64_t)count;
    return status;
}

static bel_status *write_tokens(const bel_options *options, generate_state *g, int64_t *out_count)
{
    int64_t most = bel_options_int(options, "length"), token = 0;
    for (int64_t i = 0; i < most; i++) {
        BEL_TRY(draw(g, i, &token));
        if (token == bel_tokenizer_end(g->tokenizer)) break;
        size_t size;
        const char *bytes = bel_tokenizer_bytes(g->tokenizer, token, &size);
        BEL_TRY(bel_results_write_bytes(bytes, size));
        BEL_TRY(bel_results_flush());
        ++*out_count;
        if (i + 1 < most) BEL_TRY(read_token(g, token));
    }
    return bel_results_write("\n");
}

bel_status *bel_verb_generate(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    bel_setup *setup;
    generate_state g = {.tokens = NULL};
    int64_t read = 0, written = 0;
    BEL_TRY(bel_setup_for_reading(options, &setup));
    bel_status *status = open_model(options, setup, &g);
    int64_t begin = bel_clock_ns();
    if (status == NULL) status = read_prompt(options, &g, &read);
    if (status == NULL) status = write_tokens(options, &g, &written);
    double seconds = (double)(bel_clock_ns() - begin) * 1e-9;
    if (status == NULL)
        bel_log_write(BEL_LOG_INFO, "%lld tokens read, %lld written, %.0f tokens/s",
                      (long long)read, (long long)written,
                      seconds > 0 ? (double)(read + written) / seconds : 0);
    generate_deinit(&g);
    bel_setup_destroy(setup);
    return status;
}
