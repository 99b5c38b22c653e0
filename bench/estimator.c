// Overhead of the driver: bel_train over a bare loop that reads the same batches, runs the same
// program and applies the same rule, without lanes, reports, versions or a master. Interleaved
// pairs, the median of their ratios with quartiles. usage: bench_estimator [PAIRS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "figures.h"
#include "mlp.h"
#include "model/model.h"
#include "optim/rule.h"
#include "runtime/program.h"

enum { STEPS = 200, BATCH = 64, VARIABLES = 6 };

typedef struct bare {
    bel_input *input;
    bel_built *built;
    bel_batch *batch;
    bel_program *program;
    bel_instance *instance;
    bel_team *team;
    float *values[2][VARIABLES], *gradients[VARIABLES], *slots[VARIABLES];
    int64_t elements[VARIABLES];
} bare;

static bel_status *array(int64_t elements, float **out_array)
{
    void *memory;
    BEL_TRY(bel_pages_create((size_t)elements * sizeof(float), true, "array", &memory));
    *out_array = memory;
    return NULL;
}

static bel_status *set_up(bare *b)
{
    const bel_param params[] = {{"hidden_units", "512,512"},
                                {"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"}};
    int64_t batch = BATCH;
    bel_dataset *dataset;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = "unused";
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 4, &estimator));
    BEL_TRY(bench_input(&batch, estimator, BEL_MODE_TRAIN, &dataset));
    BEL_TRY(bel_input_open(dataset, NULL, &b->input));
    bel_dataset_destroy(dataset);
    BEL_TRY(bel_model_build(estimator, BEL_MODE_TRAIN, NULL, b->input, 0, &b->built));
    bel_estimator_destroy(estimator);
    bel_graph *graph = b->built->graph;
    bel_value *variables[VARIABLES], *gradients[VARIABLES];
    for (int v = 0; v < VARIABLES; v++)
        variables[v] = graph->variables[v].value;
    bel_gradients(graph, b->built->spec.loss, variables, VARIABLES, gradients);
    bel_program_output outputs[VARIABLES + 1];
    for (int v = 0; v < VARIABLES; v++)
        outputs[v] = (bel_program_output){.value = gradients[v], .external = true};
    outputs[VARIABLES] = (bel_program_output){.value = b->built->spec.loss};
    const bel_shape shapes[] = {BEL_SHAPE(BATCH, BENCH_PIXELS), BEL_SHAPE(BATCH)};
    BEL_TRY(bel_program_compile(graph, shapes, outputs, VARIABLES + 1, NULL, &b->program));
    void *arena;
    BEL_TRY(bel_pages_create(bel_program_arena_bytes(b->program), true, "arena", &arena));
    b->instance = bel_instance_create(b->program, arena);
    b->batch = bel_batch_create(b->input);
    for (int v = 0; v < VARIABLES; v++) {
        bel_shape shape = bel_value_shape(variables[v]);
        b->elements[v] = bel_shape_elements(&shape);
        BEL_TRY(array(b->elements[v], &b->values[0][v]));
        BEL_TRY(array(b->elements[v], &b->values[1][v]));
        BEL_TRY(array(b->elements[v], &b->gradients[v]));
        BEL_TRY(array(b->elements[v], &b->slots[v]));
        for (int64_t i = 0; i < b->elements[v]; i++)
            b->values[0][v][i] = 0.05f * bench_images()[i % (BENCH_RECORDS * BENCH_PIXELS)];
    }
    return bel_team_create(1, &b->team);
}

static bel_status *run(bare *b, double *out_seconds)
{
    bel_run_context context = {.seed = 1};
    int64_t begun = bel_clock_ns();
    for (int step = 0; step < STEPS; step++) {
        BEL_TRY(bel_input_read(b->input, step, b->batch));
        for (int f = 0; f < 2; f++)
            bel_instance_bind_input(b->instance, f, b->batch->fields[b->built->fields[f]].data);
        for (int v = 0; v < VARIABLES; v++) {
            bel_instance_bind_variable(b->instance, v, b->values[step % 2][v]);
            bel_instance_bind_output(b->instance, v, b->gradients[v]);
        }
        BEL_TRY(bel_instance_run(b->instance, b->team, &context, NULL, NULL));
        bel_rule_step numbers = bel_rule_begin(&b->built->optimizers->main, step);
        for (int v = 0; v < VARIABLES; v++) {
            bel_rule_apply(&numbers, b->gradients[v], 1.0f, b->values[step % 2][v],
                           b->values[1 - step % 2][v], (float *[BEL_RULE_MAX_SLOTS]){b->slots[v]},
                           b->elements[v]);
        }
    }
    *out_seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    return NULL;
}

static bel_status *measure(int pairs)
{
    enum { MOST = 256 };
    double ratios[MOST];
    bare b = {0};
    if (pairs < 1 || pairs > MOST) return BEL_ERR(BEL_INVALID_ARGUMENT, "1 to %d pairs", MOST);
    BEL_TRY(set_up(&b));
    for (int i = -1; i < pairs; i++) { // one warm-up pair, overwritten
        double alone, driven;
        BEL_TRY(run(&b, &alone));
        BEL_TRY(bench_train("dnn", BATCH, 1, STEPS, &driven));
        ratios[i < 0 ? 0 : i] = driven / alone;
    }
    bench_spread ratio = bench_spread_of(ratios, pairs);
    printf("{\"bench\":\"estimator\",\"batch\":%d,\"pairs\":%d,\"train_over_bare_loop\":%.3f,"
           "\"quartiles\":[%.3f,%.3f]}\n",
           BATCH, pairs, ratio.median, ratio.low, ratio.high);
    bench_figure("estimator", &ratio);
    return NULL;
}

int main(int argc, char **argv)
{
    bench_fill();
    return bench_end(measure(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 31));
}
