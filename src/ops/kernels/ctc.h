// Connectionist temporal classification (Graves et al. 2006), f32: the sum over all paths of frames
// that give the labels after repeats are merged and blanks dropped, and its gradient.
//
// The labels with a blank before, between and after them are 2 l + 1 *states*. alpha(t, s) is the
// probability of frames 0 … t that end in state s (eq. 6), beta(t, s) that of the frames after t
// from state s on. alpha · beta over the total probability is the posterior of state s at frame t
// (eq. 14 to 16). Both are wide numbers: wide.h.
#ifndef BELFRY_OPS_KERNELS_CTC_H
#define BELFRY_OPS_KERNELS_CTC_H

#include "ops/op.h"

enum { BEL_CTC_BLANK = 0 };

// First member of the params of all calls. Operands: logits or their log softmax [n, frames,
// classes], labels [n, labels], lengths [n].
typedef struct bel_ctc_shape {
    int64_t n, frames, classes, labels;
    int log_p, label, frame_length, label_length; // inputs; log_p only for a gradient
    bool zero_infinity;
    bool plain; // in double, logarithms of probabilities
} bel_ctc_shape;

typedef struct bel_ctc_example {
    int64_t first_frame; // index among all frames
    int64_t frames;
    const int64_t *labels;
    int64_t label_count;
} bel_ctc_example;

// Reads example `index`. False if its lengths or labels are invalid, which is reported if `report`.
bool bel_ctc_example_read(const bel_kernel_call *call, const bel_ctc_shape *s, int64_t index,
                          bool report, bel_ctc_example *out_example);

static inline int64_t bel_ctc_class(const bel_ctc_example *x, int64_t state)
{
    return state % 2 == 0 ? BEL_CTC_BLANK : x->labels[state / 2];
}

// Returns true if a path may go from state - 2 to this one, past the blank between them.
static inline bool bel_ctc_skips(const bel_ctc_example *x, int64_t state)
{
    return state % 2 == 1 && state > 1 && x->labels[state / 2] != x->labels[state / 2 - 1];
}

// Choose calls for f32: outputs loss and log softmax, or the gradient of the logits.
void bel_ctc_prepare(const bel_prepare *prepare, bel_kernel_call *call, const bel_ctc_shape *s);
void bel_ctc_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                              const bel_ctc_shape *s);

#endif
