// Compiled form of a program; only for the files that compile and run programs, and for devices.
#ifndef BELFRY_RUNTIME_PROGRAM_INNER_H
#define BELFRY_RUNTIME_PROGRAM_INNER_H

#include "passes/passes.h"
#include "passes/recompute.h"
#include "runtime/program.h"

typedef enum bel_location_kind {
    BEL_LOCATION_ARENA,
    BEL_LOCATION_RESIDENT, // in the instance: results of the prologue that others read
    BEL_LOCATION_INPUT,
    BEL_LOCATION_VARIABLE,
    BEL_LOCATION_CONSTANT,
    BEL_LOCATION_OUTPUT,
} bel_location_kind;

typedef struct bel_program_buffer {
    bel_location_kind kind;
    int index;     // index of the input, variable or output
    size_t offset; // ARENA, RESIDENT
    void *constant;
    size_t size_bytes;
    int first, last; // groups between which it is alive
} bel_program_buffer;

typedef struct bel_program_call {
    const char *name;
    bel_kernel_call call; // addresses are NULL here
    int input_buffers[BEL_OP_MAX_INPUTS];
    int output_buffers[BEL_OP_MAX_OUTPUTS];
    int workspace;      // buffer, -1: none
    int64_t first_tile; // first tile among those of the group
} bel_program_call;

// Neighboring calls that neither read nor overwrite each other's results: their tiles run in any
// order. Grouping changes only which calls wait, so the rule may consider costs.
typedef struct bel_program_group {
    int first, count;   // calls
    int64_t tile_count; // sum over the calls
    bool for_team;      // costs more than passing it to other threads
} bel_program_group;

// A stop of the program: the calls of collectives, in separate groups.
typedef struct bel_program_exchange {
    int first_call, end_call;
    int first_group, end_group;
} bel_program_exchange;

typedef struct bel_program_result {
    bel_tensor tensor;
    int buffer;
    bool external;
} bel_program_result;

typedef struct bel_flow bel_flow;

struct bel_program {
    bel_rewritten rewritten;   // has constants; empty without passes
    bel_recomputed recomputed; // the same with recomputation; empty if memory is not limited
    bel_arena *arena;          // names and kernel parameters
    bel_program_call *calls;
    int call_count;
    bel_program_group *groups;
    int group_count;
    bel_program_buffer *buffers;
    int buffer_count;
    bel_program_result *outputs;
    int output_count;
    bel_device *device;
    size_t arena_bytes, resident_bytes; // on a device that is not in place, all is in the arena
    bool fixed_variables, on_device;
    int prologue_calls, prologue_groups;
    int *exchange_of; // by collective of the first graph (bel_graph_exchanges)
    bel_program_exchange *exchanges;
    int exchange_count;
    bel_flow *flow; // NULL: synchronous executor
};

// Compiles `graph` unchanged into a program that is empty except for exchange_of and
// exchange_count. Arguments and errors as of bel_program_compile.
bel_status *bel_program_build(const bel_graph *graph, const bel_shape *input_shapes,
                              const bel_program_output *outputs, int output_count,
                              const bel_program_options *options,
                              bel_program *program) BEL_MUST_USE;

// Computes the offsets of the arena's and the resident buffers, and the two sizes
// (program_memory.c).
void bel_program_plan_memory(bel_program *program, bel_program_buffer *buffers, size_t buffer_count,
                             bool no_reuse);

// Calls of the groups before `group`.
static inline int bel_program_calls_before(const bel_program *program, int group)
{
    return group < program->group_count ? program->groups[group].first : program->call_count;
}

// Bytes of the arena that hold no value of a step: inputs, variables, constants and external
// outputs on a device that is not in place. 0 on one that is.
size_t bel_program_outside_bytes(const bel_program *program);

// The values of the outputs; free with bel_free.
bel_value **bel_output_values(const bel_program_output *outputs, int output_count);

#endif
