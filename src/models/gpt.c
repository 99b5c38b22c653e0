// Model "gpt": a transformer that predicts the next token (Radford et al. 2019, "Language Models
// are Unsupervised Multitask Learners", section 2.3).
//
//   tokens [n, t] ── rows of wte + rows of wpe, dropout ── `layers` blocks ── norm "ln_f" ── · wteᵀ
//   ──> logits [n · t, vocabulary]
//
// The blocks are those of transformer.h, with causal attention. Loss: mean cross-entropy of a
// token. Metrics: perplexity and, if the data says how many bytes the labels are, bits_per_byte.
// Predictions: probabilities of the token after the context.
//
// Parameters: preset ("nano"), those of bel_transformer_read, tied ("true"), and those of the
// optimizer. Without decay_mult only matrices decay.
//
// With the feature BEL_GPT_POSITION it computes one token after those whose keys and values other
// features hold (gpt.h): the outputs are the logits, and the token's keys and values. With
// BEL_GPT_INPUT_IDS it does the same for any number of tokens, as exported models do.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "belfry/tokens.h"
#include "models/gpt.h"
#include "models/transformer.h"

static const bel_gpt_preset presets[] = {
    {"nano", 4, 4, 128, 64, 257, 12, "0.001"},
    {"gpt2", 12, 12, 768, 1024, 50257, 12, "0.0006"},
    {"gpt2-medium", 24, 16, 1024, 1024, 50257, 12, "0.0003"},
};

enum { PRESET_COUNT = sizeof presets / sizeof presets[0] };

const bel_gpt_preset *bel_gpt_preset_at(int index)
{
    return index >= 0 && index < PRESET_COUNT ? &presets[index] : NULL;
}

