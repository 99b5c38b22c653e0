// All protocols check a request's inputs here, against the signature of its version. Joined
// requests run as one batch, whose outputs are divided by rows. Each answer has the bits of a
// separate run, and a joined run that fails is repeated for each request, so that a wrong one
// spoils no other.
#include "serve/infer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

static const struct {
    bel_dtype dtype;
    const char *v2, *v1;
} names[] = {{BEL_DTYPE_F32, "FP32", "DT_FLOAT"},      {BEL_DTYPE_F64, "FP64", "DT_DOUBLE"},
             {BEL_DTYPE_I32, "INT32", "DT_INT32"},     {BEL_DTYPE_I64, "INT64", "DT_INT64"},
             {BEL_DTYPE_U8, "UINT8", "DT_UINT8"},      {BEL_DTYPE_BOOL, "BOOL", "DT_BOOL"},
             {BEL_DTYPE_STRING, "BYTES", "DT_STRING"}, {BEL_DTYPE_F16, "FP16", "DT_HALF"},
             {BEL_DTYPE_BF16, "BF16", "DT_BFLOAT16"}};
enum { NAMES = sizeof names / sizeof names[0], MOST_OUTPUT_BYTES = 256 << 20 };

const char *bel_v2_name(bel_dtype dtype)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].dtype == dtype) return names[i].v2;
    return "";
}

const char *bel_v1_name(bel_dtype dtype)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].dtype == dtype) return names[i].v1;
    return "DT_INVALID";
}

bool bel_v2_find(const char *name, bel_dtype *out_dtype)
{
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(names[i].v2, name) != 0) continue;
        *out_dtype = names[i].dtype;
        return true;
    }
    return false;
}

void bel_infer_begin(bel_infer *infer)
{
    size_t inputs = (size_t)infer->version->input_count + 1;
    size_t outputs = (size_t)infer->version->output_count + 1;
    infer->inputs = bel_arena_alloc(infer->arena, inputs * sizeof *infer->inputs); // zeros
    infer->outputs = bel_arena_alloc(infer->arena, outputs * sizeof *infer->outputs);
    infer->asked = bel_arena_alloc(infer->arena, (outputs + 1) * sizeof *infer->asked);
}

// Lists the names of all inputs, or of those that were not given.
static bel_status *complain(const bel_infer *infer, const char *begin, bool missing)
{
    bel_str list = {0};
    const bel_served *v = infer->version;
    for (int i = 0; i < v->input_count; i++) {
        if (missing && infer->inputs[i].data != NULL) continue;
        bel_str_printf(&list, "%s\"%s\"", list.length > 0 ? ", " : "", v->inputs[i].port.name);
    }
    if (v->text.input >= 0 && infer->inputs[v->text.input].data == NULL)
        bel_str_printf(&list, ", or as a text \"%s\"", v->inputs[v->text.input].port.name);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "model %s: %s%s", infer->model, begin,
                                 list.length > 0 ? list.text : "none");
    bel_str_deinit(&list);
    return status;
}

// Returns the index of an input; -1: none.
static int input_of(const bel_served *v, const char *name)
{
    bool is_text = v->text.input >= 0 && strcmp(name, v->inputs[v->text.input].port.name) == 0;
    return is_text ? v->text.input : bel_predictor_find_input(v->predictors[0], name);
}

// Returns the column of a table that the model reads; NULL: none, as for the label.
static const bel_column *column_read_as(const bel_served *v, const char *name)
{
    int c = v->columns != NULL ? bel_columns_find(v->columns, name) : -1;
    return c >= 0 && v->columns->items[c].kind < BEL_COLUMN_KEY ? &v->columns->items[c] : NULL;
}

