// Compilation of a graph into a program: the cut at collectives, the passes, then the build. If
// memory is limited, programs that keep less and compute more are built until one fits, with the
// same bits. Outputs are followed from graph to graph by the ids of their values. A program owns
// the graphs whose constants it views, so the rewritten graph moves to the smaller program before
// the larger one is destroyed. Asynchronous programs are not made smaller: recomputation needs an
// order of calls.
#include <math.h>

#include "base/alloc.h"
#include "runtime/device.h"

// Outputs as values of another graph, by id of the old value.
static bel_program_output *map_outputs(const bel_program_output *outputs, int output_count,
                                       bel_value *const *values)
{
    bel_program_output *made = bel_xcalloc((size_t)output_count + 1, sizeof *made);
    for (int i = 0; i < output_count; i++) {
        made[i] = outputs[i];
        if (values != NULL) made[i].value = values[outputs[i].value->id];
    }
    return made;
}

static bel_program *new_program(const bel_program_options *options)
{
    bel_program *program = bel_xcalloc(1, sizeof *program);
    program->arena = bel_arena_create();
    program->device = options->device != NULL ? options->device : &bel_device_cpu;
    program->fixed_variables = options->fixed_variables;
    program->on_device = options->on_device && !program->device->in_place;
    return program;
}

// Replaces *program by one compiled from `graph` with recomputation, whose arena is expected to
// take `target` bytes. *out_least: no more can be saved.
static bel_status *compile_smaller(const bel_graph *graph, const bel_shape *input_shapes,
                                   const bel_program_output *outputs, int output_count,
                                   const bel_program_options *options, size_t target,
                                   bool *out_least, bel_program **program)
{
    bel_value **values = bel_output_values(outputs, output_count);
    bool *external = bel_xcalloc((size_t)output_count + 1, sizeof *external);
    for (int i = 0; i < output_count; i++)
        external[i] = outputs[i].external;
    bel_program *made = new_program(options);
    made->exchange_of = (*program)->exchange_of;
    made->exchange_count = (*program)->exchange_count;
    (*program)->exchange_of = NULL;
    bel_recompute(graph, values, external, output_count, target, &made->recomputed);
    *out_least = made->recomputed.peak_bytes > target;
    bel_program_output *wanted = map_outputs(outputs, output_count, made->recomputed.values);
    bel_status *status = bel_program_build(made->recomputed.graph, input_shapes, wanted,
                                           output_count, options, made);
    bel_free(wanted);
    bel_free(external);
    bel_free(values);
    made->rewritten = (*program)->rewritten; // holds `graph`, or at least its constants
    (*program)->rewritten = (bel_rewritten){.graph = NULL};
    bel_program_destroy(*program);
    *program = made;
    return status;
}

// Lowers the target until the plan fits. Expected and planned bytes differ, as kernels need
// workspaces and a plan has gaps; a lower target may even give a slightly larger plan. So each
// round lowers the target by the excess, and by at least a part of the limit that doubles each
// round. The last round aims at the least there is.
static bel_status *compile_fit(const bel_graph *graph, const bel_shape *input_shapes,
                               const bel_program_output *outputs, int output_count,
                               const bel_program_options *options, bel_program **program)
{
    enum { ROUNDS = 8 };
    size_t outside = bel_program_outside_bytes(*program), least = SIZE_MAX;
    size_t limit = options->memory_bytes + outside, target = options->memory_bytes;
    bool is_least = options->asynchronous;
    for (int round = 0; round <= ROUNDS; round++) {
        size_t bytes = (*program)->arena_bytes;
        if (bytes <= limit) return NULL;
        if (bytes < least) least = bytes;
        if (is_least || round == ROUNDS) break;
        size_t over = round == 0 ? 0 : bytes - limit, part = limit >> (ROUNDS - round);
        if (round > 0 && over < part) over = part;
        target = round < ROUNDS - 1 && target > over ? target - over : 0;
        BEL_TRY(compile_smaller(graph, input_shapes, outputs, output_count, options, target,
                                &is_least, program));
    }
    double needed =
        ceil((double)(least - outside) * 0x1p-20 * 10) / 10; // shown larger than the limit
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "the values of a step need at least %.1f MiB, but may take only %.1f MiB",
                   needed, (double)options->memory_bytes * 0x1p-20);
}

// Finds the exchanges in the graph as it was built. Grouping of collectives depends on no shape and
// no pass, so all replicas agree on it.
static bel_status *compile_cut(const bel_graph *graph, const bel_program_output *outputs,
                               int output_count, const bel_program_options *options,
                               bel_program *program)
{
    if (graph->collective_count == 0) return NULL;
    bel_value **values = bel_output_values(outputs, output_count);
    program->exchange_of = bel_xcalloc(graph->collective_count, sizeof *program->exchange_of);
    program->exchange_count =
        bel_graph_exchanges(graph, values, output_count, program->exchange_of);
    bel_free(values);
    if (program->exchange_count == 0 || !options->asynchronous) return NULL;
    char first[BEL_COLLECTIVE_TEXT];
    return BEL_ERR(
        BEL_UNIMPLEMENTED,
        "%s: the asynchronous executor does not stop at collectives; use the synchronous "
        "one",
        bel_graph_collective_text(graph, 0, first));
}

bel_status *bel_program_compile(const bel_graph *graph, const bel_shape *input_shapes,
                                const bel_program_output *outputs, int output_count,
                                const bel_program_options *options, bel_program **out_program)
{
    static const bel_program_options defaults = {.threads = 1};
    if (options == NULL) options = &defaults;
    bel_program *program = new_program(options);
    unsigned off = options->passes_off;
    bool trains = !options->fixed_variables;
    if (trains && program->device->in_place) off |= 1u << BEL_PASS_JOIN; // no gain
    // A GPU has no product that continues another; OpenBLAS has one, with other bits.
    if (!program->device->in_place || options->openblas) off |= 1u << BEL_PASS_CHUNK;
    unsigned passes = ~off & BEL_PASSES_ALL & ~(1u << BEL_PASS_HOIST);
    bool rewrite = passes != 0 || options->memory_bytes > 0;
    bel_status *status = compile_cut(graph, outputs, output_count, options, program);
    if (status == NULL && options->asynchronous && !program->device->in_place) {
        status = BEL_ERR(BEL_UNIMPLEMENTED,
                         "the asynchronous executor runs only on the CPU; use the synchronous one "
                         "on %s",
                         program->device->name);
    }
    if (status == NULL && rewrite) {
        bel_value **values = bel_output_values(outputs, output_count);
        status = bel_passes_run(graph, input_shapes, values, output_count, off, options->reference,
                                &program->rewritten);
        bel_free(values);
        if (status == NULL) graph = program->rewritten.graph;
    }
    bel_program_output *wanted = NULL;
    if (status == NULL) {
        wanted = map_outputs(outputs, output_count, program->rewritten.values);
        status = bel_program_build(graph, input_shapes, wanted, output_count, options, program);
    }
    if (status == NULL && options->memory_bytes > 0)
        status = compile_fit(graph, input_shapes, wanted, output_count, options, &program);
    bel_free(wanted);
    if (status == NULL) {
        *out_program = program;
    } else {
        bel_program_destroy(program);
    }
    return status;
}
