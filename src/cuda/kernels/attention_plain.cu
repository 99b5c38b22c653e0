// Attention in the order of the plain kernels of ops/attention.c: a thread for each query, and in
// the gradient for each key. Scores are computed again instead of kept, and sums accumulate in the
// result's memory.
#include "base/real.c"
#include "cuda/kernels/attention_length.h"
#include "cuda/kernels/plain_elements.h"
#include "ops/kernels/plain.h"

static inline double dot(const bel_cuda_attention *p, const void *a, int64_t a_begin, const void *b,
                         int64_t b_begin, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += plain_get(a, p->is_f64, a_begin + i) * plain_get(b, p->is_f64, b_begin + i);
    return sum;
}

// Score of query `row` of all matrices and key `key` of them; q is input p.q, k the next one.
static inline double score(const bel_cuda_operands *at, const bel_cuda_attention *p, int64_t row,
                           int64_t key)
{
    return p->scale * dot(p, at->in[p->q], row * p->d, at->in[p->q + 1], key * p->d, p->d);
}

static inline void clear(const bel_cuda_attention *p, void *to, int64_t begin, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        plain_set(to, p->is_f64, begin + i, 0);
}

// to += factor · from
static inline void add_scaled(const bel_cuda_attention *p, void *to, int64_t to_begin,
                              double factor, const void *from, int64_t from_begin, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        plain_set(to, p->is_f64, to_begin + i,
                  plain_get(to, p->is_f64, to_begin + i) +
                      factor * plain_get(from, p->is_f64, from_begin + i));
}

KERNEL(attention_plain_forward, bel_cuda_attention)
{
    for (int64_t row = THREAD; row < p.matrices * p.t; row += THREADS) {
        int64_t matrix = row / p.t, keys = matrix * p.s;
        int64_t seen = seen_of(&p, length_of(&at, &p, matrix, true), row % p.t);
        double most = -INFINITY, total = 0;
        for (int64_t j = 0; j < seen; j++)
            most = bel_larger_of(most, score(&at, &p, row, keys + j));
        for (int64_t j = 0; j < seen; j++)
            total += bel_real_exp(score(&at, &p, row, keys + j) - most);
        clear(&p, at.out[0], row * p.e, p.e);
        for (int64_t j = 0; j < seen; j++)
            add_scaled(&p, at.out[0], row * p.e,
                       bel_real_exp(score(&at, &p, row, keys + j) - most) / total, at.in[2],
                       (keys + j) * p.e, p.e);
        plain_set(at.out[1], p.is_f64, row, seen > 0 ? most + bel_real_log(total) : 0);
    }
}

// --- Gradient: inputs dy, q, k, v, y, logarithms, lengths ----------------------------------------

static inline double weight_of(const bel_cuda_operands *at, const bel_cuda_attention *p,
                               int64_t row, int64_t key)
{
    return bel_real_exp(score(at, p, row, key) - plain_get(at->in[5], p->is_f64, row));
}

static inline double inner_of(const bel_cuda_operands *at, const bel_cuda_attention *p, int64_t row)
{
    return dot(p, at->in[0], row * p->e, at->in[4], row * p->e, p->e);
}

static inline double slope_of(const bel_cuda_operands *at, const bel_cuda_attention *p,
                              double weight, double inner, int64_t row, int64_t key)
{
    double of_weight = dot(p, at->in[0], row * p->e, at->in[3], key * p->e, p->e);
    return weight * (of_weight - inner) * p->scale;
}

KERNEL(attention_plain_grad_queries, bel_cuda_attention)
{
    for (int64_t row = THREAD; row < p.matrices * p.t; row += THREADS) {
        int64_t matrix = row / p.t, keys = matrix * p.s;
        int64_t seen = seen_of(&p, length_of(&at, &p, matrix, true), row % p.t);
        double inner = inner_of(&at, &p, row);
        clear(&p, at.out[0], row * p.d, p.d);
        for (int64_t j = 0; j < seen; j++) {
            double weight = weight_of(&at, &p, row, keys + j);
            add_scaled(&p, at.out[0], row * p.d, slope_of(&at, &p, weight, inner, row, keys + j),
                       at.in[2], (keys + j) * p.d, p.d);
        }
    }
}

KERNEL(attention_plain_grad_keys, bel_cuda_attention)
{
    for (int64_t key = THREAD; key < p.matrices * p.s; key += THREADS) {
        int64_t matrix = key / p.s, length = length_of(&at, &p, matrix, false);
        clear(&p, at.out[1], key * p.d, p.d);
        clear(&p, at.out[2], key * p.e, p.e);
        for (int64_t query = 0; query < p.t; query++) {
            if (key % p.s >= seen_of(&p, length, query)) continue;
            int64_t row = matrix * p.t + query;
            double weight = weight_of(&at, &p, row, key);
            double slope = slope_of(&at, &p, weight, inner_of(&at, &p, row), row, key);
            add_scaled(&p, at.out[1], key * p.d, slope, at.in[1], row * p.d, p.d);
            add_scaled(&p, at.out[2], key * p.e, weight, at.in[0], row * p.e, p.e);
        }
    }
}
