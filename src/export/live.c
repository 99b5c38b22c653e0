// The graph of an export, with tables that are looked up. All predictors share the graph, the
// values and the rows, which do not change. Each has programs and the memory of its runs. So
// predictors run at the same time without a lock, and a new version never changes an old answer.
#include "export/live.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "export/export.h"
#include "export/export_graph.h"
#include "model/settings.h"
#include "predictor/predictor.h"

struct bel_live {
    bel_arena *arena;
    bel_saved saved;
    bel_feature_list features;
    bel_columns *columns; // NULL: no description
    const char *table;    // its text
    double threshold;
    bel_export_graph graph;
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    bel_port output_ports[BEL_MAX_OUTPUTS + 1];
    int output_count;
    bel_port *input_ports;
    int *fields; // by input of the graph; -1: rows
    int *tables; // by table of the graph: that of the model's graph, which may have more
    int users;
};

// The settings are those of the checkpoint; nothing of its shard files is read.
static bel_status *read_settings(bel_live *live)
{
    const bel_ckpt_reader *reader = live->saved.reader;
    const char *table = bel_ckpt_setting(reader, BEL_SETTING_TABLE);
    const char *threshold = bel_ckpt_setting(reader, "param.threshold");
    double number;
    live->threshold = 0.5;
    if (threshold != NULL && bel_parse_f64(threshold, strlen(threshold), &number))
        live->threshold = number;
    BEL_TRY(bel_export_read_features(reader, live->arena, &live->features));
    if (table == NULL) return NULL;
    live->table = bel_arena_strdup(live->arena, table);
    return bel_columns_parse(table, bel_ckpt_folder(reader), &live->columns);
}

// Every output has a row for each example, whatever the graph's shapes are.
static void list_ports(bel_live *live)
{
    const bel_graph *graph = live->graph.graph;
    live->input_ports = bel_arena_alloc(live->arena, ((size_t)live->graph.input_count + 1) *
                                                         sizeof *live->input_ports);
    live->fields = bel_arena_alloc(live->arena, (graph->input_count + 1) * sizeof *live->fields);
    for (int i = 0; i < (int)graph->input_count; i++) {
        const bel_spec *spec = &graph->inputs[i].value->spec;
        live->fields[i] = i < live->graph.input_count ? i : -1;
        if (i < live->graph.input_count)
            live->input_ports[i] = (bel_port){graph->inputs[i].name, spec->dtype, spec->shape};
    }
    live->tables = bel_arena_alloc(live->arena, (graph->table_count + 1) * sizeof *live->tables);
    for (size_t t = 0; t < graph->table_count; t++)
        live->tables[t] = bel_graph_find_table(live->saved.built->graph, graph->tables[t].name);
    for (int o = 0; o < live->output_count; o++) {
        const bel_spec *spec = &live->graph.outputs[o]->spec;
        live->output_ports[o] = (bel_port){live->outputs[o].name, spec->dtype, spec->shape};
        if (spec->shape.rank > 0) live->output_ports[o].shape.dims[0] = BEL_DIM_BATCH;
    }
}

static bel_status *open_live(bel_live *live, const char *checkpoint)
{
    BEL_TRY(bel_ckpt_open_lazily(checkpoint, &live->saved.reader));
    BEL_TRY(read_settings(live));
    BEL_TRY(bel_saved_open_features(&live->saved, live->features.items, live->features.count,
                                    checkpoint));
    live->output_count = bel_spec_outputs(&live->saved.built->spec, live->outputs);
    BEL_TRY(bel_export_graph_make(&live->saved, &live->features, NULL, live->columns, live->outputs,
                                  live->output_count, false, &live->graph));
    bel_export_graph_name_outputs(&live->graph, live->arena, live->outputs, live->output_count);
    list_ports(live);
    // All is in memory. Open files would hold the space of a checkpoint that retention removes.
    bel_ckpt_close(live->saved.reader);
    live->saved.reader = NULL;
    return NULL;
}

bel_status *bel_live_open(const bel_estimator *estimator, const char *checkpoint,
                          const bel_live *const *others, int other_count, bel_live **out_live)
{
    bel_live *live = bel_xcalloc(1, sizeof *live);
    live->arena = bel_arena_create();
    live->users = 1;
    const bel_row_layers **layers = bel_xcalloc((size_t)other_count + 1, sizeof *layers);
    for (int i = 0; i < other_count; i++)
        layers[i] = &others[i]->saved.layers;
    live->saved = (bel_saved){.estimator = estimator,
                              .averages = estimator->config.averages,
                              .others = layers,
                              .other_count = other_count};
    bel_status *status = open_live(live, checkpoint);
    live->saved.others = NULL;
    live->saved.other_count = 0;
    bel_free(layers);
    if (status != NULL) {
        bel_live_release(live);
        return status;
    }
    *out_live = live;
    return NULL;
}

void bel_live_retain(bel_live *live)
{
    live->users++;
}

void bel_live_release(bel_live *live)
{
    if (live == NULL || --live->users > 0) return;
    bel_export_graph_deinit(&live->graph);
    bel_columns_destroy(live->columns);
    bel_saved_close(&live->saved);
    bel_arena_destroy(live->arena);
    bel_free(live);
}

static void pull_rows(const void *context, int table, const int64_t *keys, int64_t count,
                      float *out_rows)
{
    const bel_live *live = context;
    bel_row_layers_pull(&live->saved.layers, live->tables[table], keys, count, out_rows);
}

bel_status *bel_live_predictor(bel_live *live, int64_t joined, bel_predictor **out_predictor)
{
    bel_predictor_parts parts = {.forward = bel_saved_forward(&live->saved),
                                 .inputs = live->input_ports,
                                 .outputs = live->output_ports,
                                 .values = live->graph.outputs,
                                 .input_count = live->graph.input_count,
                                 .output_count = live->output_count};
    parts.forward.graph = live->graph.graph;
    parts.forward.fields = live->fields;
    parts.forward.pull_rows = pull_rows;
    parts.forward.rows = live;
    parts.forward.values = live->graph.variables;
    parts.forward.program.threads = 1;
    parts.forward.program.joined = joined;
    return bel_predictor_make(&parts, out_predictor);
}

bel_live_facts bel_live_look(const bel_live *live)
{
    const bel_row_layers *layers = &live->saved.layers;
    return (bel_live_facts){.step = live->saved.step,
                            .base_step = layers->base_step,
                            .rows = layers->changed_count,
                            .removed = layers->removed_count,
                            .shares = layers->shares,
                            .table_bytes = bel_row_layers_bytes(layers)};
}

const char *bel_live_table(const bel_live *live)
{
    return live->table;
}

double bel_live_threshold(const bel_live *live)
{
    return live->threshold;
}

const char *bel_live_tokenizer(const bel_live *live, const char **out_folder)
{
    *out_folder = live->saved.estimator->config.model_dir;
    return bel_estimator_param(live->saved.estimator, "tokenizer", NULL);
}
