// A program while it is built: what compiler.c (buffers and calls), prologue.c, halves.c and
// program.c, which has them do it, share.
#ifndef BELFRY_RUNTIME_COMPILER_H
#define BELFRY_RUNTIME_COMPILER_H

#include "runtime/halves.h"
#include "runtime/program_inner.h"

// What is known of a buffer while calls are made.
typedef struct bel_buffer_usage {
    int last_reader; // of the values that lie in it so far: position of the last node that reads
                     // one; -1: none
    bool reserved;   // one of them must keep its content
    int read_in, written_in; // the last groups with a call that does; -1: none
} bel_buffer_usage;

typedef struct bel_compiler {
    const bel_graph *graph;
    const bel_program_output *outputs;
    int output_count;
    const bel_program_options *options;
    bel_program *program;
    bel_spec *specs;  // by value id
    bool *needed;     // by node index
    int *order;       // node indices in the order of calls
    int *position;    // by node index: where in `order` it stands
    bool apart;       // the next call begins a group
    int *buffer_of;   // by value id; -1: none yet
    int *last_reader; // by value id: position of the last node that reads it; -1: none
    int *external_of; // by value id: the first external output that it can be written to; -1: none
    bool *reserved;   // by value id: its buffer must keep its content (outputs)
    bool *last;       // by value id: channels-last
    bool *half;       // by value id: lies as bfloat16
    bel_half_operands *operands; // by node index: what may lie so; NULL: nothing does
    int *half_copy; // by value id, of leaves: the buffer of its copy as bfloat16; -1: none
    bool *fixed;    // by node index: belongs to the prologue
    bool *resident; // by value id: made by the prologue, read behind it
    int *packed;    // by node index: the buffer of what its kernel has packed once; -1: none
    size_t resident_bytes;
    bel_program_buffer *buffers;
    bel_buffer_usage *usages; // by buffer
    size_t buffer_count, buffer_capacity, usage_capacity;
    size_t call_capacity, group_capacity;
    bel_status *status; // the first call that the device cannot run
} bel_compiler;

// --- Buffers and calls (compiler.c) --------------------------------------------------------------

// Index of a new buffer that no call has touched yet (first -1).
int bel_compiler_buffer(bel_compiler *c, bel_location_kind kind, int index, size_t size);

size_t bel_compiler_bytes(const bel_compiler *c, const bel_value *value);      // as it lies
bel_tensor bel_compiler_tensor(const bel_compiler *c, const bel_value *value); // without data

// The next operand of a call: where it is, and how it lies.
void bel_compiler_input(const bel_compiler *c, bel_program_call *made, const bel_value *value);
void bel_compiler_output(const bel_compiler *c, bel_program_call *made, const bel_value *value);

// A node's operation and operands; and so prepared by the device, given which inputs are fixed
// (bits), as one that is described otherwise can be. Errors of the device are kept in `c`.
bel_program_call bel_compiler_describe(const bel_compiler *c, const bel_node *node);
bel_prepare bel_compiler_prepare(const bel_compiler *c, const bel_node *node, unsigned fixed);
bel_program_call bel_compiler_call(bel_compiler *c, const bel_node *node, unsigned fixed);
void bel_compiler_prepare_made(bel_compiler *c, const bel_node *node, bel_program_call *made,
                               unsigned fixed);
void bel_compiler_take(bel_compiler *c, const bel_node *node, bel_status *status);

// A leaf that is multiplied as bfloat16 is copied so once, for all that multiply it: those of the
// forward pass and of the backward one. Which leaf input `i` of a node is then; else NULL.
const bel_value *bel_compiler_copied_leaf(const bel_compiler *c, const bel_node *node, int i);

unsigned bel_compiler_fixed(const bel_compiler *c, const bel_node *node); // its inputs, as bits

// Appends a copy of `call`, in the last group or a new one.
void bel_compiler_add(bel_compiler *c, const bel_program_call *call);

// --- The prologue (prologue.c) -------------------------------------------------------------------

// Marks the nodes that depend on variables and constants alone. External outputs are not among
// them, as each run must write them anew; none are where more would stay in memory than is worth
// it, or where calls run in no fixed order.
void bel_compiler_find_prologue(bel_compiler *c);

// The calls that pack what stays as it is of nodes' inputs, where their kernels do that.
void bel_compiler_emit_packings(bel_compiler *c);

// --- Values as bfloat16 (halves.c) ---------------------------------------------------------------

// Asks the device of each operation which operands may lie so, and chooses values.
void bel_compiler_find_halves(bel_compiler *c);

// Calls for the copies of a node's leaves that are not there yet; of fixed ones alone, or of all.
void bel_compiler_emit_half_copies(bel_compiler *c, const bel_node *node, bool fixed_alone);

#endif
