// Variables are constant while a forward is used, so programs are compiled with fixed variables:
// values that depend only on them are computed once. Programs are cached by the shapes of fields
// (runtime/runner.h). A run is a call of the instance and the lookup of rows, whose keys differ
// each time; binding does the rest.
#include "predictor/forward.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "runtime/device.h"
#include "runtime/runner.h"

struct bel_forward {
    const bel_forward_config *config;
    bel_device *device; // whose guest it is; NULL: the CPU
    bel_team *team;
    bel_runner *runner;
    bel_instance *instance; // for the bound fields; NULL: nothing is bound
    bel_staging *staging;   // its staging, if it runs in stages
    bel_shape *shapes;      // by graph input
    bel_shape *staged;      // the shapes for which `staging` was made
    const int64_t **keys;   // by lookup
    int64_t *key_counts;    // by lookup
    float **rows;           // by lookup: its rows, by position
    size_t *capacities;
    bel_run_context context;
};

bel_status *bel_forward_create(const bel_forward_config *config, const bel_program_output *outputs,
                               int output_count, bel_forward **out_forward)
{
    const bel_graph *graph = config->graph;
    bel_program_options options = config->program;
    bel_team *team;
    options.fixed_variables = config->stage_memory == 0;
    BEL_TRY(bel_team_create(options.threads, &team));
    bel_forward *f = bel_xcalloc(1, sizeof *f);
    *f = (bel_forward){.config = config,
                       .device = options.device,
                       .team = team,
                       .runner = bel_runner_create(graph, outputs, output_count, &options, 1),
                       .shapes = bel_xcalloc(graph->input_count + 1, sizeof *f->shapes),
                       .staged = bel_xcalloc(graph->input_count + 1, sizeof *f->staged),
                       .keys = bel_xcalloc(graph->lookup_count + 1, sizeof(int64_t *)),
                       .key_counts = bel_xcalloc(graph->lookup_count + 1, sizeof *f->key_counts),
                       .rows = bel_xcalloc(graph->lookup_count + 1, sizeof *f->rows),
                       .capacities = bel_xcalloc(graph->lookup_count + 1, sizeof *f->capacities),
                       .context = {.seed = config->seed, .step = config->step}};
    if (f->device != NULL) atomic_fetch_add(&f->device->guests, 1);
    *out_forward = f;
    return NULL;
}

void bel_forward_destroy(bel_forward *f)
{
    if (f == NULL) return;
    bel_staging_destroy(f->staging);
    bel_runner_destroy(f->runner);
    if (f->device != NULL) atomic_fetch_sub(&f->device->guests, 1);
    bel_team_destroy(f->team);
    for (size_t l = 0; l < f->config->graph->lookup_count; l++)
        bel_free(f->rows[l]);
    bel_free(f->rows);
    bel_free(f->keys);
    bel_free(f->key_counts);
    bel_free(f->capacities);
    bel_free(f->shapes);
    bel_free(f->staged);
    bel_free(f);
}

// Derives the shapes of rows from those of their keys. Allocates room for rows before a program
// exists.
static void place_rows(bel_forward *f, const bel_tensor *fields)
{
    const bel_graph *graph = f->config->graph;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        bel_shape shape = f->shapes[lookup->ids];
        int64_t count = bel_shape_elements(&shape), width = graph->tables[lookup->table].width;
        shape.dims[shape.rank++] = width;
        f->shapes[lookup->rows] = shape;
        f->keys[l] = fields[f->config->fields[lookup->ids]].data;
        f->key_counts[l] = count;
        f->rows[l] =
            bel_xgrow(f->rows[l], &f->capacities[l], (size_t)(count * width) + 1, sizeof(float));
    }
}

// True if the shapes are those of the previous binding: the runner then has the same instance,
// whose stages continue.
static bool keeps_stages(const bel_forward *f)
{
    bool same = f->staging != NULL;
    for (size_t i = 0; i < f->config->graph->input_count && same; i++)
        same = bel_shape_equal(&f->shapes[i], &f->staged[i]);
    return same;
}

// After an error nothing is bound.
static bel_status *start_staging(bel_forward *f)
{
    const bel_forward_config *config = f->config;
    memcpy(f->staged, f->shapes, config->graph->input_count * sizeof *f->shapes);
    bel_status *status = bel_staging_create(bel_instance_program(f->instance), f->instance,
                                            &config->staged, config->stage_memory, &f->staging);
    if (status != NULL) f->instance = NULL;
    return status;
}

bel_status *bel_forward_bind(bel_forward *f, const bel_tensor *fields)
{
    const bel_forward_config *config = f->config;
    const bel_graph *graph = config->graph;
    f->instance = NULL;
    for (size_t i = 0; i < graph->input_count; i++)
        if (config->fields[i] >= 0) f->shapes[i] = fields[config->fields[i]].shape;
    place_rows(f, fields);
    bool keeps = keeps_stages(f);
    if (!keeps) { // the runner may destroy its instance
        bel_staging_destroy(f->staging);
        f->staging = NULL;
    }
    BEL_TRY(bel_runner_get(f->runner, 0, f->shapes, &f->instance));
    for (size_t i = 0; i < graph->input_count; i++)
        if (config->fields[i] >= 0)
            bel_instance_bind_input(f->instance, (int)i, fields[config->fields[i]].data);
    for (size_t l = 0; l < graph->lookup_count; l++)
        bel_instance_bind_input(f->instance, graph->lookups[l].rows, f->rows[l]);
    if (config->stage_memory > 0) return keeps ? NULL : start_staging(f);
    for (size_t v = 0; v < graph->variable_count; v++)
        bel_instance_bind_variable(f->instance, (int)v, config->values[v]);
    return NULL;
}

void bel_forward_move(bel_forward *f, int field, void *data)
{
    const bel_graph *graph = f->config->graph;
    if (f->instance == NULL) return;
    for (size_t i = 0; i < graph->input_count; i++)
        if (f->config->fields[i] == field) bel_instance_bind_input(f->instance, (int)i, data);
    for (size_t l = 0; l < graph->lookup_count; l++)
        if (f->config->fields[graph->lookups[l].ids] == field) f->keys[l] = data;
}

// Looks up the rows of the batch's keys, by position.
static void look_up(const bel_forward *f)
{
    const bel_graph *graph = f->config->graph;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        const int64_t *keys = f->keys[l];
        size_t width = (size_t)graph->tables[lookup->table].width;
        f->config->pull_rows(f->config->rows, lookup->table, keys, f->key_counts[l], f->rows[l]);
        for (int64_t i = 0; i < f->key_counts[l]; i++)
            if (keys[i] == BEL_NO_ID)
                memset(f->rows[l] + (size_t)i * width, 0, width * sizeof(float));
    }
}

bel_status *bel_forward_run(bel_forward *f, int64_t draw)
{
    look_up(f);
    f->context.replica = draw;
    if (f->staging != NULL) return bel_staging_run(f->staging, f->team, &f->context);
    return bel_instance_run(f->instance, f->team, &f->context, NULL, NULL);
}

bel_instance *bel_forward_instance(const bel_forward *f)
{
    return f->instance;
}

const bel_staging *bel_forward_staging(const bel_forward *f)
{
    return f->staging;
}

size_t bel_forward_arena_bytes(const bel_forward *f)
{
    return bel_runner_arena_bytes(f->runner);
}
