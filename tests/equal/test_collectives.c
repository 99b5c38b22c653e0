// Tests of collectives in training: the values that replicas receive (including those of
// TensorFlow's replicator proposal), gradients against differences of the loss, the same bits
// however replicas are assigned to towers, batches of different sizes, and refusals. label: threads
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { REPLICAS = 4, BATCH = 4, WIDTH = 3, MOST = REPLICAS * BATCH };

// --- Running -------------------------------------------------------------------------------------

// Assignment of replicas to workers and towers.
typedef struct deal {
    int workers, shards, towers; // towers: of each worker; 0: 1, 2 and 1 of three workers
    int turns;                   // in all workers together
    bel_aggregation mode;
} deal;

static float examples[MOST][WIDTH];
static int example_count = MOST;

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    const bel_memory_field field = {"x",
                                    {BEL_DTYPE_F32, BEL_SHAPE(example_count, WIDTH), examples}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_repeat(*out_dataset, *(int *)user);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

static void fill_examples(void **state)
{
    (void)state;
    for (int i = 0; i < MOST; i++)
        for (int j = 0; j < WIDTH; j++)
            examples[i][j] = sinf((float)(7 * i + 3 * j + 1));
}

typedef struct run {
    char *folder;
    bel_result result;
} run;

static bel_status *train(bel_model_fn *model, const char *kind, double start, deal d, int64_t steps,
                         run *out)
{
    static int count;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    out->result.size = sizeof out->result;
    out->folder = bel_strf("%s/%d", bel_test_own_folder(), count++);
    config.model_dir = out->folder;
    static const int uneven[] = {1, 2, 1};
    config.num_workers = d.workers;
    config.parameter_server_count = d.shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_gpus = d.towers > 0 ? d.towers : 1;
    if (d.towers == 0) config.towers_of = uneven;
    config.replicas_to_aggregate = d.turns;
    config.mode = d.mode;
    config.report = false;
    char text[32];
    (void)bel_snprintf(text, sizeof text, "%.9g", start);
    const bel_param params[] = {{"kind", kind}, {"start", text}};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, params, 2, &estimator));
    int epochs = (int)steps;
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &epochs, .max_steps = steps};
    bel_status *status = bel_train(estimator, &spec, &out->result);
    bel_estimator_destroy(estimator);
    return status;
}

static void read(const run *r, const char *name, float *out, size_t count)
{
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(r->folder, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, out, count * sizeof *out));
    bel_checkpoint_close(checkpoint);
}

// --- Received values -----------------------------------------------------------------------------

static bel_value *constants(bel_graph *g, const float *numbers, int count)
{
    float copy[64];
    memcpy(copy, numbers, (size_t)count * sizeof *copy);
    return bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(count), copy});
}

// Keeps the value that each replica received.
static void keep(bel_graph *g, const char *name, bel_value *given)
{
    bel_shape shape = bel_value_shape(given);
    bel_shape flat = BEL_SHAPE(bel_shape_elements(&shape));
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *variable = bel_variable(g, name, &flat, zeros, BEL_VARIABLE_REPLICA);
    bel_assign_state(g, variable, bel_reshape(g, bel_cast(g, given, BEL_DTYPE_F32), &flat));
}

static void set_results(bel_estimator_spec *spec, bel_value *loss)
{
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    bel_loss_set(spec, loss);
    bel_predictions_set(spec, loss);
    bel_optimizer_use(spec, NULL, &sgd);
}

// The loss has the addend `more`; NULL: none.
static void finish_with(bel_model_context *context, bel_estimator_spec *spec, bel_value *more)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *w = bel_variable(g, "w", &BEL_SHAPE(WIDTH), zeros, BEL_VARIABLE_TRAINABLE);
    bel_value *loss = bel_mean(g, bel_mul(g, bel_context_only_feature(context), w));
    if (more != NULL) loss = bel_add(g, loss, more);
    set_results(spec, loss);
}

