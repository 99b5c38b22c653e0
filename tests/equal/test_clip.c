// Tests of gradients that are clipped before the mean: by hand, beside clipping after it, and with
// the same bits however replicas are assigned. label: threads
#include <math.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { REPLICAS = 4 };

// A replica's gradients are its record: the first number for `left`, the other two for `right`.
static float records[REPLICAS][3] = {{3, 0, 4}, {1, 2, -2}, {-6, 0.5f, 0}, {0.25f, 30, 40}};
static bel_optimizer optimizer;

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    const bel_memory_field field = {"x", {BEL_DTYPE_F32, BEL_SHAPE(REPLICAS, 3), records}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_batch(*out_dataset, 1);
    return NULL;
}

static bel_value *part(bel_graph *g, bel_value *x, const char *name, int64_t first, int64_t end)
{
    bel_value *w = bel_variable(g, name, &BEL_SHAPE(end - first),
                                (bel_initializer){.kind = BEL_INIT_ZEROS}, BEL_VARIABLE_TRAINABLE);
    bel_value *columns = bel_slice(g, x, (const int64_t[]){1}, &first, &end, NULL, 1);
    return bel_reduce_sum(g, bel_mul(g, columns, w), NULL, 0, false);
}

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context);
    bel_loss_set(spec, bel_add(g, part(g, x, "left", 0, 1), part(g, x, "right", 1, 3)));
    optimizer.size = sizeof optimizer;
    bel_optimizer_use(spec, NULL, &optimizer);
    return NULL;
}

// Writes the negated change of each number in one step: the averaged gradient.
static void train(int workers, int shards, int turns, double out[3], char *digest)
{
    static int count;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_strf("%s/%d", bel_test_own_folder(), count++);
    config.model_dir = folder;
    config.num_workers = workers;
    config.parameter_server_count = shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_gpus = turns > 0 ? 1 : REPLICAS / workers;
    config.replicas_to_aggregate = turns;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &result));
    bel_estimator_destroy(estimator);
    bel_checkpoint *checkpoint;
    float left[1], right[2];
    BEL_ASSERT_OK(bel_checkpoint_open(folder, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, "left", left, sizeof left));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, "right", right, sizeof right));
    bel_checkpoint_close(checkpoint);
    out[0] = -(double)left[0];
    out[1] = -(double)right[0];
    out[2] = -(double)right[1];
    memcpy(digest, result.digest, BEL_RESULT_TEXT);
    bel_free(folder);
}

static double clamp(double x, double limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static double factor(double norm, double limit)
{
    return limit > 0 && norm > limit ? limit / norm : 1;
}

// Clips a gradient by the optimizer's bounds.
static void clip(double g[3])
{
    for (int i = 0; i < 3 && optimizer.clip_value > 0; i++)
        g[i] = clamp(g[i], optimizer.clip_value);
    double left = fabs(g[0]), right = sqrt(g[1] * g[1] + g[2] * g[2]);
    double all = factor(sqrt(left * left + right * right), optimizer.clip_global_norm);
    g[0] *= factor(left, optimizer.clip_norm) * all;
    g[1] *= factor(right, optimizer.clip_norm) * all;
    g[2] *= factor(right, optimizer.clip_norm) * all;
}

static void expect(double expected[3])
{
    for (int i = 0; i < 3; i++)
        expected[i] = 0;
    for (int r = 0; r < REPLICAS; r++) {
        double g[3] = {(double)records[r][0], (double)records[r][1], (double)records[r][2]};
        if (optimizer.clip_each_replica) clip(g);
        for (int i = 0; i < 3; i++)
            expected[i] += g[i] / REPLICAS;
    }
    if (!optimizer.clip_each_replica) clip(expected);
}

static void test_clipping(void **state)
{
    (void)state;
    static const bel_optimizer cases[] = {
        {.clip_value = 2},
        {.clip_norm = 2.5},
        {.clip_global_norm = 5},
        {.clip_value = 3, .clip_norm = 3.5},
        {.clip_value = 5, .clip_global_norm = 4},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        optimizer = cases[i / 2];
        optimizer.kind = BEL_OPTIMIZER_SGD;
        optimizer.learning_rate = 1;
        optimizer.clip_each_replica = i % 2 == 1;
        double got[3], expected[3], other[3];
        char digest[BEL_RESULT_TEXT], again[BEL_RESULT_TEXT];
        train(1, 1, 0, got, digest);
        expect(expected);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(got[k] - expected[k]) < 1e-6);
        train(2, 2, 0, other, again);
        assert_string_equal(again, digest);
        train(4, 1, 0, other, again);
        assert_string_equal(again, digest);
        train(1, 1, REPLICAS, other, again);
        assert_string_equal(again, digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(test_clipping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
