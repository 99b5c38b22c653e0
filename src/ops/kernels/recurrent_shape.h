// Shape of a recurrent operation and the offsets of its elements. Used by the CPU and, as text, by
// GPU kernels (cuda/kernels/kernel.h).
#ifndef BELFRY_OPS_KERNELS_RECURRENT_SHAPE_H
#define BELFRY_OPS_KERNELS_RECURRENT_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

// x [t, n, in] or with `batch_first` [n, t, in]; y [t, directions, n, hidden] or [n, t, directions,
// hidden]; last states [directions, n, hidden] or [n, directions, hidden]; saved [n, t, directions,
// saved_parts · hidden].
typedef struct bel_recurrent_shape {
    bool lstm, batch_first, reset_last; // reset_last: linear_before_reset
    bool plain;                         // in double, element by element
    bool reverse[2];                    // by direction
    int64_t n, t, in, hidden, directions, gates;
    // GRU: z, r, n; with reset_last n, z, r, n' (the part of n that r multiplies).
    // LSTM: i, o, f, c and the cell state.
    int64_t saved_parts;
} bel_recurrent_shape;

// Operands of both passes; -1: absent.
typedef struct bel_recurrent_operands {
    int x, w, r, b, lengths;            // inputs
    int first[2];                       // inputs of a forward pass: initial states h, c
    int y, saved, dy, dy_state[2];      // inputs of a gradient; states are h, c
    int out_y, out_state[2], out_saved; // outputs of a forward pass
    bool dx;
} bel_recurrent_operands;

// Offsets, in numbers.
static inline int64_t bel_recurrent_x_at(const bel_recurrent_shape *s, int64_t row, int64_t time)
{
    return (s->batch_first ? row * s->t + time : time * s->n + row) * s->in;
}

static inline int64_t bel_recurrent_y_at(const bel_recurrent_shape *s, int64_t d, int64_t row,
                                         int64_t time)
{
    int64_t at = s->batch_first ? (row * s->t + time) * s->directions + d
                                : (time * s->directions + d) * s->n + row;
    return at * s->hidden;
}

static inline int64_t bel_recurrent_state_at(const bel_recurrent_shape *s, int64_t d, int64_t row)
{
    return (s->batch_first ? row * s->directions + d : d * s->n + row) * s->hidden;
}

static inline int64_t bel_recurrent_saved_at(const bel_recurrent_shape *s, int64_t d, int64_t row,
                                             int64_t time)
{
    return ((row * s->t + time) * s->directions + d) * s->saved_parts * s->hidden;
}

// Returns the time of a sequence's step.
static inline int64_t bel_recurrent_time(const bel_recurrent_shape *s, int64_t d, int64_t length,
                                         int64_t step)
{
    return s->reverse[d] ? length - 1 - step : step;
}

#endif