static void finish(bel_model_context *context, bel_estimator_spec *spec)
{
    finish_with(context, spec, NULL);
}

// The first of two replicas has a = 1, b = [40, 1], the second a = 3, b = [2, 98].
static bel_status *golden_model(bel_model_context *context, bel_estimator_spec *spec)
{
    static const float as[] = {1, 3}, bs[] = {40, 1, 2, 98};
    static const struct {
        const char *name;
        bel_reduce_op op;
    } rows[] = {{"sum", BEL_REDUCE_SUM},
                {"mean", BEL_REDUCE_MEAN},
                {"min", BEL_REDUCE_MIN},
                {"max", BEL_REDUCE_MAX},
                {"product", BEL_REDUCE_PRODUCT}};
    bel_graph *g = bel_context_graph(context);
    bel_value *id = bel_replica_id(g);
    bel_value *a = bel_gather(g, constants(g, as, 2), id);
    bel_value *b = bel_gather(g, bel_reshape(g, constants(g, bs, 4), &BEL_SHAPE(2, 2)), id);
    bel_value *whole = bel_cast(g, b, BEL_DTYPE_I64), *wide = bel_cast(g, b, BEL_DTYPE_F64);
    char name[32];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_reduce_op op = rows[i].op;
        (void)bel_snprintf(name, sizeof name, "%s_a", rows[i].name);
        keep(g, name, bel_all_reduce(g, a, op));
        (void)bel_snprintf(name, sizeof name, "%s_b", rows[i].name);
        keep(g, name, bel_all_reduce(g, b, op));
        (void)bel_snprintf(name, sizeof name, "%s_f64", rows[i].name);
        keep(g, name, bel_all_reduce(g, wide, op));
        (void)bel_snprintf(name, sizeof name, "%s_i64", rows[i].name);
        if (op != BEL_REDUCE_MEAN) keep(g, name, bel_all_reduce(g, whole, op));
        (void)bel_snprintf(name, sizeof name, "%s_scatter", rows[i].name);
        keep(g, name, bel_reduce_scatter(g, b, op));
    }
    keep(g, "gather_a", bel_all_gather(g, a));
    keep(g, "gather_b", bel_all_gather(g, b));
    keep(g, "gather_i64", bel_all_gather(g, whole));
    keep(g, "broadcast_a", bel_broadcast(g, a, 1));
    keep(g, "broadcast_b", bel_broadcast(g, b, 1));
    // Lists of mixed types and shapes, in one exchange.
    bel_value *sums[3] = {a, b, whole}, *given[2] = {a, whole};
    bel_all_reduce_n(g, sums, 3, BEL_REDUCE_SUM);
    bel_broadcast_n(g, given, 2, 1);
    bel_all_reduce_n(g, (bel_value *[]){a, b}, 2, BEL_REDUCE_SUM); // with commas in a literal
    keep(g, "list_a", sums[0]);
    keep(g, "list_b", sums[1]);
    keep(g, "list_i64", sums[2]);
    keep(g, "list_broadcast_a", given[0]);
    keep(g, "list_broadcast_i64", given[1]);
    // Nested: the second exchange reads the first one's result.
    keep(g, "twice",
         bel_all_reduce(g, bel_mul(g, a, bel_all_reduce(g, a, BEL_REDUCE_SUM)), BEL_REDUCE_SUM));
    finish(context, spec);
    return NULL;
}

static void expect(const run *r, const char *name, int count, const float *first,
                   const float *second)
{
    float got[16];
    read(r, name, got, (size_t)(2 * count));
    for (int i = 0; i < count; i++) {
        if (got[i] == first[i] && got[count + i] == second[i]) continue;
        fail_msg("%s, element %d: replicas were given %g and %g, expected %g and %g", name, i,
                 (double)got[i], (double)got[count + i], (double)first[i], (double)second[i]);
    }
}

#define EXPECT(r, name, ...)                                                                       \
    expect(r, name, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)),                         \
           (const float[]){__VA_ARGS__}, (const float[]){__VA_ARGS__})

