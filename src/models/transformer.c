// The blocks of transformers: embedding, attention with rotary or learned positions, feed-forward
// parts. Models gpt and encoder share them, so the names of variables and the bits of a block are
// the same in both.
#include "models/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "belfry/tokens.h"

// --- Parameters ---------------------------------------------------------------------------------

static int64_t size_of(bel_model_context *context, const char *name, int64_t otherwise,
                       int64_t high)
{
    int64_t size = bel_part_whole(context, name, 0, 0, high);
    return size > 0 ? size : otherwise;
}

bool bel_part_is_second(bel_model_context *context, const char *name, const char *first,
                        const char *second)
{
    const char *given = bel_context_param(context, name, first);
    if (strcmp(given, second) != 0 && strcmp(given, first) != 0) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter %s: expected %s or %s, got \"%s\"", name, first, second, given);
    }
    return strcmp(given, second) == 0;
}

void bel_transformer_read(bel_transformer *m, const bel_gpt_preset *sizes)
{
    bel_model_context *c = m->context;
    m->layers = size_of(c, "layers", sizes->layers, BEL_GPT_MOST_LAYERS);
    m->heads = size_of(c, "heads", sizes->heads, 1 << 16);
    m->kv_heads = size_of(c, "kv_heads", m->heads, 1 << 16);
    m->width = size_of(c, "token_width", sizes->width, 1 << 20);
    m->most = size_of(c, "context", sizes->context, 1 << 24);
    m->vocabulary = size_of(c, "vocabulary", sizes->vocabulary, 1 << 24);
    m->rotary = bel_part_is_second(c, "positions", "learned", "rotary");
    m->rms = bel_part_is_second(c, "norm", "layer", "rms");
    m->swiglu = bel_part_is_second(c, "activation", "gelu", "swiglu");
    m->bias = !bel_part_is_second(c, "bias", "true", "false");
    bool training = bel_context_mode(c) == BEL_MODE_TRAIN;
    double dropout = bel_context_param_number(c, "dropout", 0);
    m->dropout = training ? dropout : 0;
    if (m->width % m->heads != 0 || m->heads % m->kv_heads != 0 ||
        (m->rotary && m->width / m->heads % 2 != 0)) {
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT,
                       "expected heads that divide token_width into %s, and kv_heads that divide "
                       "heads, got %lld, %lld and %lld",
                       m->rotary ? "even parts" : "parts", (long long)m->heads, (long long)m->width,
                       (long long)m->kv_heads);
    }
}

bel_value *bel_transformer_tokens(bel_transformer *m)
{
    bel_value *tokens = bel_context_feature(m->context, BEL_TOKENS_FIELD);
    bel_shape shape = bel_value_shape(tokens);
    m->t = shape.rank == 2 ? shape.dims[1] : 0;
    if (tokens != NULL && (m->t < 1 || m->t > m->most)) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(m->graph, BEL_INVALID_ARGUMENT, "expected tokens [batch, 1 to %lld], got %s",
                       (long long)m->most, bel_shape_text(&shape, text));
    }
    return tokens;
}

// --- Parts --------------------------------------------------------------------------------------

