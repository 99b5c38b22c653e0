// Tests of training with tables. The bits are the same for every assignment of replicas, every
// number of shards and threads, and in two parts. The numbers are those of a dense variable that is
// gathered from. Evaluation and prediction see the trained rows. The same holds for bags: examples
// with several ids or none. label: threads
#include <math.h>
#include <stdio.h>

#include "belfry/estimator.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"
#include "support/bel_test.h"

enum { RECORDS = 640, FIELDS = 3, KEYS = 50, WIDTH = 5, BATCH = 8, STEPS = 60, MOST = 4 };

static int64_t ids[RECORDS][FIELDS];
static int64_t bags[RECORDS][MOST]; // the first 0 … MOST of them are ids
static float weights[RECORDS][MOST];
static float numbers[RECORDS][2];
static int64_t labels[RECORDS];

// The label depends only on the ids, so only rows can predict it.
static void make_records(void)
{
    for (int i = 0; i < RECORDS; i++) {
        for (int f = 0; f < FIELDS; f++)
            ids[i][f] = (int64_t)((i * 7919 + f * 104729) % 1009 % KEYS);
        for (int f = 0; f < MOST; f++) {
            bags[i][f] = f < i % (MOST + 1) ? (int64_t)((i * 31 + f * 7) % KEYS) : BEL_NO_ID;
            weights[i][f] = 0.5f + (float)((i + f) % 3);
        }
        numbers[i][0] = (float)(i % 17) / 17.0f;
        numbers[i][1] = (float)(i % 5) / 5.0f;
        labels[i] = ids[i][0] % 2;
    }
}

// `user`: NULL, or other ids.
static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator;
    int64_t *own = user != NULL ? user : &ids[0][0];
    const bel_memory_field fields[] = {
        {"ids", {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(RECORDS, FIELDS), .data = own}},
        {"x", {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(RECORDS, 2), .data = numbers}},
        {"bags", {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(RECORDS, MOST), .data = bags}},
        {"weights", {.dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(RECORDS, MOST), .data = weights}},
        {"label", {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(RECORDS), .data = labels}}};
    bel_dataset *data = bel_dataset_from_memory(fields, 5);
    if (mode == BEL_MODE_TRAIN) {
        bel_dataset_shuffle(data, 0, 3);
        bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    }
    bel_dataset_batch(data, BATCH);
    *out_dataset = data;
    return NULL;
}

// Combines the rows of an example's bag of ids. With "dense" the table is a variable of KEYS rows.
static bel_value *look_into_bags(bel_model_context *context, bool dense)
{
    bel_graph *g = bel_context_graph(context);
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *i = bel_context_feature(context, "bags");
    bel_value *w = bel_context_feature(context, "weights");
    if (!dense) return bel_embedding_bag(g, "table", i, w, WIDTH, zeros, BEL_COMBINE_MEAN);
    bel_shape shape = BEL_SHAPE(KEYS, WIDTH);
    bel_value *table = bel_variable(g, "table", &shape, zeros, BEL_VARIABLE_TRAINABLE);
    return bel_gather_bag(g, table, i, w, BEL_COMBINE_MEAN);
}

