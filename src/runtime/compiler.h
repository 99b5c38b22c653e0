// State of a program during compilation, shared by program.c and its helpers: compiler.c (buffers
// and calls), prologue.c, and the choice of bf16 values.
#ifndef BELFRY_RUNTIME_COMPILER_H
#define BELFRY_RUNTIME_COMPILER_H

#include "runtime/bf16_values.h"
#include "runtime/program_inner.h"

// Use of a buffer, tracked while calls are made.
typedef struct bel_buffer_usage {
    int last_reader;         // last node that reads one of its values so far, by position; -1: none
    bool reserved;           // one of its values must keep its content
    int read_in, written_in; // last groups with a call that does; -1: none
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
    int *position;    // by node index: its place in `order`
    bool apart;       // the next call starts a group
    int *buffer_of;   // by value id; -1: none yet
    int *last_reader; // by value id: position of the last node that reads it; -1: none
    int *external_of; // by value id: the first external output it can be written to; -1: none
    bool *reserved;   // by value id: its buffer must keep its content (outputs)
    bool *last;       // by value id: channels-last
    bool *bf16;       // by value id: stored as bf16
    bel_bf16_operands *operands; // by node index: operands that may be bf16; NULL: no operand is
    int *bf16_copy;              // by value id, of leaves: the buffer of its bf16 copy; -1: none
    bool *fixed;                 // by node index: belongs to the prologue
    bool *resident;              // by value id: made by the prologue, read after it
    int *packed;                 // by node index: the buffer that its kernel packed once; -1: none
    size_t resident_bytes;
    bel_program_buffer *buffers;
    bel_buffer_usage *usages; // by buffer
    size_t buffer_count, buffer_capacity, usage_capacity;
    size_t call_capacity, group_capacity;
    bel_status *status; // error of the first call that the device cannot run
} bel_compiler;

// --- Buffers and calls (compiler.c) --------------------------------------------------------------

// Index of a new buffer that no call has used yet (first -1).
int bel_compiler_buffer(bel_compiler *c, bel_location_kind kind, int index, size_t size);

size_t bel_compiler_bytes(const bel_compiler *c, const bel_value *value);      // as stored
bel_tensor bel_compiler_tensor(const bel_compiler *c, const bel_value *value); // without data

// Adds the next operand of a call: its buffer and its layout.
void bel_compiler_input(const bel_compiler *c, bel_program_call *made, const bel_value *value);
void bel_compiler_output(const bel_compiler *c, bel_program_call *made, const bel_value *value);

// A call with the node's operation and operands, not prepared.
bel_program_call bel_compiler_describe(const bel_compiler *c, const bel_node *node);
// Arguments for the device's `prepare`. `fixed`: the inputs that are fixed, as bits.
bel_prepare bel_compiler_prepare(const bel_compiler *c, const bel_node *node, unsigned fixed);
// Both steps: describes a call, and has the device prepare it.
bel_program_call bel_compiler_call(bel_compiler *c, const bel_node *node, unsigned fixed);
// Has the device prepare a call that was described. An error goes to bel_compiler_take.
void bel_compiler_prepare_made(bel_compiler *c, const bel_node *node, bel_program_call *made,
                               unsigned fixed);
// Keeps an error of the device in `c`, with the name of the node.
void bel_compiler_take(bel_compiler *c, const bel_node *node, bel_status *status);

// The leaf whose bf16 copy is input `i` of a node; else NULL. A leaf that is multiplied as bf16 is
// copied once for all products, those of the forward and the backward pass.
const bel_value *bel_compiler_copied_leaf(const bel_compiler *c, const bel_node *node, int i);

unsigned bel_compiler_fixed(const bel_compiler *c, const bel_node *node); // its inputs, as bits

// Appends a copy of `call`, in the last group or a new one.
void bel_compiler_add(bel_compiler *c, const bel_program_call *call);

// --- The prologue (prologue.c) -------------------------------------------------------------------

// Marks the nodes that depend only on variables and constants. External outputs are not among them,
// as each run must write them again. No node is marked if the results would keep more memory than
// is worth it, or if calls have no fixed order.
void bel_compiler_find_prologue(bel_compiler *c);

// Adds the calls that pack the fixed inputs of nodes, for kernels that pack them once.
void bel_compiler_emit_packings(bel_compiler *c);

// --- Values as bfloat16 (bf16_values.c) ----------------------------------------------------------

// Asks the device which operands of each operation may be bf16, and chooses the values.
void bel_compiler_find_bf16(bel_compiler *c);

// Adds the calls that make the missing bf16 copies of a node's leaves: all, or only the fixed ones.
void bel_compiler_emit_bf16_copies(bel_compiler *c, const bel_node *node, bool fixed_alone);

#endif