const bel_gpt_preset *bel_gpt_preset_find(const char *name)
{
    for (int i = 0; i < PRESET_COUNT; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

static void gpt_read(bel_transformer *m)
{
    const char *name = bel_context_param(m->context, "preset", presets[0].name);
    const bel_gpt_preset *preset = bel_gpt_preset_find(name);
    if (preset == NULL) {
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT, "parameter preset: no preset is \"%s\"",
                       name);
        preset = presets;
    }
    bel_transformer_read(m, preset);
}

// Returns the logits [n · t, vocabulary]; with an open number of tokens [n, t, vocabulary].
static bel_value *gpt_logits(bel_transformer *m, bel_value *tokens)
{
    const int64_t turned[] = {1, 0};
    bool tied = !bel_part_is_second(m->context, "tied", "true", "false");
    bel_value *table, *x = bel_transformer_states(m, tokens, &table);
    if (!tied) table = bel_transformer_table(m, "lm_head.weight");
    return m->t < 0 ? bel_matmul(m->graph, x, bel_transpose(m->graph, table, turned))
                    : bel_gemm(m->graph, x, table, NULL, 1, 0, false, true);
}

// --- Losses and metrics -------------------------------------------------------------------------

static double bits_of(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    const double ln_2 = 0.6931471805599453;
    return sums[1] > 0 ? sums[0] / sums[1] / ln_2 : NAN;
}

// Adds the sum of losses over that of the labels' bytes, with logarithms of base 2.
static void measure_bits(const bel_transformer *m, bel_estimator_spec *spec, bel_value *losses,
                         bel_value *bytes)
{
    const bel_shape one = BEL_SHAPE(1);
    bel_graph *g = m->graph;
    bel_value *sums[2] = {losses, bytes};
    for (int i = 0; i < 2; i++)
        sums[i] = bel_reshape(g, bel_reduce_sum(g, sums[i], NULL, 0, false), &one);
    bel_metric_own(m->context, spec, "bits_per_byte", bel_concat(g, sums, 2, 0), bits_of, NULL);
}

static void gpt_finish(const bel_transformer *m, bel_estimator_spec *spec, bel_value *logits)
{
    bel_graph *g = m->graph;
    const bel_shape flat = BEL_SHAPE(-1);
    bel_value *labels = bel_reshape(g, bel_context_labels(m->context), &flat);
    bel_value *losses = bel_softmax_cross_entropy(g, logits, labels);
    bel_loss_set(spec, bel_mean(g, losses));
    bel_metric_perplexity(m->context, spec, "perplexity", losses, NULL);
    if (!bel_context_has_label(m->context, BEL_TOKEN_BYTES_FIELD)) return;
    measure_bits(m, spec, losses, bel_context_label(m->context, BEL_TOKEN_BYTES_FIELD));
}

// The token after the context: the last row of each example.
static void predict_next(const bel_transformer *m, bel_estimator_spec *spec, bel_value *logits)
{
    bel_graph *g = m->graph;
    const int64_t axis = 1, first = m->t - 1, end = m->t;
    const bel_shape rows = BEL_SHAPE(-1, m->t, m->vocabulary);
    bel_value *all = bel_reshape(g, logits, &rows);
    bel_value *last = bel_squeeze(g, bel_slice(g, all, &axis, &first, &end, NULL, 1), &axis, 1);
    bel_predictions_set(spec, bel_softmax(g, last));
}

// --- One token after kept ones -------------------------------------------------------------------

typedef struct step {
    const bel_transformer *m;
    bel_value *lengths;                       // I64 [n]: tokens kept
    bel_value *new_keys[BEL_GPT_MOST_LAYERS]; // [n, 1, kv_heads, 1, d] by layer
    bel_value *new_values[BEL_GPT_MOST_LAYERS];
} step;

static bel_value *kept(const step *s, const char *name, int64_t layer)
{
    char full[BEL_GPT_NAME];
    snprintf(full, sizeof full, BEL_GPT_OF_LAYER, name, (long long)layer);
    return bel_context_feature(s->m->context, full);
}

// Attends to the kept tokens and to this one, and notes its key and value.
static bel_value *attend_kept(void *user, int64_t layer, bel_value *queries, bel_value *keys,
                              bel_value *values)
{
    step *s = user;
    bel_graph *g = s->m->graph;
    const int64_t axis = 1;
    s->new_keys[layer] = bel_unsqueeze(g, keys, &axis, 1);
    s->new_values[layer] = bel_unsqueeze(g, values, &axis, 1);
    return bel_attention_step(g, queries, kept(s, BEL_GPT_KEYS, layer),
                              kept(s, BEL_GPT_VALUES, layer), s->lengths, keys, values, 0);
}

// Builds the step that adds one token to the kept ones.
static bel_status *build_step(bel_transformer *m, bel_estimator_spec *spec, bel_value *tokens)
{
    const bel_shape flat = BEL_SHAPE(-1);
    bel_graph *g = m->graph;
    step s = {.m = m};
    m->position = bel_context_feature(m->context, BEL_GPT_POSITION);
    m->attend = attend_kept;
    m->attend_user = &s;
    s.lengths = bel_reshape(g, m->position, &flat);
    bel_output_add(m->context, spec, BEL_GPT_LOGITS, gpt_logits(m, tokens));
    bel_output_add(m->context, spec, BEL_GPT_KEYS, bel_concat(g, s.new_keys, (int)m->layers, 1));
    bel_output_add(m->context, spec, BEL_GPT_VALUES,
                   bel_concat(g, s.new_values, (int)m->layers, 1));
    return NULL;
}

// --- Any number of tokens after kept ones --------------------------------------------------------

static const char *const past_kinds[] = {"key", "value"};

typedef struct past {
    const bel_transformer *m;
    bel_value *visible;                     // BOOL [n, 1, t, total]
    int64_t total;                          // its symbol
    bel_value *all[BEL_GPT_MOST_LAYERS][2]; // keys and values, [n, kv_heads, total, d]
} past;

static bel_value *ones_like(bel_graph *g, bel_value *x)
{
    return bel_cast(g, bel_equal(g, x, x), BEL_DTYPE_F32);
}

// Returns BOOL [n, 1, t, total]: the tokens up to each new one that the mask [n, total] shows. The
// new tokens ids [n, t] are the last of all.
static bel_value *past_visible(bel_graph *g, bel_value *ids, bel_value *mask)
{
    const int64_t axis = 1, last = 2;
    bel_value *each = ones_like(g, ids), *all = ones_like(g, mask);
    bel_value *total = bel_reduce_sum(g, all, &axis, 1, true);
    bel_value *kept = bel_sub(g, total, bel_reduce_sum(g, each, &axis, 1, true));
    bel_value *place = bel_add(g, bel_cum_sum(g, each, axis, true, false), kept);
    bel_value *key = bel_unsqueeze(g, bel_cum_sum(g, all, axis, true, false), &axis, 1);
    bel_value *before = bel_less_or_equal(g, key, bel_unsqueeze(g, place, &last, 1));
    bel_value *shown = bel_unsqueeze(g, bel_cast(g, mask, BEL_DTYPE_BOOL), &axis, 1);
    return bel_unsqueeze(g, bel_and(g, before, shown), &axis, 1);
}

// Attends to the kept tokens and to the new ones, and notes the keys and values of both.
static bel_value *attend_past(void *user, int64_t layer, bel_value *queries, bel_value *keys,
                              bel_value *values)
{
    past *p = user;
    bel_value *new[2] = {keys, values}, *shared[2];
    for (int i = 0; i < 2; i++) {
        char name[BEL_GPT_NAME];
        snprintf(name, sizeof name, BEL_GPT_PAST, (long long)layer, past_kinds[i]);
        bel_value *parts[] = {bel_context_feature(p->m->context, name), new[i]};
        p->all[layer][i] = bel_concat_open(p->m->graph, parts, 2, 2, p->total);
        shared[i] = bel_transformer_share_heads(p->m, p->all[layer][i]);
    }
    return bel_attention(p->m->graph, queries, shared[0], shared[1], p->visible, NULL, false, 0);
}

static void add_present(const past *p, bel_estimator_spec *spec)
{
    char name[BEL_GPT_NAME];
    for (int64_t i = 0; i < 2 * p->m->layers; i++) {
        snprintf(name, sizeof name, BEL_GPT_PRESENT, (long long)i / 2, past_kinds[i % 2]);
        bel_output_add(p->m->context, spec, name, p->all[i / 2][i % 2]);
    }
}

static bel_status *build_past(bel_transformer *m, bel_estimator_spec *spec)
{
    bel_value *ids = bel_context_feature(m->context, BEL_GPT_INPUT_IDS);
    bel_value *mask = bel_context_feature(m->context, BEL_GPT_MASK);
    bel_shape shape = bel_value_shape(ids), all = bel_value_shape(mask);
    if (shape.rank != 2 || all.rank != 2 || shape.dims[1] >= 0 || all.dims[1] >= 0) {
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT,
                       "expected \"%s\" and \"%s\" with an open number of tokens",
                       BEL_GPT_INPUT_IDS, BEL_GPT_MASK);
        return NULL;
    }
    past p = {.m = m, .visible = past_visible(m->graph, ids, mask), .total = all.dims[1]};
    m->t = shape.dims[1];
    m->position = bel_context_feature(m->context, BEL_GPT_PLACES);
    m->attend = attend_past;
    m->attend_user = &p;
    bel_output_add(m->context, spec, BEL_GPT_LOGITS, gpt_logits(m, ids));
    add_present(&p, spec);
    return NULL;
}

bel_status *bel_gpt_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_transformer m = {.context = context, .graph = bel_context_graph(context), .causal = true};
    gpt_read(&m);
    if (bel_context_has_feature(context, BEL_GPT_INPUT_IDS)) return build_past(&m, spec);
    bel_value *tokens = bel_transformer_tokens(&m);
    if (bel_context_has_feature(context, BEL_GPT_POSITION)) return build_step(&m, spec, tokens);
    bel_value *logits = gpt_logits(&m, tokens);
    bel_transformer_optimize(&m, spec, m.bias ? "*.bias" : NULL);
    if (bel_context_mode(context) == BEL_MODE_PREDICT) {
        predict_next(&m, spec, logits);
    } else {
        gpt_finish(&m, spec, logits);
    }
    return NULL;
}