// With "dense" the table is a variable of KEYS rows. Two lookups share it.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const char *optimizer = bel_context_param(context, "optimizer", "adagrad");
    bool dense = strcmp(bel_context_param(context, "table", "sparse"), "dense") == 0;
    bool bagged = strcmp(bel_context_param(context, "ids", "fixed"), "bags") == 0;
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_initializer uniform = {.kind = BEL_INIT_UNIFORM, .value = 0.1};
    bel_value *x = bel_context_feature(context, "x"), *i = bel_context_feature(context, "ids");
    bel_value *rows, *again;
    if (bagged) {
        rows = again = look_into_bags(context, dense);
    } else if (dense) {
        bel_shape shape = BEL_SHAPE(KEYS, WIDTH);
        bel_value *table = bel_variable(g, "table", &shape, zeros, BEL_VARIABLE_TRAINABLE);
        rows = again = bel_gather(g, table, i);
    } else {
        rows = bel_embedding(g, "table", i, WIDTH, zeros);
        again = bel_embedding(g, "table", i, WIDTH, zeros);
        if (strcmp(bel_context_param(context, "start", "zeros"), "uniform") == 0) {
            rows = bel_embedding(g, "other", i, WIDTH, uniform);
        }
    }
    bel_shape flat = BEL_SHAPE(BEL_DIM_BATCH, (bagged ? 1 : FIELDS) * WIDTH);
    bel_value *both = bel_add(g, bel_dense(g, bel_reshape(g, rows, &flat), 8, "one"),
                              bel_dense(g, bel_reshape(g, again, &flat), 8, "two"));
    bel_value *hidden = bel_relu(g, bel_add(g, both, bel_dense(g, x, 8, "three")));
    bel_value *logits = bel_dense(g, hidden, 2, "logits");
    bel_predictions_set(spec, bel_softmax(g, logits));
    bel_value *label = bel_context_labels(context);
    if (label != NULL) {
        bel_value *losses = bel_softmax_cross_entropy(g, logits, label);
        bel_loss_set(spec, bel_mean(g, losses));
        bel_metric_accuracy(context, spec, "accuracy", label, bel_arg_max(g, logits, 1), NULL);
    }
    bel_optimizer used = {.size = sizeof used,
                          .kind = BEL_OPTIMIZER_ADAGRAD,
                          .learning_rate = 0.2,
                          .lr_mults = {{"table", 0.5}}};
    if (strcmp(optimizer, "sgd") == 0) used.kind = BEL_OPTIMIZER_SGD;
    if (strcmp(optimizer, "momentum") == 0) used.kind = BEL_OPTIMIZER_MOMENTUM;
    if (strcmp(optimizer, "clip") == 0) used.clip_global_norm = 1;
    const char *mean = bel_context_param(context, "mean", "replicas");
    used.mean_by_contributors = strcmp(mean, "contributors") == 0;
    if (strcmp(mean, "doubled") == 0) used.lr_mults[0].factor = 1;
    bel_optimizer_use(spec, NULL, &used);
    return NULL;
}

typedef struct topology {
    int workers;
    int towers[4];
    int shards;
    int threads;
    int aggregate;
} topology;

// bel_run_config
static int64_t admit_after = 1, expire_after;
static double expire_below;
static bool allow_changes;

static bel_estimator *create(const topology *t, const char *folder, const bel_param *params,
                             int count)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.num_workers = t->workers;
    config.towers_of = t->towers;
    config.parameter_server_count = t->shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_threads = t->threads;
    config.replicas_to_aggregate = t->aggregate;
    config.save_checkpoints_steps = 25;
    config.table_admit_after = admit_after;
    config.table_expire_after = expire_after;
    config.table_expire_below = expire_below;
    config.allow_changes = allow_changes;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, params, count, &estimator));
    return estimator;
}

static bel_result train(const topology *t, const char *folder, int64_t steps,
                        const bel_param *params, int count)
{
    bel_estimator *estimator = create(t, folder, params, count);
    bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .max_steps = steps};
    bel_eval_spec eval = {.size = sizeof eval, .input_fn = input};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &spec, &eval, 1, &result));
    bel_estimator_destroy(estimator);
    return result;
}

static const topology base = {1, {4}, 1, 1, 0};
static const bel_param uniform[] = {{"start", "uniform"}};

static void same_bits_for_every_topology(void **state)
{
    (void)state;
    const topology others[] = {
        {2, {2, 2}, 1, 1, 0}, {4, {1, 1, 1, 1}, 3, 1, 0}, {2, {3, 1}, 2, 1, 0}, {1, {4}, 3, 2, 0},
        {2, {1, 3}, 1, 1, 0}, {2, {1, 1}, 2, 1, 4},       {1, {1}, 2, 1, 4}};
    char *folder = bel_test_folder();
    bel_result expected = train(&base, folder, STEPS, uniform, 1);
    bel_test_remove_folder(folder);
    assert_true(expected.metrics[0].value > 0.8); // it has learnt from ids
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        folder = bel_test_folder();
        bel_result got = train(&others[i], folder, STEPS, uniform, 1);
        assert_string_equal(got.digest, expected.digest);
        assert_true(got.loss == expected.loss);
        bel_test_remove_folder(folder);
    }
}

