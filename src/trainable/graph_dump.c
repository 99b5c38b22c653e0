// The program of one replica, as in a worker, but in separate memory: the dump needs no shard and
// no lane. It is compiled for one thread and for the shapes of the first batch, with a worker's
// outputs (bel_worker_list_outputs), since the outputs determine what is eliminated. Parameters
// have their initial values and rows of tables are zeros. If flags request a GPU, the program is
// the first tower's.
#include "trainable/graph_dump.h"

#include "base/alloc.h"
#include "base/str.h"
#include "passes/passes.h"
#include "ps/layout/space.h"
#include "runtime/device.h"
#include "trainable/trainable.h"
#include "worker/worker.h"

enum { RUNS = 20 };

// Memory bound to the program.
typedef struct bench {
    bel_trainable trainable;
    bel_batch *batch;
    bel_shape *shapes; // by graph input
    bel_program_output *outputs;
    int report_count, output_count;
    bel_program *program;
    float *values;      // values of variables, in the layout of the space
    void **results;     // by output, for external ones
    float **rows;       // by lookup
    bel_device *device; // NULL: the CPU
    bel_device_memory arena;
    bel_instance *instance;
} bench;

// Pins host memory, so that copies from it to a GPU are queued like kernels.
static void bench_pin(const bench *b, bool pins)
{
    const bel_graph *graph = b->trainable.built->graph;
    if (b->device == NULL) return;
    bel_device_pin(b->device, b->values, bel_space_bytes(b->trainable.layout), pins);
    for (size_t i = 0; i < graph->input_count; i++) {
        int field = b->trainable.models->fields[i];
        if (field < 0) continue;
        const bel_tensor *tensor = &b->batch->fields[field];
        bel_device_pin(b->device, tensor->data, bel_tensor_bytes(tensor), pins);
    }
}

static void bench_deinit(bench *b)
{
    const bel_layout *layout = b->trainable.layout;
    for (int o = 0; b->results != NULL && o < b->output_count; o++)
        bel_free(b->results[o]);
    for (size_t l = 0; b->rows != NULL && l < b->trainable.built->graph->lookup_count; l++)
        bel_free(b->rows[l]);
    if (b->instance != NULL) bench_pin(b, false);
    bel_instance_destroy(b->instance);
    if (b->program != NULL) bel_program_release(b->program, &b->arena);
    bel_program_destroy(b->program);
    if (layout != NULL) bel_space_free_array(layout, b->values);
    bel_batch_destroy(b->batch);
    bel_free(b->results);
    bel_free(b->rows);
    bel_free(b->outputs);
    bel_free(b->shapes);
    bel_trainable_deinit(&b->trainable);
}

// --- Compiling -----------------------------------------------------------------------------------

// Rows have the shape of their ids followed by the table's width.
static void find_shapes(bench *b)
{
    const bel_graph *graph = b->trainable.built->graph;
    b->shapes = bel_xcalloc(graph->input_count, sizeof *b->shapes);
    for (size_t i = 0; i < graph->input_count; i++) {
        int field = b->trainable.models->fields[i];
        if (field >= 0) b->shapes[i] = b->batch->fields[field].shape;
    }
    for (size_t l = 0; l < graph->lookup_count; l++) {
        const bel_graph_lookup *lookup = &graph->lookups[l];
        bel_shape shape = b->shapes[lookup->ids];
        shape.dims[shape.rank++] = graph->tables[lookup->table].width;
        b->shapes[lookup->rows] = shape;
    }
}

static bel_status *bench_build(bench *b, const bel_estimator *estimator,
                               const bel_train_spec *train)
{
    BEL_TRY(bel_trainable_init(&b->trainable, estimator, train));
    b->batch = bel_batch_create(b->trainable.input);
    BEL_TRY_CTX(bel_input_read(b->trainable.input, 0, b->batch), "training input");
    find_shapes(b);
    b->outputs = bel_worker_list_outputs(b->trainable.layout, b->trainable.models, &b->report_count,
                                         &b->output_count);
    return NULL;
}

static bel_status *bench_compile(bench *b, unsigned passes_off)
{
    bel_program_options options = bel_estimator_program_options(b->trainable.estimator);
    bel_card_choice cards = bel_estimator_cards(b->trainable.estimator, 0);
    BEL_TRY(bel_cards_choose(&cards, 1, &b->device));
    options.device = b->device;
    options.passes_off = passes_off;
    options.asynchronous = false; // to time instructions one by one
    options.threads = 1;
    return bel_program_compile(b->trainable.built->graph, b->shapes, b->outputs, b->output_count,
                               &options, &b->program);
}

// --- Running -------------------------------------------------------------------------------------

