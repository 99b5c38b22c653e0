// The bodies of predict. Both forms end in the same inputs, so that the run does not know which one
// it was. In columns, each input is one list. In rows, each example has an element of every input,
// which stays in its place in the batch; a model of one input may have elements without its name.
#include "serve/rest_v1.h"

#include <string.h>

#include "base/alloc.h"
#include "serve/cells.h"
#include "serve/json_tensor.h"

// --- Inputs -------------------------------------------------------------------------------------

// Reads all examples of an input.
static bel_status *read_column(bel_infer *infer, int input, const bel_json_value *value)
{
    const bel_served_input *to = &infer->version->inputs[input];
    bel_shape shape;
    if (to->column != NULL) {
        bel_cell_rows rows;
        shape = BEL_SHAPE((int64_t)bel_json_length(value));
        BEL_TRY(bel_infer_place_cells(infer, input, shape.dims[0], &rows));
        return bel_json_tensor_each(value, to->port.name, &shape, bel_cells_take_json, &rows);
    }
    bel_tensor tensor;
    BEL_TRY(bel_json_tensor_shape(value, to->port.name, &shape));
    BEL_TRY(bel_infer_place(infer, input, to->port.dtype, &shape, &tensor));
    return bel_json_tensor_read(value, to->port.name, &tensor);
}

static bel_status *take_named_column(void *context, const char *name, const bel_json_value *value)
{
    bel_infer *infer = context;
    int input;
    if (bel_infer_leaves_out(infer, name)) return NULL;
    BEL_TRY(bel_infer_find(infer, name, &input));
    return read_column(infer, input, value);
}

// The only input of a model may come without its name.
static bel_status *find_single(const bel_infer *infer, int *out_input)
{
    const bel_served *v = infer->version;
    *out_input = v->text.input >= 0 ? v->text.input : 0;
    if (bel_infer_input_count(v) == 1) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "model %s has %d inputs: expected objects with their names", infer->model,
                   infer->version->input_count);
}

static bel_status *read_columns(bel_infer *infer, const bel_json_value *inputs)
{
    if (bel_json_is_object(inputs)) return bel_json_each(inputs, take_named_column, infer);
    int input;
    BEL_TRY(find_single(infer, &input));
    return read_column(infer, input, inputs);
}

// Gets the value of an input in an example; the names are checked.
static bel_status *get_member(const bel_infer *infer, const bel_json_value *rows, size_t i,
                              const char *name, const bel_json_value **out_value)
{
    const bel_json_value *row = bel_json_at(rows, i);
    *out_value = bel_json_member(row, name);
    if (*out_value != NULL) return NULL;
    if (!bel_json_is_object(row))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "instance %zu: expected an object as the first one",
                       i);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "model %s: instance %zu has no \"%s\"%s", infer->model, i,
                   name, infer->version->columns != NULL ? "; hint: null is a missing value" : "");
}

// Reads an input from all examples, which are objects.
static bel_status *read_member(bel_infer *infer, int input, const bel_json_value *rows)
{
    const bel_served_input *to = &infer->version->inputs[input];
    const char *name = to->port.name;
    size_t count = bel_json_length(rows);
    const bel_json_value *value;
    bel_cell_rows cells;
    bel_shape element = bel_shape_scalar(), shape;
    BEL_TRY(get_member(infer, rows, 0, name, &value));
    if (to->column != NULL) {
        BEL_TRY(bel_infer_place_cells(infer, input, (int64_t)count, &cells));
        for (size_t i = 0; i < count; i++) {
            BEL_TRY(get_member(infer, rows, i, name, &value));
            BEL_TRY_CTX(bel_cells_take_json(&cells, (int64_t)i, value), "instance %zu", i);
        }
        return NULL;
    }
    BEL_TRY(bel_json_tensor_shape(value, name, &element));
    if (element.rank == BEL_MAX_RANK)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected at most %d dimensions", name,
                       BEL_MAX_RANK - 1);
    shape = (bel_shape){.rank = element.rank + 1, .dims = {(int64_t)count}};
    memcpy(shape.dims + 1, element.dims, (size_t)element.rank * sizeof *shape.dims);
    bel_tensor all;
    BEL_TRY(bel_infer_place(infer, input, to->port.dtype, &shape, &all));
    bel_tensor one = {.dtype = all.dtype, .shape = element};
    size_t bytes = bel_tensor_bytes(&one);
    for (size_t i = 0; i < count; i++) {
        one.data = (char *)all.data + i * bytes;
        BEL_TRY(get_member(infer, rows, i, name, &value));
        BEL_TRY_CTX(bel_json_tensor_read(value, name, &one), "instance %zu", i);
    }
    return NULL;
}

