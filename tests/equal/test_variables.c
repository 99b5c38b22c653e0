// Tests of variables by synchronization and aggregation: their kinds, the values that each replica
// of a step keeps however replicas are assigned, the values that evaluation and prediction read,
// and the values with another number of replicas. label: threads
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

// Seven batches: in the second step replica 2 has half a batch, and replica 3 has no batch.
enum { EXAMPLES = 26, BATCH = 4, WIDTH = 3, REPLICAS = 4, STEPS = 2 };
enum { LARGE = 30011 }; // elements: the values of four replicas span several chunks

static float examples[EXAMPLES][WIDTH];

static int fill_examples(void **state)
{
    (void)state;
    for (int i = 0; i < EXAMPLES; i++)
        for (int j = 0; j < WIDTH; j++)
            examples[i][j] = (float)(i / BATCH + 1);
    return 0;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field field = {"x", {BEL_DTYPE_F32, BEL_SHAPE(EXAMPLES, WIDTH), examples}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// --- The model -----------------------------------------------------------------------------------

static bel_value *variable(bel_graph *g, const char *name, int64_t elements, double start,
                           bel_variable_kind kind)
{
    const bel_initializer initializer = {.kind = BEL_INIT_CONSTANT, .value = start};
    return bel_variable(g, name, &BEL_SHAPE(elements), initializer, kind);
}

// In each step, replica r adds r + 1 to its variable if it has examples.
static bel_value *counted(bel_graph *g, const char *name, int64_t elements, bel_variable_kind kind)
{
    bel_value *v = variable(g, name, elements, 0, kind);
    bel_value *id = bel_cast(g, bel_replica_id(g), BEL_DTYPE_F32);
    bel_value *more = bel_add(g, id, bel_scalar(g, BEL_DTYPE_F32, 1));
    bel_assign_state(g, v, bel_add(g, v, more));
    return v;
}

static bel_value *tensor(bel_graph *g, int64_t elements, float value)
{
    return bel_mul(g, variable(g, "ones", elements, 1, BEL_VARIABLE_FROZEN),
                   bel_scalar(g, BEL_DTYPE_F32, (double)value));
}

// In training with "kind" shared, the same names are variables that all replicas share.
static void add_shared(bel_graph *g)
{
    static const char *const names[] = {"mean", "sum", "first"};
    for (int i = 0; i < 3; i++)
        bel_assign_state(g, variable(g, names[i], WIDTH, 0, BEL_VARIABLE_STATE_MEAN),
                         tensor(g, WIDTH, 6));
}

static void add_own(bel_graph *g, bel_value *x)
{
    counted(g, "mean", WIDTH, BEL_VARIABLE_REPLICA_MEAN);
    bel_value *sum = counted(g, "sum", WIDTH, BEL_VARIABLE_REPLICA_SUM);
    counted(g, "first", WIDTH, BEL_VARIABLE_REPLICA_FIRST);
    counted(g, "large", LARGE, BEL_VARIABLE_REPLICA_MEAN);
    variable(g, "never", WIDTH, 0.5, BEL_VARIABLE_REPLICA_SUM);
    bel_assign_state(g, variable(g, "batch", WIDTH, 0, BEL_VARIABLE_STATE_FIRST),
                     bel_reduce_mean(g, x, (const int64_t[]){0}, 1, false));
    bel_assign_state(g, variable(g, "of all", WIDTH, 0, BEL_VARIABLE_STATE_FIRST),
                     bel_variable_aggregate(g, sum));
}

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const char *kind = bel_context_param(context, "kind", "");
    const char *reads = bel_context_param(context, "reads", "");
    bel_value *x = bel_context_only_feature(context);
    bool trains = bel_context_mode(context) == BEL_MODE_TRAIN;
    bel_value *w = variable(g, "w", WIDTH, 0, BEL_VARIABLE_TRAINABLE);
    if (strcmp(kind, "shared") == 0) {
        add_shared(g);
    } else {
        add_own(g, x);
    }
    if (strcmp(kind, "apart") == 0 || strcmp(reads, "apart") == 0)
        counted(g, "apart", WIDTH, BEL_VARIABLE_REPLICA);
    bel_loss_set(spec, bel_mean(g, bel_mul(g, x, w)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = 1});
    bel_predictions_set(spec, x);
    if (trains || reads[0] == '\0') return NULL;
    static const struct {
        const char *name;
        bel_variable_kind kind;
    } read[] = {{"mean", BEL_VARIABLE_REPLICA_MEAN},
                {"sum", BEL_VARIABLE_REPLICA_SUM},
                {"first", BEL_VARIABLE_REPLICA_FIRST},
                {"never", BEL_VARIABLE_REPLICA_SUM}};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        if (strcmp(read[i].name, reads) != 0) continue;
        bel_value *v = variable(g, reads, WIDTH, 0, read[i].kind);
        bel_value *again = bel_variable_aggregate(g, v); // the value that is read in any case
        bel_predictions_set(
            spec, bel_add(g, bel_mul(g, x, bel_scalar(g, BEL_DTYPE_F32, 0)),
                          bel_mul(g, bel_add(g, v, again), bel_scalar(g, BEL_DTYPE_F32, 0.5))));
    }
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

// Assignment of replicas to workers and towers.
typedef struct deal {
    int workers, shards, towers; // towers: of each worker; 0: 1, 2 and 1 of three workers
    int turns;                   // in all workers together
    bel_aggregation mode;
} deal;

static const deal four = {1, 1, REPLICAS, 0, BEL_AGGREGATE_SYNC};

static bel_estimator *make(const char *folder, deal d, const char *kind, const char *reads)
{
    static const int uneven[] = {1, 2, 1};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_workers = d.workers;
    config.parameter_server_count = d.shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_gpus = d.towers > 0 ? d.towers : 1;
    if (d.towers == 0) config.towers_of = uneven;
    config.replicas_to_aggregate = d.turns;
    config.mode = d.mode;
    config.report = false;
    config.allow_changes = true;
    const bel_param params[] = {{"kind", kind}, {"reads", reads}};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, params, 2, &estimator));
    return estimator;
}

