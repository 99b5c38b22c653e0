// Choice of the values that are stored as bf16, on a device that multiplies bf16.
#ifndef BELFRY_RUNTIME_BF16_VALUES_H
#define BELFRY_RUNTIME_BF16_VALUES_H

#include "runtime/program.h"

// Operands of an operation that may be stored as bf16, as bits (1 << operand).
typedef struct bel_bf16_operands {
    unsigned inputs, outputs;
    bool multiplies; // it multiplies bf16: its operands should be bf16
    bool follows;    // its results are bf16 only if its inputs are, which they are compared with
} bel_bf16_operands;

// Sets out_bf16[value id] for values whose writer is an operation and whose readers are all
// operations that accept bf16 there, by `operands`. `needed` and `operands` are by node; out_bf16
// is all false on entry. A value that is computed again is stored as it was the first time:
// `originals` gives, by value, the first one (bel_recomputed); NULL: no value is.
void bel_choose_bf16(const bel_graph *graph, const bool *needed, const bel_bf16_operands *operands,
                     const int *originals, const bel_program_output *outputs, int output_count,
                     bool *out_bf16);

#endif