static void test_golden(void **state)
{
    (void)state;
    static const deal deals[] = {{1, 1, 2, 0, BEL_AGGREGATE_SYNC},
                                 {1, 1, 1, 2, BEL_AGGREGATE_SYNC},
                                 {2, 1, 1, 0, BEL_AGGREGATE_SYNC},
                                 {2, 2, 1, 0, BEL_AGGREGATE_SYNC}};
    static const char *const types[] = {"b", "f64", "i64"};
    for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++) {
        run r;
        BEL_ASSERT_OK(train(golden_model, "", 0, deals[i], 1, &r));
        EXPECT(&r, "sum_a", 4);
        EXPECT(&r, "mean_a", 2);
        EXPECT(&r, "min_a", 1);
        EXPECT(&r, "max_a", 3);
        EXPECT(&r, "product_a", 3);
        for (int t = 0; t < 3; t++) {
            char name[32];
#define OF_TYPE(word, ...)                                                                         \
    (void)bel_snprintf(name, sizeof name, word "_%s", types[t]);                                   \
    EXPECT(&r, name, __VA_ARGS__)
            OF_TYPE("sum", 42, 99);
            OF_TYPE("min", 2, 1);
            OF_TYPE("max", 40, 98);
            OF_TYPE("product", 80, 98);
            if (t == 2) continue;
            OF_TYPE("mean", 21, 49.5f);
#undef OF_TYPE
        }
        EXPECT(&r, "gather_a", 1, 3);
        EXPECT(&r, "gather_b", 40, 1, 2, 98);
        EXPECT(&r, "gather_i64", 40, 1, 2, 98);
        EXPECT(&r, "broadcast_a", 3);
        EXPECT(&r, "broadcast_b", 2, 98);
        EXPECT(&r, "list_a", 4);
        EXPECT(&r, "list_b", 42, 99);
        EXPECT(&r, "list_i64", 42, 99);
        EXPECT(&r, "list_broadcast_a", 3);
        EXPECT(&r, "list_broadcast_i64", 2, 98);
        EXPECT(&r, "twice", 16);
        expect(&r, "sum_scatter", 1, (const float[]){42}, (const float[]){99});
        expect(&r, "mean_scatter", 1, (const float[]){21}, (const float[]){49.5f});
        expect(&r, "min_scatter", 1, (const float[]){2}, (const float[]){1});
        expect(&r, "max_scatter", 1, (const float[]){40}, (const float[]){98});
        expect(&r, "product_scatter", 1, (const float[]){80}, (const float[]){98});
        bel_free(r.folder);
    }
}

// --- Gradients -----------------------------------------------------------------------------------

static bel_value *cube(void *user, bel_graph *g, bel_value *item)
{
    (void)user;
    return bel_mul(g, item, bel_mul(g, item, item));
}

