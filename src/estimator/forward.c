// Variables do not change while a forward is used, so programs are compiled with fixed ones: what
// follows from them alone is computed once. Programs are kept by the shapes of batches
// (runtime/runner.h).
#include "estimator/forward.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "runtime/runner.h"

struct bel_forward {
    const bel_forward_config *config;
    bel_team *team;
    bel_runner *runner;
    bel_shape *shapes; // by graph input
    float **rows;      // by lookup: its rows, by position
    size_t *capacities;
    bel_run_context context;
};

bel_status *bel_forward_create(const bel_forward_config *config, const bel_program_output *outputs,
                               int output_count, bel_forward **out_forward)
{
    const bel_graph *graph = config->built->graph;
    bel_program_options options = config->program;
    bel_team *team;
    options.fixed_variables = true;
    BEL_TRY(bel_team_create(options.threads, &team));
    bel_forward *f = bel_xcalloc(1, sizeof *f);
    *f = (bel_forward){.config = config,
                       .team = team,
                       .runner = bel_runner_create(graph, outputs, output_count, &options, 1),
                       .shapes = bel_xcalloc(graph->input_count + 1, sizeof *f->shapes),
                       .rows = bel_xcalloc(graph->lookup_count + 1, sizeof *f->rows),
                       .capacities = bel_xcalloc(graph->lookup_count + 1, sizeof *f->capacities),
                       .context = {.seed = config->seed, .step = config->step}};
    *out_forward = f;
    return NULL;
}

void bel_forward_destroy(bel_forward *f)
{
    if (f == NULL) return;
    bel_runner_destroy(f->runner);
    bel_team_destroy(f->team);
    for (size_t l = 0; l < f->config->built->graph->lookup_count; l++)
        bel_free(f->rows[l]);
    bel_free(f->rows);
    bel_free(f->capacities);
    bel_free(f->shapes);
    bel_free(f);
}

// The rows of the batch's ids, by position.
static void look_up(bel_forward *f, const bel_tensor *fields)
{
    const bel_forward_config *config = f->config;
    const bel_graph *graph = config->built->graph;
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        bel_shape shape = f->shapes[lookup->ids];
        int64_t count = bel_shape_elements(&shape), width = graph->tables[lookup->table].width;
        shape.dims[shape.rank++] = width;
        f->shapes[lookup->rows] = shape;
        size_t floats = (size_t)(count * width) + 1;
        f->rows[l] = bel_xgrow(f->rows[l], &f->capacities[l], floats, sizeof(float));
        const int64_t *ids = fields[config->built->fields[lookup->ids]].data;
        config->pull_rows(config->rows, lookup->table, ids, count, f->rows[l]);
        for (int64_t i = 0; i < count; i++)
            if (ids[i] == BEL_NO_ID)
                memset(f->rows[l] + i * width, 0, (size_t)width * sizeof(float));
    }
}

bel_status *bel_forward_run(bel_forward *f, const bel_tensor *fields, int64_t draw,
                            bel_instance **out_instance)
{
    const bel_built *built = f->config->built;
    const bel_graph *graph = built->graph;
    bel_instance *instance;
    for (size_t i = 0; i < graph->input_count; i++)
        if (built->fields[i] >= 0) f->shapes[i] = fields[built->fields[i]].shape;
    look_up(f, fields);
    BEL_TRY(bel_runner_get(f->runner, 0, f->shapes, &instance));
    for (size_t i = 0; i < graph->input_count; i++) {
        if (built->fields[i] < 0) continue;
        bel_instance_bind_input(instance, (int)i, fields[built->fields[i]].data);
    }
    for (size_t l = 0; l < graph->lookup_count; l++)
        bel_instance_bind_input(instance, graph->lookups[l].rows, f->rows[l]);
    for (size_t v = 0; v < graph->variable_count; v++)
        bel_instance_bind_variable(instance, (int)v, f->config->values[v]);
    f->context.replica = draw;
    BEL_TRY(bel_instance_run(instance, f->team, &f->context, NULL, NULL));
    *out_instance = instance;
    return NULL;
}

bel_status *bel_forward_check_rows(const bel_forward *f, bel_instance *instance, int64_t examples)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    int count = bel_spec_outputs(&f->config->built->spec, outputs);
    for (int i = 0; i < count; i++) {
        bel_shape shape = bel_instance_output(instance, i).shape;
        if (shape.rank > 0 && shape.dims[0] == examples) continue;
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s must be [batch, …], a row for each of %lld examples, got %s",
                       outputs[i].name, (long long)examples, bel_shape_text(&shape, text));
    }
    return NULL;
}
