// A version is warmed before a request can find it, as first runs compile programs and take memory.
// Requests are joined only if a trial with random examples gives the bits of separate runs: whether
// the examples of a batch depend on each other is known only to the model's author.
#include "serve/served.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/rng.h"
#include "ops/kernels/elements.h"
#include "serve/cells.h"
#include "serve/texts.h"

// --- Signature ----------------------------------------------------------------------------------

// Names the columns whose cells no input takes, as they become ids of tables. A checkpoint takes
// the hash of a value, and then needs no places.
static void warn_of_ids(const bel_served *v, const char *path)
{
    for (int c = 0; c < v->columns->count; c++) {
        const bel_column *column = &v->columns->items[c];
        if (column->kind == BEL_COLUMN_TOKENS && v->text.input >= 0) continue;
        bool becomes_ids = (column->kind == BEL_COLUMN_HASH && v->live == NULL) ||
                           column->kind == BEL_COLUMN_LIST || column->kind == BEL_COLUMN_TEXT ||
                           column->kind == BEL_COLUMN_CROSS || column->kind == BEL_COLUMN_TOKENS;
        if (!becomes_ids) continue;
        bel_log_write(BEL_LOG_WARN,
                      "%s: the column \"%s\" is of kind %s; requests send its %s, not its cells",
                      path, column->name, bel_column_kind_names[column->kind],
                      column->kind == BEL_COLUMN_TOKENS ? "tokens"
                      : v->live != NULL                 ? "ids"
                                                        : "places");
    }
}

// Finds the columns whose cells the inputs take.
static bel_status *match_columns(bel_served *v, const char *path)
{
    // Each delta has the columns of its base: they are named with the first version on it.
    if (v->live == NULL || !bel_live_look(v->live).shares) warn_of_ids(v, path);
    for (int i = 0; i < v->input_count; i++) {
        bel_served_input *input = &v->inputs[i];
        int c = bel_columns_find(v->columns, input->port.name);
        if (c < 0) continue;
        const bel_column *column = &v->columns->items[c];
        if (!bel_cells_can_read(column, v->live != NULL)) continue;
        bel_shape shape = bel_cells_shape(column, BEL_DIM_BATCH);
        if (input->port.dtype != bel_cells_dtype(column) ||
            !bel_shape_equal(&input->port.shape, &shape)) {
            return BEL_ERR(BEL_DATA_LOSS, "%s: the input \"%s\" does not fit its column", path,
                           column->name);
        }
        input->column = column;
    }
    return NULL;
}

// Finds the output with probabilities of the classes: [batch, classes], the first of that shape.
static void find_classes(bel_served *v)
{
    int classes = bel_columns_class_count(v->columns);
    if (bel_predictor_find_output(v->predictors[0], BEL_CLASS_OUTPUT) >= 0) classes = 0;
    for (int o = 0; o < v->output_count && classes > 0 && v->class_output < 0; o++) {
        bel_port port = bel_predictor_output_port(v->predictors[0], o);
        if (port.shape.rank == 2 && port.shape.dims[1] == classes) v->class_output = o;
    }
}

static bel_status *use_columns(bel_served *v, const char *path)
{
    if (v->columns == NULL) return NULL;
    BEL_TRY(match_columns(v, path));
    if (bel_columns_label_kind(v->columns) == BEL_LABEL_CLASSES) find_classes(v);
    return NULL;
}

// Reads the threshold of the training: a text, as all parameters of the training are. Without one
// it stays 0.5.
static bel_status *read_threshold(const bel_json_value *root, const char *path, double *threshold)
{
    const bel_json_value *value = bel_json_member(root, "threshold");
    const char *text = bel_json_value_string(value);
    if (value == NULL || bel_json_value_f64(value, threshold)) return NULL;
    if (text != NULL && bel_parse_f64(text, strlen(text), threshold)) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: threshold: expected a number, got %s%s", path,
                   text != NULL ? "" : "no text", text != NULL ? text : "");
}

static bel_status *read_signature(bel_served *v, const char *folder, const char *path)
{
    char *text = NULL;
    size_t size;
    bel_json *json = NULL;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_status *status = bel_json_parse(text, size, path, &json);
    const char *table = NULL, *tokenizer = NULL;
    if (status == NULL) {
        const bel_json_value *root = bel_json_root(json);
        (void)bel_json_string(root, "tokenizer", &tokenizer); // NULL: none, or an earlier export
        (void)bel_json_string(root, "table", &table);         // NULL: no table
        status = read_threshold(root, path, &v->threshold);
        if (status == NULL && table != NULL) status = bel_columns_parse(table, path, &v->columns);
    }
    if (status == NULL) status = bel_texts_open(v, folder, tokenizer);
    if (status == NULL) status = use_columns(v, path);
    bel_json_destroy(json);
    bel_free(text);
    return status;
}