// Exchanges a value [WIDTH] of each replica, and returns one in each replica.
static bel_value *exchanged(bel_graph *g, const char *kind, bel_value *m)
{
    static const float factors[] = {1, -2, 0.5f, 3};
    int64_t replicas = bel_replica_count(g);
    bel_value *column = bel_reshape(g, constants(g, factors, REPLICAS), &BEL_SHAPE(REPLICAS, 1));
    bel_value *parts = bel_mul(g, column, bel_reshape(g, m, &BEL_SHAPE(1, WIDTH)));
    bel_value *items[5];
    for (int i = 0; i < 5; i++)
        items[i] = bel_mul(g, m, bel_scalar(g, BEL_DTYPE_F32, 0.25 * (1 + i)));
    if (strcmp(kind, "sum") == 0) return bel_all_reduce(g, m, BEL_REDUCE_SUM);
    if (strcmp(kind, "mean") == 0) return bel_all_reduce(g, m, BEL_REDUCE_MEAN);
    if (strcmp(kind, "min") == 0) return bel_all_reduce(g, m, BEL_REDUCE_MIN);
    if (strcmp(kind, "max") == 0) return bel_all_reduce(g, m, BEL_REDUCE_MAX);
    if (strcmp(kind, "product") == 0) return bel_all_reduce(g, m, BEL_REDUCE_PRODUCT);
    if (strcmp(kind, "zero") == 0) { // replica 1 has only zeros
        bel_value *others =
            bel_cast(g,
                     bel_not(g, bel_equal(g, bel_cast(g, bel_replica_id(g), BEL_DTYPE_F32),
                                          bel_scalar(g, BEL_DTYPE_F32, 1))),
                     BEL_DTYPE_F32);
        return bel_all_reduce(g, bel_mul(g, m, others), BEL_REDUCE_PRODUCT);
    }
    if (strcmp(kind, "gather") == 0) return bel_all_gather(g, m);
    if (strcmp(kind, "scatter") == 0) return bel_reduce_scatter(g, parts, BEL_REDUCE_SUM);
    if (strcmp(kind, "scatter_mean") == 0) return bel_reduce_scatter(g, parts, BEL_REDUCE_MEAN);
    if (strcmp(kind, "broadcast") == 0) return bel_broadcast(g, m, 2);
    if (strcmp(kind, "map_reduce") == 0)
        return bel_map_reduce(g, items, 5, cube, NULL, BEL_REDUCE_SUM);
    if (strcmp(kind, "map_gather") == 0) return bel_map_gather(g, items, 5, cube, NULL);
    // The gradient of a gradient contains exchanges, too.
    bel_value *sum = bel_reduce_sum(g, cube(NULL, g, bel_all_reduce(g, m, BEL_REDUCE_SUM)), NULL, 0,
                                    false),
              *slope;
    assert_string_equal(kind, "second");
    assert_true(replicas >= 1);
    bel_gradients(g, sum, &m, 1, &slope);
    return slope;
}

static bel_status *gradient_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    static const int64_t first[] = {0};
    const bel_initializer start = {.kind = BEL_INIT_CONSTANT,
                                   .value = bel_context_param_number(context, "start", 0)};
    bel_value *w = bel_variable(g, "w", &BEL_SHAPE(WIDTH), start, BEL_VARIABLE_TRAINABLE);
    bel_value *h = bel_tanh(g, bel_mul(g, bel_context_only_feature(context), w));
    bel_value *m = bel_reduce_mean(g, h, first, 1, false);
    bel_value *given = exchanged(g, bel_context_param(context, "kind", ""), m);
    bel_value *own = bel_reduce_mean(g, bel_mul(g, h, h), NULL, 0, false);
    bel_value *waves = bel_sin(g, bel_mul(g, given, m));
    bel_value *loss = bel_add(g, own, bel_reduce_sum(g, waves, NULL, 0, false));
    set_results(spec, loss);
    return NULL;
}

// Returns the loss of one step from `start`, and the slope by all weights together.
static double loss_at(const char *kind, double start, double *out_slope)
{
    run r;
    float w[WIDTH];
    BEL_ASSERT_OK(
        train(gradient_model, kind, start, (deal){1, 1, REPLICAS, 0, BEL_AGGREGATE_SYNC}, 1, &r));
    read(&r, "w", w, WIDTH);
    *out_slope = 0;
    for (int i = 0; i < WIDTH; i++)
        *out_slope += (double)(float)start - (double)w[i];
    bel_free(r.folder);
    return r.result.loss;
}

