// Tests of exported models. Each of Belfry's models is trained for some steps, exported, and loaded
// by a predictor, which must give the bits of bel_predict on the same batches.
// tests/onnx/exported.sh runs the same files in another runtime.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "belfry/predictor.h"
#include "checkpoint/safetensors.h"
#include "columns/transform.h"
#include "support/bel_test.h"
#include "support/digits.h"
#include "support/examples.h"

enum { BATCH = 12, STEPS = 5 };

static int64_t together = BATCH; // batch size of predictions

// --- Data ----------------------------------------------------------------------------------------

static bel_test_examples data;

static int make_data(void **state)
{
    (void)state;
    bel_test_examples_make(&data);
    return 0;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator;
    const bool *has_ids = user;
    *out_dataset = bel_test_examples_dataset(&data, RECORDS, *has_ids);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, mode == BEL_MODE_TRAIN ? BATCH : together);
    return NULL;
}

static bel_estimator *train(const char *model, const bel_param *params, int param_count,
                            bool has_ids, double averages)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_strf("%s/%s", bel_test_own_folder(), model);
    config.model_dir = folder;
    config.report = false;
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    bel_param all[16] = {{"model", model}, {"learning_rate", "0.01"}};
    int count = 2;
    char decay[32];
    for (int p = 0; p < param_count; p++)
        all[count++] = params[p];
    if (averages > 0) {
        snprintf(decay, sizeof decay, "%g", averages);
        all[count++] = (bel_param){"moving_average_decay", decay};
    }
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find(model)->model_fn, &config, all, count, &estimator));
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &has_ids, .max_steps = STEPS};
    BEL_ASSERT_OK(bel_train(estimator, &spec, NULL));
    bel_free(folder);
    return estimator;
}

// --- Keys ----------------------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

typedef struct key_list {
    int64_t *keys;
    int64_t count;
} key_list;

// Reads the keys of an input, from signature.json and weights.safetensors.
static key_list read_keys(const char *folder, const char *name)
{
    char *path = bel_path_join(folder, "signature.json"), *text;
    size_t size;
    bel_json *json;
    key_list list = {.keys = NULL};
    BEL_ASSERT_OK(bel_file_read(path, &text, &size));
    BEL_ASSERT_OK(bel_json_parse(text, size, path, &json));
    const bel_json_value *inputs = bel_json_member(bel_json_root(json), "inputs");
    const char *keys = NULL, *called;
    for (size_t i = 0; i < bel_json_length(inputs); i++) {
        const bel_json_value *one = bel_json_at(inputs, i);
        assert_true(bel_json_string(one, "name", &called));
        if (strcmp(called, name) != 0) continue;
        assert_true(bel_json_string(one, "keys", &keys));
        assert_true(bel_json_i64(one, "key_count", &list.count));
    }
    assert_non_null(keys);
    bel_free(path);
    path = bel_path_join(folder, "weights.safetensors");
    bel_arena *arena = bel_arena_create();
    bel_safetensors_list tensors;
    bel_disk_file file;
    BEL_ASSERT_OK(bel_disk_file_open(path, &file));
    BEL_ASSERT_OK(bel_safetensors_read_header(&file, arena, &tensors));
    const bel_safetensors_entry *entry = bel_safetensors_find(&tensors, keys);
    assert_non_null(entry);
    assert_int_equal(entry->size_bytes, (uint64_t)list.count * 8);
    list.keys = bel_xcalloc((size_t)list.count, 8);
    BEL_ASSERT_OK(bel_disk_file_read(&file, entry->offset, list.keys, (size_t)entry->size_bytes));
    bel_disk_file_close(&file);
    bel_arena_destroy(arena);
    bel_json_destroy(json);
    bel_free(text);
    bel_free(path);
    return list;
}

// Writes the places of keys; BEL_NO_ID stays.
static void to_places(const key_list *list, const int64_t *from, int64_t count, int64_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t *found =
            bsearch(&from[i], list->keys, (size_t)list->count, sizeof *from, compare);
        out[i] = from[i] == BEL_NO_ID ? BEL_NO_ID
                 : found == NULL      ? list->count
                                      : found - list->keys;
    }
}

// --- Comparing -----------------------------------------------------------------------------------

static bel_status *keep_row(void *user, int64_t example, const bel_row *rows, int count)
{
    float(*kept)[CLASSES] = user;
    assert_true(count > 0);
    memcpy(kept[example], rows[0].value.data, sizeof kept[example]);
    return NULL;
}

