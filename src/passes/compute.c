// Execution of one call outside of any program, on the calling thread, stage by stage and tile by
// tile. The kernel is chosen by the same `prepare` as in a program, and tiles follow only from
// shapes. So a folded constant has the bits that the program would have computed. Seed, step and
// replica are 0, so random operations are not allowed. The workspace is allocated as pages: too
// little memory is an error to the caller and does not end the process.
#include "passes/compute.h"

#include <string.h>

#include "base/alloc.h"

bool bel_compute_is_heavy(bel_op op)
{
    bool product = op == BEL_OP_MATMUL || op == BEL_OP_MATMUL_FLAT || op == BEL_OP_GEMM ||
                   op == BEL_OP_GRU || op == BEL_OP_GRU_GRAD || op == BEL_OP_LSTM ||
                   op == BEL_OP_LSTM_GRAD;
    return product || (bel_op_get(op)->flags & BEL_OP_CHANNELS) != 0;
}

static void run_stage(const bel_kernel_call *call, bel_kernel_fn *run, int64_t tile_count)
{
    for (int64_t tile = 0; run != NULL && tile < tile_count; tile++)
        run(call, tile);
}

bel_status *bel_compute(const bel_node *node, const bel_tensor *inputs, bool reference,
                        bel_tensor *outputs)
{
    bel_run_context context = {.seed = 0};
    bel_arena *arena = bel_arena_create();
    bel_kernel_call call = {.op = node->op,
                            .input_count = node->input_count,
                            .output_count = bel_op_get(node->op)->output_count,
                            .context = &context};
    memcpy(call.inputs, inputs, (size_t)call.input_count * sizeof *inputs);
    memcpy(call.outputs, outputs, (size_t)call.output_count * sizeof *outputs);
    bel_prepare prepare = {
        .attrs = &node->attrs, .arena = arena, .reference = reference, .threads = 1};
    bel_op_get(node->op)->prepare(&prepare, &call);
    bel_status *status = NULL;
    if (call.workspace_bytes > 0) {
        BEL_TRY_GOTO(status, out,
                     bel_pages_create(call.workspace_bytes, false, "a constant", &call.workspace));
    }
    run_stage(&call, call.before, call.before_tiles);
    run_stage(&call, call.run, call.tile_count);
    run_stage(&call, call.after, call.after_tiles);
    if (atomic_load(&context.error) != 0) {
        status = BEL_ERR(BEL_OUT_OF_RANGE, "%s: index or label %lld is out of range [%lld, %lld)",
                         node->name, (long long)context.bad_value, (long long)context.bad_low,
                         (long long)context.bad_limit);
    }
out:
    bel_pages_destroy(call.workspace, call.workspace_bytes);
    bel_arena_destroy(arena);
    return status;
}
