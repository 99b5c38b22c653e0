// A graph without inputs, run once on the plain kernels.
#include "onnx/fold.h"

#include "base/alloc.h"
#include "onnx/build.h"
#include "runtime/program.h"

static bool is_worth_it(const bel_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if ((bel_op_get(graph->nodes[i]->op)->flags & BEL_OP_RANDOM) != 0) return false;
    for (size_t i = 0; i < graph->value_count; i++) {
        int64_t elements = bel_shape_elements(&graph->values[i]->spec.shape);
        if (elements < 0 || elements > BEL_ONNX_CONSTANT_ELEMENTS) return false;
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