static bel_status *train(const char *folder, deal d, const char *kind, const char *warm,
                         int64_t steps, char *out_digest)
{
    bel_estimator *estimator = make(folder, d, kind, "");
    static const char *const names[] = {"mean", "sum", "first"};
    bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .max_steps = steps};
    if (warm != NULL)
        spec.warm_start =
            (bel_warm_start){.checkpoint = warm, .variables = names, .variable_count = 3};
    bel_result result = {.size = sizeof result};
    bel_status *status = bel_train(estimator, &spec, &result);
    if (out_digest != NULL) memcpy(out_digest, result.digest, sizeof result.digest);
    bel_estimator_destroy(estimator);
    return status;
}

static char *new_folder(void)
{
    static int count;
    return bel_strf("%s/%d", bel_test_own_folder(), count++);
}

// Expects the first element of each row; all elements of a row must be equal.
static void expect_rows(const char *folder, const char *name, int rows, int64_t elements,
                        const double *expected)
{
    bel_checkpoint *checkpoint;
    float *values = bel_xcalloc((size_t)(rows * elements), sizeof *values);
    BEL_ASSERT_OK(bel_checkpoint_open(folder, &checkpoint));
    BEL_ASSERT_OK(
        bel_checkpoint_read(checkpoint, name, values, (size_t)(rows * elements) * sizeof *values));
    bel_checkpoint_close(checkpoint);
    for (int64_t i = 0; i < rows * elements; i++) {
        if ((double)values[i] == expected[i / elements]) continue;
        fail_msg("%s of replica %d, element %d: got %g, expected %g", name, (int)(i / elements),
                 (int)(i % elements), (double)values[i], expected[i / elements]);
    }
    bel_free(values);
}

#define EXPECT(folder, name, elements, ...)                                                        \
    expect_rows(folder, name, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), elements,   \
                (const double[]){__VA_ARGS__})

// --- Kinds ---------------------------------------------------------------------------------------

enum { NO = -1 };

static void test_kinds(void **state)
{
    (void)state;
    // By trainable, synchronization (AUTO, NONE, ON_WRITE, ON_READ) and aggregation (NONE, SUM,
    // MEAN, ONLY_FIRST_REPLICA).
    static const int kinds[2][4][4] = {{{BEL_VARIABLE_FROZEN, BEL_VARIABLE_STATE_SUM,
                                         BEL_VARIABLE_STATE_MEAN, BEL_VARIABLE_STATE_FIRST},
                                        {BEL_VARIABLE_REPLICA, NO, NO, NO},
                                        {BEL_VARIABLE_FROZEN, BEL_VARIABLE_STATE_SUM,
                                         BEL_VARIABLE_STATE_MEAN, BEL_VARIABLE_STATE_FIRST},
                                        {BEL_VARIABLE_REPLICA, BEL_VARIABLE_REPLICA_SUM,
                                         BEL_VARIABLE_REPLICA_MEAN, BEL_VARIABLE_REPLICA_FIRST}},
                                       {{BEL_VARIABLE_TRAINABLE, NO, BEL_VARIABLE_TRAINABLE, NO},
                                        {NO, NO, NO, NO},
                                        {BEL_VARIABLE_TRAINABLE, NO, BEL_VARIABLE_TRAINABLE, NO},
                                        {NO, NO, NO, NO}}};
    for (int i = 0; i < 32; i++) {
        int trainable = i / 16, s = i / 4 % 4, a = i % 4;
        bel_variable_kind kind;
        bel_status *status = bel_variable_kind_of(trainable == 1, (bel_variable_synchronization)s,
                                                  (bel_variable_aggregation)a, &kind);
        if (kinds[trainable][s][a] == NO) {
            assert_int_equal(bel_status_code(status), BEL_INVALID_ARGUMENT);
            bel_status_destroy(status);
        } else {
            BEL_ASSERT_OK(status);
            assert_int_equal(kind, kinds[trainable][s][a]);
        }
    }
}

