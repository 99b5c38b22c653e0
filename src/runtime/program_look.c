// What a program says of itself: sizes, counts, lines for people. Costs are what shapes let
// expect (runtime/cost.h), not what was measured. The bytes alive at once are counted by group,
// since calls of a group run together; that is the lower bound that a plan is compared with.
// Nothing here changes a program.
#include "runtime/cost.h"
#include "runtime/program_inner.h"

size_t bel_program_arena_bytes(const bel_program *program)
{
    return program->arena_bytes;
}

int bel_program_instruction_count(const bel_program *program)
{
    return program->call_count;
}

int bel_program_repeated_count(const bel_program *program)
{
    return program->recomputed.count;
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
                             .cost_ns = bel_cost_ns(&call->call)};
    while (instruction >= program->groups[line.group].first + program->groups[line.group].count)
        line.group++;
    return line;
}
