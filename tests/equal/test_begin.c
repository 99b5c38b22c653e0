// Tests of the start of a run, in several deals: warm starts with patterns and other names, a
// function of the program's, and checkpoints read by programs. label: threads
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { UNITS = 8, CLASSES = 10, PIXELS = 64 };

static int64_t batch = 16;

// "first" and "second" are the layers' names.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context);
    const char *first = bel_context_param(context, "first", "body/first");
    bel_value *h = bel_tanh(g, bel_dense(g, x, UNITS, first));
    h = bel_batch_norm(g, h, bel_context_mode(context) == BEL_MODE_TRAIN, "body/norm");
    bel_value *logits = bel_dense(g, h, CLASSES, "logits"), *labels = bel_context_labels(context);
    bel_predictions_set(spec, bel_softmax(g, logits));
    if (labels != NULL) {
        bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, logits, labels)));
        bel_metric_accuracy(context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
    }
    bool ftrl = strcmp(bel_context_param(context, "first", ""), "body/ftrl") == 0;
    const bel_optimizer optimizer = {.size = sizeof optimizer,
                                     .kind = ftrl ? BEL_OPTIMIZER_FTRL : BEL_OPTIMIZER_ADAM,
                                     .learning_rate = 0.01,
                                     .moving_average_decay = 0.5};
    bel_optimizer_use(spec, NULL, &optimizer);
    return NULL;
}

static char *path(const char *name)
{
    return bel_path_join(bel_test_own_folder(), name);
}

// Trains `steps` more in folder `name`.
static bel_status *train(const char *name, bel_train_spec spec, const char *first, int workers,
                         int shards, bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = path(name);
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_gpus = 2 / workers;
    config.parameter_server_count = shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.report = false;
    const bel_param param = {"first", first};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, &param, first != NULL, &estimator));
    spec.input_fn = bel_test_digits_input;
    spec.input_user = &batch;
    if (spec.max_steps == 0) spec.max_steps = 3;
    bel_status *status = bel_train(estimator, &spec, out_result);
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return status;
}

static void read(const char *folder, const char *name, float *out, size_t count)
{
    char *full = path(folder);
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(full, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, out, count * sizeof *out));
    bel_checkpoint_close(checkpoint);
    bel_free(full);
}

static void expect(const char *folder, const char *name, const char *other, const char *there,
                   size_t count, bool same)
{
    float *a = bel_xcalloc(count, sizeof *a), *b = bel_xcalloc(count, sizeof *b);
    read(folder, name, a, count);
    read(other, there, b, count);
    bool equal = memcmp(a, b, count * sizeof *a) == 0;
    if (equal != same) fail_msg("%s of %s and %s of %s", name, folder, there, other);
    bel_free(a);
    bel_free(b);
}

// --- Warm starts ---------------------------------------------------------------------------------

static void test_warm_start(void **state)
{
    (void)state;
    bel_result taught = {.size = sizeof taught},
               deals[2] = {{.size = sizeof(bel_result)}, {.size = sizeof(bel_result)}};
    BEL_ASSERT_OK(train("taught", (bel_train_spec){.size = sizeof(bel_train_spec), .max_steps = 40},
                        NULL, 1, 1, &taught));
    char *from = path("taught");
    const bel_rename names[] = {{"body/*", "new/*"}, {"body/first/*", "new/first/*"}};
    static const char *const patterns[] = {"new/first/*", "body/*"};
    const bel_train_spec warm = {.size = sizeof warm,
                                 .warm_start = {.checkpoint = from,
                                                .variables = patterns,
                                                .variable_count = 2,
                                                .names = names,
                                                .name_count = 2}};
    for (int deal = 0; deal < 2; deal++) {
        const char *name = deal == 0 ? "warm" : "dealt";
        BEL_ASSERT_OK(train(name, warm, "new/first", 1 + deal, 1 + 2 * deal, &deals[deal]));
    }
    assert_string_equal(deals[0].digest, deals[1].digest);
    expect("warm/ckpt-00000000", "new/first/kernel", "taught", "body/first/kernel", PIXELS * UNITS,
           true);
    expect("warm/ckpt-00000000", "new/first/kernel/average", "taught", "body/first/kernel",
           PIXELS * UNITS, true); // averages begin equal to the values
    expect("warm/ckpt-00000000", "body/norm/mean", "taught", "body/norm/mean", UNITS, true);
    expect("warm/ckpt-00000000", "logits/kernel", "taught", "logits/kernel", UNITS * CLASSES,
           false);
    expect("warm/ckpt-00000000", "logits/kernel", "taught/ckpt-00000000", "logits/kernel",
           UNITS * CLASSES, true); // begins as without a warm start
    // All variables, as moving averages. A resumed run keeps its values.
    const bel_train_spec all = {.size = sizeof all,
                                .warm_start = {.checkpoint = from, .averages = true}};
    BEL_ASSERT_OK(train("all", all, NULL, 1, 1, NULL));
    expect("all/ckpt-00000000", "logits/kernel", "taught", "logits/kernel/average", UNITS * CLASSES,
           true);
    bel_result again = {.size = sizeof again}, more = {.size = sizeof more};
    BEL_ASSERT_OK(train("warm", warm, "new/first", 1, 1, &again));
    assert_string_equal(again.digest, deals[0].digest);
    const bel_train_spec cold = {.size = sizeof cold, .max_steps = 6};
    BEL_ASSERT_OK(train("warm", cold, "new/first", 1, 1, &more));
    assert_int_equal(more.global_step, 6);
    bel_free(from);
}