// Makes the variable "h.LAYER.NAME", or "NAME" with layer -1.
static bel_value *transformer_variable(const bel_transformer *m, int64_t layer, const char *name,
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

static bool is_open(const bel_transformer *m)
{
    return m->t < 0;
}

// Variables "NAME.weight" and "NAME.bias": x [n, in] -> [n, out]. Kernels begin with a deviation of
// 0.02; those that add to the residual stream with less, as there are two in each layer.
static bel_value *project(const bel_transformer *m, bel_value *x, int64_t out, int64_t layer,
                          const char *name, bool residual)
{
    char part[48];
    double deviation = residual ? 0.02 / sqrt(2.0 * (double)m->layers) : 0.02;
    bel_shape shape = bel_value_shape(x);
    int64_t in = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0; // 0 after an error of the graph
    const bel_shape kernel = BEL_SHAPE(in, out), units = BEL_SHAPE(out);
    snprintf(part, sizeof part, "%s.weight", name);
    bel_value *w = transformer_variable(m, layer, part, &kernel, BEL_INIT_NORMAL, deviation),
              *b = NULL;
    snprintf(part, sizeof part, "%s.bias", name);
    if (m->bias) b = transformer_variable(m, layer, part, &units, BEL_INIT_ZEROS, 0);
    if (!is_open(m)) return bel_gemm(m->graph, x, w, b, 1, 1, false, false);
    bel_value *y = bel_matmul(m->graph, x, w);
    return b != NULL ? bel_add(m->graph, y, b) : y;
}

static bel_value *normalize(const bel_transformer *m, bel_value *x, int64_t layer, const char *name)
{
    char part[48];
    bel_graph *g = m->graph;
    const double epsilon = 1e-5;
    const bel_shape units = BEL_SHAPE(m->width);
    const int64_t last = -1;
    snprintf(part, sizeof part, "%s.weight", name);
    bel_value *scale = transformer_variable(m, layer, part, &units, BEL_INIT_ONES, 0), *bias = NULL;
    if (m->rms) {
        bel_value *mean = bel_reduce_mean(g, bel_mul(g, x, x), &last, 1, true);
        bel_value *root = bel_sqrt(g, bel_add(g, mean, bel_scalar(g, BEL_DTYPE_F32, epsilon)));
        return bel_mul(g, bel_div(g, x, root), scale);
    }
    snprintf(part, sizeof part, "%s.bias", name);
    if (m->bias) bias = transformer_variable(m, layer, part, &units, BEL_INIT_ZEROS, 0);
    return bel_layer_normalization(g, x, scale, bias, -1, epsilon);
}

static bel_value *drop(const bel_transformer *m, bel_value *x)
{
    return m->dropout > 0 ? bel_dropout(m->graph, x, m->dropout) : x;
}

// Returns the [count] numbers i · `step`, F64.
bel_value *bel_transformer_numbers(const bel_transformer *m, int64_t count, double step)
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
// the rows of those places.
static void make_angles(bel_transformer *m)
{
    bel_graph *g = m->graph;
    int64_t half = m->width / m->heads / 2;
    const double log_base = 9.210340371976184; // ln 10000
    const int64_t last = -1, around[] = {1, 3};
    if (!m->rotary) return;
    bel_value *places = m->position != NULL
                            ? bel_cast(g, bel_unsqueeze(g, m->position, around, 2), BEL_DTYPE_F64)
                            : bel_unsqueeze(g, bel_transformer_numbers(m, m->t, 1), &last, 1);
    bel_value *rates = bel_exp(g, bel_transformer_numbers(m, half, -log_base / (double)half));
    bel_value *angles = bel_mul(g, places, rates);
    m->cosines = bel_cast(g, bel_cos(g, angles), BEL_DTYPE_F32);
    m->sines = bel_cast(g, bel_sin(g, angles), BEL_DTYPE_F32);
}

// Turns the pairs (i, i + d / 2) of x [n, heads, t, d] by their angles.
static bel_value *rotate(const bel_transformer *m, bel_value *x)
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

// x [n · t, heads · d], or [n, t, heads · d] -> [n, heads, t, d].
static bel_value *by_heads(const bel_transformer *m, bel_value *x, int64_t heads)
{
    const int64_t swap[] = {0, 2, 1, 3}, d = m->width / m->heads;
    const bel_shape split = is_open(m) ? BEL_SHAPE(0, 0, heads, d) : BEL_SHAPE(-1, m->t, heads, d);
    return bel_transpose(m->graph, bel_reshape(m->graph, x, &split), swap);
}

bel_value *bel_transformer_share_heads(const bel_transformer *m, bel_value *x)
{
    int64_t each = m->heads / m->kv_heads, s = bel_value_shape(x).dims[2];
    int64_t d = m->width / m->heads;
    const int64_t axis = 2;
    if (each == 1) return x;
    const bel_shape wide = BEL_SHAPE(1, 1, each, 1, 1);
    const bel_shape joined = s > 0 ? BEL_SHAPE(-1, m->heads, s, d) : BEL_SHAPE(0, m->heads, -1, d);
    x = bel_expand(m->graph, bel_unsqueeze(m->graph, x, &axis, 1), &wide);
    return bel_reshape(m->graph, x, &joined);
}

static bel_value *attend(bel_transformer *m, bel_value *x, int64_t layer)
{
    bel_graph *g = m->graph;
    int64_t d = m->width / m->heads, kv = m->kv_heads * d;
    const int64_t sizes[] = {m->width, kv, kv}, swap[] = {0, 2, 1, 3};
    const bel_shape joined = is_open(m) ? BEL_SHAPE(0, 0, m->width) : BEL_SHAPE(-1, m->width);
    const int64_t last = joined.rank - 1;
    bel_value *parts[3];
    bel_split(g, project(m, x, m->width + 2 * kv, layer, "attn.c_attn", false), last, sizes, 3,
              parts);
    bel_value *q = rotate(m, by_heads(m, parts[0], m->heads));
    bel_value *k = rotate(m, by_heads(m, parts[1], m->kv_heads));
    bel_value *v = by_heads(m, parts[2], m->kv_heads);
    bel_value *y = m->attend != NULL ? m->attend(m->attend_user, layer, q, k, v)
                                     : bel_attention(g, q, bel_transformer_share_heads(m, k),
                                                     bel_transformer_share_heads(m, v), NULL,
                                                     m->lengths, m->causal, 0);
    y = bel_reshape(g, bel_transpose(g, y, swap), &joined);
    return drop(m, project(m, y, m->width, layer, "attn.c_proj", true));
}

// --- The body -----------------------------------------------------------------------------------

int64_t bel_gpt_hidden(int64_t width, bool swiglu)
{
    return swiglu ? (8 * width / 3 + 63) / 64 * 64 : 4 * width;
}

static bel_value *feed_forward(const bel_transformer *m, bel_value *x, int64_t layer)
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

static bel_value *embed(bel_transformer *m, bel_value *tokens, bel_value *table)
{
    bel_graph *g = m->graph;
    const int64_t axis = 0, first = 0;
    const bel_shape rows = BEL_SHAPE(-1, m->width), places = BEL_SHAPE(m->most, m->width);
    bel_value *x = bel_gather(g, table, tokens);
    if (!m->rotary) {
        bel_value *all = transformer_variable(m, -1, "wpe.weight", &places, BEL_INIT_NORMAL, 0.02);
        bel_value *these = m->position != NULL ? bel_gather(g, all, m->position)
                           : m->t < m->most    ? bel_slice(g, all, &axis, &first, &m->t, NULL, 1)
                                               : all;
        x = bel_add(g, x, these);
    }
    return drop(m, is_open(m) ? x : bel_reshape(g, x, &rows));
}

bel_value *bel_transformer_table(const bel_transformer *m, const char *name)
{
    const bel_shape table = BEL_SHAPE(m->vocabulary, m->width);
    return transformer_variable(m, -1, name, &table, BEL_INIT_NORMAL, 0.02);
}

bel_value *bel_transformer_states(bel_transformer *m, bel_value *tokens, bel_value **out_table)
{
    make_angles(m);
    *out_table = bel_transformer_table(m, "wte.weight");
    bel_value *x = embed(m, tokens, *out_table);
    for (int64_t layer = 0; layer < m->layers; layer++) {
        x = bel_add(m->graph, x, attend(m, normalize(m, x, layer, "ln_1"), layer));
        x = bel_add(m->graph, x, feed_forward(m, normalize(m, x, layer, "ln_2"), layer));
    }
    return normalize(m, x, -1, "ln_f");
}

void bel_transformer_optimize(const bel_transformer *m, bel_estimator_spec *spec,
                              const char *biases)
{
    bel_optimizer optimizer = {.size = sizeof optimizer};
    bel_context_optimizer(m->context, &optimizer);
    if (optimizer.weight_decay > 0 && optimizer.decay_mults[0].pattern[0] == '\0') {
        const char *const patterns[] = {"*ln_*", biases};
        for (int i = 0; i < 1 + (biases != NULL); i++)
            snprintf(optimizer.decay_mults[i].pattern, BEL_PATTERN_BYTES, "%s", patterns[i]);
    }
    bel_optimizer_use(spec, NULL, &optimizer);
}