static void bind(bel_predictor *predictor, const char *name, const bel_tensor *tensor)
{
    int input_number = bel_predictor_find_input(predictor, name);
    assert_true(input_number >= 0);
    BEL_ASSERT_OK(bel_predictor_bind(predictor, input_number, tensor));
}

// `places`: the inputs are places of ids, not ids.
static void assert_same_predictions(bel_estimator *estimator, const char *folder, bool has_ids,
                                    bool places_asked)
{
    static float want[RECORDS][CLASSES];
    static int64_t places[BATCH][IDS], list_places[BATCH][LISTS][MOST];
    key_list of_ids = {.keys = NULL}, of_lists = {.keys = NULL};
    bel_predictor *predictor;
    BEL_ASSERT_OK(bel_predict(estimator, input, &has_ids, NULL, keep_row, want));
    BEL_ASSERT_OK(bel_predictor_load(folder, NULL, &predictor));
    assert_int_equal(bel_predictor_step(predictor), STEPS);
    if (has_ids && places_asked) {
        of_ids = read_keys(folder, "ids");
        of_lists = read_keys(folder, "id_lists");
        assert_true(of_ids.count > IDS);
        assert_int_equal(of_ids.count, of_lists.count); // tables that share ids share keys
    }
    for (int64_t first = 0; first < RECORDS; first += together) {
        bind(predictor, "x",
             &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(together, SIZE), data.images[first]});
        if (has_ids) {
            memcpy(places, data.ids[first], (size_t)together * sizeof places[0]);
            memcpy(list_places, data.lists[first], (size_t)together * sizeof list_places[0]);
            if (places_asked) {
                to_places(&of_ids, data.ids[first], together * IDS, places[0]);
                to_places(&of_lists, data.lists[first][0], together * LISTS * MOST,
                          list_places[0][0]);
            }
            bind(predictor, "ids", &(bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(together, IDS), places});
            bind(predictor, "id_lists",
                 &(bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(together, LISTS, MOST), list_places});
            bind(predictor, "id_weights",
                 &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(together, LISTS, MOST),
                               data.weights[first]});
        }
        BEL_ASSERT_OK(bel_predictor_run(predictor));
        const bel_tensor got = bel_predictor_output(predictor, 0);
        assert_int_equal(bel_shape_elements(&got.shape), together * CLASSES);
        assert_memory_equal(got.data, want[first], (size_t)together * sizeof want[0]);
    }
    bel_predictor_destroy(predictor);
    bel_free(of_ids.keys);
    bel_free(of_lists.keys);
}

// --- Tests ---------------------------------------------------------------------------------------

static const struct {
    const char *model;
    bel_param params[3];
    int param_count;
    bool has_ids;
    double averages;
} models[] = {
    {"linear", {{NULL, NULL}}, 0, false, 0},
    {"dnn", {{"hidden_units", "32,16"}, {"dropout", "0.3"}}, 2, false, 0.9},
    {"cnn", {{"filters", "4,8"}, {"dense_units", "16"}}, 2, false, 0},
    {"resnet", {{"blocks", "1"}, {"width", "4"}}, 2, false, 0.5},
    {"gru", {{"recurrent_units", "12"}, {"sequence_width", "8"}}, 2, false, 0},
    {"lstm", {{"recurrent_units", "12,7"}, {"sequence_width", "8"}}, 2, false, 0},
    {"wide_deep", {{"hidden_units", "16"}, {"id_list_combiner", "sqrtn"}}, 2, true, 0},
};

static void test_every_model_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        bel_estimator *estimator = train(models[m].model, models[m].params, models[m].param_count,
                                         models[m].has_ids, models[m].averages);
        for (int way = 0; way < 3; way++) {
            const bel_export_options options = {
                .size = sizeof options, .external_data = way == 1, .inline_tables = way == 2};
            char *folder = bel_strf("%s/%s-exported", bel_test_own_folder(), models[m].model);
            BEL_ASSERT_OK(bel_export(estimator, NULL, &options, folder));
            for (together = 1; together <= BATCH; together += BATCH - 1)
                assert_same_predictions(estimator, folder, models[m].has_ids, way < 2);
            together = BATCH;
            bel_free(folder);
        }
        bel_estimator_destroy(estimator);
    }
}

