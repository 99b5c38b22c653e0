// The Open Inference Protocol over HTTP: JSON, and the extension for binary tensors. A binary
// tensor's bytes come after the JSON object, in the order of the inputs; the header
// Inference-Header-Content-Length has the size of the object. Sizes come from strangers: each is
// compared with the bytes that are there before they are read.
#include "serve/rest_v2.h"

#include <string.h>

#include "base/alloc.h"
#include "serve/cells.h"
#include "serve/json_tensor.h"
#include "serve/raw.h"

#define LENGTH_HEADER "Inference-Header-Content-Length"

// --- Inputs -------------------------------------------------------------------------------------

typedef struct reading {
    bel_infer *infer;
    const char *at, *end; // binary data that no input has taken
} reading;

static bel_status *take_shape(const bel_json_value *input, const char *name, bel_shape *out_shape)
{
    const bel_json_value *list = bel_json_member(input, "shape");
    bel_shape shape = {.rank = (int32_t)bel_json_length(list)};
    bool good = bel_json_is_array(list) && bel_json_length(list) <= BEL_MAX_RANK;
    for (int32_t d = 0; d < shape.rank && good; d++) {
        good = bel_json_value_i64(bel_json_at(list, (size_t)d), &shape.dims[d]) &&
               shape.dims[d] >= 0 && shape.dims[d] <= INT32_MAX;
    }
    if (!good) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "input \"%s\": expected a shape of at most %d sizes, such as [1,64]", name,
                       BEL_MAX_RANK);
    }
    *out_shape = shape;
    return NULL;
}

// Gets the binary data of an input; *out_data NULL: it has none.
static bel_status *take_binary(reading *r, const bel_json_value *input, const char *name,
                               const char **out_data, size_t *out_size)
{
    int64_t size;
    const bel_json_value *parameters = bel_json_member(input, "parameters");
    *out_data = NULL;
    if (bel_json_member(parameters, "binary_data_size") == NULL) return NULL;
    if (!bel_json_i64(parameters, "binary_data_size", &size) || size < 0 || size > r->end - r->at) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "input \"%s\": binary_data_size is more than the %lld bytes that are left",
                       name, (long long)(r->end - r->at));
    }
    *out_data = r->at;
    *out_size = (size_t)size;
    r->at += size;
    return NULL;
}

static bel_status *read_input(reading *r, const bel_json_value *input)
{
    const char *name, *type, *binary;
    int index;
    bel_dtype dtype;
    bel_shape shape;
    size_t size = 0;
    bel_tensor tensor;
    if (!bel_json_string(input, "name", &name) || !bel_json_string(input, "datatype", &type))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "an input has a name and a datatype, which are texts");
    if (bel_infer_leaves_out(r->infer, name)) return take_binary(r, input, name, &binary, &size);
    BEL_TRY(bel_infer_find(r->infer, name, &index));
    if (!bel_v2_find(type, &dtype))
        return BEL_ERR(BEL_UNIMPLEMENTED, "input \"%s\": there are no inputs of type \"%s\"", name,
                       type);
    BEL_TRY(take_shape(input, name, &shape));
    BEL_TRY(take_binary(r, input, name, &binary, &size));
    const bel_json_value *data = bel_json_member(input, "data");
    if ((data == NULL) == (binary == NULL)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "input \"%s\": expected data or binary_data_size, got "
                       "%s",
                       name, data == NULL ? "neither" : "both");
    }
    if (binary != NULL) return bel_raw_read(r->infer, index, dtype, &shape, binary, size);
    const bel_column *column = r->infer->version->inputs[index].column;
    bool is_number = column != NULL && column->kind == BEL_COLUMN_NUMBER; // null: missing
    if (bel_raw_is_cells(r->infer, index, dtype) || (is_number && dtype == BEL_DTYPE_F64)) {
        bel_cell_rows to;
        BEL_TRY(bel_raw_place_cells(r->infer, index, &shape, &to));
        return bel_json_tensor_each(data, column->name, &shape, bel_cells_take_json, &to);
    }
    BEL_TRY(bel_infer_place(r->infer, index, dtype, &shape, &tensor));
    BEL_TRY(bel_json_tensor_read(data, name, &tensor));
    return bel_raw_take_elements(r->infer, index, &tensor);
}

