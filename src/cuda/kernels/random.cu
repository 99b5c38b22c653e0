// Random numbers, Dropout, and scalars that depend on the state of a run. A thread computes all
// numbers of a block of words (base/rng.h).
#define PLAIN
#include "base/philox.c"
#include "cuda/kernels/numbers.h"
#include "cuda/kernels/random.h"

static inline bel_rng_key key_of(const bel_cuda_operands *at)
{
    const uint32_t *words = (const uint32_t *)(at->run + 1) + 2 * at->call;
    bel_rng_key key;
    key.word[0] = words[0];
    key.word[1] = words[1];
    return key;
}

KERNEL(uniform, bel_cuda_random)
{
    bel_rng_key key = key_of(&at);
    for (int64_t i = 4 * THREAD; i < p.count; i += 4 * THREADS) {
        uint32_t words[4];
        bel_rng_block(key, at.run->place, (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < p.count; j++)
            number_set(at.out[0], i + j, p.type,
                       p.first + p.factor * (double)bel_rng_unit(words[j]));
    }
}

KERNEL(normal, bel_cuda_random)
{
    bel_rng_key key = key_of(&at);
    for (int64_t i = 2 * THREAD; i < p.count; i += 2 * THREADS) {
        double pair[2];
        bel_rng_normal_pair(key, at.run->place, (uint64_t)i / 2, pair);
        for (int64_t j = 0; j < 2 && i + j < p.count; j++)
            number_set(at.out[0], i + j, p.type, p.first + p.factor * pair[j]);
    }
}

// --- Dropout -------------------------------------------------------------------------------------

// y may overwrite x.
static inline void scale_kept(const bel_cuda_operands *at, const bel_cuda_random *p, bool kept,
                              int64_t i)
{
    double scale = 1 / (1 - p->ratio);
    if (p->fast) {
        float x = ((const float *)at->in[0])[i];
        ((float *)at->out[0])[i] = select_f32(kept, x * (float)scale, 0.0f);
    } else {
        double x = number_get(at->in[0], i, p->type);
        number_set(at->out[0], i, p->type, kept ? x * scale : 0.0);
    }
}

KERNEL(dropout, bel_cuda_random)
{
    bel_rng_key key = key_of(&at);
    uint8_t *mask = (uint8_t *)at.out[1];
    for (int64_t i = 4 * THREAD; i < p.count; i += 4 * THREADS) {
        uint32_t words[4];
        bel_rng_block(key, at.run->place, (uint64_t)i / 4, words);
        for (int64_t j = 0; j < 4 && i + j < p.count; j++) {
            bool kept = bel_rng_unit(words[j]) >= (float)p.ratio;
            mask[i + j] = kept;
            scale_kept(&at, &p, kept, i + j);
        }
    }
}

KERNEL(dropout_grad, bel_cuda_random)
{
    for (int64_t i = THREAD; i < p.count; i += THREADS)
        scale_kept(&at, &p, ((const uint8_t *)at.in[1])[i] != 0, i);
}

// --- Scalars -------------------------------------------------------------------------------------

KERNEL(global_step, bel_cuda_single)
{
    (void)p;
    *(int64_t *)at.out[0] = at.run->step;
}

KERNEL(replica_id, bel_cuda_single)
{
    *(int64_t *)at.out[0] = at.run->replica % p.replicas;
}

KERNEL(number, bel_cuda_single)
{
    number_set(at.out[0], 0, p.type, p.value);
}