bool bel_infer_leaves_out(const bel_infer *infer, const char *name)
{
    const bel_served *v = infer->version;
    if (v->columns == NULL || input_of(v, name) >= 0 || column_read_as(v, name) != NULL)
        return false;
    if (v->text.input >= 0 && bel_columns_find(v->columns, name) < 0) return false; // a wrong name
    if (atomic_exchange(v->left_out, true)) return true;
    bel_str quoted = {0};
    bel_json_write_string(&quoted, name);
    bel_log_write(BEL_LOG_INFO,
                  "model %s: a request has %s, which the model does not read; it is left out, as "
                  "are all such columns",
                  infer->model, quoted.text);
    bel_str_deinit(&quoted);
    return true;
}

bel_status *bel_infer_find(const bel_infer *infer, const char *name, int *out_input)
{
    const bel_served *v = infer->version;
    *out_input = input_of(v, name);
    if (*out_input < 0) {
        bel_str begin = {0};
        const bel_column *column = column_read_as(infer->version, name);
        if (column != NULL) {
            bel_str_printf(&begin,
                           "the column \"%s\" is of kind %s: expected its %s, as docs/serve.md "
                           "has them under Tables, got its cells; the inputs are ",
                           name, bel_column_kind_names[column->kind],
                           column->kind == BEL_COLUMN_TOKENS ? "tokens"
                           : infer->version->live != NULL    ? "ids"
                                                             : "places");
        } else {
            bel_str_printf(&begin, "there is no input \"%s\"; the inputs are ", name);
        }
        bel_status *status = complain(infer, begin.text, false);
        bel_str_deinit(&begin);
        return status;
    }
    if (infer->inputs[*out_input].data == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "model %s: the input \"%s\" is given twice", infer->model,
                   name);
}

// Refuses a shape with more elements than the request can hold, before memory is taken for it. A
// cell of a date has several elements.
static bel_status *check_size(const bel_infer *infer, int input, const bel_shape *shape)
{
    const bel_served_input *to = &infer->version->inputs[input];
    int32_t rank = to->column != NULL && shape->rank > 0 ? 1 : shape->rank;
    size_t elements = 1;
    char text[BEL_SHAPE_TEXT];
    for (int32_t d = 0; d < rank; d++) {
        bool fits = shape->dims[d] >= 0 &&
                    bel_size_mul(elements, (size_t)shape->dims[d], &elements) &&
                    elements <= infer->most_elements;
        if (fits) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "model %s, input \"%s\": the request has less data than its shape %s",
                       infer->model, to->port.name, bel_shape_text(shape, text));
    }
    return NULL;
}

static bel_status *check_port(const bel_infer *infer, int input, bel_dtype dtype,
                              const bel_shape *shape)
{
    const bel_port *port = &infer->version->inputs[input].port;
    bool fits = dtype == port->dtype && shape->rank == port->shape.rank;
    for (int32_t d = 0; d < port->shape.rank && fits; d++)
        fits = port->shape.dims[d] < 0 || port->shape.dims[d] == shape->dims[d];
    if (!fits) {
        char want[BEL_SHAPE_TEXT], got[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "model %s, input \"%s\": expected %s %s, got %s %s",
                       infer->model, port->name, bel_v2_name(port->dtype),
                       bel_shape_text(&port->shape, want), bel_v2_name(dtype),
                       bel_shape_text(shape, got));
    }
    BEL_TRY(check_size(infer, input, shape));
    if (port->shape.rank > 0 && port->shape.dims[0] < 0 && shape->dims[0] > infer->most_examples)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "model %s, input \"%s\": got %lld examples, more than --max_examples %d",
                       infer->model, port->name, (long long)shape->dims[0], infer->most_examples);
    return NULL;
}

static void allocate(bel_infer *infer, int input, bel_dtype dtype, const bel_shape *shape,
                     bel_tensor *out_tensor)
{
    bel_tensor *tensor = &infer->inputs[input];
    tensor->dtype = dtype;
    tensor->shape = *shape;
    tensor->data = bel_arena_alloc(infer->arena, bel_tensor_bytes(tensor) + 1);
    *out_tensor = *tensor;
}

