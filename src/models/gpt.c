// Model "gpt": a transformer that predicts the next token (Radford et al. 2019, "Language Models
// are Unsupervised Multitask Learners", section 2.3).
//
//   tokens [n, t] ── rows of wte + rows of wpe, dropout ── `layers` blocks ── norm "ln_f" ── · wteᵀ
//   ──> logits [n · t, vocabulary]
//
//   block: x ── norm "ln_1" ── c_attn: q, k, v ── causal attention ── c_proj, dropout ── + ── norm
//   "ln_2" ── c_fc, gelu ── c_proj, dropout ── +
//
// Variables have the names, and kernels the shapes [in, out], of GPT-2's published weights:
// "wte.weight", "h.0.attn.c_attn.weight" … Loss: mean cross-entropy of a token. Metrics:
// perplexity and, if the data says how many bytes the labels are, bits_per_byte. Predictions:
// probabilities of the token after the context.
//
// Parameters: preset ("nano"), and instead of its numbers layers, heads, token_width, context and
// vocabulary (0: the preset's); kv_heads (0: heads), positions ("learned" or "rotary"), norm
// ("layer" or "rms"), activation ("gelu" or "swiglu"), bias ("true"), tied ("true"), dropout (0),
// and those of the optimizer. Without decay_mult only matrices decay.
//
// With the features BEL_GPT_KEYS and BEL_GPT_VALUES it computes one token after those whose keys
// and values they hold: the outputs are the logits, and the token's keys and values. The attention
// sees the position "position" and those before.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "belfry/tokens.h"
#include "models/gpt.h"
#include "models/parts.h"

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

typedef struct gpt {
    bel_model_context *context;
    bel_graph *graph;
    int64_t layers, heads, kv_heads, width, most, vocabulary; // most: tokens of a context
    int64_t t;                                                // tokens of an example here
    bool rotary, rms, swiglu, bias, tied;
    double dropout;                     // in TRAIN, else 0
    bel_value *position;                // [n, 1] of the token to add; NULL: t tokens at once
    bel_value *keys, *values;           // [n, layers, kv_heads, most, d], with `position`
    bel_value **new_keys, **new_values; // [n, 1, kv_heads, 1, d] by layer
    bel_value *cosines, *sines;         // rotary: [t, d / 2], or [n, 1, 1, d / 2]
    bel_value *here;                    // [n, 1, most, 1]: is the place of the token
    bel_value *seen;                    // [n, 1, 1, most]: is a place up to it
} gpt;

// --- Parameters ---------------------------------------------------------------------------------

static int64_t size_of(bel_model_context *context, const char *name, int64_t otherwise,
                       int64_t high)
{
    int64_t size = bel_part_whole(context, name, 0, 0, high);
    return size > 0 ? size : otherwise;
}

// Returns whether a parameter has the second of two words; the first is its default.
static bool is_second(bel_model_context *context, const char *name, const char *first,
                      const char *second)
{
    const char *given = bel_context_param(context, name, first);
    if (strcmp(given, second) != 0 && strcmp(given, first) != 0) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter %s: expected %s or %s, got \"%s\"", name, first, second, given);
    }
    return strcmp(given, second) == 0;
}

static void gpt_read(gpt *m)
{
    bel_model_context *c = m->context;
    const char *name = bel_context_param(c, "preset", presets[0].name);
    const bel_gpt_preset *preset = bel_gpt_preset_find(name);
    if (preset == NULL) {
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT, "parameter preset: no preset is \"%s\"",
                       name);
        preset = presets;
    }
    m->layers = size_of(c, "layers", preset->layers, 1000);
    m->heads = size_of(c, "heads", preset->heads, 1 << 16);
    m->kv_heads = size_of(c, "kv_heads", m->heads, 1 << 16);
    m->width = size_of(c, "token_width", preset->width, 1 << 20);
    m->most = size_of(c, "context", preset->context, 1 << 24);
    m->vocabulary = size_of(c, "vocabulary", preset->vocabulary, 1 << 24);
    m->rotary = is_second(c, "positions", "learned", "rotary");
    m->rms = is_second(c, "norm", "layer", "rms");
    m->swiglu = is_second(c, "activation", "gelu", "swiglu");
    m->bias = !is_second(c, "bias", "true", "false");
    m->tied = !is_second(c, "tied", "true", "false");
    bool training = bel_context_mode(c) == BEL_MODE_TRAIN;
    double dropout = bel_context_param_number(c, "dropout", 0);
    m->dropout = training ? dropout : 0;
    if (m->width % m->heads != 0 || m->heads % m->kv_heads != 0 ||
        (m->rotary && m->width / m->heads % 2 != 0)) {
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT,
                       "gpt: expected heads that divide token_width into %s, and kv_heads that "
                       "divide heads, got %lld, %lld and %lld",
                       m->rotary ? "even parts" : "parts", (long long)m->heads, (long long)m->width,
                       (long long)m->kv_heads);
    }
}