// Weights that are read while the model runs, from the model's file and from a separate one.
static void test_stages(void **state)
{
    (void)state;
    static float want[BATCH][CLASSES];
    const bel_param params[] = {{"hidden_units", "40,40,40,40"}};
    bel_estimator *estimator = train("dnn", params, 1, false, 0);
    char *folder = bel_path_join(bel_test_own_folder(), "exported");
    for (int apart = 0; apart < 2; apart++) {
        const bel_export_options options = {.size = sizeof options, .external_data = apart == 1};
        BEL_ASSERT_OK(bel_export(estimator, NULL, &options, folder));
        for (int memory = 0; memory <= 28; memory += 14) { // KB; the largest matrix has 10
            const bel_predictor_options how = {.size = sizeof how,
                                               .stage_memory = (size_t)memory << 10};
            bel_predictor *predictor;
            BEL_ASSERT_OK(bel_predictor_load(folder, &how, &predictor));
            bind(predictor, "x", &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(BATCH, SIZE), data.images});
            if (memory == 14) {
                BEL_ASSERT_FAILS(bel_predictor_run(predictor), BEL_RESOURCE_EXHAUSTED,
                                 "hint: a memory of");
                bel_predictor_destroy(predictor);
                continue;
            }
            for (int run = 0; run < 3; run++) {
                BEL_ASSERT_OK(bel_predictor_run(predictor));
                const bel_tensor got = bel_predictor_output(predictor, 0);
                if (memory == 0 && apart == 0) memcpy(want, got.data, sizeof want);
                assert_memory_equal(got.data, want, sizeof want);
            }
            bel_predictor_destroy(predictor);
        }
    }
    bel_estimator_destroy(estimator);
    bel_free(folder);
}

// --- Numbers as files have them ------------------------------------------------------------------

enum { DIGITS = 359 };

static bel_status *keep_digit(void *user, int64_t example, const bel_row *rows, int count)
{
    (void)count;
    memcpy((float *)user + example * CLASSES, rows[0].value.data, CLASSES * sizeof(float));
    return NULL;
}

// The input multiplies the CSV file's numbers by 1/16, and the exported model accepts the numbers
// of the file. The label is the last column.
static void test_scales_are_in_the_model(void **state)
{
    (void)state;
    static float raw[DIGITS][SIZE], want[DIGITS][CLASSES];
    int64_t batch = DIGITS;
    bel_run_config config;
    bel_result result = {.size = sizeof result};
    char *text, *at;
    size_t size;
    bel_run_config_init(&config, sizeof config);
    config.report = false;
    BEL_ASSERT_OK(
        bel_test_digits_train(config, bel_test_own_folder(), 32, STEPS, NULL, 0, false, &result));
    BEL_ASSERT_OK(bel_file_read("examples/data/digits-eval.csv", &text, &size));
    at = strchr(text, '\n') + 1;
    for (int i = 0; i < DIGITS; i++)
        for (int p = 0; p <= SIZE; p++) {
            long value = strtol(at, &at, 10);
            at++; // after the comma or the end of the line
            if (p < SIZE) raw[i][p] = (float)value;
        }
    bel_free(text);
    config.model_dir = bel_test_own_folder();
    bel_estimator *estimator;
    bel_predictor *predictor;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, NULL, 0, &estimator));
    BEL_ASSERT_OK(bel_predict(estimator, bel_test_digits_input, &batch, NULL, keep_digit, want));
    char *folder = bel_path_join(bel_test_own_folder(), "exported");
    BEL_ASSERT_OK(bel_export(estimator, NULL, NULL, folder));
    BEL_ASSERT_OK(bel_predictor_load(folder, NULL, &predictor));
    bind(predictor, "x", &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(DIGITS, SIZE), raw});
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    assert_memory_equal(bel_predictor_output(predictor, 0).data, want, sizeof want);
    bel_predictor_destroy(predictor);
    bel_estimator_destroy(estimator);
    bel_free(folder);
}

// --- Tables --------------------------------------------------------------------------------------

enum { ROWS = 40 };

static const char description[] =
    "columns:\n"
    "  - {name: plain, kind: number, mean: 3.7, deviation: 1.9, indicator: true}\n"
    "  - {name: log, kind: number, scale: log, mean: 0.3, deviation: 1.1, fill: 0}\n"
    "  - {name: range, kind: number, scale: min_max, low: -2, high: 9, clip: 0.75, fill: 1}\n"
    "  - {name: size, kind: number, scale: buckets, bounds: [1, 2.5, 4], fill: 0}\n"
    "  - {name: raw, kind: number, scale: none, fill: 0.1}\n"
    "  - {name: color, kind: category, values: [red, green, blue], missing: value}\n"
    "  - {name: town, kind: category, values: [a, b, c], as: embedding}\n"
    "  - {name: code, kind: hash}\n"
    "  - {name: day, kind: date, parts: [time, month], mean: 1.5e9, deviation: 2e7}\n"
    "  - {name: y, kind: label, classes: [\"no\", \"yes\"]}\n";

