// A replicated step beside a handwritten loop. The loop has two threads, each with the same
// compiled program (784-512-512-10, batch 64, softmax cross entropy) on separate batches. After a
// barrier each thread averages the gradients of its half of the parameters and makes a momentum
// step; a second barrier follows. bel_train has two towers. In turns; medians of the ratios with
// quartiles. Both sides leave their start and first steps out.
// usage: bench_data_parallel [ROUNDS]
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "figures.h"
#include "graph/graph.h"
#include "mlp.h"
#include "runtime/program.h"

enum {
    THREADS = 2,
    BATCH = 64,
    WARM = 20,
    STEPS = 300,
    MAX_ROUNDS = 99,
    MOST_VARIABLES = 8,
    CLASSES = 10
};
static const float rate = 0.01f, momentum = 0.9f;

// --- By hand -------------------------------------------------------------------------------------

typedef struct hand {
    bel_graph *graph;
    bel_program_output outputs[MOST_VARIABLES + 1];
    int variable_count;
    int64_t offsets[MOST_VARIABLES + 1]; // variables in the flat arrays, and the arrays' size
    float *values, *speeds;
    struct hand_thread {
        struct hand *hand;
        int index;
        float *gradients;
        bel_program *program;
        bel_instance *instance;
        bel_team *team;
        void *arena;
    } threads[THREADS];
    atomic_int arrived; // arrivals at all barriers
    int64_t begun;      // end of the first WARM steps
    double seconds;     // taken by the other steps
} hand;

static bel_value *build(bel_graph *g)
{
    const bel_shape pixels = BEL_SHAPE(BEL_DIM_BATCH, BENCH_PIXELS),
                    labels = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &pixels);
    bel_value *label = bel_input_value(g, "label", BEL_DTYPE_I64, &labels);
    bel_value *h = bel_relu(g, bel_dense(g, x, 512, "dense_0"));
    h = bel_relu(g, bel_dense(g, h, 512, "dense_1"));
    return bel_mean(g, bel_softmax_cross_entropy(g, bel_dense(g, h, CLASSES, "logits"), label));
}

static float *make_array(size_t count)
{
    void *array;
    bench_check(bel_pages_create(count * sizeof(float), true, "array", &array));
    return array;
}

static void make(hand *h)
{
    bel_graph *g = h->graph = bel_graph_create();
    h->outputs[0].value = build(g);
    bel_value *wanted[MOST_VARIABLES], *gradients[MOST_VARIABLES];
    h->variable_count = (int)g->variable_count;
    for (int v = 0; v < h->variable_count; v++) {
        bel_shape shape = bel_value_shape(wanted[v] = g->variables[v].value);
        h->offsets[v + 1] = h->offsets[v] + (bel_shape_elements(&shape) + 15) / 16 * 16;
    }
    bel_gradients(g, h->outputs[0].value, wanted, h->variable_count, gradients);
    bench_check(bel_graph_check(g));
    for (int v = 0; v < h->variable_count; v++)
        h->outputs[v + 1] = (bel_program_output){.value = gradients[v], .external = true};
    size_t size = (size_t)h->offsets[h->variable_count];
    h->values = make_array(size);
    h->speeds = make_array(size);
    for (size_t i = 0; i < size; i++)
        h->values[i] = (float)(i * 37 % 101) / 2000 - 0.025f;
    const bel_shape shapes[] = {BEL_SHAPE(BATCH, BENCH_PIXELS), BEL_SHAPE(BATCH)};
    for (int t = 0; t < THREADS; t++) {
        struct hand_thread *own = &h->threads[t];
        *own = (struct hand_thread){.hand = h, .index = t};
        own->gradients = make_array(size);
        const bel_program_options options = {.threads = 1};
        bench_check(bel_program_compile(g, shapes, h->outputs, h->variable_count + 1, &options,
                                        &own->program));
        bench_check(bel_pages_create(bel_program_arena_bytes(own->program), true, "activations",
                                     &own->arena));
        own->instance = bel_instance_create(own->program, own->arena);
        bench_check(bel_team_create(1, &own->team));
        for (int v = 0; v < h->variable_count; v++) {
            bel_instance_bind_variable(own->instance, v, h->values + h->offsets[v]);
            bel_instance_bind_output(own->instance, v + 1, own->gradients + h->offsets[v]);
        }
    }
}

