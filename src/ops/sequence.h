// Lengths of padded sequences, shared by operations that have them as an input.
#ifndef BELFRY_OPS_SEQUENCE_H
#define BELFRY_OPS_SEQUENCE_H

#include "ops/kernels/cpu.h"
#include "ops/op.h"

// Checks lengths [n] i64 for x [n, ...].
bel_status *bel_check_lengths(const bel_spec *lengths, const bel_shape *x) BEL_MUST_USE;

// Returns the length of sequence `index`; one outside [0, most] is reported and counts as 0.
int64_t bel_length_of(const bel_kernel_call *call, const bel_tensor *lengths, int64_t index,
                      int64_t most);

// SequenceMask: x is [n, outer, times, inner].
typedef struct bel_sequence_mask_params {
    int64_t outer, times;
    size_t inner_bytes;
    int64_t per_tile; // rows of n · outer
} bel_sequence_mask_params;

// MaskedSoftmax: its optional inputs after x, recognized by type: a mask of bool, lengths of i64.
typedef struct bel_hiding {
    int mask, lengths; // -1: absent
    bool causal;
} bel_hiding;

typedef struct bel_masked_softmax_params {
    bel_hiding hiding;
    int64_t rows, columns, queries;
    int64_t sequence_rows;     // rows of one sequence
    bel_cpu_unary_fn *softmax; // NULL: plain, in double
} bel_masked_softmax_params;

#endif
