// Blocks that transformers share: pre-norm attention and feed-forward parts over tokens (Vaswani et
// al. 2017; Radford et al. 2019).
//
//   block: x ── norm "ln_1" ── c_attn: q, k, v ── attention ── c_proj, dropout ── + ── norm "ln_2"
//   ── c_fc, gelu ── c_proj, dropout ── +
//
// Variables have the names, and kernels the shapes [in, out], of GPT-2's published weights:
// "wte.weight", "h.0.attn.c_attn.weight" …
#ifndef BELFRY_MODELS_TRANSFORMER_H
#define BELFRY_MODELS_TRANSFORMER_H

#include "models/gpt.h"
#include "models/parts.h"

typedef struct bel_transformer bel_transformer;

// Attention of a layer: queries [n, heads, t, d], keys and values [n, kv_heads, t, d] -> [n, heads,
// t, d].
typedef bel_value *bel_transformer_attend_fn(void *user, int64_t layer, bel_value *queries,
                                             bel_value *keys, bel_value *values);

struct bel_transformer {
    bel_model_context *context;
    bel_graph *graph;
    int64_t layers, heads, kv_heads, width, most, vocabulary; // most: tokens of a context
    int64_t t; // tokens of an example here; below 0: open, and states are [n, t, width]
    bool rotary, rms, swiglu, bias;
    double dropout;                    // in TRAIN, else 0
    bool causal;                       // a token sees no later one
    bel_value *lengths;                // I64 [n]: tokens from there on are not seen; NULL: all are
    bel_value *position;               // I64 [n, t], places of the tokens; NULL: from 0 on
    bel_transformer_attend_fn *attend; // NULL: by `causal` and `lengths`
    void *attend_user;
    bel_value *cosines, *sines; // rotary: [t, d / 2], or [n, 1, t, d / 2]
};

// Reads the parameters that all transformers have: layers, heads, kv_heads (0: heads), token_width,
// context and vocabulary, where 0 is that of `sizes`; positions ("learned" or "rotary"), norm
// ("layer" or "rms"), activation ("gelu" or "swiglu"), bias ("true"), dropout (0). Wrong ones are
// sticky errors.
void bel_transformer_read(bel_transformer *m, const bel_gpt_preset *sizes);

// Returns whether a parameter has the second of two words; the first is its default. Another word
// is a sticky error.
bool bel_part_is_second(bel_model_context *context, const char *name, const char *first,
                        const char *second);

// Returns the feature BEL_TOKENS_FIELD, I64 [n, t], and sets `t`. Another shape, or an open number
// of tokens, is a sticky error.
bel_value *bel_transformer_tokens(bel_transformer *m);

// Makes a table [vocabulary, width] of this name.
bel_value *bel_transformer_table(const bel_transformer *m, const char *name);

// Repeats each of kv_heads for the heads that share it: [n, kv_heads, s, d] -> [n, heads, s, d].
bel_value *bel_transformer_share_heads(const bel_transformer *m, bel_value *x);

// Returns the states [n · t, width] after all blocks and the norm "ln_f", and the table of tokens,
// "wte.weight". `tokens` I64 [n, t].
bel_value *bel_transformer_states(bel_transformer *m, bel_value *tokens, bel_value **out_table);

// Returns the [count] numbers i · `step`, F64.
bel_value *bel_transformer_numbers(const bel_transformer *m, int64_t count, double step);

// Uses the parameters' optimizer. Without decay_mult only matrices decay: norms and the variables
// that match `biases` (NULL: none) do not.
void bel_transformer_optimize(const bel_transformer *m, bel_estimator_spec *spec,
                              const char *biases);

#endif
