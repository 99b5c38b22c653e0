// CTCLoss and its gradient, for ctc_f32.cu and ctc_f64.cu. These define NUMBER, the type of a
// probability, and how it is added, multiplied and made. A block processes one example, frame by
// frame; its threads share the states.
#ifndef BELFRY_CUDA_KERNELS_CTC_BODY_H
#define BELFRY_CUDA_KERNELS_CTC_BODY_H

#include "cuda/kernels/ctc.h"
#include "cuda/kernels/kernel.h"

typedef struct ctc_example {
    int64_t frames, states; // frames -1: impossible
    const int64_t *labels;
    NUMBER *alphas, *betas, *p;
    double *shares;
} ctc_example;

// --- Possible examples ---------------------------------------------------------------------------

static inline bool in_range(const bel_cuda_operands *at, const bel_cuda_ctc *p, int64_t value,
                            int64_t low, int64_t limit)
{
    if (value >= low && value < limit) return true;
    if (!p->gradient) report_bad(at, value, low, limit);
    return false;
}

KERNEL(ctc_read, bel_cuda_ctc)
{
    for (int64_t i = THREAD; i < p.n; i += THREADS) {
        int64_t frames = ((const int64_t *)at.in[p.frame_length])[i];
        int64_t count = ((const int64_t *)at.in[p.label_length])[i];
        const int64_t *labels = (const int64_t *)at.in[p.label] + i * p.labels;
        bool good =
            in_range(&at, &p, frames, 0, p.frames + 1) && in_range(&at, &p, count, 0, p.labels + 1);
        for (int64_t k = 0; good && k < count; k++)
            good = in_range(&at, &p, labels[k], 1, p.classes);
        ((int64_t *)at.work)[i] = good ? frames : -1;
    }
}

static inline ctc_example example_of(const bel_cuda_operands *at, const bel_cuda_ctc *p, int64_t i)
{
    ctc_example x;
    NUMBER *slot = (NUMBER *)((int64_t *)at->work + p->slots_at + blockIdx.x * p->slot);
    x.frames = ((const int64_t *)at->work)[i];
    x.states = 2 * ((const int64_t *)at->in[p->label_length])[i] + 1;
    x.labels = (const int64_t *)at->in[p->label] + i * p->labels;
    x.alphas = slot;
    x.betas = slot + p->alphas;
    x.p = x.betas + 2 * p->states;
    x.shares = (double *)(x.p + p->states);
    return x;
}

// --- States: labels, with a blank (class 0) before, between and after them -----------------------

static inline int64_t class_of(const ctc_example *x, int64_t state)
{
    return state % 2 == 0 ? 0 : x->labels[state / 2];
}

// Whether a path may go from state - 2 to this one, past the blank between them.
static inline bool skips(const ctc_example *x, int64_t state)
{
    return state % 2 == 1 && state > 1 && x->labels[state / 2] != x->labels[state / 2 - 1];
}

// `before` is NULL at the first frame.
static inline void forward_frame(const ctc_example *x, const REAL *log_p, const NUMBER *before,
                                 NUMBER *alpha)
{
    for (int64_t s = threadIdx.x; s < x->states; s += blockDim.x) {
        NUMBER sum = s < 2 ? number_one() : number_zero();
        if (before != NULL) sum = before[s];
        if (before != NULL && s > 0) sum = number_add(sum, before[s - 1]);
        if (before != NULL && skips(x, s)) sum = number_add(sum, before[s - 2]);
        alpha[s] = number_mul(sum, number_of(log_p[class_of(x, s)]));
    }
}

// beta of the previous frame; the probabilities x->p are those of this frame.
static inline NUMBER backward_state(const ctc_example *x, const NUMBER *beta, int64_t s)
{
    NUMBER sum = number_mul(beta[s], x->p[s]);
    if (s + 1 < x->states) sum = number_add(sum, number_mul(beta[s + 1], x->p[s + 1]));
    if (s + 2 < x->states && skips(x, s + 2))
        sum = number_add(sum, number_mul(beta[s + 2], x->p[s + 2]));
    return sum;
}

// Probability of the labels, from the last frame's alpha.
static inline NUMBER whole(const ctc_example *x, const NUMBER *alpha)
{
    if (x->frames == 0) return x->states == 1 ? number_one() : number_zero();
    const NUMBER *end = alpha + x->states;
    return x->states == 1 ? end[-1] : number_add(end[-1], end[-2]);
}