static void destroy(hand *h)
{
    size_t bytes = (size_t)h->offsets[h->variable_count] * sizeof(float);
    for (int t = 0; t < THREADS; t++) {
        struct hand_thread *own = &h->threads[t];
        bel_instance_destroy(own->instance);
        bel_pages_destroy(own->arena, bel_program_arena_bytes(own->program));
        bel_program_destroy(own->program);
        bel_team_destroy(own->team);
        bel_pages_destroy(own->gradients, bytes);
    }
    bel_pages_destroy(h->values, bytes);
    bel_pages_destroy(h->speeds, bytes);
    bel_graph_destroy(h->graph);
}

// Barrier: waits until all threads have arrived `times` times. It spins, because steps are short.
static void meet(hand *h, int times)
{
    atomic_fetch_add(&h->arrived, 1);
    while (atomic_load(&h->arrived) < times * THREADS) {
    }
}

static void update(hand *h, int64_t first, int64_t end)
{
    const float *a = h->threads[0].gradients, *b = h->threads[1].gradients;
    bench_bare_get()->momentum(a + first, b + first, end - first, rate, momentum, h->values + first,
                               h->values + first, h->speeds + first);
}

static void *thread_main(void *argument)
{
    struct hand_thread *own = argument;
    hand *h = own->hand;
    int64_t size = h->offsets[h->variable_count], half = size / 2 / 16 * 16;
    for (int64_t step = 0; step < WARM + STEPS; step++) {
        if (step == WARM && own->index == 0) h->begun = bel_clock_ns();
        int64_t block = (step * THREADS + own->index) % (BENCH_RECORDS / BATCH);
        bel_instance_bind_input(own->instance, 0, bench_images() + block * BATCH * BENCH_PIXELS);
        bel_instance_bind_input(own->instance, 1, bench_labels() + block * BATCH);
        bel_run_context context = {.seed = 1, .step = step, .replica = own->index};
        bench_check(bel_instance_run(own->instance, own->team, &context, NULL, NULL));
        meet(h, (int)(2 * step + 1));
        update(h, own->index == 0 ? 0 : half, own->index == 0 ? half : size);
        meet(h, (int)(2 * step + 2));
    }
    if (own->index == 0) h->seconds = (double)(bel_clock_ns() - h->begun) * 1e-9;
    return NULL;
}

static double by_hand(void)
{
    static hand h;
    pthread_t other;
    h = (hand){.variable_count = 0};
    make(&h);
    if (pthread_create(&other, NULL, thread_main, &h.threads[1]) != 0) exit(1);
    (void)thread_main(&h.threads[0]);
    pthread_join(other, NULL);
    destroy(&h);
    return h.seconds;
}

// --- By Belfry -----------------------------------------------------------------------------------

static double train(int64_t steps)
{
    char folder[] = "/tmp/belfry-bench-XXXXXX";
    if (mkdtemp(folder) == NULL) exit(1);
    const bel_param params[] = {{"optimizer", "momentum"},
                                {"learning_rate", "0.01"},
                                {"class_count", "10"},
                                {"hidden_units", "512,512"}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_gpus = THREADS;
    config.num_threads = 1;
    config.report = false;
    int64_t batch = BATCH;
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = bench_input, .input_user = &batch, .max_steps = steps};
    bel_estimator *estimator;
    bel_result result = {.size = sizeof result};
    bench_check(
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 4, &estimator));
    bench_check(bel_train(estimator, &spec, &result));
    bel_estimator_destroy(estimator);
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp does not matter
    return result.train_seconds;
}

static double by_belfry(void)
{
    double start = train(WARM);
    return train(WARM + STEPS) - start;
}

int main(int count, char **arguments)
{
    double hands[MAX_ROUNDS], ours[MAX_ROUNDS];
    int rounds = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 9;
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    bench_fill();
    for (int i = 0; i < rounds; i++) {
        hands[i] = by_hand();
        ours[i] = by_belfry();
    }
    bench_spread ratio = bench_ratio_of(ours, hands, rounds);
    printf("{\"bench\":\"data_parallel\",\"threads\":%d,\"by_hand_us\":%.0f,"
           "\"step_over_hand\":%.3f,\"quartiles\":[%.3f,%.3f]}\n",
           THREADS, bench_median(hands, rounds) * 1e6 / STEPS, ratio.median, ratio.low, ratio.high);
    bench_figure("data_parallel", &ratio);
    return 0;
}
