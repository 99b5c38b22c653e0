// Numbers of keys that the queries of a matrix see.
#ifndef BELFRY_CUDA_KERNELS_ATTENTION_LENGTH_H
#define BELFRY_CUDA_KERNELS_ATTENTION_LENGTH_H

#include "cuda/kernels/attention.h"
#include "cuda/kernels/kernel.h"

// Number of keys of a matrix. An invalid length counts as 0, and is reported if `says`.
static inline int64_t length_of(const bel_cuda_operands *at, const bel_cuda_attention *p,
                                int64_t matrix, bool says)
{
    if (p->lengths < 0) return p->s;
    int64_t length = ((const int64_t *)at->in[p->lengths])[matrix / p->heads];
    if (length >= 0 && length <= p->s) return length;
    if (says) report_bad(at, length, 0, p->s + 1);
    return 0;
}

// bel_attention_seen
static inline int64_t seen_of(const bel_cuda_attention *p, int64_t length, int64_t query)
{
    return p->causal && query + 1 < length ? query + 1 : length;
}

#endif