static void same_bits_in_two_parts(void **state)
{
    (void)state;
    const topology other = {2, {2, 2}, 3, 1, 0};
    char *whole = bel_test_folder(), *parts = bel_test_folder();
    bel_result expected = train(&base, whole, STEPS, uniform, 1);
    train(&base, parts, 31, uniform, 1);
    bel_result got = train(&other, parts, STEPS, uniform, 1);
    assert_string_equal(got.digest, expected.digest);
    bel_test_remove_folder(whole);
    bel_test_remove_folder(parts);
}

// Half of the records have separate ids, which are named once in an epoch, at a random step.
static int64_t (*make_rare_ids(void))[FIELDS]
{
    static int64_t rare[RECORDS][FIELDS];
    memcpy(rare, ids, sizeof rare);
    for (int i = 0; i < RECORDS; i += 2)
        rare[i][1] = rare[i][2] = 1000 + i;
    return rare;
}

static bel_result live(const topology *t, const char *folder, int64_t steps)
{
    bel_estimator *estimator = create(t, folder, uniform, 1);
    bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = make_rare_ids(), .max_steps = steps};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &result));
    bel_estimator_destroy(estimator);
    return result;
}

static int64_t rows_of(const char *folder, const char *table)
{
    bel_ckpt_reader *reader;
    int64_t rows = 0, found = -1;
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    for (int i = 0; i < bel_ckpt_table_count(reader) && found < 0; i++)
        if (strcmp(bel_ckpt_table_at(reader, i, &rows).name, table) == 0) found = rows;
    bel_ckpt_close(reader);
    return found;
}

// Rows that come and go: the same bits for every topology, in one part and in two.
static void rows_live_the_same_for_every_topology(void **state)
{
    (void)state;
    const topology others[] = {
        {4, {1, 1, 1, 1}, 3, 1, 0}, {2, {3, 1}, 2, 2, 0}, {2, {1, 1}, 2, 1, 4}};
    static const struct {
        int64_t admit, expire;
        double below;
    } lives[] = {{2, 0, 0}, {1, 17, 0}, {3, 17, 0}, {1, 17, 0.1}};
    int64_t expired_only = 0; // rows that the second life leaves
    for (size_t l = 0; l < (BEL_TEST_RACES ? 2 : sizeof lives / sizeof lives[0]); l++) {
        admit_after = lives[l].admit;
        expire_after = lives[l].expire;
        expire_below = lives[l].below;
        char *folder = bel_test_folder(), *parts = bel_test_folder();
        bel_result expected = live(&base, folder, STEPS);
        int64_t rows = rows_of(folder, "table"), waiting = rows_of(folder, "table/uses");
        assert_true(rows >= KEYS && rows <= KEYS + RECORDS / 2);
        if (expire_after > 0) assert_true(rows < KEYS + RECORDS / 2); // some have expired
        assert_int_equal(rows_of(folder, "table/age"), expire_after > 0 ? rows : -1);
        if (l == 1) expired_only = rows;
        if (l == 3) assert_true(rows < expired_only); // small ones have gone before
        if (admit_after == 3 || expire_after == 0) assert_true(waiting >= 0);
        if (admit_after == 3) assert_true(waiting > 0);
        if (admit_after == 1) assert_int_equal(waiting, -1);
        live(&base, parts, 31);
        bel_result got = live(&others[l % 3], parts, STEPS);
        assert_string_equal(got.digest, expected.digest);
        bel_test_remove_folder(folder);
        bel_test_remove_folder(parts);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            folder = bel_test_folder();
            got = live(&others[i], folder, STEPS);
            assert_string_equal(got.digest, expected.digest);
            bel_test_remove_folder(folder);
        }
    }
    admit_after = 1;
    expire_after = 0;
    expire_below = 0;
}