// Reads the same from the settings of a checkpoint.
static bel_status *read_settings(bel_served *v, const char *path)
{
    const char *table = bel_live_table(v->live);
    v->threshold = bel_live_threshold(v->live);
    if (table != NULL) BEL_TRY(bel_columns_parse(table, path, &v->columns));
    const char *folder, *tokenizer = bel_live_tokenizer(v->live, &folder);
    BEL_TRY(bel_texts_open(v, folder, tokenizer));
    return use_columns(v, path);
}

// --- Predictors ---------------------------------------------------------------------------------

bel_predictor *bel_served_predictor(const bel_served *v, int slot, int level)
{
    return v->predictors[slot * v->level_count + level];
}

static bel_status *make_predictors(bel_served *v, const char *path)
{
    size_t count = (size_t)v->slot_count * (size_t)v->level_count;
    v->predictors = bel_xcalloc(count, sizeof(bel_predictor *));
    for (size_t p = 0; p < count; p++) {
        const bel_predictor_options options = {
            .size = sizeof options, .threads = 1, .joined = 1 << (int)p % v->level_count};
        BEL_TRY(v->live != NULL ? bel_live_predictor(v->live, options.joined, &v->predictors[p])
                                : bel_predictor_load(path, &options, &v->predictors[p]));
    }
    bel_predictor *first = v->predictors[0];
    v->input_count = bel_predictor_input_count(first);
    v->output_count = bel_predictor_output_count(first);
    v->inputs = bel_xcalloc((size_t)v->input_count + 1, sizeof *v->inputs); // and for texts
    for (int i = 0; i < v->input_count; i++)
        v->inputs[i].port = bel_predictor_input_port(first, i);
    if (v->number < 0) v->number = bel_predictor_step(first);
    if (v->number < 0) v->number = 1;
    return NULL;
}

// Keeps only the predictors of single requests.
static void keep_single(bel_served *v, const char *path, const char *reason)
{
    bel_log_write(BEL_LOG_WARN, "%s: requests are not joined: %s", path, reason);
    for (int p = 0; p < v->slot_count * v->level_count; p++) {
        bel_predictor *predictor = v->predictors[p];
        if (p % v->level_count == 0) {
            v->predictors[p / v->level_count] = predictor;
        } else {
            bel_predictor_destroy(predictor);
        }
    }
    v->level_count = 1;
}

// --- Warming ------------------------------------------------------------------------------------

// Allocates an input of `examples` examples. Other open dimensions are `length`.
static bel_tensor make_input(const bel_served *v, int input, int64_t examples, int64_t length,
                             bel_arena *arena)
{
    bel_tensor in = {.dtype = v->inputs[input].port.dtype, .shape = v->inputs[input].port.shape};
    for (int32_t d = 0; d < in.shape.rank; d++)
        if (in.shape.dims[d] < 0) in.shape.dims[d] = d == 0 ? examples : length;
    in.data = bel_arena_alloc(arena, bel_tensor_bytes(&in) + 1); // zeros
    return in;
}

// Runs a predictor once with zeros, one example for each of its requests.
static bel_status *warm(const bel_served *v, bel_predictor *predictor, int64_t examples)
{
    bel_arena *arena = bel_arena_create();
    bel_status *status = NULL;
    for (int i = 0; i < v->input_count && status == NULL; i++) {
        const bel_tensor in = make_input(v, i, examples, 1, arena);
        status = bel_predictor_bind(predictor, i, &in);
    }
    if (status == NULL) status = bel_predictor_run(predictor);
    bel_arena_destroy(arena); // a request binds its elements before it runs
    return status;
}

static void warm_all(const bel_served *v, const char *path)
{
    bel_status *cold = NULL;
    for (int p = 0; p < v->slot_count * v->level_count && cold == NULL; p++)
        cold = warm(v, v->predictors[p], INT64_C(1) << p % v->level_count);
    if (cold != NULL)
        bel_log_write(BEL_LOG_DEBUG, "%s: not warmed: %s", path, bel_status_message(cold));
    bel_status_ignore(cold); // the model may need other values than zeros
}

// --- Requests that run together -----------------------------------------------------------------

// True if the first dimension of every input and output is the batch.
static bool has_batch(const bel_served *v)
{
    int64_t batch = 0;
    for (int i = 0; i < v->input_count; i++) {
        const bel_shape *shape = &v->inputs[i].port.shape;
        if (i == 0 && shape->rank > 0) batch = shape->dims[0];
        if (shape->rank == 0 || batch >= 0 || shape->dims[0] != batch) return false;
    }
    for (int o = 0; o < v->output_count; o++) {
        const bel_port port = bel_predictor_output_port(v->predictors[0], o);
        if (port.shape.rank == 0 || port.shape.dims[0] != batch) return false;
    }
    return v->input_count > 0;
}

// Fills a tensor with numbers in [-1, 1), or with 0 and 1.
static void fill_random(const bel_tensor *tensor, int input)
{
    const bel_rng_key key = bel_rng_key_make(0, "serve", (uint64_t)input);
    int64_t count = bel_shape_elements(&tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        if (bel_element_is_whole(tensor->dtype)) {
            bel_element_set_whole(tensor, i, words[0] % 2);
        } else {
            bel_element_set(tensor, i, 2 * (double)bel_rng_unit(words[0]) - 1);
        }
    }
}