static void test_wrong_warm_starts(void **state)
{
    (void)state;
    BEL_ASSERT_OK(train("taught", (bel_train_spec){.size = sizeof(bel_train_spec), .max_steps = 2},
                        NULL, 1, 1, NULL));
    char *from = path("taught"), *nowhere = path("nowhere");
    const bel_rename wrong = {"body/first/kernel", "new/kernel"};
    const bel_rename one_side[] = {{"body/first/kernel", "body/*"}, {"body/*", "logits/bias"}};
    static const char *const none[] = {"logit/*"};
    const struct {
        bel_warm_start warm;
        const char *first;
        bel_code code;
        const char *part;
    } rows[] = {
        {{.checkpoint = nowhere}, NULL, BEL_NOT_FOUND, "contains none"},
        {{.checkpoint = from},
         "body/furst",
         BEL_NOT_FOUND,
         "has no variable \"body/furst/kernel\" for \"body/furst/kernel\"; did you mean "
         "\"body/first/kernel\"?"},
        {{.checkpoint = from},
         "body/ftrl",
         BEL_INVALID_ARGUMENT,
         "ftrl would replace the values of \"body/ftrl/kernel\""},
        {{.checkpoint = from, .variables = none, .variable_count = 1},
         NULL,
         BEL_INVALID_ARGUMENT,
         "\"logit/*\" matches no variable"},
        {{.checkpoint = from, .names = &wrong, .name_count = 1},
         NULL,
         BEL_INVALID_ARGUMENT,
         "\"new/kernel\" is to be read from \"body/first/kernel\", but the model has no such"},
        {{.checkpoint = from, .names = &one_side[0], .name_count = 1},
         NULL,
         BEL_INVALID_ARGUMENT,
         "\"body/*\" is to be read from \"body/first/kernel\": both must end with a *, or neither"},
        {{.checkpoint = from, .names = &one_side[1], .name_count = 1},
         NULL,
         BEL_INVALID_ARGUMENT,
         "both must end with a *, or neither"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bel_train_spec spec = {.size = sizeof spec, .warm_start = rows[i].warm};
        bel_status *status = train("wrong", spec, rows[i].first, 1, 1, NULL);
        const char *said = strstr(bel_status_message(status), "warm start");
        assert_true(said != NULL && strstr(said + 1, "warm start") == NULL); // only once
        BEL_ASSERT_FAILS(status, rows[i].code, rows[i].part);
    }
    bel_free(from);
    bel_free(nowhere);
}

// --- A function of the program's -----------------------------------------------------------------

static bel_status *ones(void *user, const bel_estimator *estimator, const char *variable,
                        const bel_shape *shape, float *values)
{
    (void)estimator;
    const char *which = user;
    if (strcmp(variable, which) != 0) return NULL;
    for (int64_t i = 0; i < bel_shape_elements(shape); i++)
        values[i] = 1 + (float)i;
    return NULL;
}

static bel_status *nothing(void *user, const bel_estimator *estimator, const char *variable,
                           const bel_shape *shape, float *values)
{
    (void)user, (void)estimator, (void)variable, (void)shape;
    values[0] = NAN;
    return NULL;
}

static void test_function(void **state)
{
    (void)state;
    char which[] = "logits/bias";
    float bias[CLASSES];
    const bel_train_spec spec = {.size = sizeof spec, .init_fn = ones, .init_user = which};
    BEL_ASSERT_OK(train("filled", spec, NULL, 2, 2, NULL));
    read("filled/ckpt-00000000", "logits/bias", bias, CLASSES);
    for (int i = 0; i < CLASSES; i++)
        assert_true(bias[i] == (float)(1 + i));
    const bel_train_spec wrong = {.size = sizeof wrong, .init_fn = nothing};
    BEL_ASSERT_FAILS(train("empty", wrong, NULL, 1, 1, NULL), BEL_INVALID_ARGUMENT,
                     "initial values of \"body/first/kernel\": element 0 is not finite");
}

// --- Checkpoints ---------------------------------------------------------------------------------

static void test_checkpoint(void **state)
{
    (void)state;
    BEL_ASSERT_OK(train("run", (bel_train_spec){.size = sizeof(bel_train_spec), .max_steps = 2},
                        NULL, 1, 2, NULL));
    char *folder = path("run"), *none = path("none");
    bel_checkpoint *checkpoint;
    BEL_ASSERT_FAILS(bel_checkpoint_open(none, &checkpoint), BEL_NOT_FOUND, "none");
    BEL_ASSERT_OK(bel_checkpoint_open(folder, &checkpoint));
    assert_int_equal(bel_checkpoint_step(checkpoint), 2);
    assert_non_null(strstr(bel_checkpoint_folder(checkpoint), "run/ckpt-00000002"));
    assert_string_equal(bel_checkpoint_setting(checkpoint, "optimizer"), "adam");
    assert_null(bel_checkpoint_setting(checkpoint, "no such setting"));
    bool named = false;
    int settings = 0;
    for (const char *name; (name = bel_checkpoint_setting_name(checkpoint, settings)); settings++)
        named = named || strcmp(name, "optimizer") == 0;
    assert_true(named && settings > 1);
    assert_null(bel_checkpoint_setting_name(checkpoint, -1));
    const char *before = "";
    for (int i = 0; i < bel_checkpoint_count(checkpoint); i++) {
        const char *name;
        bel_checkpoint_tensor(checkpoint, i, &name, NULL, NULL);
        assert_true(strcmp(before, name) < 0);
        assert_int_equal(bel_checkpoint_find(checkpoint, name), i);
        before = name;
    }
    int at = bel_checkpoint_find(checkpoint, "logits/kernel/adam/m");
    assert_true(at >= 0);
    bel_dtype dtype;
    bel_shape shape;
    bel_checkpoint_tensor(checkpoint, at, NULL, &dtype, &shape);
    assert_int_equal(dtype, BEL_DTYPE_F32);
    assert_true(shape.rank == 2 && shape.dims[0] == UNITS && shape.dims[1] == CLASSES);
    assert_int_equal(bel_checkpoint_find(checkpoint, "logits"), -1);
    float few[2];
    BEL_ASSERT_FAILS(bel_checkpoint_read(checkpoint, "logits", few, sizeof few), BEL_NOT_FOUND,
                     "has no tensor \"logits\"");
    BEL_ASSERT_FAILS(bel_checkpoint_read(checkpoint, "logits/bias", few, sizeof few),
                     BEL_INVALID_ARGUMENT, "has 40 bytes, there is room for 8");
    bel_checkpoint_close(checkpoint);
    bel_checkpoint_close(NULL);
    // A file of it is missing: opened by its folder it is damaged; in the model's folder it is
    // skipped.
    char *newest = path("run/ckpt-00000002"), **files;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(newest, &files, &count));
    for (size_t i = 0; i < count; i++) {
        if (strstr(files[i], ".safetensors") == NULL) continue;
        char *file = bel_path_join(newest, files[i]);
        assert_int_equal(remove(file), 0);
        BEL_ASSERT_FAILS(bel_checkpoint_open(newest, &checkpoint), BEL_DATA_LOSS, file);
        bel_free(file);
        break;
    }
    bel_dir_names_free(files, count);
    BEL_ASSERT_OK(bel_checkpoint_open(folder, &checkpoint));
    assert_int_equal(bel_checkpoint_step(checkpoint), 0);
    bel_checkpoint_close(checkpoint);
    bel_free(newest);
    bel_free(folder);
    bel_free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_warm_start), BEL_TEST_IN_FOLDER(test_wrong_warm_starts),
        BEL_TEST_IN_FOLDER(test_function), BEL_TEST_IN_FOLDER(test_checkpoint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
