// Model "encoder": a transformer whose tokens see each other in both directions (Devlin et al.
// 2018, "BERT"), with the blocks of transformer.h.
//
// Without the feature "length" it learns to guess hidden tokens:
//
//   tokens [n, t] ── 15 % are chosen, and hidden ── blocks ── states of the chosen ── · wteᵀ ──>
//   logits [n · chosen, vocabulary]
//
// A chosen token becomes the mask token (80 %), a random one (10 %) or stays (10 %). In TRAIN the
// choice is random: a function of (seed, step, replica), as dropout. Evaluations choose the same
// places of every context, at random once and for all. Loss: mean cross-entropy of a chosen token.
// Metrics: perplexity, accuracy. Prediction "state": the mean of the states [n, width].
//
// With the feature "length" I64 [n] it classifies texts: the tokens from the length on are padding,
// which nothing sees.
//
//   tokens [n, t] ── blocks ── mean over the text ── dense "logits" ── objective (parts.h)
//
// Parameters: those of bel_transformer_read; mask_token (the last of the vocabulary); of the
// objective; of the optimizer. Without decay_mult only matrices decay.
#include <math.h>

#include "belfry/tokens.h"
#include "models/masks.h"
#include "models/transformer.h"

static const int64_t of_tokens = 1; // axis

// --- Hidden tokens ------------------------------------------------------------------------------

// Guesses the hidden tokens: logits [n · chosen, vocabulary].
static bel_value *guess_logits(bel_transformer *m, const bel_masks *masks)
{
    bel_graph *g = m->graph;
    const bel_shape by_text = BEL_SHAPE(-1, m->t, m->width), rows = BEL_SHAPE(-1, m->width);
    bel_value *table, *states = bel_transformer_states(m, masks->tokens, &table);
    bel_value *chosen = bel_matmul(g, masks->at, bel_reshape(g, states, &by_text));
    return bel_gemm(g, bel_reshape(g, chosen, &rows), table, NULL, 1, 0, false, true);
}

static void guess_tokens(bel_transformer *m, bel_estimator_spec *spec, bel_value *tokens)
{
    bel_graph *g = m->graph;
    const bel_shape flat = BEL_SHAPE(-1);
    bel_masks masks;
    int64_t mask = bel_part_whole(m->context, "mask_token", m->vocabulary - 1, 0, 1 << 24);
    if (mask >= m->vocabulary) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter mask_token: expected a token below %lld, got %lld",
                       (long long)m->vocabulary, (long long)mask);
    }
    bool training = bel_context_mode(m->context) == BEL_MODE_TRAIN;
    bel_masks_make(g, tokens, mask, m->vocabulary, training, &masks);
    bel_value *logits = guess_logits(m, &masks), *labels = bel_reshape(g, masks.labels, &flat);
    bel_value *losses = bel_softmax_cross_entropy(g, logits, labels);
    bel_loss_set(spec, bel_mean(g, losses));
    bel_metric_perplexity(m->context, spec, "perplexity", losses, NULL);
    bel_metric_accuracy(m->context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
}

// --- Texts --------------------------------------------------------------------------------------

// Returns the mean of the states of each text [n, width]; without a token, zeros.
static bel_value *pool(bel_transformer *m, bel_value *tokens)
{
    bel_graph *g = m->graph;
    const bel_shape by_text = BEL_SHAPE(-1, m->t, m->width);
    bel_value *table, *states = bel_transformer_states(m, tokens, &table);
    states = bel_reshape(g, states, &by_text);
    if (m->lengths == NULL) return bel_reduce_mean(g, states, &of_tokens, 1, false);
    states = bel_sequence_mask(g, states, m->lengths, of_tokens);
    bel_value *sum = bel_reduce_sum(g, states, &of_tokens, 1, false);
    bel_value *count = bel_cast(g, bel_unsqueeze(g, m->lengths, &of_tokens, 1), BEL_DTYPE_F32);
    return bel_div(g, sum, bel_max(g, count, bel_scalar(g, BEL_DTYPE_F32, 1)));
}

static void classify(bel_transformer *m, bel_estimator_spec *spec, bel_value *tokens)
{
    bel_value *penalty = NULL;
    m->lengths = bel_context_feature(m->context, BEL_LENGTH_FIELD);
    bel_value *texts = pool(m, tokens);
    bel_value *logits =
        bel_part_dense(m->context, texts, bel_part_outputs(m->context), "logits", &penalty);
    bel_part_finish(m->context, spec, logits, penalty);
}

bel_status *bel_encoder_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_transformer m = {.context = context, .graph = bel_context_graph(context)};
    bel_gpt_preset sizes = *bel_gpt_preset_at(0);
    sizes.vocabulary++; // the mask token
    bel_transformer_read(&m, &sizes);
    bel_value *tokens = bel_transformer_tokens(&m);
    bool classifies = bel_context_has_feature(context, BEL_LENGTH_FIELD);
    if (classifies) {
        classify(&m, spec, tokens);
    } else if (bel_context_mode(context) == BEL_MODE_PREDICT) {
        bel_output_add(context, spec, "state", pool(&m, tokens));
    } else {
        guess_tokens(&m, spec, tokens);
    }
    bel_transformer_optimize(&m, spec, m.bias || classifies ? "*bias" : NULL); // a head has one
    return NULL;
}
