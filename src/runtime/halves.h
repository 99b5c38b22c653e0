// Which values lie as bfloat16 in the memory of a device that multiplies by it.
#ifndef BELFRY_RUNTIME_HALVES_H
#define BELFRY_RUNTIME_HALVES_H

#include "runtime/program.h"

// Operands of an operation that may lie so, as bits (1 << operand).
typedef struct bel_half_operands {
    unsigned inputs, outputs;
    bool multiplies; // it multiplies bfloat16: its operands are to lie so
    bool follows;    // its results lie so only where its inputs do, which they are compared with
} bel_half_operands;

// Sets out_half[value id] for values that operations make and only operations read which take them
// so: `operands` says it, by node. `needed` is by node, too; out_half is all false on entry. A
// value that is computed again lies as it did the first time: `originals` says by value which one
// it is (bel_recomputed); NULL: there is none.
void bel_choose_halves(const bel_graph *graph, const bool *needed,
                       const bel_half_operands *operands, const int *originals,
                       const bel_program_output *outputs, int output_count, bool *out_half);

#endif