static const char *const colors[] = {"red", "green", "blue", "", "gray"};
static const char *const towns[] = {"a", "b", "c", "elsewhere"};

typedef struct table_row {
    double numbers[5]; // NaN: missing
    int color, town, code, month;
} table_row;

static table_row row_at(int i)
{
    table_row row = {.color = i % 5, .town = i * 3 % 4, .code = i % 6, .month = i % 12};
    for (int n = 0; n < 5; n++)
        row.numbers[n] = (i + n) % 7 == 0 ? NAN : (double)((i * 37 + n * 11) % 101) * 0.17 - 3.1;
    return row;
}

static void write_table(const char *path)
{
    bel_str text = {0};
    bel_str_puts(&text, "plain,log,range,size,raw,color,town,code,day,y\n");
    for (int i = 0; i < ROWS; i++) {
        table_row row = row_at(i);
        for (int n = 0; n < 5; n++) {
            if (!isnan(row.numbers[n])) bel_str_printf(&text, "%.17g", row.numbers[n]);
            bel_str_puts(&text, ",");
        }
        bel_str_printf(&text, "%s,%s,k%d,2017-%02d-11,%s\n", colors[row.color], towns[row.town],
                       row.code, row.month + 1, i % 3 == 0 ? "yes" : "no");
    }
    BEL_ASSERT_OK(bel_file_write_atomic(path, text.text, text.length));
    bel_str_deinit(&text);
}

typedef struct table_input {
    const char *path;
    const bel_columns *columns;
} table_input;

static bel_status *open_table(void *user, const bel_estimator *estimator, bel_mode mode,
                              bel_dataset **out_dataset)
{
    (void)estimator;
    table_input *from = user;
    *out_dataset = bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                           .paths = &from->path,
                                                           .path_count = 1,
                                                           .table = from->columns});
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, ROWS);
    return NULL;
}

static bel_status *keep_two(void *user, int64_t example, const bel_row *rows, int count)
{
    (void)count;
    memcpy((float *)user + 2 * example, rows[0].value.data, 2 * sizeof(float));
    return NULL;
}

// Binds cells as an exported model accepts them; the description converts dates and hashes.
static void bind_table(bel_predictor *predictor, const bel_columns *columns, const char *folder)
{
    static const char *const names[] = {"plain", "log", "range", "size", "raw"};
    static double numbers[5][ROWS];
    static int64_t color[ROWS], town[ROWS], code[ROWS];
    static float day[ROWS][13], x[64];
    int64_t hashes[4], class_number;
    key_list keys = read_keys(folder, "code");
    const bel_column *dates = &columns->items[bel_columns_find(columns, "day")];
    const bel_column *codes = &columns->items[bel_columns_find(columns, "code")];
    for (int i = 0; i < ROWS; i++) {
        table_row row = row_at(i);
        char text[32];
        const bel_columns_block out = {.x = x, .ids = hashes, .class_number = &class_number};
        for (int n = 0; n < 5; n++)
            numbers[n][i] = row.numbers[n];
        color[i] = row.color == 4 ? -1 : row.color; // 3 is the missing value, after the others
        town[i] = row.town == 3 ? -1 : row.town;
        bel_columns_begin(columns, &out, 1);
        snprintf(text, sizeof text, "2017-%02d-11", row.month + 1);
        bel_cell cell = {text, strlen(text)};
        assert_int_equal(bel_columns_put(columns, dates, &cell, 1, &out), 0);
        memcpy(day[i], x + dates->x_place, sizeof day[i]);
        snprintf(text, sizeof text, "k%d", row.code);
        cell.length = strlen(text);
        assert_int_equal(bel_columns_put(columns, codes, &cell, 1, &out), 0);
        to_places(&keys, &hashes[codes->id_place], 1, &code[i]);
    }
    for (int n = 0; n < 5; n++)
        bind(predictor, names[n], &(bel_tensor){BEL_DTYPE_F64, BEL_SHAPE(ROWS), numbers[n]});
    bind(predictor, "color", &(bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(ROWS), color});
    bind(predictor, "town", &(bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(ROWS), town});
    bind(predictor, "code", &(bel_tensor){BEL_DTYPE_I64, BEL_SHAPE(ROWS), code});
    bind(predictor, "day", &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(ROWS, 13), day});
    bel_free(keys.keys);
}