// --- Values of replicas --------------------------------------------------------------------------

// The values after both steps.
static void expect_all(const char *folder)
{
    EXPECT(folder, "mean", WIDTH, 2, 4, 6, 4);
    EXPECT(folder, "sum", WIDTH, 2, 4, 6, 4);
    EXPECT(folder, "first", WIDTH, 2, 4, 6, 4);
    EXPECT(folder, "apart", WIDTH, 2, 4, 6, 4);
    EXPECT(folder, "large", LARGE, 2, 4, 6, 4);
    EXPECT(folder, "never", WIDTH, 0.5, 0.5, 0.5, 0.5);
    EXPECT(folder, "batch", WIDTH, 5); // the fifth batch is replica 0's
    EXPECT(folder, "of all", WIDTH, 10);
}

static void test_deals(void **state)
{
    (void)state;
    static const deal deals[] = {
        {1, 1, 4, 0, BEL_AGGREGATE_SYNC}, {1, 1, 2, 2, BEL_AGGREGATE_SYNC},
        {1, 1, 1, 4, BEL_AGGREGATE_SYNC}, {2, 1, 2, 0, BEL_AGGREGATE_SYNC},
        {4, 3, 1, 0, BEL_AGGREGATE_SYNC}, {3, 2, 0, 0, BEL_AGGREGATE_SYNC},
        {2, 2, 1, 4, BEL_AGGREGATE_SYNC}, {2, 2, 2, 0, BEL_AGGREGATE_SYNC}};
    char first[BEL_RESULT_TEXT], digest[BEL_RESULT_TEXT];
    for (size_t i = 0; i < sizeof deals / sizeof deals[0]; i++) {
        char *folder = new_folder();
        BEL_ASSERT_OK(train(folder, deals[i], "apart", NULL, STEPS, digest));
        expect_all(folder);
        if (i == 0) memcpy(first, digest, sizeof first);
        assert_string_equal(digest, first);
        bel_free(folder);
    }
}

// A finished run resumes from its checkpoint.
static void test_goes_on(void **state)
{
    (void)state;
    char *whole = new_folder(), *halves = new_folder();
    char one[BEL_RESULT_TEXT], other[BEL_RESULT_TEXT];
    BEL_ASSERT_OK(train(whole, four, "apart", NULL, STEPS, one));
    BEL_ASSERT_OK(train(halves, four, "apart", NULL, 1, NULL));
    BEL_ASSERT_OK(
        train(halves, (deal){2, 2, 2, 0, BEL_AGGREGATE_SYNC}, "apart", NULL, STEPS, other));
    expect_all(halves);
    assert_string_equal(one, other);
    bel_free(whole);
    bel_free(halves);
}

// --- Values that others read ---------------------------------------------------------------------

static bel_status *take(void *user, int64_t example, const bel_row *rows, int count)
{
    (void)example, (void)count;
    memcpy(user, rows[0].value.data, WIDTH * sizeof(float));
    return NULL;
}

static bel_status *read_by(const char *folder, deal d, const char *reads, float *out)
{
    bel_estimator *estimator = make(folder, d, "", reads);
    bel_status *status = bel_predict(estimator, input, NULL, NULL, take, out);
    bel_estimator_destroy(estimator);
    return status;
}

static void test_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double expected;
    } reads[] = {{"mean", 4}, {"sum", 16}, {"first", 2}, {"never", 2}};
    static const deal readers[] = {{1, 1, 1, 0, BEL_AGGREGATE_SYNC},
                                   {1, 1, 4, 0, BEL_AGGREGATE_SYNC}};
    char *folder = new_folder();
    float got[WIDTH];
    BEL_ASSERT_OK(train(folder, four, "", NULL, STEPS, NULL));
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++)
        for (int d = 0; d < 2; d++) {
            BEL_ASSERT_OK(read_by(folder, readers[d], reads[i].name, got));
            for (int j = 0; j < WIDTH; j++)
                assert_true((double)got[j] == reads[i].expected);
        }
    BEL_ASSERT_FAILS(read_by(folder, four, "apart", got), BEL_FAILED_PRECONDITION,
                     "variable \"apart\": each of 4 replicas has a separate value");
    bel_free(folder);
}