// --- Parts --------------------------------------------------------------------------------------

// Makes the variable "h.LAYER.NAME", or "NAME" with layer -1.
static bel_value *gpt_variable(const gpt *m, int64_t layer, const char *name,
                               const bel_shape *shape, bel_init_kind kind, double value)
{
    char full[80];
    if (layer < 0) {
        snprintf(full, sizeof full, "%s", name);
    } else {
        snprintf(full, sizeof full, "h.%lld.%s", (long long)layer, name);
    }
    return bel_variable(m->graph, full, shape, (bel_initializer){kind, value},
                        BEL_VARIABLE_TRAINABLE);
}

// Variables "NAME.weight" and "NAME.bias": x [n, in] -> [n, out]. Kernels begin with a deviation of
// 0.02; those that add to the residual stream with less, as there are two in each layer.
static bel_value *project(const gpt *m, bel_value *x, int64_t out, int64_t layer, const char *name,
                          bool residual)
{
    char part[48];
    double deviation = residual ? 0.02 / sqrt(2.0 * (double)m->layers) : 0.02;
    const bel_shape kernel = BEL_SHAPE(bel_value_shape(x).dims[1], out), units = BEL_SHAPE(out);
    snprintf(part, sizeof part, "%s.weight", name);
    bel_value *w = gpt_variable(m, layer, part, &kernel, BEL_INIT_NORMAL, deviation), *b = NULL;
    snprintf(part, sizeof part, "%s.bias", name);
    if (m->bias) b = gpt_variable(m, layer, part, &units, BEL_INIT_ZEROS, 0);
    return bel_gemm(m->graph, x, w, b, 1, 1, false, false);
}

static bel_value *normalize(const gpt *m, bel_value *x, int64_t layer, const char *name)
{
    char part[48];
    bel_graph *g = m->graph;
    const double epsilon = 1e-5;
    const bel_shape units = BEL_SHAPE(m->width);
    const int64_t last = -1;
    snprintf(part, sizeof part, "%s.weight", name);
    bel_value *scale = gpt_variable(m, layer, part, &units, BEL_INIT_ONES, 0), *bias = NULL;
    if (m->rms) {
        bel_value *mean = bel_reduce_mean(g, bel_mul(g, x, x), &last, 1, true);
        bel_value *root = bel_sqrt(g, bel_add(g, mean, bel_scalar(g, BEL_DTYPE_F32, epsilon)));
        return bel_mul(g, bel_div(g, x, root), scale);
    }
    snprintf(part, sizeof part, "%s.bias", name);
    if (m->bias) bias = gpt_variable(m, layer, part, &units, BEL_INIT_ZEROS, 0);
    return bel_layer_normalization(g, x, scale, bias, -1, epsilon);
}

static bel_value *drop(const gpt *m, bel_value *x)
{
    return m->dropout > 0 ? bel_dropout(m->graph, x, m->dropout) : x;
}

// Returns the [count] numbers i · `step`, F64.
static bel_value *numbers(const gpt *m, int64_t count, double step)
{
    bel_shape one = bel_shape_scalar(), all = BEL_SHAPE(count);
    bel_value *steps = bel_expand(
        m->graph,
        bel_constant(m->graph, &(bel_tensor){.dtype = BEL_DTYPE_F64, .shape = one, .data = &step}),
        &all);
    return bel_cum_sum(m->graph, steps, 0, true, false);
}

