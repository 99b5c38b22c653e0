// Memory of a program's buffers: those that share the arena, by their lives, and those that are
// resident. A device that is not in place has all of them in its arena, also inputs, variables,
// constants and results of the prologue.
#include "base/alloc.h"
#include "base/check.h"
#include "runtime/device.h"
#include "runtime/flow.h"
#include "runtime/plan.h"

static bool may_meet(const void *lives, int a, int b)
{
    return bel_flow_together(lives, a, b);
}

// Plans the arena. Asynchronous programs have no groups: with one stream a life is counted in
// calls, with several it has no single order.
static void place_buffers(bel_program *program, bel_plan_buffer *plan, const int *placed, int count,
                          bool no_reuse)
{
    const bel_flow *flow = program->flow;
    bel_flow_lives *lives = NULL;
    bel_plan_relation relation = {.together = may_meet}, *used = NULL;
    if (flow != NULL) {
        relation.context = lives = bel_flow_lives_create(flow, program, placed, count);
        if (flow->streams.count > 1) used = &relation;
    }
    for (int i = 0; lives != NULL && used == NULL && i < count; i++)
        bel_flow_life(lives, i, &plan[i].first, &plan[i].last);
    program->arena_bytes = bel_plan_buffers(plan, count, used, no_reuse);
    BEL_CHECK(bel_plan_is_valid(plan, count, used));
    bel_flow_lives_destroy(lives);
}

// Life of a buffer on a device that is not in place. Copied values are there before the first
// group. Values that are not copied again (constants, fixed variables) live for ever. False: no
// call reads the buffer, or the caller binds it.
static bool life_on_device(const bel_program *program, int index, bel_plan_buffer *out)
{
    const bel_program_buffer *buffer = &program->buffers[index];
    if (bel_program_binds(program, index)) return false;
    bool kept = buffer->kind == BEL_LOCATION_CONSTANT || buffer->kind == BEL_LOCATION_RESIDENT ||
                (buffer->kind == BEL_LOCATION_VARIABLE && program->fixed_variables);
    bool copied = kept || buffer->kind != BEL_LOCATION_ARENA;
    *out = (bel_plan_buffer){.size_bytes = buffer->size_bytes,
                             .first = copied ? 0 : buffer->first,
                             .last = kept ? INT32_MAX : buffer->last};
    return buffer->first >= 0 || buffer->last == INT32_MAX;
}

void bel_program_plan_memory(bel_program *program, bel_program_buffer *buffers, size_t buffer_count,
                             bool no_reuse)
{
    bel_plan_buffer *plan = bel_xcalloc(buffer_count, sizeof *plan);
    int *placed = bel_xcalloc(buffer_count, sizeof *placed); // buffer indices
    int count = 0;
    for (size_t b = 0; b < buffer_count; b++) {
        bel_plan_buffer life = {.size_bytes = buffers[b].size_bytes,
                                .first = buffers[b].first,
                                .last = buffers[b].last};
        bool in_arena = buffers[b].kind == BEL_LOCATION_ARENA;
        if (!program->device->in_place) in_arena = life_on_device(program, (int)b, &life);
        if (!in_arena) continue;
        placed[count] = (int)b;
        plan[count++] = life;
    }
    place_buffers(program, plan, placed, count, no_reuse);
    for (int i = 0; i < count; i++)
        buffers[placed[i]].offset = plan[i].offset;
    bel_free(placed);
    bel_free(plan);
    for (size_t b = 0; b < buffer_count; b++) {
        if (buffers[b].kind != BEL_LOCATION_RESIDENT || !program->device->in_place) continue;
        buffers[b].offset = program->resident_bytes;
        program->resident_bytes += (buffers[b].size_bytes + 63) / 64 * 64;
    }
}

size_t bel_program_outside_bytes(const bel_program *program)
{
    size_t bytes = 0;
    if (program->device->in_place) return 0;
    for (int b = 0; b < program->buffer_count; b++)
        if (program->buffers[b].kind != BEL_LOCATION_ARENA && !bel_program_binds(program, b))
            bytes += (program->buffers[b].size_bytes + 63) / 64 * 64;
    for (int o = 0; o < program->output_count && !program->on_device; o++)
        if (program->outputs[o].external)
            bytes += (bel_tensor_bytes(&program->outputs[o].tensor) + 63) / 64 * 64;
    return bytes;
}