// A resume with another life needs allow_changes. Rows then stay, and ages begin at its step.
static void another_life_is_another_training(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    live(&base, folder, 20);
    int64_t rows = rows_of(folder, "table");
    admit_after = 2;
    expire_after = 30;
    bel_estimator *estimator = create(&base, folder, uniform, 1);
    bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = make_rare_ids(), .max_steps = 40};
    BEL_ASSERT_FAILS(bel_train(estimator, &spec, NULL), BEL_FAILED_PRECONDITION,
                     "table_admit_after was not set and is 2; table_expire_after was not set and");
    bel_estimator_destroy(estimator);
    allow_changes = true;
    live(&base, folder, 40);
    assert_int_equal(rows_of(folder, "table"), rows);
    allow_changes = false;
    admit_after = 1;
    expire_after = 0;
    bel_test_remove_folder(folder);
}

// Equal ids are added in another order than in a dense gradient, so the numbers are only close.
static void same_numbers_as_a_dense_variable(void **state)
{
    (void)state;
    const char *const optimizers[] = {"sgd", "adagrad"};
    for (size_t o = 0; o < 2; o++) {
        const bel_param sparse[] = {{"optimizer", optimizers[o]}, {"table", "sparse"}};
        const bel_param dense[] = {{"optimizer", optimizers[o]}, {"table", "dense"}};
        char *one = bel_test_folder(), *other = bel_test_folder();
        bel_result a = train(&base, one, STEPS, sparse, 2),
                   b = train(&base, other, STEPS, dense, 2);
        assert_true(fabs(a.loss - b.loss) < 1e-4 * b.loss);
        assert_true(a.loss < 0.69); // better than a guess
        bel_test_remove_folder(one);
        bel_test_remove_folder(other);
    }
}

// Each id is in one replica's batch. So the mean over its contributors is the gradient itself, and
// the mean over both replicas is half of it.
static void mean_over_contributors(void **state)
{
    (void)state;
    static int64_t distinct[RECORDS][FIELDS];
    for (int i = 0; i < RECORDS * FIELDS; i++)
        (&distinct[0][0])[i] = i;
    const topology two = {2, {1, 1}, 2, 1, 0};
    const char *const means[] = {"contributors", "doubled", "replicas"};
    bel_result results[3] = {
        {.size = sizeof(bel_result)}, {.size = sizeof(bel_result)}, {.size = sizeof(bel_result)}};
    for (int m = 0; m < 3; m++) {
        const bel_param params[] = {{"optimizer", "sgd"}, {"mean", means[m]}};
        char *folder = bel_test_folder();
        bel_estimator *estimator = create(&two, folder, params, 2);
        bel_train_spec spec = {
            .size = sizeof spec, .input_fn = input, .input_user = distinct, .max_steps = 3};
        BEL_ASSERT_OK(bel_train(estimator, &spec, &results[m]));
        bel_estimator_destroy(estimator);
        bel_test_remove_folder(folder);
    }
    assert_string_equal(results[0].digest, results[1].digest);
    assert_string_not_equal(results[0].digest, results[2].digest);
}

static void contributors_give_the_same_bits_for_every_topology(void **state)
{
    (void)state;
    const topology others[] = {{4, {1, 1, 1, 1}, 3, 1, 0}, {2, {3, 1}, 2, 2, 0}, {1, {1}, 2, 1, 4}};
    const bel_param params[] = {{"start", "uniform"}, {"mean", "contributors"}};
    char *folder = bel_test_folder();
    bel_result expected = train(&base, folder, STEPS, params, 2);
    bel_test_remove_folder(folder);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        folder = bel_test_folder();
        bel_result got = train(&others[i], folder, STEPS, params, 2);
        assert_string_equal(got.digest, expected.digest);
        bel_test_remove_folder(folder);
    }
    // A single replica is its only contributor.
    const topology alone = {1, {1}, 1, 1, 0};
    char *one = bel_test_folder(), *other = bel_test_folder();
    bel_result a = train(&alone, one, STEPS, params, 2), b = train(&alone, other, STEPS, params, 1);
    assert_string_equal(a.digest, b.digest);
    bel_test_remove_folder(one);
    bel_test_remove_folder(other);
}