// Counts with 4, 4, 4, 4 examples; 4, 4, 4, 1; and 4, 4, 1, 0.
static void test_gradients(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        "sum",     "mean",         "min",       "max",        "product",    "zero",  "gather",
        "scatter", "scatter_mean", "broadcast", "map_reduce", "map_gather", "second"};
    static const int counts[] = {MOST, 13, 9};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int c = 0; c < 3; c++) {
            bool needs_all = strncmp(kinds[k], "map", 3) == 0;
            if (needs_all && counts[c] == 9) continue;
            const double at = 0.7, h = 0.0078125;
            double slope, unused;
            example_count = counts[c];
            (void)loss_at(kinds[k], at, &slope);
            double above = loss_at(kinds[k], at + h, &unused);
            double below = loss_at(kinds[k], at - h, &unused);
            double expected = (above - below) / (2 * h);
            if (fabs(slope - expected) <= 2e-3 * (1 + fabs(expected))) continue;
            fail_msg("%s of %d examples: the slope is %g, differences of the loss give %g",
                     kinds[k], counts[c], slope, expected);
        }
    example_count = MOST;
}

// --- Deals ---------------------------------------------------------------------------------------

static void test_deals(void **state)
{
    (void)state;
    static const deal deals[] = {
        {1, 1, 4, 0, BEL_AGGREGATE_SYNC}, {1, 1, 2, 2, BEL_AGGREGATE_SYNC},
        {1, 1, 1, 4, BEL_AGGREGATE_SYNC}, {1, 1, 4, 0, BEL_AGGREGATE_ASYNC},
        {2, 1, 2, 0, BEL_AGGREGATE_SYNC}, {4, 3, 1, 0, BEL_AGGREGATE_SYNC},
        {3, 2, 0, 0, BEL_AGGREGATE_SYNC}, {2, 1, 1, 4, BEL_AGGREGATE_SYNC}};
    static const char *const kinds[] = {"sum", "product", "gather", "scatter", "broadcast"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int count = 13; count <= MOST; count += 3) {
            if (strcmp(kinds[k], "broadcast") == 0 && count != MOST)
                continue; // the broadcasting replica has none
            char first[BEL_RESULT_TEXT] = "";
            example_count = count;
            for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++) {
                run r;
                BEL_ASSERT_OK(train(gradient_model, kinds[k], 0.7, deals[i], 5, &r));
                if (i == 0) (void)bel_snprintf(first, sizeof first, "%s", r.result.digest);
                assert_string_equal(r.result.digest, first);
                bel_free(r.folder);
            }
        }
    example_count = MOST;
}

// Reported values are also exchanged, before and after, and read in a later part. Two variables
// have the same gradient. A state is assigned from the batch itself.
static bel_status *reported_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    static const int64_t first[] = {0};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    const bel_shape shape = BEL_SHAPE(WIDTH);
    bel_value *x = bel_context_only_feature(context), *states[3], *w[2];
    for (int i = 0; i < 3; i++) {
        char name[16];
        (void)bel_snprintf(name, sizeof name, "state_%d", i);
        states[i] = bel_variable(g, name, &shape, zeros, BEL_VARIABLE_STATE_MEAN);
    }
    w[0] = bel_variable(g, "w_0", &shape, zeros, BEL_VARIABLE_TRAINABLE);
    w[1] = bel_variable(g, "w_1", &shape, zeros, BEL_VARIABLE_TRAINABLE);
    bel_value *own = bel_reduce_mean(g, x, first, 1, false);
    bel_value *sum = bel_all_reduce(g, own, BEL_REDUCE_SUM);
    bel_value *both = bel_all_reduce(g, bel_mul(g, sum, own), BEL_REDUCE_SUM);
    bel_assign_state(g, states[0], own);
    bel_assign_state(g, states[1], sum);
    bel_assign_state(g, states[2], bel_add(g, bel_mul(g, both, own), sum));
    bel_value *factor = bel_add(g, bel_add(g, w[0], w[1]), bel_add(g, both, sum));
    bel_value *loss = bel_mean(g, bel_mul(g, x, factor));
    if (bel_context_param_number(context, "start", 0) > 0) // only an exchange is left to do
        loss = bel_all_reduce(g, loss, BEL_REDUCE_MEAN);
    set_results(spec, loss);
    return NULL;
}

