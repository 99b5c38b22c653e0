// Read-only views of a program: sizes, counts, lines for people. Costs are expected from shapes
// (runtime/cost.h), not measured. Bytes alive at the same time are counted by group, since calls of
// a group run together. Their maximum is the lower bound for a plan.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "runtime/cost.h"
#include "runtime/device.h"
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

void bel_program_mark_variables(const bel_program *program, int group, bool *out_read)
{
    const bel_program_group *g = &program->groups[group];
    for (int i = g->first; i < g->first + g->count; i++) {
        const bel_program_call *call = &program->calls[i];
        for (int k = 0; k < call->call.input_count; k++) {
            const bel_program_buffer *buffer = &program->buffers[call->input_buffers[k]];
            if (buffer->kind == BEL_LOCATION_VARIABLE) out_read[buffer->index] = true;
        }
    }
}

void bel_program_mark_shown(const bel_program *program, bool *out_shown)
{
    for (int o = 0; o < program->output_count; o++) {
        const bel_program_buffer *buffer = &program->buffers[program->outputs[o].buffer];
        if (buffer->kind == BEL_LOCATION_VARIABLE) out_shown[buffer->index] = true;
    }
}

// Prefix sums of the bytes that start and end at each group; unsigned sums wrap around.
size_t bel_program_live_bytes(const bel_program *program)
{
    int groups = program->group_count;
    size_t *changes = bel_xcalloc((size_t)groups + 1, sizeof *changes), bytes = 0, most = 0;
    for (int b = 0; b < program->buffer_count; b++) {
        const bel_program_buffer *buffer = &program->buffers[b];
        if (buffer->kind != BEL_LOCATION_ARENA || buffer->first < 0) continue;
        changes[buffer->first] += buffer->size_bytes;
        if (buffer->last < groups) changes[buffer->last + 1] -= buffer->size_bytes;
    }
    for (int g = 0; g < groups; g++) {
        bytes += changes[g];
        most = bytes > most ? bytes : most;
    }
    bel_free(changes);
    return most;
}

// The last group that starts at or before the instruction.
static int group_of(const bel_program *program, int instruction)
{
    int low = 0, high = program->group_count - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (program->groups[middle].first <= instruction) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

bel_program_line bel_program_line_at(const bel_program *program, int instruction)
{
    const bel_program_call *call = &program->calls[instruction];
    bool known = program->device->in_place; // the model is of the CPU
    return (bel_program_line){.group = group_of(program, instruction),
                              .name = call->name,
                              .op = bel_op_get(call->call.op)->name,
                              .shape = call->call.outputs[0].shape,
                              .bf16 = call->call.outputs_bf16[0],
                              .tiles = call->call.tile_count,
                              .cost_ns = known ? bel_cost_ns(&call->call) : 0};
}

// A buffer, and the first call with it as a result, or else as an operand.
typedef struct large_buffer {
    size_t bytes;
    const char *name;
    const bel_tensor *tensor;
    bel_dtype lies_as;
} large_buffer;

static int by_size(const void *a, const void *b)
{
    const large_buffer *p = a, *q = b;
    return p->bytes == q->bytes ? 0 : p->bytes < q->bytes ? 1 : -1;
}

static void name_buffers(const bel_program *program, large_buffer *buffers)
{
    for (int c = 0; c < program->call_count; c++) {
        const bel_program_call *call = &program->calls[c];
        for (int i = 0; i < call->call.input_count + call->call.output_count; i++) {
            int k = i - call->call.input_count;
            int b = k < 0 ? call->input_buffers[i] : call->output_buffers[k];
            if (buffers[b].name != NULL) continue;
            buffers[b].name = call->name;
            buffers[b].tensor = k < 0 ? &call->call.inputs[i] : &call->call.outputs[k];
            bool bf16 = k < 0 ? call->call.inputs_bf16[i] : call->call.outputs_bf16[k];
            buffers[b].lies_as = bf16 ? BEL_DTYPE_BF16 : buffers[b].tensor->dtype;
        }
    }
}

const char *bel_program_largest_text(const bel_program *program,
                                     char text[BEL_PROGRAM_LARGEST_TEXT])
{
    enum { SHOWN = 4 };
    size_t count = (size_t)program->buffer_count, length = 0;
    large_buffer *buffers = bel_xcalloc(count + 1, sizeof *buffers);
    name_buffers(program, buffers);
    for (size_t b = 0; b < count; b++)
        if (buffers[b].name != NULL) buffers[b].bytes = program->buffers[b].size_bytes;
    qsort(buffers, count, sizeof *buffers, by_size);
    text[0] = '\0';
    for (size_t b = 0; b < count && b < SHOWN && buffers[b].bytes > 0; b++) {
        char shape[BEL_SHAPE_TEXT], bytes[32];
        bel_snprintf(text + length, BEL_PROGRAM_LARGEST_TEXT - length, "%s%.40s %s%s %s",
                     b > 0 ? ", " : "", buffers[b].name, bel_dtype_name(buffers[b].lies_as),
                     bel_shape_text(&buffers[b].tensor->shape, shape),
                     bel_bytes_text(buffers[b].bytes, bytes));
        length += strlen(text + length);
    }
    bel_free(buffers);
    return text;
}