static bel_status *read_inputs(reading *r, const bel_json_value *root)
{
    const bel_json_value *inputs = bel_json_member(root, "inputs");
    if (!bel_json_is_array(inputs))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected an object with a list \"inputs\"");
    bel_infer_begin(r->infer);
    for (size_t i = 0; i < bel_json_length(inputs); i++)
        BEL_TRY(read_input(r, bel_json_at(inputs, i)));
    if (r->at == r->end) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "no input has the last %lld bytes of the body",
                   (long long)(r->end - r->at));
}

// --- Outputs ------------------------------------------------------------------------------------

typedef struct writing {
    const bel_infer *infer;
    bool binary; // unless an output says otherwise
    bel_str *json, data;
    int written;
} writing;

static void put_shape(bel_str *out, const bel_shape *shape)
{
    bel_str_puts(out, "[");
    for (int32_t d = 0; d < shape->rank; d++) {
        if (d > 0) bel_str_puts(out, ",");
        bel_str_put_i64(out, shape->dims[d] < 0 ? -1 : shape->dims[d]);
    }
    bel_str_puts(out, "]");
}

static void put_port(bel_str *out, const char *name, bel_dtype dtype, const bel_shape *shape)
{
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, name);
    bel_str_puts(out, ",\"datatype\":\"");
    bel_str_puts(out, bel_v2_name(dtype));
    bel_str_puts(out, "\",\"shape\":");
    put_shape(out, shape);
}

static void put_classes(const writing *w, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        bel_str_puts(w->json, i > 0 ? "," : "[");
        bel_json_write_string(w->json, bel_infer_class(w->infer, i));
    }
    bel_str_puts(w->json, rows > 0 ? "]" : "[]");
}

static void put_output(writing *w, int index, bool binary)
{
    const char *name = bel_infer_output_port(w->infer->version, index).name;
    const bel_tensor tensor = bel_infer_output(w->infer, index);
    if (w->written++ > 0) bel_str_puts(w->json, ",");
    put_port(w->json, name, tensor.dtype, &tensor.shape);
    if (binary) {
        size_t before = w->data.length;
        bel_raw_write(w->infer, index, &w->data);
        bel_str_puts(w->json, ",\"parameters\":{\"binary_data_size\":");
        bel_str_put_i64(w->json, (int64_t)(w->data.length - before));
        bel_str_puts(w->json, "}}");
        return;
    }
    bel_str_puts(w->json, ",\"data\":");
    if (tensor.dtype == BEL_DTYPE_STRING) {
        put_classes(w, tensor.shape.dims[0]);
    } else {
        bel_json_tensor_write(w->json, &tensor, true);
    }
    bel_str_puts(w->json, "}");
}

static bel_status *put_asked(writing *w, const bel_json_value *asked)
{
    const char *name;
    bool binary = w->binary;
    const bel_json_value *parameters = bel_json_member(asked, "parameters");
    if (!bel_json_string(asked, "name", &name))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a requested output has a name, which is a text");
    if (bel_json_member(parameters, "classification") != NULL)
        return BEL_ERR(BEL_UNIMPLEMENTED, "output \"%s\": no parameter \"classification\"", name);
    (void)bel_json_value_bool(bel_json_member(parameters, "binary_data"), &binary); // keeps it
    int output;
    BEL_TRY(bel_infer_ask(w->infer, name, &output));
    put_output(w, output, binary);
    return NULL;
}

static bel_status *put_outputs(writing *w, const bel_json_value *root)
{
    const bel_json_value *asked = bel_json_member(root, "outputs");
    (void)bel_json_value_bool(
        bel_json_member(bel_json_member(root, "parameters"), "binary_data_output"),
        &w->binary); // keeps false
    for (size_t i = 0; i < bel_json_length(asked); i++)
        BEL_TRY(put_asked(w, bel_json_at(asked, i)));
    int count = bel_json_length(asked) > 0 ? 0 : bel_infer_output_count(w->infer->version);
    for (int o = 0; o < count; o++)
        put_output(w, o, w->binary);
    return NULL;
}