static void check_reported(deal d, double start, double expected[3][WIDTH])
{
    run r;
    float got[WIDTH];
    BEL_ASSERT_OK(train(reported_model, "", start, d, 2, &r));
    for (int i = 0; i < 3; i++) {
        char name[16];
        (void)bel_snprintf(name, sizeof name, "state_%d", i);
        read(&r, name, got, WIDTH);
        for (int j = 0; j < WIDTH; j++)
            if (fabs((double)got[j] - expected[i][j]) > 1e-6)
                fail_msg("%s: %g, expected %g", name, (double)got[j], expected[i][j]);
    }
    bel_free(r.folder);
}

static void test_reported(void **state)
{
    (void)state;
    static const deal deals[] = {{1, 1, 4, 0, BEL_AGGREGATE_SYNC},
                                 {1, 1, 1, 4, BEL_AGGREGATE_SYNC},
                                 {2, 1, 2, 0, BEL_AGGREGATE_SYNC},
                                 {4, 2, 1, 0, BEL_AGGREGATE_SYNC}};
    double expected[3][WIDTH] = {0};
    for (int j = 0; j < WIDTH; j++) {
        double own[REPLICAS] = {0}, sum = 0, both = 0;
        for (int i = 0; i < MOST; i++)
            own[i / BATCH] += (double)examples[i][j] / BATCH;
        for (int r = 0; r < REPLICAS; r++)
            sum += own[r];
        for (int r = 0; r < REPLICAS; r++)
            both += sum * own[r];
        expected[0][j] = sum / REPLICAS;
        expected[1][j] = sum;
        expected[2][j] = both * sum / REPLICAS + sum;
    }
    for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++)
        for (int start = 0; start < 2; start++)
            check_reported(deals[i], start, expected);
}

// Values that are sent in many pieces, of all kinds at once, beside those of a single element.
static bel_status *large_model(bel_model_context *context, bel_estimator_spec *spec)
{
    enum { LARGE = 100003 };
    bel_graph *g = bel_context_graph(context);
    bel_value *sum = bel_reduce_sum(g, bel_context_only_feature(context), NULL, 0, false);
    const bel_initializer uniform = {.kind = BEL_INIT_UNIFORM, .value = 1};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *noise = bel_variable(g, "noise", &BEL_SHAPE(LARGE), uniform, BEL_VARIABLE_FROZEN);
    bel_value *own = bel_sin(g, bel_mul(g, noise, sum));
    bel_value *parts =
        bel_slice(g, own, NULL, (int64_t[]){0}, (int64_t[]){REPLICAS * 24001}, NULL, 1);
    parts = bel_reshape(g, parts, &BEL_SHAPE(REPLICAS, 24001));
    bel_value *given[] = {bel_all_reduce(g, own, BEL_REDUCE_MEAN),
                          bel_all_reduce(g, bel_cast(g, own, BEL_DTYPE_F64), BEL_REDUCE_MAX),
                          bel_all_reduce(g, sum, BEL_REDUCE_SUM),
                          bel_all_gather(g, own),
                          bel_reduce_scatter(g, parts, BEL_REDUCE_SUM),
                          bel_broadcast(g, own, 1)};
    for (int i = 0; i < (int)(sizeof given / sizeof given[0]); i++) {
        char name[16];
        bel_shape shape = bel_value_shape(given[i]);
        (void)bel_snprintf(name, sizeof name, "given_%d", i);
        bel_value *kept = bel_variable(g, name, &shape, zeros, BEL_VARIABLE_STATE_MEAN);
        bel_assign_state(g, kept, bel_cast(g, given[i], BEL_DTYPE_F32));
    }
    finish(context, spec);
    return NULL;
}

static void test_large(void **state)
{
    (void)state;
    static const deal deals[] = {{1, 1, 4, 0, BEL_AGGREGATE_SYNC},
                                 {2, 1, 2, 0, BEL_AGGREGATE_SYNC},
                                 {4, 2, 1, 0, BEL_AGGREGATE_SYNC},
                                 {3, 1, 0, 0, BEL_AGGREGATE_SYNC}};
    char first[BEL_RESULT_TEXT] = "";
    for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++) {
        run r;
        BEL_ASSERT_OK(train(large_model, "", 0, deals[i], 2, &r));
        if (i == 0) (void)bel_snprintf(first, sizeof first, "%s", r.result.digest);
        assert_string_equal(r.result.digest, first);
        bel_free(r.folder);
    }
}