// --- Rotary positions ---------------------------------------------------------------------------

// Angles of Su et al. 2021, section 3.4.2: place · 10000^(-2 i / d), in F64. With `position` only
// the row of that place.
static void make_angles(gpt *m)
{
    bel_graph *g = m->graph;
    int64_t half = m->width / m->heads / 2;
    const double log_base = 9.210340371976184; // ln 10000
    const int64_t last = -1;
    const bel_shape alone = BEL_SHAPE(-1, 1, 1, 1);
    if (!m->rotary) return;
    bel_value *places = m->position != NULL
                            ? bel_cast(g, bel_reshape(g, m->position, &alone), BEL_DTYPE_F64)
                            : bel_unsqueeze(g, numbers(m, m->t, 1), &last, 1);
    bel_value *rates = bel_exp(g, numbers(m, half, -log_base / (double)half));
    bel_value *angles = bel_mul(g, places, rates);
    m->cosines = bel_cast(g, bel_cos(g, angles), BEL_DTYPE_F32);
    m->sines = bel_cast(g, bel_sin(g, angles), BEL_DTYPE_F32);
}

// Turns the pairs (i, i + d / 2) of x [n, heads, t, d] by their angles.
static bel_value *rotate(const gpt *m, bel_value *x)
{
    bel_graph *g = m->graph;
    bel_value *halves[2];
    if (!m->rotary) return x;
    bel_split(g, x, 3, NULL, 2, halves);
    bel_value *left =
        bel_sub(g, bel_mul(g, halves[0], m->cosines), bel_mul(g, halves[1], m->sines));
    bel_value *right =
        bel_add(g, bel_mul(g, halves[1], m->cosines), bel_mul(g, halves[0], m->sines));
    return bel_concat(g, (bel_value *[]){left, right}, 2, 3);
}

// --- Attention ----------------------------------------------------------------------------------

// x [n · t, heads · d] -> [n, heads, t, d].
static bel_value *by_heads(const gpt *m, bel_value *x, int64_t heads)
{
    const int64_t swap[] = {0, 2, 1, 3};
    const bel_shape split = BEL_SHAPE(-1, m->t, heads, m->width / m->heads);
    return bel_transpose(m->graph, bel_reshape(m->graph, x, &split), swap);
}

// Repeats each of kv_heads for the heads that share it: [n, kv_heads, s, d] -> [n, heads, s, d].
static bel_value *share_heads(const gpt *m, bel_value *x)
{
    int64_t each = m->heads / m->kv_heads, s = bel_value_shape(x).dims[2];
    const int64_t axis = 2;
    if (each == 1) return x;
    const bel_shape wide = BEL_SHAPE(1, 1, each, 1, 1);
    const bel_shape joined = BEL_SHAPE(-1, m->heads, s, m->width / m->heads);
    x = bel_expand(m->graph, bel_unsqueeze(m->graph, x, &axis, 1), &wide);
    return bel_reshape(m->graph, x, &joined);
}

// Puts x [n, kv_heads, 1, d] at the position among the kept ones of a layer -> [n, kv_heads, most,
// d], and notes x as [n, 1, …].
static bel_value *keep(const gpt *m, bel_value *x, bel_value *kept, int64_t layer, bel_value **out)
{
    const int64_t axis = 1, first = layer, end = layer + 1;
    bel_graph *g = m->graph;
    bel_value *old = bel_squeeze(g, bel_slice(g, kept, &axis, &first, &end, NULL, 1), &axis, 1);
    out[layer] = bel_unsqueeze(g, x, &axis, 1);
    return bel_where(g, m->here, x, old);
}

