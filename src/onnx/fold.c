// A graph without inputs, run once on the plain kernels.
#include "onnx/fold.h"

#include "base/alloc.h"
#include "onnx/build.h"
#include "runtime/program.h"

enum { HEAVY_ELEMENTS = 1 << 12 };

// Work that grows faster than its operands: products, windows, steps.
static bool is_heavy(bel_op op)
{
    bool product =
        op == BEL_OP_MATMUL || op == BEL_OP_GEMM || op == BEL_OP_GRU || op == BEL_OP_LSTM;
    return product || (bel_op_get(op)->flags & BEL_OP_CHANNELS) != 0;
}

static bool is_worth_it(const bel_graph *graph)
{
    int64_t limit = BEL_ONNX_CONSTANT_ELEMENTS;
    for (size_t i = 0; i < graph->node_count; i++) {
        bel_op op = graph->nodes[i]->op;
        if ((bel_op_get(op)->flags & BEL_OP_RANDOM) != 0) return false;
        if (is_heavy(op)) limit = HEAVY_ELEMENTS;
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        int64_t elements = bel_shape_elements(&graph->values[i]->spec.shape);
        if (elements < 0 || elements > limit) return false;
    }
    return true;
}

static bel_status *run(const bel_program *program, void *arena, bel_value **values, int count,
                       bel_graph *to)
{
    bel_team *team;
    BEL_TRY(bel_team_create(1, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_run_context context = {.seed = 0};
    bel_status *status = bel_instance_run(instance, team, &context, NULL, NULL);
    for (int i = 0, output = 0; status == NULL && i < count; i++) {
        if (values[i] == NULL) continue;
        bel_tensor tensor = bel_instance_output(instance, output++);
        values[i] = bel_constant(to, &tensor);
    }
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    return status;
}

bel_status *bel_onnx_compute(const bel_graph *graph, bel_value **values, int count, bel_graph *to,
                             bool *out_done)
{
    *out_done = is_worth_it(graph);
    if (!*out_done) return NULL;
    bel_program_output *outputs = bel_xcalloc((size_t)count + 1, sizeof *outputs);
    int output_count = 0;
    for (int i = 0; i < count; i++)
        if (values[i] != NULL) outputs[output_count++].value = values[i];
    bel_program *program = NULL;
    bel_program_options options = {.reference = true, .threads = 1};
    void *arena = NULL;
    size_t bytes = 0;
    bel_status *status =
        bel_program_compile(graph, NULL, outputs, output_count, &options, &program);
    if (status != NULL) goto out;
    bytes = bel_program_arena_bytes(program) + 64;
    BEL_TRY_GOTO(status, out, bel_pages_create(bytes, false, "a constant", &arena));
    status = run(program, arena, values, count, to);
out:
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    bel_free(outputs);
    return status;
}