static bel_status *check_member(void *context, const char *name, const bel_json_value *value)
{
    int input;
    (void)value;
    if (bel_infer_leaves_out(context, name)) return NULL;
    return bel_infer_find(context, name, &input);
}

// An example that has a text has no tokens of it.
static bel_status *check_text(const bel_infer *infer, const bel_json_value *row, size_t i)
{
    const bel_served *v = infer->version;
    const int both[] = {v->text.tokens, v->text.lengths};
    for (int b = 0; b < 2; b++) {
        const char *name = v->inputs[both[b]].port.name;
        if (bel_json_member(row, name) != NULL)
            return BEL_ERR(
                BEL_INVALID_ARGUMENT,
                "instance %zu: expected \"%s\" as a text, or its tokens, got \"%s\", too", i,
                v->inputs[v->text.input].port.name, name);
    }
    return NULL;
}

// Reads all inputs from examples that are objects; a text is read instead of its tokens.
static bel_status *read_members(bel_infer *infer, const bel_json_value *rows)
{
    const bel_served *v = infer->version;
    const bel_json_value *first = bel_json_at(rows, 0);
    bool texts =
        v->text.input >= 0 && bel_json_member(first, v->inputs[v->text.input].port.name) != NULL;
    for (size_t i = 0; i < bel_json_length(rows) && texts; i++)
        BEL_TRY(check_text(infer, bel_json_at(rows, i), i));
    for (int input = 0; input < v->input_count; input++)
        if (!texts || (input != v->text.tokens && input != v->text.lengths))
            BEL_TRY(read_member(infer, input, rows));
    return texts ? read_member(infer, v->text.input, rows) : NULL;
}

static bel_status *read_rows(bel_infer *infer, const bel_json_value *rows)
{
    if (!bel_json_is_array(rows) || bel_json_length(rows) == 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"instances\": expected a list of examples");
    if (!bel_json_is_object(bel_json_at(rows, 0))) {
        int input;
        BEL_TRY(find_single(infer, &input));
        return read_column(infer, input, rows);
    }
    for (size_t i = 0; i < bel_json_length(rows); i++)
        BEL_TRY_CTX(bel_json_each(bel_json_at(rows, i), check_member, infer), "instance %zu", i);
    return read_members(infer, rows);
}

// --- Outputs ------------------------------------------------------------------------------------

static void put_value(const bel_infer *infer, int index, bel_str *out)
{
    const bel_tensor tensor = bel_infer_output(infer, index);
    if (tensor.dtype != BEL_DTYPE_STRING) {
        bel_json_tensor_write(out, &tensor, false);
        return;
    }
    for (int64_t i = 0; i < tensor.shape.dims[0]; i++) {
        bel_str_puts(out, i > 0 ? "," : "[");
        bel_json_write_string(out, bel_infer_class(infer, i));
    }
    bel_str_puts(out, tensor.shape.dims[0] > 0 ? "]" : "[]");
}

// Writes an output's elements of one example.
static void put_example(const bel_infer *infer, int index, int64_t example, bel_str *out)
{
    bel_tensor tensor = bel_infer_output(infer, index);
    if (tensor.dtype == BEL_DTYPE_STRING) {
        bel_json_write_string(out, bel_infer_class(infer, example));
        return;
    }
    size_t bytes = bel_tensor_bytes(&tensor) / (size_t)tensor.shape.dims[0];
    tensor.data = (char *)tensor.data + (size_t)example * bytes;
    tensor.shape.rank--;
    memmove(tensor.shape.dims, tensor.shape.dims + 1,
            (size_t)tensor.shape.rank * sizeof *tensor.shape.dims);
    bel_json_tensor_write(out, &tensor, false);
}

static void put_name(const bel_infer *infer, int index, bel_str *out)
{
    bel_json_write_string(out, bel_infer_output_port(infer->version, index).name);
    bel_str_puts(out, ":");
}

static bel_status *put_rows(const bel_infer *infer, int64_t rows, bel_str *out)
{
    int count = bel_infer_output_count(infer->version);
    for (int o = 0; o < count; o++) {
        const bel_tensor tensor = bel_infer_output(infer, o);
        if (tensor.shape.rank > 0 && tensor.shape.dims[0] == rows) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "output \"%s\" has no row for each instance; hint: \"inputs\"",
                       bel_infer_output_port(infer->version, o).name);
    }
    bel_str_puts(out, "{\"predictions\":[");
    for (int64_t i = 0; i < rows; i++) {
        if (i > 0) bel_str_puts(out, ",");
        for (int o = 0; o < count; o++) {
            if (count > 1) {
                bel_str_puts(out, o > 0 ? "," : "{");
                put_name(infer, o, out);
            }
            put_example(infer, o, i, out);
        }
        if (count > 1) bel_str_puts(out, "}");
    }
    bel_str_puts(out, "]}");
    return NULL;
}