// Number of rows that a checkpoint has in the one table.
static int64_t saved_rows(const char *folder)
{
    bel_ckpt_reader *reader;
    int64_t rows;
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    assert_int_equal(bel_ckpt_table_count(reader), 1);
    bel_ckpt_table_at(reader, 0, &rows);
    bel_ckpt_close(reader);
    return rows;
}

// The same bits for every topology, the numbers of a dense variable, and no rows for invalid ids.
static void bags_of_ids(void **state)
{
    (void)state;
    const topology others[] = {
        {4, {1, 1, 1, 1}, 3, 1, 0}, {2, {3, 1}, 2, 2, 0}, {2, {1, 1}, 2, 1, 4}};
    const bel_param sparse[] = {{"ids", "bags"}, {"table", "sparse"}};
    const bel_param dense[] = {{"ids", "bags"}, {"table", "dense"}};
    char *folder = bel_test_folder();
    bel_result expected = train(&base, folder, STEPS, sparse, 2);
    assert_int_equal(saved_rows(folder), KEYS);
    bel_test_remove_folder(folder);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        folder = bel_test_folder();
        bel_result got = train(&others[i], folder, STEPS, sparse, 2);
        assert_string_equal(got.digest, expected.digest);
        assert_true(got.loss == expected.loss);
        bel_test_remove_folder(folder);
    }
    folder = bel_test_folder();
    bel_result same = train(&base, folder, STEPS, dense, 2);
    assert_true(fabs(same.loss - expected.loss) < 1e-4 * same.loss);
    bel_test_remove_folder(folder);
}

static bel_status *keep_row(void *context, int64_t n, const int64_t *keys,
                            const float *const *columns)
{
    float(*rows)[WIDTH] = context;
    for (int64_t i = 0; i < n; i++)
        memcpy(rows[keys[i]], columns[0] + i * WIDTH, WIDTH * sizeof(float));
    return NULL;
}

// Reads rows of a table by key; NaN for absent ones.
static void read_rows(const char *folder, const char *table, float out[KEYS][WIDTH])
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_any(folder, &reader));
    for (int i = 0; i < KEYS * WIDTH; i++)
        (&out[0][0])[i] = NAN;
    const bel_ckpt_row_sink sink = {.take = keep_row, .context = out};
    BEL_ASSERT_OK(bel_ckpt_read_rows(reader, table, WIDTH, &sink));
    bel_ckpt_close(reader);
}

static bel_status *begin_warm(const topology *t, const char *folder, const bel_warm_start *warm,
                              bel_result *out_result)
{
    bel_estimator *estimator = create(t, folder, uniform, 1);
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .max_steps = 20, .warm_start = *warm};
    bel_status *status = bel_train(estimator, &spec, out_result);
    bel_estimator_destroy(estimator);
    return status;
}

