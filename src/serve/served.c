#include "serve/served.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ops/kernels/elements.h"
#include "serve/cells.h"

// --- Signature ----------------------------------------------------------------------------------

// Finds the columns whose cells the inputs take.
static bel_status *match_columns(bel_served *v, const char *path)
{
    for (int i = 0; i < v->input_count; i++) {
        bel_served_input *input = &v->inputs[i];
        int c = bel_columns_find(v->columns, input->port.name);
        if (c < 0) continue;
        const bel_column *column = &v->columns->items[c];
        if (!bel_cells_can_read(column)) {
            bel_log_write(BEL_LOG_WARN,
                          "%s: the column \"%s\" is of kind %s; requests send its places, not its "
                          "cells",
                          path, column->name, bel_column_kind_names[column->kind]);
            continue;
        }
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

static bel_status *read_signature(bel_served *v, const char *path)
{
    char *text = NULL;
    size_t size;
    bel_json *json = NULL;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_status *status = bel_json_parse(text, size, path, &json);
    const char *table = NULL;
    if (status == NULL) {
        const bel_json_value *root = bel_json_root(json);
        (void)bel_json_string(root, "table", &table);         // NULL: no table
        (void)bel_json_f64(root, "threshold", &v->threshold); // keeps 0.5
        if (table != NULL) status = bel_columns_parse(table, path, &v->columns);
    }
    if (status == NULL && v->columns != NULL) {
        status = match_columns(v, path);
        if (bel_columns_label_kind(v->columns) == BEL_LABEL_CLASSES) find_classes(v);
    }
    bel_json_destroy(json);
    bel_free(text);
    return status;
}

// --- Warming ------------------------------------------------------------------------------------

// Runs a predictor once with zeros. Open dimensions are 1.
static bel_status *warm(const bel_served *v, bel_predictor *predictor)
{
    bel_arena *arena = bel_arena_create();
    bel_status *status = NULL;
    for (int i = 0; i < v->input_count && status == NULL; i++) {
        bel_tensor in = {.dtype = v->inputs[i].port.dtype, .shape = v->inputs[i].port.shape};
        for (int32_t d = 0; d < in.shape.rank; d++)
            if (in.shape.dims[d] < 0) in.shape.dims[d] = 1;
        size_t bytes = bel_tensor_bytes(&in);
        in.data = bel_arena_alloc(arena, bytes + 1);
        memset(in.data, 0, bytes);
        status = bel_predictor_bind(predictor, i, &in);
    }
    if (status == NULL) status = bel_predictor_run(predictor);
    bel_arena_destroy(arena); // a request binds its elements before it runs
    return status;
}

static bel_status *make_predictors(bel_served *v, const char *path)
{
    const bel_predictor_options options = {.size = sizeof options, .threads = 1};
    v->predictors = bel_xcalloc((size_t)v->slot_count, sizeof(bel_predictor *));
    for (int s = 0; s < v->slot_count; s++)
        BEL_TRY(bel_predictor_load(path, &options, &v->predictors[s]));
    bel_predictor *first = v->predictors[0];
    v->input_count = bel_predictor_input_count(first);
    v->output_count = bel_predictor_output_count(first);
    v->inputs = bel_xcalloc((size_t)v->input_count + 1, sizeof *v->inputs);
    for (int i = 0; i < v->input_count; i++)
        v->inputs[i].port = bel_predictor_input_port(first, i);
    if (v->number < 0) v->number = bel_predictor_step(first);
    if (v->number < 0) v->number = 1;
    return NULL;
}

static bel_status *version_fill(bel_served *v, const char *path)
{
    BEL_TRY(make_predictors(v, path));
    char *signature = bel_path_join(path, "signature.json");
    bel_status *status = bel_file_exists(signature) ? read_signature(v, signature) : NULL;
    bel_free(signature);
    for (int s = 0; s < v->slot_count && status == NULL; s++) {
        bel_status *cold = warm(v, v->predictors[s]);
        if (cold == NULL) continue;
        bel_log_write(BEL_LOG_DEBUG, "%s: not warmed: %s", path, bel_status_message(cold));
        bel_status_ignore(cold); // the model may need other values than zeros
        break;
    }
    return status;
}

bel_status *bel_served_load(const char *path, int64_t number, int slot_count,
                            bel_served **out_version)
{
    bel_served *v = bel_xcalloc(1, sizeof *v);
    v->number = number;
    v->slot_count = slot_count;
    v->class_output = -1;
    v->threshold = 0.5;
    bel_status *status = version_fill(v, path);
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
    for (int s = 0; v->predictors != NULL && s < v->slot_count; s++)
        bel_predictor_destroy(v->predictors[s]);
    bel_free(v->predictors);
    bel_free(v->inputs);
    bel_columns_destroy(v->columns);
    bel_free(v);
}

const char *bel_served_class(const bel_served *v, const bel_tensor *row)
{
    return bel_columns_class(v->columns, (int)bel_element_class(row, v->threshold));
}