// --- Many replicas -------------------------------------------------------------------------------

static bel_status *mean_model(bel_model_context *context, bel_estimator_spec *spec)
{
    enum { WIDE = 1200 };
    bel_graph *g = bel_context_graph(context);
    const bel_initializer uniform = {.kind = BEL_INIT_UNIFORM, .value = 1};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *noise = bel_variable(g, "noise", &BEL_SHAPE(WIDE), uniform, BEL_VARIABLE_FROZEN);
    bel_value *sum = bel_reduce_sum(g, bel_context_only_feature(context), NULL, 0, false);
    bel_value *kept = bel_variable(g, "mean", &BEL_SHAPE(WIDE), zeros, BEL_VARIABLE_STATE_MEAN);
    bel_value *own = bel_sin(g, bel_mul(g, noise, sum));
    bel_assign_state(g, kept, bel_all_reduce(g, own, BEL_REDUCE_MEAN));
    finish(context, spec);
    return NULL;
}

// A worker's room must fit the values of all its replicas, however many.
static void test_many(void **state)
{
    (void)state;
    enum { TURNS = 256, EPOCHS = 2 * TURNS / REPLICAS }; // EPOCHS: two steps
    char first[BEL_RESULT_TEXT] = "";
    for (int workers = 1; workers <= 3; workers++) {
        run r;
        const deal d = {workers, 1, 1, TURNS, BEL_AGGREGATE_SYNC};
        BEL_ASSERT_OK(train(mean_model, "", 0, d, EPOCHS, &r));
        assert_int_equal(r.result.global_step, 2);
        if (workers == 1) (void)bel_snprintf(first, sizeof first, "%s", r.result.digest);
        assert_string_equal(r.result.digest, first);
        bel_free(r.folder);
    }
}

// --- One replica ---------------------------------------------------------------------------------

// A single replica receives its values, through operations that compute nothing.
static void test_alone(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &BEL_SHAPE(BEL_DIM_BATCH, 2));
    assert_int_equal(bel_replica_count(g), 1);
    bel_shape same = bel_value_shape(bel_all_reduce(g, x, BEL_REDUCE_MEAN));
    assert_true(bel_shape_equal(&same, &BEL_SHAPE(BEL_DIM_BATCH, 2)));
    bel_shape more = bel_value_shape(bel_all_gather(g, x));
    assert_true(bel_shape_equal(&more, &BEL_SHAPE(1, BEL_DIM_BATCH, 2)));
    bel_value *one = bel_input_value(g, "one", BEL_DTYPE_F32, &BEL_SHAPE(1, 7));
    bel_shape less = bel_value_shape(bel_reduce_scatter(g, one, BEL_REDUCE_SUM));
    assert_true(bel_shape_equal(&less, &BEL_SHAPE(7)));
    assert_non_null(bel_broadcast(g, x, 0));
    BEL_ASSERT_OK(bel_graph_check(g));
    assert_null(bel_broadcast(g, x, 1));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, "there is no replica 1 of 1");
    bel_graph_destroy(g);
}

// --- Refusals ------------------------------------------------------------------------------------