static void test_columns_are_in_the_model(void **state)
{
    (void)state;
    static float want[ROWS][2];
    const bel_param params[] = {{"class_count", "2"}, {"hidden_units", "8"}};
    char *path = bel_path_join(bel_test_own_folder(), "table.csv");
    char *folder = bel_path_join(bel_test_own_folder(), "exported");
    table_input from = {.path = path};
    bel_columns *columns;
    bel_run_config config;
    bel_estimator *estimator;
    bel_predictor *predictor;
    write_table(path);
    BEL_ASSERT_OK(bel_columns_parse(description, "columns.yaml", &columns));
    from.columns = columns;
    bel_run_config_init(&config, sizeof config);
    config.report = false;
    config.model_dir = bel_test_own_folder();
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    BEL_ASSERT_OK(bel_estimator_create(bel_model_find("wide_deep")->model_fn, &config, params, 2,
                                       &estimator));
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = open_table, .input_user = &from, .max_steps = STEPS};
    BEL_ASSERT_OK(bel_train(estimator, &spec, NULL));
    BEL_ASSERT_OK(bel_predict(estimator, open_table, &from, NULL, keep_two, want));
    BEL_ASSERT_OK(bel_export(estimator, NULL, NULL, folder));
    BEL_ASSERT_OK(bel_predictor_load(folder, NULL, &predictor));
    assert_int_equal(bel_predictor_input_count(predictor), 9);
    bind_table(predictor, columns, folder);
    BEL_ASSERT_OK(bel_predictor_run(predictor));
    assert_memory_equal(bel_predictor_output(predictor, 0).data, want, sizeof want);
    bel_predictor_destroy(predictor);
    bel_estimator_destroy(estimator);
    bel_columns_destroy(columns);
    bel_free(path);
    bel_free(folder);
}

// --- Refusals ------------------------------------------------------------------------------------

// The graph of predictions contains random numbers, too.
static bel_status *drawing(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_feature(context, "x"), CLASSES, "logits");
    bel_value *labels_value = bel_context_labels(context);
    bel_predictions_set(spec, bel_dropout(g, logits, 0.5));
    if (labels_value != NULL)
        bel_loss_set(spec, bel_mean(g, bel_softmax_cross_entropy(g, logits, labels_value)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer), .learning_rate = 0.01});
    return NULL;
}

static void test_refusals(void **state)
{
    (void)state;
    bool has_ids = false;
    bel_estimator *estimator = train("linear", NULL, 0, false, 0);
    char *folder = bel_path_join(bel_test_own_folder(), "exported");
    char *other = bel_path_join(bel_test_own_folder(), "linear");
    const bel_export_options old = {.size = sizeof old, .opset = 12};
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, &old, folder), BEL_INVALID_ARGUMENT, "13 to 17");
    assert_false(bel_file_exists(folder));
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, NULL, other), BEL_ALREADY_EXISTS, "linear");
    BEL_ASSERT_OK(bel_export(estimator, NULL, NULL, folder));
    BEL_ASSERT_OK(bel_export(estimator, NULL, NULL, folder)); // replaces an earlier export
    assert_same_predictions(estimator, folder, false, false);
    bel_estimator_destroy(estimator);
    bel_free(other);

    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.report = false;
    config.model_dir = other = bel_path_join(bel_test_own_folder(), "random");
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &has_ids, .max_steps = 1};
    BEL_ASSERT_OK(bel_estimator_create(drawing, &config, NULL, 0, &estimator));
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, NULL, folder), BEL_NOT_FOUND, "train first");
    BEL_ASSERT_OK(bel_train(estimator, &spec, NULL));
    BEL_ASSERT_FAILS(bel_export(estimator, NULL, NULL, folder), BEL_UNIMPLEMENTED, "Dropout");
    assert_true(bel_file_exists(folder)); // the earlier export is complete
    bel_estimator_destroy(estimator);
    bel_free(other);
    bel_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_every_model_gives_the_same_bits),
        BEL_TEST_IN_FOLDER(test_stages),
        BEL_TEST_IN_FOLDER(test_scales_are_in_the_model),
        BEL_TEST_IN_FOLDER(test_columns_are_in_the_model),
        BEL_TEST_IN_FOLDER(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
