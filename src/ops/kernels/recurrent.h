// GRU and LSTM over sequences of different lengths, f32. Rows of the batch are assigned to tiles by
// length, longest first. A tile processes its rows step by step and skips finished ones, so
// nothing after a length is ever read.
//
// All products use blocks of sums (product.h): one chain of fused multiply-adds an element. An
// element's bits therefore depend neither on threads nor on the rows in its tile.
#ifndef BELFRY_OPS_KERNELS_RECURRENT_H
#define BELFRY_OPS_KERNELS_RECURRENT_H

#include "base/isa_levels.h"
#include "ops/kernels/recurrent_shape.h"
#include "ops/op.h"

enum { BEL_GRU_GATES = 3, BEL_LSTM_GATES = 4 };

// Attribute "direction": the order of a sequence.
enum {
    BEL_RECURRENT_FORWARD,
    BEL_RECURRENT_REVERSE, // from the last valid step to the first
    BEL_RECURRENT_BOTH,
};

// Output gradients that a gradient operation has, as bits of its attribute "given"; also whether it
// has lengths and whether dx is needed.
enum {
    BEL_RECURRENT_DY = 1,
    BEL_RECURRENT_DY_H = 2,
    BEL_RECURRENT_DY_C = 4,
    BEL_RECURRENT_LENGTHS = 8,
    BEL_RECURRENT_DX = 16,
};

// Initial states that a forward operation has, as bits of its attribute "first"; otherwise they are
// zeros.
enum { BEL_RECURRENT_FIRST_H = 1, BEL_RECURRENT_FIRST_C = 2 };

// Returns the length of a row in [0, t]; an invalid one is reported.
int64_t bel_recurrent_length(const bel_kernel_call *call, int input, int64_t t, int64_t row);

// Choose the fast kernels: call->run, before, after, their tiles and the workspace.
void bel_recurrent_prepare_forward(const bel_prepare *prepare, bel_kernel_call *call,
                                   const bel_recurrent_shape *shape,
                                   const bel_recurrent_operands *operands);
void bel_recurrent_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                    const bel_recurrent_shape *shape,
                                    const bel_recurrent_operands *operands);

// --- Vector kernels, compiled per instruction-set level: one row of n elements ---

typedef struct bel_recurrent_kernels {
    // a += b · c
    void (*add_product)(float *a, const float *b, const float *c, int64_t n);
    // h = (1 - z) · n + z · h
    void (*gru_state)(const float *candidate, const float *z, float *h, int64_t n);
    // From dh: dn (before tanh), dz (before sigmoid); dh becomes z · dh.
    void (*gru_grad)(const float *candidate, const float *z, const float *h, float *dh, float *dn,
                     float *dz, int64_t n);
    // From dp, the gradient of the product r · q: dr (before sigmoid) and dq.
    void (*gru_reset_grad)(const float *dp, const float *r, const float *q, float *dr, float *dq,
                           int64_t n);
    // From dh and dc: gradients before the gates' functions, [i, o, f, c] `step` apart; dc becomes
    // the previous cell's. cell_tanh = tanh(c).
    void (*lstm_grad)(const float *saved, int64_t saved_step, const float *cell_before,
                      const float *cell_tanh, const float *dh, float *dc, float *gates,
                      int64_t step, int64_t n);
    // c = f · c + i · g, for gates [i, o, f, g] `step` apart
    void (*lstm_cell)(const float *gates, int64_t step, float *c, int64_t n);
} bel_recurrent_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_recurrent_kernels)

const bel_recurrent_kernels *bel_recurrent_kernels_get(void);

// --- Between recurrent.c and recurrent_grad.c ---

// Gates form groups: columns of the pre-activations [hidden] that share their inputs. An input row
// is [x, 1, h]; a group reads its columns [first, end).
typedef struct bel_recurrent_group {
    int x_gate, h_gate; // gates in W and R; -1: unused
    int64_t first, end;
} bel_recurrent_group;

enum { BEL_RECURRENT_MAX_GROUPS = 4, BEL_RECURRENT_LANES = 16 };

// Begins like bel_recurrent_plain (ops/recurrent.h).
typedef struct bel_recurrent_walk {
    bel_recurrent_shape shape;
    bel_recurrent_operands operands;
    bel_recurrent_group groups[BEL_RECURRENT_MAX_GROUPS];
    int64_t group_count;
    int64_t inputs;    // in + 1 + hidden
    int64_t width;     // hidden, rounded up to lanes
    int64_t panels;    // width / lanes
    int64_t row_tiles; // in one direction
    int64_t tile_rows;
    int64_t numbers; // at the start of the workspace: lengths [n], order [n], places [t + 2]
    int64_t packed;  // floats of packed weights, which follow
    int64_t tile;    // floats of each tile, which follow
} bel_recurrent_walk;

void bel_recurrent_walk_init(bel_recurrent_walk *w, const bel_recurrent_shape *shape,
                             const bel_recurrent_operands *operands);

// Tile 0 of `before`: reads lengths, and sorts rows by length.
void bel_recurrent_sort_rows(const bel_kernel_call *call, const bel_recurrent_walk *w);

// Rows of a tile, longest first; the i-th is order[i · row_tiles].
typedef struct bel_recurrent_rows {
    const int64_t *lengths, *order;
    int64_t count, step;
} bel_recurrent_rows;
bel_recurrent_rows bel_recurrent_rows_of(const bel_kernel_call *call, const bel_recurrent_walk *w,
                                         int64_t tile);
static inline int64_t bel_recurrent_row(const bel_recurrent_rows *rows, int64_t i)
{
    return rows->order[i * rows->step];
}
static inline int64_t bel_recurrent_row_length(const bel_recurrent_rows *rows, int64_t i)
{
    return rows->lengths[rows->order[i * rows->step]];
}

// Returns the floats of the workspace.
float *bel_recurrent_floats(const bel_kernel_call *call, const bel_recurrent_walk *w);

// c [rows, lanes] = start (NULL: zeros; laid out like c) + a [rows, k] · b [k, lanes].
void bel_recurrent_multiply(const float *a, int64_t a_stride, int64_t rows, int64_t k,
                            const float *b, const float *start, float *c, int64_t c_stride);

#endif
