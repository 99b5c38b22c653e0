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
// features hold (gpt.h): the outputs are the logits, and the token's keys and values.
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

// Returns the logits [n · t, vocabulary].
static bel_value *gpt_logits(bel_transformer *m, bel_value *tokens)
{
    bool tied = !bel_part_is_second(m->context, "tied", "true", "false");
    bel_value *table, *x = bel_transformer_states(m, tokens, &table);
    if (!tied) table = bel_transformer_table(m, "lm_head.weight");
    return bel_gemm(m->graph, x, table, NULL, 1, 0, false, true);
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

bel_status *bel_gpt_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_transformer m = {.context = context, .graph = bel_context_graph(context), .causal = true};
    gpt_read(&m);
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