static bel_value *attend(gpt *m, bel_value *x, int64_t layer)
{
    bel_graph *g = m->graph;
    int64_t d = m->width / m->heads, kv = m->kv_heads * d;
    const int64_t sizes[] = {m->width, kv, kv}, swap[] = {0, 2, 1, 3};
    const bel_shape joined = BEL_SHAPE(-1, m->width);
    bel_value *parts[3], *mask = NULL;
    bel_split(g, project(m, x, m->width + 2 * kv, layer, "attn.c_attn", false), 1, sizes, 3, parts);
    bel_value *q = rotate(m, by_heads(m, parts[0], m->heads));
    bel_value *k = rotate(m, by_heads(m, parts[1], m->kv_heads));
    bel_value *v = by_heads(m, parts[2], m->kv_heads);
    if (m->position != NULL) {
        k = keep(m, k, m->keys, layer, m->new_keys);
        v = keep(m, v, m->values, layer, m->new_values);
        mask = m->seen;
    }
    k = share_heads(m, k);
    v = share_heads(m, v);
    bel_value *y = bel_attention(g, q, k, v, mask, NULL, mask == NULL, 0);
    y = bel_reshape(g, bel_transpose(g, y, swap), &joined);
    return drop(m, project(m, y, m->width, layer, "attn.c_proj", true));
}

// --- The model ----------------------------------------------------------------------------------

int64_t bel_gpt_hidden(int64_t width, bool swiglu)
{
    return swiglu ? (8 * width / 3 + 63) / 64 * 64 : 4 * width;
}

static bel_value *feed_forward(const gpt *m, bel_value *x, int64_t layer)
{
    bel_graph *g = m->graph;
    int64_t hidden = bel_gpt_hidden(m->width, m->swiglu);
    bel_value *h = project(m, x, hidden, layer, "mlp.c_fc", false);
    if (m->swiglu) {
        bel_value *gate = bel_silu(g, project(m, x, hidden, layer, "mlp.c_gate", false));
        h = bel_mul(g, gate, h);
    } else {
        h = bel_gelu_tanh(g, h);
    }
    return drop(m, project(m, h, m->width, layer, "mlp.c_proj", true));
}

static bel_value *embed(gpt *m, bel_value *tokens, bel_value *table)
{
    bel_graph *g = m->graph;
    const int64_t axis = 0, first = 0;
    const bel_shape rows = BEL_SHAPE(-1, m->width), places = BEL_SHAPE(m->most, m->width);
    bel_value *x = bel_gather(g, table, tokens);
    if (!m->rotary) {
        bel_value *all = gpt_variable(m, -1, "wpe.weight", &places, BEL_INIT_NORMAL, 0.02);
        bel_value *these = m->position != NULL ? bel_gather(g, all, m->position)
                           : m->t < m->most    ? bel_slice(g, all, &axis, &first, &m->t, NULL, 1)
                                               : all;
        x = bel_add(g, x, these);
    }
    return drop(m, bel_reshape(g, x, &rows));
}

// Returns the logits [n · t, vocabulary].
static bel_value *gpt_logits(gpt *m, bel_value *tokens)
{
    const bel_shape table = BEL_SHAPE(m->vocabulary, m->width);
    bel_value *wte = gpt_variable(m, -1, "wte.weight", &table, BEL_INIT_NORMAL, 0.02);
    bel_value *x = embed(m, tokens, wte);
    for (int64_t layer = 0; layer < m->layers; layer++) {
        x = bel_add(m->graph, x, attend(m, normalize(m, x, layer, "ln_1"), layer));
        x = bel_add(m->graph, x, feed_forward(m, normalize(m, x, layer, "ln_2"), layer));
    }
    x = normalize(m, x, -1, "ln_f");
    if (!m->tied) wte = gpt_variable(m, -1, "lm_head.weight", &table, BEL_INIT_NORMAL, 0.02);
    return bel_gemm(m->graph, x, wte, NULL, 1, 0, false, true);
}

// --- Losses and metrics -------------------------------------------------------------------------

static double bits_of(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    const double ln_2 = 0.6931471805599453;
    return sums[1] > 0 ? sums[0] / sums[1] / ln_2 : NAN;
}

// Adds the sum of losses over that of the labels' bytes, with logarithms of base 2.
static void measure_bits(const gpt *m, bel_estimator_spec *spec, bel_value *losses,
                         bel_value *bytes)
{
    const bel_shape one = BEL_SHAPE(1);
    bel_graph *g = m->graph;
    bel_value *sums[2] = {losses, bytes};
    for (int i = 0; i < 2; i++)
        sums[i] = bel_reshape(g, bel_reduce_sum(g, sums[i], NULL, 0, false), &one);
    bel_metric_own(m->context, spec, "bits_per_byte", bel_concat(g, sums, 2, 0), bits_of, NULL);
}