// Allocates all that a worker's program would find in its space and ranges.
static bel_status *bench_bind(bench *b)
{
    const bel_graph *graph = b->trainable.built->graph;
    const bel_layout *layout = b->trainable.layout;
    BEL_TRY(bel_space_array(layout, "parameters", &b->values));
    BEL_TRY(bel_space_initialize(layout, b->trainable.estimator->config.seed, b->values));
    BEL_TRY(bel_program_allocate(b->program, &b->arena));
    BEL_TRY(bel_instance_create_on(b->program, &b->arena, &b->instance));
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[b->trainable.variables[v]];
        bel_instance_bind_variable(b->instance, (int)v, b->values + variable->offset);
    }
    for (size_t i = 0; i < graph->input_count; i++) {
        int field = b->trainable.models->fields[i];
        if (field >= 0) {
            bel_instance_bind_input(b->instance, (int)i, b->batch->fields[field].data);
        }
    }
    b->rows = bel_xcalloc(graph->lookup_count, sizeof *b->rows);
    for (size_t l = 0; l < graph->lookup_count; l++) {
        int input = graph->lookups[l].rows;
        b->rows[l] = bel_xcalloc((size_t)bel_shape_elements(&b->shapes[input]), sizeof(float));
        bel_instance_bind_input(b->instance, input, b->rows[l]);
    }
    b->results = bel_xcalloc((size_t)b->output_count, sizeof *b->results);
    for (int o = 0; o < b->output_count; o++) {
        if (!b->outputs[o].external) continue;
        bel_tensor tensor = bel_instance_output(b->instance, o);
        b->results[o] = bel_xcalloc(bel_tensor_bytes(&tensor), 1);
        bel_instance_bind_output(b->instance, o, b->results[o]);
    }
    bench_pin(b, true);
    return NULL;
}

// --- Writing -------------------------------------------------------------------------------------

// Error of `expected` against `measured`, in percent.
static double error_of(int64_t expected, int64_t measured)
{
    return measured > 0 ? 100.0 * (double)(expected - measured) / (double)measured : 0;
}

// `sum_ns` is the sum over all lines; 0: not measured. GPUs have no prediction.
static void write_line(const bench *b, const bel_program_line *line, int64_t ns, int64_t sum_ns,
                       bel_str *out)
{
    char shape[BEL_SHAPE_TEXT];
    bel_str_printf(out, "%5d  %-22s %-18s ", line->group, line->op,
                   bel_shape_text(&line->shape, shape));
    if (b->device != NULL) bel_str_printf(out, "%-4s ", line->bf16 ? "bf16" : "");
    bel_str_printf(out, "%*lld", b->device != NULL ? 8 : 5, (long long)line->tiles);
    if (sum_ns > 0) {
        bel_str_printf(out, " %10.1f %6.1f", (double)ns * 1e-3,
                       100.0 * (double)ns / (double)sum_ns);
    }
    if (sum_ns > 0 && b->device == NULL) {
        bel_str_printf(out, " %10.1f %+6.0f", (double)line->cost_ns * 1e-3,
                       error_of(line->cost_ns, ns));
    }
    bel_str_printf(out, "  %s\n", line->name);
}

static void write_heading(const bench *b, bool measured, bel_str *out)
{
    bool card = b->device != NULL;
    bel_str_printf(out, "group  %-22s %-18s %s", "operation", "result",
                   card ? "     launches" : "tiles");
    if (measured) bel_str_puts(out, "         us  share");
    if (measured && !card) bel_str_puts(out, "   expected  error");
    bel_str_puts(out, "  name\n");
}

// Writes the time of all instructions, and its error against the prediction, each instruction
// weighted by its time.
static void write_times(const bench *b, const int64_t *ns, int64_t all_ns, bel_str *out)
{
    if (b->device != NULL) {
        bel_str_printf(out,
                       "%.1f us as a run replays them on %s, without reading, copies, update and "
                       "exchange\n",
                       (double)all_ns * 1e-3, b->device->name);
        return;
    }
    int64_t expected = 0, off = 0;
    for (int i = 0; i < bel_program_instruction_count(b->program); i++) {
        int64_t cost_ns = bel_program_line_at(b->program, i).cost_ns;
        expected += cost_ns;
        off += cost_ns > ns[i] ? cost_ns - ns[i] : ns[i] - cost_ns;
    }
    bel_str_printf(out,
                   "%.1f us on one thread, without reading, update and exchange; %.1f expected, an "
                   "instruction %.0f %% off in the mean\n",
                   (double)all_ns * 1e-3, (double)expected * 1e-3,
                   all_ns > 0 ? 100.0 * (double)off / (double)all_ns : 0);
}

