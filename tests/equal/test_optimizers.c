// Tests of several optimizers in one model. Each variable is trained as if its optimizer were the
// only one, in every deal, over checkpoints, and beside rules that keep more slots or pass twice.
// label: threads
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { STEPS = 12, CLASSES = 10, PIXELS = 64 };

static int64_t batch = 16;

static const bel_optimizer sgd = {
    .size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
static const bel_optimizer momentum = {
    .size = sizeof momentum, .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.05};
static const bel_optimizer adam = {
    .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.01};
static const bel_optimizer lamb = {
    .size = sizeof lamb, .kind = BEL_OPTIMIZER_LAMB, .learning_rate = 0.02, .weight_decay = 0.01};
static const bel_optimizer clipped = {.size = sizeof clipped,
                                      .kind = BEL_OPTIMIZER_ADAGRAD,
                                      .learning_rate = 0.05,
                                      .clip_norm = 0.05};
static const bel_optimizer averaged = {.size = sizeof averaged,
                                       .kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.01,
                                       .moving_average_decay = 0.9};

// Optimizer that the model function returns.
static bel_optimizer main_optimizer;
static bel_optimizer part_optimizer;
static const char *part_variables; // NULL: there is no part
static int part_uses = 1;

// Two independent parts, each with the result that it has without the other.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context), *labels = bel_context_labels(context);
    bel_value *left = bel_dense(g, x, CLASSES, "left"), *right = bel_dense(g, x, CLASSES, "right");
    bel_predictions_set(spec, left);
    bel_loss_set(spec, bel_add(g, bel_mean(g, bel_softmax_cross_entropy(g, left, labels)),
                               bel_mean(g, bel_softmax_cross_entropy(g, right, labels))));
    bel_optimizer_use(spec, NULL, &main_optimizer);
    for (int i = 0; i < part_uses && part_variables != NULL; i++)
        bel_optimizer_use(spec, part_variables, &part_optimizer);
    return NULL;
}

static bel_status *train(const char *name, int workers, int shards, int64_t steps,
                         bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), name);
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_gpus = 2 / workers;
    config.parameter_server_count = shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = steps};
    bel_status *status = bel_train(estimator, &spec, out_result);
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return status;
}

static void set(const bel_optimizer *main, const char *variables, const bel_optimizer *own)
{
    main_optimizer = *main;
    part_variables = variables;
    if (variables != NULL) part_optimizer = *own;
}

static void read(const char *folder, const char *name, float *out)
{
    char *full = bel_path_join(bel_test_own_folder(), folder);
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(full, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, out, PIXELS * CLASSES * sizeof *out));
    bel_checkpoint_close(checkpoint);
    bel_free(full);
}

static void expect_same(const char *folder, const char *other, const char *name)
{
    static float a[PIXELS * CLASSES], b[PIXELS * CLASSES];
    read(folder, name, a);
    read(other, name, b);
    if (memcmp(a, b, sizeof a) != 0) fail_msg("%s of %s and %s", name, folder, other);
}

static bool has(const char *folder, const char *name)
{
    char *full = bel_path_join(bel_test_own_folder(), folder);
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(full, &checkpoint));
    bool found = bel_checkpoint_find(checkpoint, name) >= 0;
    bel_checkpoint_close(checkpoint);
    bel_free(full);
    return found;
}

// --- Each as if it were the only one -------------------------------------------------------------