static void put_columns(const bel_infer *infer, bel_str *out)
{
    int count = bel_infer_output_count(infer->version);
    bel_str_puts(out, "{\"outputs\":");
    for (int o = 0; o < count; o++) {
        if (count > 1) {
            bel_str_puts(out, o > 0 ? "," : "{");
            put_name(infer, o, out);
        }
        put_value(infer, o, out);
    }
    bel_str_puts(out, count > 1 ? "}}" : "}");
}

static bel_status *predict_json(bel_infer *infer, const bel_json_value *root, bel_str *out)
{
    const bel_json_value *rows = bel_json_member(root, "instances");
    const bel_json_value *columns = bel_json_member(root, "inputs");
    const char *signature = "serving_default";
    bool is_named = bel_json_member(root, "signature_name") != NULL;
    if ((rows == NULL) == (columns == NULL))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected an object with either \"instances\" or \"inputs\", got %s",
                       rows == NULL ? "neither" : "both");
    if (is_named && (!bel_json_string(root, "signature_name", &signature) ||
                     strcmp(signature, "serving_default") != 0))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "signature_name: the only signature is \"serving_default\"");
    bel_infer_begin(infer);
    BEL_TRY(rows != NULL ? read_rows(infer, rows) : read_columns(infer, columns));
    BEL_TRY(bel_infer_run(infer));
    if (rows != NULL) return put_rows(infer, (int64_t)bel_json_length(rows), out);
    put_columns(infer, out);
    return NULL;
}

bel_status *bel_v1_predict(bel_infer *infer, const bel_http_request *request,
                           bel_http_answer *answer)
{
    const bel_json_value *root;
    BEL_TRY(bel_json_parse_in(infer->arena, request->body, request->body_size, "request", &root));
    answer->type = "application/json";
    return predict_json(infer, root, &answer->body);
}

// --- Metadata -----------------------------------------------------------------------------------

static void put_port(bel_str *out, const bel_port *port, bool first)
{
    bel_str_puts(out, first ? "" : ",");
    bel_json_write_string(out, port->name);
    bel_str_printf(out, ":{\"dtype\":\"%s\",\"tensor_shape\":{\"dim\":[", bel_v1_name(port->dtype));
    for (int32_t d = 0; d < port->shape.rank; d++)
        bel_str_printf(out, "%s{\"size\":\"%lld\",\"name\":\"\"}", d > 0 ? "," : "",
                       (long long)(port->shape.dims[d] < 0 ? -1 : port->shape.dims[d]));
    bel_str_puts(out, "],\"unknown_rank\":false},\"name\":");
    bel_json_write_string(out, port->name);
    bel_str_puts(out, "}");
}

void bel_v1_metadata(bel_model *model, const bel_served *version, bel_str *out)
{
    bel_str_puts(out, "{\"model_spec\":{\"name\":");
    bel_json_write_string(out, bel_model_name(model));
    bel_str_printf(out,
                   ",\"signature_name\":\"\",\"version\":\"%lld\"},\"metadata\":{\"signature_def\":"
                   "{\"signature_def\":{\"serving_default\":{\"inputs\":{",
                   (long long)version->number);
    for (int i = 0; i < bel_infer_input_count(version); i++) {
        const bel_port port = bel_infer_input_port(version, i);
        put_port(out, &port, i == 0);
    }
    bel_str_puts(out, "},\"outputs\":{");
    for (int o = 0; o < bel_infer_output_count(version); o++) {
        const bel_port port = bel_infer_output_port(version, o);
        put_port(out, &port, o == 0);
    }
    bel_str_puts(out, "},\"method_name\":\"tensorflow/serving/predict\"}}}}}");
}

void bel_v1_model_status(bel_model *model, int64_t number, bel_str *out)
{
    int count, written = 0;
    int64_t *numbers = bel_model_versions(model, &count);
    bel_str_puts(out, "{\"model_version_status\":[");
    for (int i = 0; i < count; i++) {
        if (number >= 0 && numbers[i] != number) continue;
        bel_str_printf(out,
                       "%s{\"version\":\"%lld\",\"state\":\"AVAILABLE\",\"status\":{\"error_code\":"
                       "\"OK\",\"error_message\":\"\"}}",
                       written++ > 0 ? "," : "", (long long)numbers[i]);
    }
    bel_str_puts(out, "]}");
    bel_free(numbers);
}