static void gpt_finish(const gpt *m, bel_estimator_spec *spec, bel_value *logits)
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

// Biases and scales do not decay, unless decay_mult says so.
static void use_optimizer(const gpt *m, bel_estimator_spec *spec)
{
    bel_optimizer optimizer = {.size = sizeof optimizer};
    bel_context_optimizer(m->context, &optimizer);
    if (optimizer.weight_decay > 0 && optimizer.decay_mults[0].pattern[0] == '\0') {
        static const char *const patterns[] = {"*ln_*", "*.bias"};
        for (int i = 0; i < 1 + m->bias; i++)
            snprintf(optimizer.decay_mults[i].pattern, BEL_PATTERN_BYTES, "%s", patterns[i]);
    }
    bel_optimizer_use(spec, NULL, &optimizer);
}

// The token after the context: the last row of each example.
static void predict_next(const gpt *m, bel_estimator_spec *spec, bel_value *logits)
{
    bel_graph *g = m->graph;
    const int64_t axis = 1, first = m->t - 1, end = m->t;
    const bel_shape rows = BEL_SHAPE(-1, m->t, m->vocabulary);
    bel_value *all = bel_reshape(g, logits, &rows);
    bel_value *last = bel_squeeze(g, bel_slice(g, all, &axis, &first, &end, NULL, 1), &axis, 1);
    bel_predictions_set(spec, bel_softmax(g, last));
}

// Builds the step that adds one token to the kept ones.
static bel_status *build_step(gpt *m, bel_estimator_spec *spec, bel_value *tokens)
{
    enum { MOST_LAYERS = 1000 };
    bel_value *keys[MOST_LAYERS], *values[MOST_LAYERS];
    const bel_shape alone = BEL_SHAPE(-1, 1, 1, 1);
    const int64_t last = -1;
    bel_graph *g = m->graph;
    m->keys = bel_context_feature(m->context, BEL_GPT_KEYS);
    m->values = bel_context_feature(m->context, BEL_GPT_VALUES);
    m->position = bel_context_feature(m->context, BEL_GPT_POSITION);
    m->new_keys = keys;
    m->new_values = values;
    bel_value *places = bel_cast(g, numbers(m, m->most, 1), BEL_DTYPE_I64);
    bel_value *position = bel_reshape(g, m->position, &alone);
    m->here = bel_equal(g, bel_unsqueeze(g, places, &last, 1), position);
    m->seen = bel_less_or_equal(g, places, position);
    make_angles(m);
    bel_output_add(m->context, spec, BEL_GPT_LOGITS, gpt_logits(m, tokens));
    bel_output_add(m->context, spec, BEL_GPT_KEYS, bel_concat(g, keys, (int)m->layers, 1));
    bel_output_add(m->context, spec, BEL_GPT_VALUES, bel_concat(g, values, (int)m->layers, 1));
    return NULL;
}

bel_status *bel_gpt_model(bel_model_context *context, bel_estimator_spec *spec)
{
    gpt m = {.context = context, .graph = bel_context_graph(context)};
    gpt_read(&m);
    bel_value *tokens = bel_context_feature(context, BEL_TOKENS_FIELD);
    bel_shape shape = bel_value_shape(tokens);
    m.t = shape.rank == 2 ? shape.dims[1] : 0;
    if (tokens != NULL && (m.t < 1 || m.t > m.most)) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(m.graph, BEL_INVALID_ARGUMENT,
                       "gpt: expected tokens [batch, 1 to %lld], got %s", (long long)m.most,
                       bel_shape_text(&shape, text));
    }
    if (bel_context_has_feature(context, BEL_GPT_KEYS)) return build_step(&m, spec, tokens);
    make_angles(&m);
    bel_value *logits = gpt_logits(&m, tokens);
    use_optimizer(&m, spec);
    if (bel_context_mode(context) == BEL_MODE_PREDICT) {
        predict_next(&m, spec, logits);
    } else {
        gpt_finish(&m, spec, logits);
    }
    return NULL;
}
