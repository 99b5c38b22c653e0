// The cache of programs by input shapes: a plain array, looked through from the front, whose
// entry that was not used for the longest time gives way. All programs of a tower share one
// arena, which only grows. An instance holds addresses in it, so when it grows all instances are
// destroyed and made again as they are asked for. A program is compiled before an entry is given
// up for it: an error leaves the cache as it was.
#include "runtime/runner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

typedef struct entry {
    bel_shape *shapes; // by input
    bel_program *program;
    bel_instance *instance; // NULL until it is bound to the present arena
    int64_t used;           // when, counted in look-ups
} entry;

struct bel_runner {
    const bel_graph *graph;
    bel_program_output *outputs;
    int output_count;
    bel_program_options options;
    entry entries[BEL_RUNNER_PROGRAMS];
    int entry_count;
    void *arena;
    size_t arena_bytes;
    int64_t lookups;
    bel_runner_counters counters;
};

bel_runner *bel_runner_create(const bel_graph *graph, const bel_program_output *outputs,
                              int output_count, const bel_program_options *options)
{
    bel_runner *runner = bel_xcalloc(1, sizeof *runner);
    runner->graph = graph;
    runner->outputs = bel_xcalloc((size_t)output_count, sizeof *outputs);
    memcpy(runner->outputs, outputs, (size_t)output_count * sizeof *outputs);
    runner->output_count = output_count;
    runner->options = *options;
    return runner;
}

static void clear_entry(entry *e)
{
    bel_instance_destroy(e->instance);
    bel_program_destroy(e->program);
    bel_free(e->shapes);
    *e = (entry){0};
}

void bel_runner_destroy(bel_runner *runner)
{
    if (runner == NULL) return;
    for (int i = 0; i < runner->entry_count; i++)
        clear_entry(&runner->entries[i]);
    bel_pages_destroy(runner->arena, runner->arena_bytes);
    bel_free(runner->outputs);
    bel_free(runner);
}

static bool same_shapes(const bel_runner *runner, const entry *e, const bel_shape *shapes)
{
    for (size_t i = 0; i < runner->graph->input_count; i++)
        if (!bel_shape_equal(&e->shapes[i], &shapes[i])) return false;
    return true;
}

// A free entry, or the one that was not used for the longest time.
static entry *make_room(bel_runner *runner)
{
    if (runner->entry_count < BEL_RUNNER_PROGRAMS) return &runner->entries[runner->entry_count++];
    entry *oldest = &runner->entries[0];
    for (int i = 1; i < runner->entry_count; i++)
        if (runner->entries[i].used < oldest->used) oldest = &runner->entries[i];
    clear_entry(oldest);
    return oldest;
}

// All programs share one arena, of the size of the largest. Instances hold addresses in it, so they
// are made anew when it moves.
static bel_status *grow_arena(bel_runner *runner, size_t bytes)
{
    if (bytes <= runner->arena_bytes) return NULL;
    void *arena;
    BEL_TRY(bel_pages_create(bytes, true, "activations", &arena));
    for (int i = 0; i < runner->entry_count; i++) {
        bel_instance_destroy(runner->entries[i].instance);
        runner->entries[i].instance = NULL;
    }
    bel_pages_destroy(runner->arena, runner->arena_bytes);
    runner->arena = arena;
    runner->arena_bytes = bytes;
    return NULL;
}

// Compiles for these shapes, in place of the entry that was not used for the longest time.
static bel_status *compile(bel_runner *runner, const bel_shape *shapes, entry **out_entry)
{
    int64_t begun = bel_clock_ns();
    bel_program *program;
    BEL_TRY(bel_program_compile(runner->graph, shapes, runner->outputs, runner->output_count,
                                &runner->options, &program));
    entry *e = make_room(runner);
    size_t bytes = runner->graph->input_count * sizeof *shapes;
    e->program = program;
    e->shapes = bel_xmalloc(bytes);
    memcpy(e->shapes, shapes, bytes);
    runner->counters.compiles++;
    runner->counters.compile_ns += bel_clock_ns() - begun;
    *out_entry = e;
    return NULL;
}

bel_status *bel_runner_get(bel_runner *runner, const bel_shape *input_shapes,
                           bel_instance **out_instance)
{
    entry *found = NULL;
    for (int i = 0; i < runner->entry_count && found == NULL; i++)
        if (same_shapes(runner, &runner->entries[i], input_shapes)) found = &runner->entries[i];
    if (found == NULL) {
        BEL_TRY(compile(runner, input_shapes, &found));
    } else {
        runner->counters.hits++;
    }
    BEL_TRY(grow_arena(runner, bel_program_arena_bytes(found->program)));
    if (found->instance == NULL) {
        found->instance = bel_instance_create(found->program, runner->arena);
    }
    found->used = ++runner->lookups;
    *out_instance = found->instance;
    return NULL;
}

bel_runner_counters bel_runner_count(const bel_runner *runner)
{
    return runner->counters;
}
