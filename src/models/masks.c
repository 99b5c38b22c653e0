// Choice of hidden tokens. The same number of tokens is chosen in each context, so the loss is a
// plain mean, and logits are computed only of them. Tokens are replaced by arithmetic in F32, which
// holds every token up to 2^24 exactly.
#include "models/masks.h"

#include <stdint.h>

static const double chosen_share = 0.15, masked_share = 0.8, random_share = 0.1;
static const int64_t of_tokens = 1; // axis

enum { MOST_TOKENS = 1 << 15 };

// The `number`th of fixed random numbers in [0, 1) (Steele et al. 2014, "Fast splittable
// pseudorandom number generators").
static float fixed_number(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    number = (number ^ number >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ number >> 27) * UINT64_C(0x94D049BB133111EB);
    number ^= number >> 31;
    return (float)(number >> 40) * 0x1p-24f;
}

// Numbers in [0, 1) of the shape of `like` (F32 [n, count]): random ones, or in all rows the fixed
// ones from `first` on.
static bel_value *noise(bel_graph *g, bel_value *like, int64_t count, bool random, uint64_t first)
{
    float numbers[MOST_TOKENS];
    const bel_shape row = BEL_SHAPE(1, count);
    if (random) return bel_random_uniform(g, like, 0, 1);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = fixed_number(first + (uint64_t)i);
    bel_value *fixed = bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, row, numbers});
    return bel_add(g, bel_sub(g, like, like), fixed);
}

static bel_value *scalar(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F32, value);
}

// Decides what becomes of the chosen tokens `were` (F32 [n, count]).
static bel_value *replace(bel_graph *g, bel_value *were, const bel_masks *masks, int64_t mask,
                          int64_t vocabulary, bool random)
{
    enum { KINDS = MOST_TOKENS, TOKENS = 2 * MOST_TOKENS }; // first fixed numbers
    bel_value *kind = noise(g, were, masks->count, random, KINDS);
    bel_value *any = noise(g, were, masks->count, random, TOKENS);
    any = bel_floor(g, bel_mul(g, any, scalar(g, (double)vocabulary)));
    any = bel_min(g, any, scalar(g, (double)(vocabulary - 1))); // rounding may give the end
    bel_value *changes = bel_less(g, kind, scalar(g, masked_share + random_share));
    bel_value *hides = bel_less(g, kind, scalar(g, masked_share));
    return bel_where(g, hides, scalar(g, (double)mask), bel_where(g, changes, any, were));
}

void bel_masks_make(bel_graph *graph, bel_value *tokens, int64_t mask, int64_t vocabulary,
                    bool random, bel_masks *out_masks)
{
    bel_graph *g = graph;
    const bel_shape shape = bel_value_shape(tokens);
    int64_t t = shape.rank == 2 ? shape.dims[1] : 0;
    int64_t count = (int64_t)(chosen_share * (double)t + 0.5);
    *out_masks = (bel_masks){.count = count > 0 ? count : 1};
    if (t < 1 || t > MOST_TOKENS) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "expected contexts of 1 to %d tokens to hide some of, got %lld",
                       (int)MOST_TOKENS, (long long)t);
        return;
    }
    bel_value *all = bel_cast(g, tokens, BEL_DTYPE_F32), *places;
    bel_top_k(g, noise(g, all, t, random, 0), out_masks->count, of_tokens, true, &places);
    bel_value *were = bel_gather_elements(g, all, places, of_tokens);
    bel_value *now = replace(g, were, out_masks, mask, vocabulary, random);
    const int64_t last = -1;
    out_masks->at = bel_one_hot(g, places, t);
    out_masks->labels = bel_cast(g, were, BEL_DTYPE_I64);
    bel_value *changes =
        bel_mul(g, out_masks->at, bel_unsqueeze(g, bel_sub(g, now, were), &last, 1));
    bel_value *hidden = bel_add(g, all, bel_reduce_sum(g, changes, &of_tokens, 1, false));
    out_masks->tokens = bel_cast(g, hidden, BEL_DTYPE_I64);
}