// Compares the outputs of request `request` in a run of several with those of its run.
static bool has_bits(const bel_served *v, const bel_predictor *several, int64_t request)
{
    for (int o = 0; o < v->output_count; o++) {
        const bel_tensor all = bel_predictor_output(several, o);
        const bel_tensor one = bel_predictor_output(v->predictors[0], o);
        size_t bytes = bel_tensor_bytes(&one);
        const char *at = (const char *)all.data + (size_t)request * bytes;
        if (bytes > 0 && memcmp(at, one.data, bytes) != 0) return false;
    }
    return true;
}

// Runs requests of `examples` random examples together and separately.
static bel_status *try_level(const bel_served *v, int level, int64_t examples, bel_arena *arena,
                             bool *out_same)
{
    enum { LENGTH = 3 };
    bel_predictor *several = v->predictors[level], *single = v->predictors[0];
    bel_tensor *all = bel_arena_alloc(arena, ((size_t)v->input_count + 1) * sizeof *all);
    *out_same = true;
    for (int i = 0; i < v->input_count; i++) {
        all[i] = make_input(v, i, examples << level, LENGTH, arena);
        fill_random(&all[i], i);
        BEL_TRY(bel_predictor_bind(several, i, &all[i]));
    }
    BEL_TRY(bel_predictor_run(several));
    for (int64_t request = 0; request < 1 << level && *out_same; request++) {
        for (int i = 0; i < v->input_count; i++) {
            bel_tensor one = all[i];
            one.shape.dims[0] = examples;
            one.data = (char *)one.data + (size_t)request * bel_tensor_bytes(&one);
            BEL_TRY(bel_predictor_bind(single, i, &one));
        }
        BEL_TRY(bel_predictor_run(single));
        *out_same = has_bits(v, several, request);
    }
    return NULL;
}

// Products round in a joined run as in separate ones (bel_predictor_options). Whether the examples
// of a batch depend on each other is known only to the model's author, so it is tried, with the
// fewest examples a request and the most.
static void check_joined(bel_served *v, int max_batch, const char *path)
{
    enum { FEW = 3 };
    bel_status *status = NULL;
    bool same = has_batch(v);
    bel_arena *arena = bel_arena_create();
    const char *reason = same ? NULL : "not every input and output begins with the batch";
    for (int level = 1; level < v->level_count && same && status == NULL; level++) {
        int64_t most = max_batch >> level;
        for (int64_t n = 1; n <= FEW && n <= most && same && status == NULL; n++)
            status = try_level(v, level, n, arena, &same);
        if (most > FEW && same && status == NULL) status = try_level(v, level, most, arena, &same);
        if (status == NULL && !same)
            reason = "examples of a batch have other bits than separate ones";
    }
    if (status != NULL) reason = bel_status_message(status);
    if (reason != NULL) keep_single(v, path, reason);
    bel_status_ignore(status); // logged
    bel_arena_destroy(arena);  // a request binds its elements before it runs
}

static bel_status *version_fill(bel_served *v, int max_batch, const char *path)
{
    BEL_TRY(make_predictors(v, path));
    char *signature = bel_path_join(path, "signature.json");
    bel_status *status = NULL;
    if (v->live != NULL) {
        status = read_settings(v, path);
    } else if (bel_file_exists(signature)) {
        status = read_signature(v, path, signature);
    }
    bel_free(signature);
    BEL_TRY(status);
    if (v->level_count > 1) check_joined(v, max_batch, path);
    warm_all(v, path);
    return NULL;
}

bel_status *bel_served_load(const char *path, const bel_served_options *options,
                            bel_served **out_version)
{
    bel_served *v = bel_xcalloc(1, sizeof *v);
    v->number = options->number;
    v->slot_count = options->slot_count;
    v->live = options->live;
    if (v->live != NULL) bel_live_retain(v->live);
    v->level_count = 1;
    while (1 << v->level_count <= options->max_batch)
        v->level_count++;
    v->class_output = v->text.input = -1;
    v->left_out = bel_xcalloc(1, sizeof *v->left_out);
    v->threshold = 0.5;
    bel_status *status = version_fill(v, options->max_batch, path);
    if (status != NULL) {
        bel_served_destroy(v);
        return status;
    }
    *out_version = v;
    return NULL;
}

void bel_served_destroy(bel_served *v)
{
    if (v == NULL) return;
    for (int p = 0; v->predictors != NULL && p < v->slot_count * v->level_count; p++)
        bel_predictor_destroy(v->predictors[p]);
    bel_free(v->predictors);
    bel_free(v->inputs);
    bel_free(v->left_out);
    bel_columns_destroy(v->columns);
    bel_tokenizer_destroy(v->text.tokenizer);
    bel_live_release(v->live); // after the predictors
    bel_free(v);
}

const char *bel_served_class(const bel_served *v, const bel_tensor *row)
{
    return bel_columns_class(v->columns, (int)bel_element_class(row, v->threshold));
}