static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const bel_optimizer *left, *right;
    } pairs[] = {{"adam-sgd", &adam, &sgd},           {"sgd-adam", &sgd, &adam},
                 {"momentum-lamb", &momentum, &lamb}, {"lamb-momentum", &lamb, &momentum},
                 {"clipped-lamb", &clipped, &lamb},   {"adam-clipped", &adam, &clipped}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char names[5][40];
        const char *kinds[] = {"left", "right", "both", "dealt", "resumed"};
        bel_result both = {.size = sizeof both}, dealt = {.size = sizeof dealt},
                   resumed = {.size = sizeof resumed};
        for (int k = 0; k < 5; k++)
            snprintf(names[k], sizeof names[k], "%s-%s", pairs[i].name, kinds[k]);
        set(pairs[i].left, NULL, NULL);
        BEL_ASSERT_OK(train(names[0], 1, 1, STEPS, NULL));
        set(pairs[i].right, NULL, NULL);
        BEL_ASSERT_OK(train(names[1], 1, 1, STEPS, NULL));
        set(pairs[i].left, "right/*", pairs[i].right);
        BEL_ASSERT_OK(train(names[2], 1, 1, STEPS, &both));
        expect_same(names[2], names[0], "left/kernel");
        expect_same(names[2], names[1], "right/kernel");
        BEL_ASSERT_OK(train(names[3], 2, 3, STEPS, &dealt));
        assert_string_equal(dealt.digest, both.digest);
        BEL_ASSERT_OK(train(names[4], 2, 1, STEPS / 2, NULL));
        BEL_ASSERT_OK(train(names[4], 1, 2, STEPS, &resumed));
        assert_string_equal(resumed.digest, both.digest);
    }
    assert_true(has("adam-sgd-both", "left/kernel/adam/m"));
    assert_false(has("adam-sgd-both", "right/kernel/adam/m"));
    assert_true(has("sgd-adam-both", "right/kernel/adam/v"));
    // Other settings of a part mean another training.
    bel_optimizer faster = sgd;
    faster.learning_rate = 0.2;
    set(&adam, "right/*", &faster);
    BEL_ASSERT_FAILS(train("adam-sgd-both", 1, 1, STEPS + 1, NULL), BEL_FAILED_PRECONDITION,
                     "right/*: learning_rate");
}

// Averages, and the bound of all gradients together, belong to the main optimizer.
static void test_shared(void **state)
{
    (void)state;
    bel_result one = {.size = sizeof one}, two = {.size = sizeof two};
    set(&averaged, "right/*", &sgd);
    BEL_ASSERT_OK(train("averages", 1, 1, STEPS, &one));
    BEL_ASSERT_OK(train("averages-dealt", 2, 2, STEPS, &two));
    assert_string_equal(one.digest, two.digest);
    assert_true(has("averages", "right/kernel/average"));
    bel_optimizer bounded = adam;
    bounded.clip_global_norm = 0.1;
    set(&bounded, "right/*", &momentum);
    BEL_ASSERT_OK(train("bounded", 1, 1, STEPS, &one));
    BEL_ASSERT_OK(train("bounded-dealt", 2, 2, STEPS, &two));
    assert_string_equal(one.digest, two.digest);
    set(&adam, "right/*", &momentum);
    BEL_ASSERT_OK(train("free", 1, 1, STEPS, &two));
    assert_string_not_equal(one.digest, two.digest);
}

static void test_refused(void **state)
{
    (void)state;
    bel_optimizer bounded = adam, wrong = sgd;
    bounded.clip_global_norm = 1;
    wrong.learning_rate = -1;
    const struct {
        const bel_optimizer *main, *own;
        const char *variables, *text;
    } rows[] = {
        {&adam, &averaged, "right/*", "moving averages and the mean of rows are the main"},
        {&adam, &bounded, "right/*", "optimizer of \"right/*\": clip_global_norm"},
        {&bounded, &lamb, "right/*", "variables \"right/*\": optimizer: lamb takes norms itself"},
        {&adam, &wrong, "right/*", "variables \"right/*\": optimizer: learning_rate"},
        {&adam, &sgd, "rihgt/*", "\"rihgt/*\" matches no trainable variable"},
        {&adam, &sgd, "", "each of 1 to 63 bytes, got \"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set(rows[i].main, rows[i].variables, rows[i].own);
        BEL_ASSERT_FAILS(train("refused", 1, 1, 1, NULL), BEL_INVALID_ARGUMENT, rows[i].text);
    }
    set(&adam, "right/*", &sgd);
    part_uses = BEL_MAX_OPTIMIZER_PARTS + 1;
    BEL_ASSERT_FAILS(train("refused", 1, 1, 1, NULL), BEL_INVALID_ARGUMENT, "up to 4");
    part_uses = 1;
    part_optimizer.size = 1;
    BEL_ASSERT_FAILS(train("refused", 1, 1, 1, NULL), BEL_INVALID_ARGUMENT,
                     "size must be sizeof(bel_optimizer), got 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(test_pairs),
                                       BEL_TEST_IN_FOLDER(test_shared),
                                       BEL_TEST_IN_FOLDER(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
