// CPU as a device: its memory is the process's, and its queue is the calling thread. A run is a
// loop over groups of bound calls. If a group is worth sharing, its tiles are one job of the team.
// This device must add no cost to that loop.
#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/device.h"

static bel_status *device_allocate(bel_device *device, size_t bytes, const char *what,
                                   bel_device_memory *out_memory)
{
    (void)device;
    void *pages;
    BEL_TRY(bel_pages_create(bytes, true, what, &pages));
    *out_memory = (bel_device_memory){.address = pages, .bytes = bytes};
    return NULL;
}

static void device_release(bel_device *device, bel_device_memory *memory)
{
    (void)device;
    bel_pages_destroy(memory->address, memory->bytes);
    *memory = (bel_device_memory){.address = NULL};
}

static bel_status *device_prepare(bel_device *device, const bel_prepare *how, bel_kernel_call *call)
{
    (void)device;
    bel_op_get(call->op)->prepare(how, call);
    return NULL;
}

static bel_status *device_bind(bel_device *device, bel_instance *instance)
{
    const bel_program *program = instance->program;
    (void)device;
    instance->plain = true;
    for (int g = 0; g < program->group_count; g++)
        if (program->groups[g].for_team) instance->plain = false;
    for (int i = 0; i < program->call_count; i++) // an empty call has no tile
        if (program->calls[i].call.tile_count != 1) instance->plain = false;
    if (program->flow != NULL) instance->async = bel_instance_async_create(instance);
    return NULL;
}

static void unbind(bel_instance *instance)
{
    bel_instance_async_destroy(instance->async);
}

typedef struct group_run {
    const bel_instance *instance;
    const bel_instance_run_args *args;
    const bel_program_group *group;
} group_run;

// Runs tile `tile` of a group, counted through its calls. The tile belongs to the last call that
// starts at or before it. (A call without tiles starts where the next one does.)
static void run_group_tile(void *argument, int64_t tile)
{
    const group_run *run = argument;
    const bel_program_call *calls = run->instance->program->calls;
    int low = run->group->first, high = low + run->group->count - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (calls[middle].first_tile <= tile) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    bel_instance_run_tile(run->instance, run->args, low, tile - calls[low].first_tile);
}

// Runs all tiles of a group's calls: on the team, if that is worth passing work to it, else on this
// thread.
static void run_group(group_run *run, const bel_program_group *group, bel_team *team)
{
    run->group = group;
    if (group->for_team) {
        bel_team_run(team, run_group_tile, run, group->tile_count);
        return;
    }
    for (int i = group->first; i < group->first + group->count; i++)
        for (int64_t tile = 0; tile < run->instance->calls[i].tile_count; tile++)
            bel_instance_run_tile(run->instance, run->args, i, tile);
}

// Runs groups [first, end). Publications are in the order of calls, so `next` walks along them and
// publishes each after its group.
static void run_groups(const bel_instance *instance, int first, int end, int next, bel_team *team,
                       const bel_instance_run_args *args)
{
    const bel_program *program = instance->program;
    group_run run = {.instance = instance, .args = args};
    for (int g = first; g < end; g++) {
        const bel_program_group *group = &program->groups[g];
        run_group(&run, group, team);
        bel_instance_publish(instance, args, group->first + group->count, &next);
    }
}

static bel_status *run_on_cpu(bel_instance *instance, int first, int end, int next, bel_team *team,
                              const bel_instance_run_args *args)
{
    if (instance->plain && args->publish == NULL) {
        int last = bel_program_calls_before(instance->program, end);
        for (int i = bel_program_calls_before(instance->program, first); i < last; i++)
            instance->calls[i].run(&instance->calls[i], 0);
    } else {
        run_groups(instance, first, end, next, team, args);
    }
    return NULL;
}

// The time of a call does not depend on its neighbors, so the total is their sum.
static bel_status *profile(bel_instance *instance, int runs, int64_t *out_ns, int64_t *out_all_ns)
{
    const bel_program *program = instance->program;
    for (int run = 0; run < runs; run++) {
        for (int i = 0; i < program->call_count; i++) {
            const bel_kernel_call *call = &instance->calls[i];
            int64_t begun = bel_clock_ns();
            for (int64_t tile = 0; tile < call->tile_count; tile++)
                call->run(call, tile);
            int64_t spent = bel_clock_ns() - begun;
            if (run == 0 || spent < out_ns[i]) out_ns[i] = spent;
        }
    }
    *out_all_ns = 0;
    for (int i = 0; i < program->call_count; i++)
        *out_all_ns += out_ns[i];
    return NULL;
}

static void device_pin(bel_device *device, const void *memory, size_t bytes)
{
    (void)device, (void)memory, (void)bytes;
}

static void device_unpin(bel_device *device, const void *memory)
{
    (void)device, (void)memory;
}

static const bel_device_ops ops = {.allocate = device_allocate,
                                   .release = device_release,
                                   .prepare = device_prepare,
                                   .bind = device_bind,
                                   .unbind = unbind,
                                   .run = run_on_cpu,
                                   .profile = profile,
                                   .pin = device_pin,
                                   .unpin = device_unpin};

bel_device bel_device_cpu = {.ops = &ops, .name = "cpu:0", .in_place = true};
