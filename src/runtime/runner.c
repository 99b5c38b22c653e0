// Cache of programs by input shapes: an array with linear search, which evicts the least recently
// used entry. All programs of a tower share one arena for each slot, which only grows. An instance
// holds addresses in it, so when it grows all instances of the slot are destroyed, and created
// again on demand. A program is compiled before an entry is evicted for it: an error leaves the
// cache unchanged.
#include "runtime/runner.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/device.h"

typedef struct entry {
    bel_shape *shapes; // by input
    bel_program *program;
    bel_instance **instances; // by slot; NULL until bound to the current arena
    int64_t used;             // last use, counted in look-ups
} entry;

typedef struct place {
    bel_device_memory arena;
    int entry; // its current entry, whose program stays; -1: none
} place;

struct bel_runner {
    const bel_graph *graph;
    bel_program_output *outputs;
    int output_count;
    bel_program_options options;
    bel_device *device;
    entry *entries;
    int entry_count, capacity;
    place *slots;
    int slot_count;
    int64_t lookups;
    bel_runner_counters counters;
};

bel_runner *bel_runner_create(const bel_graph *graph, const bel_program_output *outputs,
                              int output_count, const bel_program_options *options, int slot_count)
{
    bel_runner *runner = bel_xcalloc(1, sizeof *runner);
    runner->graph = graph;
    runner->outputs = bel_xcalloc((size_t)output_count, sizeof *outputs);
    memcpy(runner->outputs, outputs, (size_t)output_count * sizeof *outputs);
    runner->output_count = output_count;
    runner->options = *options;
    runner->device = options->device != NULL ? options->device : &bel_device_cpu;
    runner->slots = bel_xcalloc((size_t)slot_count, sizeof *runner->slots);
    runner->slot_count = slot_count;
    runner->capacity = BEL_RUNNER_PROGRAMS + slot_count - 1;
    runner->entries = bel_xcalloc((size_t)runner->capacity, sizeof *runner->entries);
    for (int s = 0; s < slot_count; s++)
        runner->slots[s].entry = -1;
    return runner;
}

static void clear_entry(const bel_runner *runner, entry *e)
{
    for (int s = 0; s < runner->slot_count; s++)
        bel_instance_destroy(e->instances[s]);
    bel_free(e->instances);
    bel_program_destroy(e->program);
    bel_free(e->shapes);
    *e = (entry){0};
}

void bel_runner_destroy(bel_runner *runner)
{
    if (runner == NULL) return;
    for (int i = 0; i < runner->entry_count; i++)
        clear_entry(runner, &runner->entries[i]);
    for (int s = 0; s < runner->slot_count; s++)
        runner->device->ops->release(runner->device, &runner->slots[s].arena);
    bel_free(runner->slots);
    bel_free(runner->entries);
    bel_free(runner->outputs);
    bel_free(runner);
}

static bool same_shapes(const bel_runner *runner, const entry *e, const bel_shape *shapes)
{
    for (size_t i = 0; i < runner->graph->input_count; i++)
        if (!bel_shape_equal(&e->shapes[i], &shapes[i])) return false;
    return true;
}

// Whether a slot uses this entry.
static bool in_use(const bel_runner *runner, int index)
{
    for (int s = 0; s < runner->slot_count; s++)
        if (runner->slots[s].entry == index) return true;
    return false;
}

// A free entry, or else the least recently used of those that no slot uses. There are more entries
// than slots.
static entry *make_room(bel_runner *runner)
{
    if (runner->entry_count < runner->capacity) return &runner->entries[runner->entry_count++];
    int oldest = -1;
    for (int i = 0; i < runner->entry_count; i++) {
        if (in_use(runner, i)) continue;
        if (oldest < 0 || runner->entries[i].used < runner->entries[oldest].used) oldest = i;
    }
    clear_entry(runner, &runner->entries[oldest]);
    return &runner->entries[oldest];
}

// Grows the arena of a slot to the size of `program`. All programs of a slot share it. Instances
// hold addresses in it, so they are created again when it moves. On a device, both arenas would
// seldom fit at once, so the old one is released first; its content is not needed.
static bel_status *grow_arena(bel_runner *runner, int s, const bel_program *program)
{
    size_t bytes = bel_program_arena_bytes(program);
    place *its = &runner->slots[s];
    if (bytes <= its->arena.bytes) return NULL;
    for (int i = 0; i < runner->entry_count; i++) {
        bel_instance_destroy(runner->entries[i].instances[s]);
        runner->entries[i].instances[s] = NULL;
    }
    runner->device->ops->release(runner->device, &its->arena);
    return bel_program_allocate(program, &its->arena);
}

// Compiles for these shapes, into a free or evicted entry.
static bel_status *runner_compile(bel_runner *runner, const bel_shape *shapes, entry **out_entry)
{
    bel_program *program;
    BEL_TRY(bel_program_compile(runner->graph, shapes, runner->outputs, runner->output_count,
                                &runner->options, &program));
    entry *e = make_room(runner);
    size_t bytes = runner->graph->input_count * sizeof *shapes;
    e->program = program;
    e->shapes = bel_xmalloc(bytes);
    memcpy(e->shapes, shapes, bytes);
    e->instances = bel_xcalloc((size_t)runner->slot_count, sizeof(bel_instance *));
    runner->counters.compiles++;
    *out_entry = e;
    return NULL;
}

bel_status *bel_runner_get(bel_runner *runner, int slot, const bel_shape *input_shapes,
                           bel_instance **out_instance)
{
    entry *found = NULL;
    runner->slots[slot].entry = -1; // its former program may be evicted
    for (int i = 0; i < runner->entry_count && found == NULL; i++)
        if (same_shapes(runner, &runner->entries[i], input_shapes)) found = &runner->entries[i];
    if (found == NULL) {
        BEL_TRY(runner_compile(runner, input_shapes, &found));
    } else {
        runner->counters.hits++;
    }
    BEL_TRY(grow_arena(runner, slot, found->program));
    if (found->instances[slot] == NULL) {
        BEL_TRY(bel_instance_create_on(found->program, &runner->slots[slot].arena,
                                       &found->instances[slot]));
    }
    found->used = ++runner->lookups;
    runner->slots[slot].entry = (int)(found - runner->entries);
    *out_instance = found->instances[slot];
    return NULL;
}

// Reads the number of guests before: they may leave after there was no room.
bel_status *bel_runner_get_beside_guests(bel_runner *runner, int slot,
                                         const bel_shape *input_shapes, bel_instance **out_instance)
{
    enum { NAP_NS = 20000000 };
    bel_device *device = runner->device;
    int64_t begun = bel_clock_awake_ns(), patience = bel_device_patience(device);
    for (bool waits = false;; waits = true) {
        bool guests = atomic_load(&device->guests) > 0;
        bel_status *status = bel_runner_get(runner, slot, input_shapes, out_instance);
        bool full = bel_status_code(status) == BEL_RESOURCE_EXHAUSTED;
        if (!full || !guests || bel_clock_awake_ns() - begun > patience) return status;
        if (!waits)
            bel_log_write(BEL_LOG_INFO, "%s: a batch waits for memory that an evaluation has",
                          device->name);
        bel_status_ignore(status); // tried again
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

bel_runner_counters bel_runner_count(const bel_runner *runner)
{
    return runner->counters;
}

size_t bel_runner_arena_bytes(const bel_runner *runner)
{
    size_t bytes = 0;
    for (int s = 0; s < runner->slot_count; s++)
        bytes += runner->slots[s].arena.bytes;
    return bytes;
}