static bel_status *wrong_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context);
    const char *kind = bel_context_param(context, "kind", "");
    if (strcmp(kind, "shape") == 0) // batches of 4 and of 1
        x = bel_reduce_mean(g, bel_all_reduce(g, x, BEL_REDUCE_SUM), NULL, 0, false);
    if (strcmp(kind, "source") == 0) x = bel_broadcast(g, bel_mean(g, x), REPLICAS - 1);
    if (strcmp(kind, "map") == 0) {
        bel_value *item = bel_mean(g, x);
        x = bel_map_reduce(g, &item, 1, cube, NULL, BEL_REDUCE_SUM);
    }
    if (strcmp(kind, "mean") == 0) (void)bel_all_reduce(g, bel_replica_id(g), BEL_REDUCE_MEAN);
    if (strcmp(kind, "bool") == 0) (void)bel_all_reduce(g, bel_is_nan(g, x), BEL_REDUCE_MAX);
    if (strcmp(kind, "number") == 0) (void)bel_broadcast(g, x, REPLICAS);
    if (strcmp(kind, "parts") == 0)
        (void)bel_reduce_scatter(g, bel_scalar(g, BEL_DTYPE_F32, 1), BEL_REDUCE_SUM);
    if (strcmp(kind, "items") == 0) (void)bel_map_gather(g, NULL, 0, cube, NULL);
    bel_value *more = x != NULL ? bel_mean(g, x) : NULL;
    if (strcmp(kind, "histogram") == 0) {
        bel_value *sum = bel_all_reduce(g, bel_mean(g, x), BEL_REDUCE_SUM);
        bel_summary_histogram(context, spec, "h", sum);
        more = bel_add(g, more, sum);
    }
    finish_with(context, spec, more);
    return NULL;
}

static void refused(const char *kind, int count, int workers, bel_code code, const char *words)
{
    run r;
    example_count = count;
    BEL_ASSERT_FAILS(train(wrong_model, kind, 0,
                           (deal){workers, 1, REPLICAS / workers, 0, BEL_AGGREGATE_SYNC}, 1, &r),
                     code, words);
    bel_free(r.folder);
    example_count = MOST;
}

static void test_refused(void **state)
{
    (void)state;
    refused("shape", 13, 1, BEL_INVALID_ARGUMENT, "replica 0 has [4, 3] and replica 3 has [1, 3]");
    refused("shape", 13, 1, BEL_INVALID_ARGUMENT, "AllReduce called at ");
    refused("shape", 13, 1, BEL_INVALID_ARGUMENT, "test_collectives.c:");
    refused("shape", 13, 2, BEL_INVALID_ARGUMENT, "replica 2 has [4, 3] and replica 3 has [1, 3]");
    refused("shape", 13, 4, BEL_INVALID_ARGUMENT, "AllReduce of f32 [1, 3] at ");
    refused("shape", 13, 4, BEL_INVALID_ARGUMENT, "AllReduce of f32 [4, 3] at ");
    for (int workers = 1; workers <= 4; workers *= 2) {
        refused("source", 9, workers, BEL_FAILED_PRECONDITION, "replica 3 has no examples");
        refused("map", 9, workers, BEL_FAILED_PRECONDITION, " has no examples in this step");
    }
    refused("mean", MOST, 1, BEL_INVALID_ARGUMENT, "a mean needs f32 or f64, got i64");
    refused("bool", MOST, 1, BEL_INVALID_ARGUMENT, "expected f32, f64, i32 or i64, got bool");
    refused("number", MOST, 1, BEL_INVALID_ARGUMENT, "there is no replica 4 of 4");
    refused("parts", MOST, 1, BEL_INVALID_ARGUMENT, "expected [4, …], a part for each replica");
    refused("items", MOST, 1, BEL_INVALID_ARGUMENT,
            "map_gather: expected at least one item, got 0");
    refused("histogram", MOST, 1, BEL_UNIMPLEMENTED, "summary \"h\": histograms and images");
}

int main(void)
{
    fill_examples(NULL);
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_golden), BEL_TEST_IN_FOLDER(test_gradients),
        BEL_TEST_IN_FOLDER(test_deals),  BEL_TEST_IN_FOLDER(test_reported),
        BEL_TEST_IN_FOLDER(test_large),  BEL_TEST_IN_FOLDER(test_many),
        cmocka_unit_test(test_alone),    BEL_TEST_IN_FOLDER(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
