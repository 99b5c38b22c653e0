// Where the buffers of a program lie: which share the arena, by when they are alive, and what is
// resident.
#include "base/alloc.h"
#include "base/check.h"
#include "runtime/flow.h"
#include "runtime/plan.h"
#include "runtime/program_inner.h"

static bool may_meet(const void *lives, int a, int b)
{
    return bel_flow_together(lives, a, b);
}

// Asynchronous programs have no groups: with one stream a life is counted in calls, with several
// it has no single order.
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

void bel_program_plan_memory(bel_program *program, bel_program_buffer *buffers, size_t buffer_count,
                             bool no_reuse)
{
    bel_plan_buffer *plan = bel_xcalloc(buffer_count, sizeof *plan);
    int *placed = bel_xcalloc(buffer_count, sizeof *placed); // buffers
    int count = 0;
    for (size_t b = 0; b < buffer_count; b++) {
        if (buffers[b].kind != BEL_LOCATION_ARENA) continue;
        placed[count] = (int)b;
        plan[count++] = (bel_plan_buffer){.size_bytes = buffers[b].size_bytes,
                                          .first = buffers[b].first,
                                          .last = buffers[b].last};
    }
    place_buffers(program, plan, placed, count, no_reuse);
    for (int i = 0; i < count; i++)
        buffers[placed[i]].offset = plan[i].offset;
    bel_free(placed);
    bel_free(plan);
    for (size_t b = 0; b < buffer_count; b++) {
        if (buffers[b].kind != BEL_LOCATION_RESIDENT) continue;
        buffers[b].offset = program->resident_bytes;
        program->resident_bytes += (buffers[b].size_bytes + 63) / 64 * 64;
    }
}