static bel_status *answer_infer(const bel_infer *infer, const bel_v2_request *request,
                                bel_http_answer *answer)
{
    writing w = {.infer = infer, .json = &answer->body};
    bel_str_puts(w.json, "{\"model_name\":");
    bel_json_write_string(w.json, infer->model);
    bel_str_puts(w.json, ",\"model_version\":\"");
    bel_str_put_i64(w.json, infer->version->number);
    bel_str_puts(w.json, "\"");
    if (request->id != NULL) {
        bel_str_puts(w.json, ",\"id\":");
        bel_json_write_string(w.json, request->id);
    }
    bel_str_puts(w.json, ",\"outputs\":[");
    bel_status *status = put_outputs(&w, request->root);
    bel_str_puts(w.json, "]}");
    answer->type = "application/json";
    if (status == NULL && w.data.length > 0) {
        answer->type = "application/octet-stream";
        bel_str_puts(&answer->head, LENGTH_HEADER ": ");
        bel_str_put_i64(&answer->head, (int64_t)w.json->length);
        bel_str_puts(&answer->head, "\r\n");
        bel_str_append(&answer->body, w.data.text, w.data.length);
    }
    bel_str_deinit(&w.data);
    return status;
}

bel_status *bel_v2_parse(bel_arena *arena, const bel_http_request *request,
                         bel_v2_request *out_request)
{
    const char *header = bel_http_header(request, LENGTH_HEADER);
    int64_t length = (int64_t)request->body_size;
    bool good = header == NULL || (bel_parse_i64(header, strlen(header), &length) && length > 0 &&
                                   length <= (int64_t)request->body_size);
    if (!good)
        return BEL_ERR(BEL_INVALID_ARGUMENT, LENGTH_HEADER ": expected 1 to %zu, got \"%s\"",
                       request->body_size, header);
    bel_v2_request r = {.binary = request->body + length,
                        .end = request->body + request->body_size};
    BEL_TRY(bel_json_parse_in(arena, request->body, (size_t)length, "request", &r.root));
    const bel_json_value *id = bel_json_member(r.root, "id");
    if (id != NULL && !bel_json_is_null(id) && !bel_json_string(r.root, "id", &r.id))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "id: expected a string");
    *out_request = r;
    return NULL;
}

bel_status *bel_v2_infer(bel_infer *infer, const bel_v2_request *request, bel_http_answer *answer)
{
    reading r = {.infer = infer, .at = request->binary, .end = request->end};
    BEL_TRY(read_inputs(&r, request->root));
    BEL_TRY(bel_infer_run(infer));
    return answer_infer(infer, request, answer);
}

// --- Metadata -----------------------------------------------------------------------------------

void bel_v2_metadata(bel_model *model, const bel_served *version, bel_str *out)
{
    int count;
    int64_t *numbers = bel_model_versions(model, &count);
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, bel_model_name(model));
    bel_str_puts(out, ",\"versions\":[");
    for (int i = 0; i < count; i++)
        bel_str_printf(out, "%s\"%lld\"", i > 0 ? "," : "", (long long)numbers[i]);
    bel_free(numbers);
    bel_str_puts(out, "],\"platform\":\"" BEL_PLATFORM "\",\"inputs\":[");
    for (int i = 0; i < bel_infer_input_count(version); i++) {
        const bel_port port = bel_infer_input_port(version, i);
        bel_str_puts(out, i > 0 ? "," : "");
        put_port(out, port.name, port.dtype, &port.shape);
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "],\"outputs\":[");
    for (int o = 0; o < bel_infer_output_count(version); o++) {
        const bel_port port = bel_infer_output_port(version, o);
        bel_str_puts(out, o > 0 ? "," : "");
        put_port(out, port.name, port.dtype, &port.shape);
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "]}");
}
