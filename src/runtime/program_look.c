// What a program says of itself: sizes, counts, lines for people.
#include "runtime/program_inner.h"

int64_t bel_program_work(const bel_kernel_call *call)
{
    if (call->op == BEL_OP_GEMM || call->op == BEL_OP_MATMUL) {
        const bel_shape *y = &call->outputs[0].shape;
        return bel_shape_elements(&call->inputs[0].shape) * y->dims[y->rank - 1] / 8;
    }
    int64_t work = call->work;
    if (work > 0) return work;
    for (int i = 0; i < call->input_count; i++)
        work += bel_shape_elements(&call->inputs[i].shape);
    for (int i = 0; i < call->output_count; i++)
        work += bel_shape_elements(&call->outputs[i].shape);
    return work;
}

size_t bel_program_arena_bytes(const bel_program *program)
{
    return program->arena_bytes;
}

int bel_program_instruction_count(const bel_program *program)
{
    return program->call_count;
}

int bel_program_prologue_count(const bel_program *program)
{
    return program->prologue_calls;
}

int bel_program_group_count(const bel_program *program)
{
    return program->group_count;
}

size_t bel_program_live_bytes(const bel_program *program)
{
    size_t most = 0;
    for (int g = 0; g < program->group_count; g++) {
        size_t bytes = 0;
        for (int b = 0; b < program->buffer_count; b++) {
            const bel_program_buffer *buffer = &program->buffers[b];
            bool alive =
                buffer->kind == BEL_LOCATION_ARENA && buffer->first <= g && g <= buffer->last;
            if (alive) bytes += buffer->size_bytes;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

bel_program_line bel_program_line_at(const bel_program *program, int instruction)
{
    const bel_program_call *call = &program->calls[instruction];
    bel_program_line line = {.name = call->name,
                             .op = bel_op_get(call->call.op)->name,
                             .shape = call->call.outputs[0].shape,
                             .tiles = call->call.tile_count,
                             .work = bel_program_work(&call->call)};
    while (instruction >= program->groups[line.group].first + program->groups[line.group].count)
        line.group++;
    return line;
}
