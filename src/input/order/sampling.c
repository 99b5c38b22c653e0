// Draw i of an epoch uses the random number of counter (epoch, i), so only lengths, weights and
// seed have an effect. If each record comes once, later draws exclude a dataset without records
// left. The arithmetic consists of additions and one product of doubles, the same on every
// processor.
#include "input/order/sampling.h"

#include "base/alloc.h"
#include "base/rng.h"

// Random number, uniform in [0, 1), with 53 bits.
static double uniform(bel_rng_key key, int64_t epoch, int64_t draw)
{
    uint32_t words[4];
    bel_rng_block(key, (uint64_t)epoch, (uint64_t)draw, words);
    uint64_t bits = (uint64_t)words[1] << 32 | words[0];
    return (double)(bits >> 11) * 0x1p-53;
}

static bool may_give(const bel_sampling *sampling, const int64_t *given, int dataset)
{
    return sampling->record_count > 0 || given[dataset] < sampling->lengths[dataset];
}

// Finds the dataset in whose part of the weights, laid end to end, `place` falls.
static int dataset_at(const bel_sampling *sampling, const int64_t *given, double place)
{
    int last = 0;
    double sum = 0;
    for (int i = 0; i < sampling->count; i++) {
        if (!may_give(sampling, given, i)) continue;
        sum += sampling->weights[i];
        last = i;
        if (place < sum) break;
    }
    return last; // rounding may put `place` at the very end
}

static double weight_left(const bel_sampling *sampling, const int64_t *given)
{
    double sum = 0;
    for (int i = 0; i < sampling->count; i++)
        if (may_give(sampling, given, i)) sum += sampling->weights[i];
    return sum;
}

bel_status *bel_sampling_make(const void *context, int64_t epoch, bel_number_list *out_draws)
{
    const bel_sampling *sampling = context;
    bel_rng_key key = bel_rng_key_make(sampling->seed, "sample", 0);
    int64_t *given = bel_xcalloc((size_t)sampling->count, sizeof *given);
    int64_t count = sampling->record_count;
    for (int i = 0; sampling->record_count == 0 && i < sampling->count; i++)
        count += sampling->lengths[i];
    double total = weight_left(sampling, given);
    bel_status *status = NULL;
    for (int64_t draw = 0; draw < count && status == NULL; draw++) {
        int dataset = dataset_at(sampling, given, uniform(key, epoch, draw) * total);
        status = bel_number_list_append(out_draws, (int64_t)dataset << BEL_SAMPLING_POSITION_BITS |
                                                       given[dataset]);
        given[dataset]++;
        if (!may_give(sampling, given, dataset)) total = weight_left(sampling, given);
    }
    bel_free(given);
    return status;
}