// "table" begins as "other" of another training, and "other" anew, for any numbers of shards.
static void warm_starts_take_rows(void **state)
{
    (void)state;
    const topology topologies[] = {
        {1, {4}, 1, 1, 0}, {2, {2, 2}, 3, 1, 0}, {4, {1, 1, 1, 1}, 2, 1, 0}};
    const bel_rename names[] = {{"other", "table"}};
    static const char *const patterns[] = {"ta*", "one/*"}, *const wrong[] = {"*"};
    char *from = bel_test_folder();
    expire_after = 1000; // ages are beside the tables there, and are not taken
    train(&topologies[1], from, STEPS, uniform, 1);
    expire_after = 0;
    bel_warm_start warm = {.checkpoint = from,
                           .variables = patterns,
                           .variable_count = 2,
                           .names = names,
                           .name_count = 1};
    float before[KEYS][WIDTH], after[KEYS][WIDTH];
    bel_result results[3] = {
        {.size = sizeof(bel_result)}, {.size = sizeof(bel_result)}, {.size = sizeof(bel_result)}};
    read_rows(from, "other", before);
    assert_true(isfinite(before[0][0]) != 0);
    for (int i = 0; i < 3; i++) {
        char *folder = bel_test_folder(), first[256];
        BEL_ASSERT_OK(begin_warm(&topologies[i], folder, &warm, &results[i]));
        assert_string_equal(results[i].digest, results[0].digest);
        snprintf(first, sizeof first, "%s/ckpt-00000000", folder);
        read_rows(first, "table", after);
        assert_memory_equal(after, before, sizeof after);
        read_rows(first, "other", after);
        assert_true(isnan(after[0][0]) != 0);
        bel_test_remove_folder(folder);
    }
    char *folder = bel_test_folder();
    bel_result cold = train(&base, folder, 20, uniform, 1);
    assert_string_not_equal(cold.digest, results[0].digest);
    bel_test_remove_folder(folder);
    folder = bel_test_folder();
    const bel_rename spelt[] = {{"otter", "table"}};
    warm.names = spelt;
    warm.variables = wrong;
    warm.variable_count = 1;
    BEL_ASSERT_FAILS(begin_warm(&base, folder, &warm, NULL), BEL_NOT_FOUND,
                     "has no table \"otter\" for \"table\"; did you mean \"other\"?");
    const bel_rename ages[] = {{"other/ages", "table"}};
    warm.names = ages;
    BEL_ASSERT_FAILS(begin_warm(&base, folder, &warm, NULL), BEL_NOT_FOUND,
                     "has no table \"other/ages\" for \"table\"; did you mean \"other\"?");
    bel_test_remove_folder(folder);
    bel_test_remove_folder(from);
}

static bel_status *add_up(void *user, int64_t example, const bel_row *rows, int count)
{
    double *right = user;
    const float *shares = rows[0].value.data;
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].name, "predictions");
    *right += (shares[1] > shares[0]) == (labels[example] == 1);
    return NULL;
}

static void evaluation_and_prediction_see_the_rows(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    bel_result trained = train(&base, folder, STEPS, uniform, 1), result = {.size = sizeof result};
    bel_estimator *estimator = create(&base, folder, uniform, 1);
    bel_eval_spec eval = {.size = sizeof eval, .input_fn = input};
    BEL_ASSERT_OK(bel_evaluate(estimator, &eval, NULL, &result));
    assert_true(result.loss == trained.loss);
    assert_string_equal(result.digest, trained.digest);
    double right = 0;
    BEL_ASSERT_OK(bel_predict(estimator, input, NULL, NULL, add_up, &right));
    assert_true(right / RECORDS == result.metrics[0].value);
    bel_estimator_destroy(estimator);
    bel_test_remove_folder(folder);
}

static void what_tables_cannot_do_is_refused(void **state)
{
    (void)state;
    const bel_param momentum[] = {{"optimizer", "momentum"}}, clip[] = {{"optimizer", "clip"}};
    const struct {
        const bel_param *param;
        const char *text;
    } cases[] = {{momentum, "momentum"}, {clip, "clip_global_norm"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *folder = bel_test_folder();
        bel_estimator *estimator = create(&base, folder, cases[i].param, 1);
        bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .max_steps = 1};
        BEL_ASSERT_FAILS(bel_train(estimator, &spec, NULL), BEL_INVALID_ARGUMENT, cases[i].text);
        bel_estimator_destroy(estimator);
        bel_test_remove_folder(folder);
    }
}

int main(void)
{
    make_records();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_every_topology),
        cmocka_unit_test(same_bits_in_two_parts),
        cmocka_unit_test(rows_live_the_same_for_every_topology),
        cmocka_unit_test(another_life_is_another_training),
        cmocka_unit_test(same_numbers_as_a_dense_variable),
        cmocka_unit_test(mean_over_contributors),
        cmocka_unit_test(contributors_give_the_same_bits_for_every_topology),
        cmocka_unit_test(bags_of_ids),
        cmocka_unit_test(warm_starts_take_rows),
        cmocka_unit_test(evaluation_and_prediction_see_the_rows),
        cmocka_unit_test(what_tables_cannot_do_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