// Writes the memory. A GPU's includes parameters, inputs and results.
static void write_memory(const bench *b, int64_t launches, bel_str *out)
{
    char arena[32], live[32];
    size_t bytes = bel_program_arena_bytes(b->program), least = bel_program_live_bytes(b->program);
    bel_str_printf(out, "%d instructions in %d groups", bel_program_instruction_count(b->program),
                   bel_program_group_count(b->program));
    (void)bel_bytes_text(least, live);
    if (b->device != NULL) {
        bel_str_printf(out,
                       ", %lld launches; memory %s on %s, of which values of a step need %s at "
                       "once\n",
                       (long long)launches, bel_bytes_text(bytes, arena), b->device->name, live);
    } else {
        bel_str_printf(out, "; memory %s, %.2f times the largest live set (%s)\n",
                       bel_bytes_text(bytes, arena),
                       least > 0 ? (double)bytes / (double)least : 1.0, live);
    }
}

// `ns` is by instruction, NULL: not measured; `all_ns` is the total.
static void write_program(const bench *b, const int64_t *ns, int64_t all_ns, bel_str *out)
{
    int count = bel_program_instruction_count(b->program);
    int64_t sum_ns = 0, tiles = 0;
    for (int i = 0; ns != NULL && i < count; i++)
        sum_ns += ns[i];
    write_heading(b, ns != NULL, out);
    for (int i = 0; i < count; i++) {
        bel_program_line line = bel_program_line_at(b->program, i);
        write_line(b, &line, ns != NULL ? ns[i] : 0, sum_ns, out);
        tiles += line.tiles;
    }
    write_memory(b, tiles, out);
    int again = bel_program_repeated_count(b->program);
    if (again > 0) bel_str_printf(out, "%d operations run again to save memory\n", again);
    if (ns != NULL) write_times(b, ns, all_ns, out);
}

// --- The graph -----------------------------------------------------------------------------------

static void write_counts(const int *counts, int before, int after, bel_str *out)
{
    bel_str_printf(out, "%d operations before, %d after;", before, after);
    for (int p = 0; p < BEL_PASS_JOIN; p++) // later passes are for evaluation
        bel_str_printf(out, "%s %s %d", p > 0 ? "," : "", bel_pass_name((bel_pass)p), counts[p]);
    bel_str_puts(out, "\n");
}

// Dumps both graphs from the same outputs, followed through the passes.
static bel_status *dump(bench *b, unsigned passes_off, bel_str *out)
{
    const bel_graph *graph = b->trainable.built->graph;
    bel_value **values = bel_xcalloc((size_t)b->output_count + 1, sizeof *values);
    bel_spec *specs = bel_xcalloc(graph->value_count, sizeof *specs);
    bel_rewritten made = {.graph = NULL};
    for (int o = 0; o < b->output_count; o++)
        values[o] = b->outputs[o].value;
    bel_status *status = bel_graph_infer(graph, b->shapes, specs);
    if (status == NULL) {
        status = bel_passes_run(graph, b->shapes, values, b->output_count,
                                passes_off | 1u << BEL_PASS_JOIN, false, &made);
    }
    if (status == NULL) {
        bel_str_puts(out, "before:\n");
        int before = bel_graph_dump(graph, specs, values, b->output_count, out);
        for (int o = 0; o < b->output_count; o++)
            values[o] = made.values[values[o]->id];
        bel_str_puts(out, "after:\n");
        int after = bel_graph_dump(made.graph, NULL, values, b->output_count, out);
        write_counts(made.counts, before, after, out);
    }
    bel_rewritten_deinit(&made);
    bel_free(specs);
    bel_free(values);
    return status;
}

// Writes the graph, or its program, measured or not.
static bel_status *explain(bench *b, const bel_graph_dump_options *options, bel_str *out)
{
    if (options->dump) return dump(b, options->passes_off, out);
    BEL_TRY(bench_compile(b, options->passes_off));
    if (!options->measure) {
        write_program(b, NULL, 0, out);
        return NULL;
    }
    BEL_TRY(bench_bind(b));
    bel_run_context context = {.seed = b->trainable.estimator->config.seed};
    int64_t *ns = bel_xcalloc((size_t)bel_program_instruction_count(b->program), sizeof *ns);
    int64_t all_ns = 0;
    bel_status *status = bel_instance_profile(b->instance, &context, RUNS, ns, &all_ns);
    if (status == NULL) write_program(b, ns, all_ns, out);
    bel_free(ns);
    return status;
}

bel_status *bel_estimator_dump_graph(const bel_estimator *estimator, const bel_train_spec *train,
                                     const bel_graph_dump_options *options, bel_str *out)
{
    bench b = {.batch = NULL};
    bel_status *status = bench_build(&b, estimator, train);
    if (status == NULL) status = explain(&b, options, out);
    bench_deinit(&b);
    return status;
}