bel_status *bel_infer_place(bel_infer *infer, int input, bel_dtype dtype, const bel_shape *shape,
                            bel_tensor *out_tensor)
{
    BEL_TRY(check_port(infer, input, dtype, shape));
    allocate(infer, input, dtype, shape, out_tensor);
    return NULL;
}

// Allocates the two inputs of the model that texts become. Their number is limited by the request,
// and by the tokens that the largest request could hold.
static bel_status *place_texts(bel_infer *infer, int64_t rows, bel_cell_rows *out_rows)
{
    const bel_served_text *text = &infer->version->text;
    const bel_column *column = infer->version->inputs[text->input].column;
    const bel_shape one = BEL_SHAPE(rows), shape = bel_cells_shape(column, rows);
    const int both[] = {text->tokens, text->lengths};
    bel_tensor lengths;
    for (int i = 0; i < 2; i++) {
        if (infer->inputs[both[i]].data == NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "model %s: expected \"%s\" as a text or as tokens, got both", infer->model,
                       column->name);
    }
    BEL_TRY(check_port(infer, text->lengths, BEL_DTYPE_I64, &one));
    if (column->most > 0 && rows > infer->most_tokens / column->most)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "model %s, input \"%s\": %lld texts become %lld tokens each, expected at "
                       "most %lld tokens in all; hint: fewer texts a request, or --max_body",
                       infer->model, column->name, (long long)rows, (long long)column->most,
                       (long long)infer->most_tokens);
    *out_rows = (bel_cell_rows){.columns = infer->version->columns, .column = column};
    allocate(infer, text->tokens, BEL_DTYPE_I64, &shape, &out_rows->tensor);
    allocate(infer, text->lengths, BEL_DTYPE_I64, &one, &lengths);
    out_rows->lengths = lengths.data;
    infer->inputs[text->input] = lengths; // it was given
    return NULL;
}

bel_status *bel_infer_place_cells(bel_infer *infer, int input, int64_t rows,
                                  bel_cell_rows *out_rows)
{
    const bel_column *column = infer->version->inputs[input].column;
    const bel_shape shape = bel_cells_shape(column, rows);
    if (input == infer->version->text.input) return place_texts(infer, rows, out_rows);
    bel_cell_rows cells = {.columns = infer->version->columns,
                           .column = column,
                           .ids = infer->version->live != NULL,
                           .model = infer->model,
                           .unknown = &infer->version->inputs[input].unknown};
    BEL_TRY(bel_infer_place(infer, input, bel_cells_dtype(column), &shape, &cells.tensor));
    *out_rows = cells;
    return NULL;
}

// --- Runs ---------------------------------------------------------------------------------------

// Request at the gate.
typedef struct waiting {
    bel_gate_request request; // first: a bel_gate_request * is a waiting *
    bel_infer *infer;
    int64_t examples; // 0: the version has no runs of several requests
    bel_status *status;
} waiting;

static const waiting *waiting_of(const bel_gate_request *request)
{
    return (const waiting *)request;
}

// Copies the elements of request `index` of `count` from an output.
static void take_output(bel_infer *infer, int output, const bel_tensor *all, int index, int count)
{
    bel_tensor part = *all;
    if (count > 1) part.shape.dims[0] /= count;
    size_t bytes = bel_tensor_bytes(&part);
    part.data = bel_arena_alloc(infer->arena, bytes + 1);
    if (bytes > 0) memcpy(part.data, (const char *)all->data + (size_t)index * bytes, bytes);
    infer->outputs[output] = part;
}

// Refuses the outputs of one of `count` requests if they exceed MOST_OUTPUT_BYTES, before they are
// copied and written.
static bel_status *check_outputs(const bel_infer *infer, const bel_predictor *predictor, int count)
{
    size_t left = MOST_OUTPUT_BYTES;
    for (int o = 0; o < infer->version->output_count; o++) {
        const bel_tensor all = bel_predictor_output(predictor, o);
        size_t bytes = bel_tensor_bytes(&all) / (size_t)count;
        if (bytes > left)
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "model %s: the outputs exceed %d MiB; hint: fewer examples a request",
                           infer->model, MOST_OUTPUT_BYTES >> 20);
        left -= bytes;
    }
    return NULL;
}