// --- Kernels -------------------------------------------------------------------------------------

KERNEL(ctc_loss, bel_cuda_ctc)
{
    REAL *losses = (REAL *)at.out[0];
    for (int64_t i = blockIdx.x; i < p.n; i += gridDim.x) {
        ctc_example x = example_of(&at, &p, i);
        const REAL *log_p = (const REAL *)at.out[1] + i * p.frames * p.classes;
        const NUMBER *last = NULL;
        for (int64_t t = 0; t < x.frames; t++) {
            NUMBER *alpha = x.alphas + t % 2 * p.states;
            forward_frame(&x, log_p + t * p.classes, last, alpha);
            last = alpha;
            __syncthreads();
        }
        if (threadIdx.x == 0) losses[i] = 0;
        if (threadIdx.x == 0 && x.frames >= 0)
            losses[i] = loss_of(whole(&x, last), p.zero_infinity);
        __syncthreads();
    }
}

// The first state of each class adds the shares of all states of the class, in order.
static inline void class_gradient(const ctc_example *x, int64_t state, double dy, REAL *dx)
{
    int64_t k = class_of(x, state);
    for (int64_t s = state % 2; s < state; s += 2)
        if (class_of(x, s) == k) return;
    double likely = 0;
    for (int64_t s = state; s < x->states; s += 2)
        if (class_of(x, s) == k) likely += x->shares[s];
    dx[k] = (REAL)(dy * (all_of(x->p[state]) - likely));
}

// Gradient of one frame: first classes without a state, then the others.
static inline void backward_frame(const bel_cuda_ctc *p, const ctc_example *x, double dy,
                                  const REAL *log_p, const NUMBER *alpha, NUMBER probability,
                                  const NUMBER *beta, NUMBER *next, REAL *dx)
{
    for (int64_t s = threadIdx.x; s < x->states; s += blockDim.x) {
        x->p[s] = number_of(log_p[class_of(x, s)]);
        x->shares[s] = number_share(number_mul(alpha[s], beta[s]), probability);
    }
    for (int64_t k = threadIdx.x; k < p->classes; k += blockDim.x)
        dx[k] = absent_gradient(log_p[k], dy);
    __syncthreads();
    for (int64_t s = threadIdx.x; s < x->states; s += blockDim.x) {
        class_gradient(x, s, dy, dx);
        next[s] = backward_state(x, beta, s);
    }
    __syncthreads();
}

KERNEL(ctc_grad, bel_cuda_ctc)
{
    for (int64_t i = blockIdx.x; i < p.n; i += gridDim.x) {
        ctc_example x = example_of(&at, &p, i);
        int64_t first = i * p.frames * p.classes, frames = x.frames < 0 ? 0 : x.frames;
        const REAL *log_p = (const REAL *)at.in[p.log_p] + first;
        REAL *dx = (REAL *)at.out[0] + first;
        double dy = (double)((const REAL *)at.in[0])[i];
        for (int64_t t = 0; t < frames; t++) {
            NUMBER *alpha = x.alphas + t * p.states;
            forward_frame(&x, log_p + t * p.classes, t == 0 ? NULL : alpha - p.states, alpha);
            __syncthreads();
        }
        NUMBER probability = number_zero();
        if (frames > 0) probability = whole(&x, x.alphas + (frames - 1) * p.states);
        if (number_is_zero(probability)) frames = 0;
        for (int64_t e = frames * p.classes + threadIdx.x; e < p.frames * p.classes;
             e += blockDim.x)
            dx[e] = 0;
        for (int64_t s = threadIdx.x; frames > 0 && s < x.states; s += blockDim.x)
            x.betas[s] = s + 2 >= x.states ? number_one() : number_zero();
        __syncthreads();
        for (int64_t t = frames - 1; t >= 0; t--) {
            int64_t turn = (frames - 1 - t) % 2;
            backward_frame(&p, &x, dy, log_p + t * p.classes, x.alphas + t * p.states, probability,
                           x.betas + turn * p.states, x.betas + (1 - turn) * p.states,
                           dx + t * p.classes);
        }
    }
}

#endif