// --- Another number of replicas ------------------------------------------------------------------

static void test_other_replicas(void **state)
{
    (void)state;
    const deal two = {1, 2, 2, 0, BEL_AGGREGATE_SYNC};
    char *folder = new_folder();
    BEL_ASSERT_OK(train(folder, four, "", NULL, 1, NULL)); // 1, 2, 3, 4
    BEL_ASSERT_OK(train(folder, two, "", NULL, 2, NULL));
    EXPECT(folder, "mean", WIDTH, 3.5, 4.5);
    EXPECT(folder, "sum", WIDTH, 6, 7);
    EXPECT(folder, "first", WIDTH, 2, 3);
    EXPECT(folder, "large", LARGE, 3.5, 4.5);
    EXPECT(folder, "never", WIDTH, 1, 1);
    bel_free(folder);
    folder = new_folder();
    BEL_ASSERT_OK(train(folder, four, "apart", NULL, 1, NULL));
    BEL_ASSERT_FAILS(train(folder, two, "apart", NULL, 2, NULL), BEL_FAILED_PRECONDITION,
                     "variable \"apart\" has a value for each of 4 replicas");
    bel_free(folder);
}

static void test_warm_start(void **state)
{
    (void)state;
    char *shared = new_folder(), *folder = new_folder();
    BEL_ASSERT_OK(train(shared, four, "shared", NULL, 1, NULL));
    BEL_ASSERT_OK(train(folder, four, "", shared, 1, NULL));
    EXPECT(folder, "mean", WIDTH, 7, 8, 9, 10);
    EXPECT(folder, "sum", WIDTH, 2.5, 3.5, 4.5, 5.5);
    EXPECT(folder, "first", WIDTH, 7, 8, 9, 10);
    char *next = new_folder(); // from three times the number of values, and from the same number
    BEL_ASSERT_OK(train(next, (deal){1, 1, 2, 0, BEL_AGGREGATE_SYNC}, "", folder, 1, NULL));
    EXPECT(next, "mean", WIDTH, 9.5, 10.5);
    EXPECT(next, "sum", WIDTH, 9, 10);
    EXPECT(next, "first", WIDTH, 8, 9);
    bel_free(shared);
    bel_free(folder);
    bel_free(next);
}

// --- Refusals ------------------------------------------------------------------------------------

static void test_refused(void **state)
{
    (void)state;
    static const bel_aggregation modes[] = {BEL_AGGREGATE_ASYNC, BEL_AGGREGATE_BOUNDED};
    for (int i = 0; i < 2; i++) {
        char *folder = new_folder();
        BEL_ASSERT_FAILS(train(folder, (deal){2, 1, 2, 0, modes[i]}, "", NULL, 1, NULL),
                         BEL_UNIMPLEMENTED, "variable \"mean\": each replica of a step");
        bel_free(folder);
    }
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_graph *g = bel_graph_create();
    bel_value *v = bel_variable(g, "v", &BEL_SHAPE(2), zeros, BEL_VARIABLE_REPLICA_MEAN);
    assert_ptr_equal(bel_variable(g, "v", &BEL_SHAPE(2), zeros, BEL_VARIABLE_REPLICA_MEAN), v);
    assert_ptr_equal(bel_variable_aggregate(g, v), v); // with one replica
    assert_null(bel_variable(g, "v", &BEL_SHAPE(3), zeros, BEL_VARIABLE_REPLICA_MEAN));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, "has shape [2]");
    bel_graph_destroy(g);
    g = bel_graph_create();
    assert_null(bel_variable_aggregate(g, bel_scalar(g, BEL_DTYPE_F32, 1)));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, "only a variable can be aggregated");
    bel_graph_destroy(g);
    g = bel_graph_create();
    assert_null(
        bel_variable(g, "v", &BEL_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), zeros, BEL_VARIABLE_REPLICA_SUM));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, "expected at most 7 axes");
    bel_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        BEL_TEST_IN_FOLDER(test_deals),
        BEL_TEST_IN_FOLDER(test_goes_on),
        BEL_TEST_IN_FOLDER(test_read),
        BEL_TEST_IN_FOLDER(test_other_replicas),
        BEL_TEST_IN_FOLDER(test_warm_start),
        BEL_TEST_IN_FOLDER(test_refused),
    };
    return cmocka_run_group_tests(tests, fill_examples, NULL);
}