static bel_status *run_one(bel_infer *infer, int slot)
{
    const bel_served *v = infer->version;
    bel_predictor *predictor = bel_served_predictor(v, slot, 0);
    for (int i = 0; i < v->input_count; i++)
        BEL_TRY_CTX(bel_predictor_bind(predictor, i, &infer->inputs[i]), "model %s", infer->model);
    BEL_TRY_CTX(bel_predictor_run(predictor), "model %s", infer->model);
    BEL_TRY(check_outputs(infer, predictor, 1));
    for (int o = 0; o < v->output_count; o++) {
        const bel_tensor all = bel_predictor_output(predictor, o);
        take_output(infer, o, &all, 0, 1);
    }
    return NULL;
}

// Binds input `input` of all requests as one batch, in the arena of the first.
static bel_status *bind_together(bel_gate_request *const *requests, int count, int input,
                                 bel_predictor *predictor)
{
    const bel_infer *first = waiting_of(requests[0])->infer;
    bel_tensor all = first->inputs[input];
    size_t bytes = bel_tensor_bytes(&all);
    all.shape.dims[0] *= count;
    all.data = bel_arena_alloc(first->arena, bytes * (size_t)count + 1);
    for (int r = 0; r < count && bytes > 0; r++)
        memcpy((char *)all.data + (size_t)r * bytes,
               waiting_of(requests[r])->infer->inputs[input].data, bytes);
    return bel_predictor_bind(predictor, input, &all);
}

static bel_status *run_several(bel_gate_request *const *requests, int count, int slot)
{
    const bel_served *v = waiting_of(requests[0])->infer->version;
    int level = 0;
    while (1 << level < count)
        level++;
    bel_predictor *predictor = bel_served_predictor(v, slot, level);
    for (int i = 0; i < v->input_count; i++)
        BEL_TRY(bind_together(requests, count, i, predictor));
    BEL_TRY(bel_predictor_run(predictor));
    BEL_TRY(check_outputs(waiting_of(requests[0])->infer, predictor, count));
    for (int o = 0; o < v->output_count; o++) {
        const bel_tensor all = bel_predictor_output(predictor, o);
        int64_t examples = waiting_of(requests[0])->examples;
        if (all.shape.dims[0] != examples * count)
            return BEL_ERR(BEL_INTERNAL, "output %d: expected an example for each of the inputs",
                           o);
        for (int r = 0; r < count; r++)
            take_output(waiting_of(requests[r])->infer, o, &all, r, count);
    }
    return NULL;
}

// If a run of several requests fails, each runs separately, so that only the wrong one fails.
static void run_requests(bel_gate_request *const *requests, int count, int slot)
{
    bel_status *status = count > 1 ? run_several(requests, count, slot) : NULL;
    if (count > 1 && status == NULL) return;
    bel_status_ignore(status); // a request to blame fails again
    for (int r = 0; r < count; r++) {
        waiting *w = (waiting *)requests[r];
        w->status = run_one(w->infer, slot);
    }
}

// Requests run together if their version is the same, and the shapes of all inputs. The version
// fixes their ranks, so that the dimensions suffice.
static void make_key(const bel_infer *infer, bel_gate_request *request)
{
    const bel_served *v = infer->version;
    const int count = v->level_count > 1 ? v->input_count : 0;
    size_t rank = 0, at = 1;
    for (int i = 0; i < count; i++)
        rank += (size_t)infer->inputs[i].shape.rank;
    int64_t *key = bel_arena_alloc(infer->arena, (1 + rank) * sizeof *key);
    key[0] = (int64_t)(intptr_t)v;
    for (int i = 0; i < count; i++) {
        const bel_shape *shape = &infer->inputs[i].shape;
        memcpy(key + at, shape->dims, (size_t)shape->rank * sizeof *key);
        at += (size_t)shape->rank;
    }
    request->key = key;
    request->key_bytes = at * sizeof *key;
}

bel_status *bel_infer_run(bel_infer *infer)
{
    const bel_served *v = infer->version;
    for (int i = 0; i < v->input_count; i++)
        if (infer->inputs[i].data == NULL)
            return complain(infer, "these inputs are not given: ", true);
    waiting w = {.infer = infer};
    w.request =
        (bel_gate_request){.most = 1, .deadline_ns = infer->deadline_ns, .run = run_requests};
    if (v->level_count > 1) w.examples = infer->inputs[0].shape.dims[0];
    int64_t most = w.examples > 0 ? infer->max_batch / w.examples : 1;
    for (int level = 1; level < v->level_count && 1 << level <= most; level++)
        w.request.most = 1 << level;
    make_key(infer, &w.request);
    BEL_TRY(bel_gate_pass(infer->gate, &w.request));
    infer->arrived_ns = w.request.arrived_ns;
    infer->taken_ns = w.request.taken_ns;
    infer->computed_ns = w.request.computed_ns;
    return w.status;
}

// --- Outputs ------------------------------------------------------------------------------------

int bel_infer_output_count(const bel_served *version)
{
    return version->output_count + (version->class_output >= 0);
}

bel_status *bel_infer_ask(const bel_infer *infer, const char *name, int *out_output)
{
    for (int o = 0; o < bel_infer_output_count(infer->version); o++) {
        if (strcmp(bel_infer_output_port(infer->version, o).name, name) != 0) continue;
        if (infer->asked[o])
            return BEL_ERR(BEL_INVALID_ARGUMENT, "output \"%s\" is asked for twice", name);
        infer->asked[o] = true;
        *out_output = o;
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "model %s: there is no output \"%s\"", infer->model, name);
}

bel_port bel_infer_output_port(const bel_served *version, int index)
{
    const bel_port texts = {BEL_CLASS_OUTPUT, BEL_DTYPE_STRING, BEL_SHAPE(BEL_DIM_BATCH)};
    if (index == version->output_count) return texts;
    return bel_predictor_output_port(version->predictors[0], index);
}

int bel_infer_input_count(const bel_served *version)
{
    return version->input_count - (version->text.input >= 0 ? 1 : 0);
}

// The index-th input that is described; a text is it instead of its tokens.
static const bel_served_input *described(const bel_served *v, int index)
{
    for (int i = 0; i < v->input_count; i++) {
        bool of_text = v->text.input >= 0 && (i == v->text.tokens || i == v->text.lengths);
        if (!of_text && index-- == 0) return &v->inputs[i];
    }
    return &v->inputs[v->text.input];
}

bel_port bel_infer_input_port(const bel_served *version, int index)
{
    const bel_served_input *input = described(version, index);
    const bel_port texts = {input->port.name, BEL_DTYPE_STRING, BEL_SHAPE(BEL_DIM_BATCH)};
    bool is_text = input->column != NULL && input->column->kind != BEL_COLUMN_NUMBER;
    return is_text ? texts : input->port;
}

bel_tensor bel_infer_output(const bel_infer *infer, int index)
{
    const bel_served *v = infer->version;
    if (index < v->output_count) return infer->outputs[index];
    int64_t rows = infer->outputs[v->class_output].shape.dims[0];
    return (bel_tensor){.dtype = BEL_DTYPE_STRING, .shape = BEL_SHAPE(rows)};
}

const char *bel_infer_class(const bel_infer *infer, int64_t example)
{
    const bel_served *v = infer->version;
    bel_tensor row = infer->outputs[v->class_output];
    int64_t width = row.shape.dims[1];
    row.data = (char *)row.data + (size_t)(example * width) * bel_dtype_size(row.dtype);
    row.shape = BEL_SHAPE(width);
    return bel_served_class(v, &row);
}
