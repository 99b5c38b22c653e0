// A request is unpacked before its model is known, with a bound on its memory, and its bytes stay
// where gRPC has them. Outputs have the form of the inputs: raw_output_contents if there are
// raw_input_contents, and typed contents otherwise.
#include "serve/grpc_v2.h"

#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "inference.pb-c.h"
#include "ops/kernels/elements.h"
#include "serve/raw.h"

#define SERVICE "/inference.GRPCInferenceService/"

typedef Inference__ModelInferRequest__InferInputTensor input_message;
typedef Inference__ModelInferResponse__InferOutputTensor output_message;
typedef Inference__ModelMetadataResponse__TensorMetadata port_message;
typedef Inference__InferTensorContents contents_message;

// Request in progress.
typedef struct call {
    bel_service_call call;
    const bel_rpc_request *request;
    bel_str *body; // the answer's message
    Inference__ModelInferRequest *infer;
} call;

// --- Messages -----------------------------------------------------------------------------------

static void put_message(bel_str *out, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    out->length += protobuf_c_message_pack(message, (uint8_t *)bel_str_room(out, size));
}

static bel_status *unpack(const call *c, const ProtobufCMessageDescriptor *kind,
                          ProtobufCMessage **out_message)
{
    bel_budget budget = bel_budget_of(c->request->body_size);
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    *out_message =
        protobuf_c_message_unpack(kind, &allocator, c->request->body_size, c->request->body);
    if (*out_message != NULL) return NULL;
    if (budget.is_spent)
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "the message needs too much memory once it is read");
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed message: expected a %s", kind->name);
}

static void free_message(ProtobufCMessage *message)
{
    ProtobufCAllocator allocator = {NULL, bel_budget_give, NULL};
    if (message != NULL) protobuf_c_message_free_unpacked(message, &allocator);
}

// protobuf-c does not write to texts of a message that it packs.
static char *text_of(const char *text)
{
    union {
        const char *read;
        char *text;
    } both = {.read = text};
    return both.text;
}

// A version is a number, a label, or empty: the newest, or for an inference the one of its share.
// `id` NULL: no inference.
static bel_status *acquire(call *c, const char *model, const char *version, const char *id)
{
    bel_service_choice choice = {.model = model,
                                 .model_length = strlen(model),
                                 .number = -1,
                                 .is_inference = id != NULL,
                                 .id = id};
    size_t length = strlen(version);
    bool is_number = length > 0 && strspn(version, "0123456789") == length;
    if (is_number && !bel_parse_i64(version, length, &choice.number)) choice.number = -2;
    if (length > 0 && !is_number) {
        choice.label = version;
        choice.label_length = length;
    }
    return bel_service_acquire(&c->call, &choice);
}

// --- Inputs -------------------------------------------------------------------------------------

static bel_status *take_shape(const input_message *input, bel_shape *out_shape)
{
    bel_shape shape = {.rank = (int32_t)input->n_shape};
    bool good = input->n_shape <= BEL_MAX_RANK;
    for (int32_t d = 0; d < shape.rank && good; d++) {
        shape.dims[d] = input->shape[d];
        good = input->shape[d] >= 0 && input->shape[d] <= INT32_MAX;
    }
    if (!good) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "input \"%s\": expected a shape of at most %d sizes, such as [1,64]",
                       input->name, BEL_MAX_RANK);
    }
    *out_shape = shape;
    return NULL;
}

static bel_status *check_count(const input_message *input, const char *field, size_t got,
                               int64_t expected)
{
    if ((int64_t)got == expected) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\": expected %lld elements in %s, got %zu",
                   input->name, (long long)expected, field, got);
}

static bel_status *read_texts(bel_infer *infer, int index, const input_message *input,
                              const bel_shape *shape)
{
    const contents_message *contents = input->contents;
    bel_cell_rows rows;
    BEL_TRY(check_count(input, "bytes_contents", contents->n_bytes_contents,
                        bel_shape_elements(shape)));
    BEL_TRY(bel_raw_place_cells(infer, index, shape, &rows));
    for (size_t i = 0; i < contents->n_bytes_contents; i++) {
        const ProtobufCBinaryData *text = &contents->bytes_contents[i];
        const bel_cell cell = {text->data != NULL ? (const char *)text->data : "", text->len};
        BEL_TRY(bel_cells_put(&rows, cell, (int64_t)i));
    }
    return NULL;
}

static bel_status *read_typed(bel_infer *infer, int index, const input_message *input,
                              bel_dtype dtype, const bel_shape *shape)
{
    const contents_message *c = input->contents;
    bel_tensor tensor;
    const struct {
        bel_dtype dtype;
        const char *field;
        size_t count, element;
        const void *data;
    } fields[] = {
        {BEL_DTYPE_F32, "fp32_contents", c->n_fp32_contents, sizeof(float), c->fp32_contents},
        {BEL_DTYPE_F64, "fp64_contents", c->n_fp64_contents, sizeof(double), c->fp64_contents},
        {BEL_DTYPE_I32, "int_contents", c->n_int_contents, sizeof(int32_t), c->int_contents},
        {BEL_DTYPE_I64, "int64_contents", c->n_int64_contents, sizeof(int64_t), c->int64_contents},
        {BEL_DTYPE_U8, "uint_contents", c->n_uint_contents, 0, NULL},
        {BEL_DTYPE_BOOL, "bool_contents", c->n_bool_contents, 0, NULL}};
    if (bel_raw_is_cells(infer, index, dtype)) return read_texts(infer, index, input, shape);
    BEL_TRY(bel_infer_place(infer, index, dtype, shape, &tensor));
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        if (fields[f].dtype != dtype) continue;
        BEL_TRY(check_count(input, fields[f].field, fields[f].count, bel_shape_elements(shape)));
        if (fields[f].data != NULL)
            memcpy(tensor.data, fields[f].data, fields[f].count * fields[f].element);
        for (size_t i = 0; i < fields[f].count && fields[f].element == 0; i++) {
            uint32_t value = dtype == BEL_DTYPE_U8 ? c->uint_contents[i] : c->bool_contents[i] != 0;
            if (value > UINT8_MAX)
                return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\": expected 0 to 255, got %u",
                               input->name, value);
            ((uint8_t *)tensor.data)[i] = (uint8_t)value;
        }
        return bel_raw_take_elements(infer, index, &tensor);
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\": a %s is only in raw_input_contents",
                   input->name, bel_v2_name(dtype));
}

static bel_status *read_input(bel_infer *infer, const input_message *input,
                              const ProtobufCBinaryData *raw)
{
    int index;
    bel_dtype dtype;
    bel_shape shape;
    if (bel_infer_leaves_out(infer, input->name)) return NULL;
    BEL_TRY(bel_infer_find(infer, input->name, &index));
    if (!bel_v2_find(input->datatype, &dtype))
        return BEL_ERR(BEL_UNIMPLEMENTED, "input \"%s\": there are no inputs of type \"%s\"",
                       input->name, input->datatype);
    BEL_TRY(take_shape(input, &shape));
    if ((raw != NULL) == (input->contents != NULL)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "input \"%s\": expected contents, or raw_input_contents of all inputs, got "
                       "%s",
                       input->name, raw != NULL ? "both" : "neither");
    }
    if (raw == NULL) return read_typed(infer, index, input, dtype, &shape);
    return bel_raw_read(infer, index, dtype, &shape, (const char *)raw->data, raw->len);
}

static bel_status *read_inputs(bel_infer *infer, const Inference__ModelInferRequest *request)
{
    size_t raw = request->n_raw_input_contents;
    if (raw > 0 && raw != request->n_inputs) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected raw_input_contents of none or all of %zu inputs, got %zu",
                       request->n_inputs, raw);
    }
    bel_infer_begin(infer);
    for (size_t i = 0; i < request->n_inputs; i++)
        BEL_TRY(read_input(infer, request->inputs[i],
                           raw > 0 ? &request->raw_input_contents[i] : NULL));
    return NULL;
}

// --- Outputs ------------------------------------------------------------------------------------

static void fill_texts(const bel_infer *infer, int64_t rows, contents_message *contents)
{
    contents->n_bytes_contents = (size_t)rows;
    contents->bytes_contents =
        bel_arena_alloc(infer->arena, ((size_t)rows + 1) * sizeof *contents->bytes_contents);
    for (int64_t i = 0; i < rows; i++) {
        char *name = text_of(bel_infer_class(infer, i));
        contents->bytes_contents[i] = (ProtobufCBinaryData){strlen(name), (uint8_t *)name};
    }
}

// UINT8 and BOOL have wider elements in the message.
static void fill_contents(const bel_infer *infer, const bel_tensor *tensor,
                          contents_message *contents)
{
    size_t count = (size_t)bel_shape_elements(&tensor->shape);
    switch (tensor->dtype) {
    case BEL_DTYPE_F32:
        contents->n_fp32_contents = count;
        contents->fp32_contents = tensor->data;
        return;
    case BEL_DTYPE_F64:
        contents->n_fp64_contents = count;
        contents->fp64_contents = tensor->data;
        return;
    case BEL_DTYPE_I32:
        contents->n_int_contents = count;
        contents->int_contents = tensor->data;
        return;
    case BEL_DTYPE_I64:
        contents->n_int64_contents = count;
        contents->int64_contents = tensor->data;
        return;
    case BEL_DTYPE_U8:
        contents->n_uint_contents = count;
        contents->uint_contents = bel_arena_alloc(infer->arena, (count + 1) * sizeof(uint32_t));
        for (size_t i = 0; i < count; i++)
            contents->uint_contents[i] = ((const uint8_t *)tensor->data)[i];
        return;
    default:
        contents->n_bool_contents = count;
        contents->bool_contents =
            bel_arena_alloc(infer->arena, (count + 1) * sizeof *contents->bool_contents);
        for (size_t i = 0; i < count; i++)
            contents->bool_contents[i] = ((const uint8_t *)tensor->data)[i];
    }
}

static output_message *make_output(const bel_infer *infer, int index, bool raw)
{
    const bel_tensor tensor = bel_infer_output(infer, index);
    output_message *out = bel_arena_alloc(infer->arena, sizeof *out);
    inference__model_infer_response__infer_output_tensor__init(out);
    out->name = text_of(bel_infer_output_port(infer->version, index).name);
    out->datatype = text_of(bel_v2_name(tensor.dtype));
    out->n_shape = (size_t)tensor.shape.rank;
    out->shape = bel_arena_copy(infer->arena, tensor.shape.dims, sizeof tensor.shape.dims);
    if (raw) return out;
    out->contents = bel_arena_alloc(infer->arena, sizeof *out->contents);
    inference__infer_tensor_contents__init(out->contents);
    if (tensor.dtype == BEL_DTYPE_STRING) {
        fill_texts(infer, tensor.shape.dims[0], out->contents);
    } else {
        fill_contents(infer, &tensor, out->contents);
    }
    return out;
}

// Elements of a text are made here; others stay where they are.
static ProtobufCBinaryData make_raw(const bel_infer *infer, int index)
{
    const bel_tensor tensor = bel_infer_output(infer, index);
    if (tensor.dtype != BEL_DTYPE_STRING)
        return (ProtobufCBinaryData){bel_tensor_bytes(&tensor), tensor.data};
    bel_str texts = {0};
    bel_raw_write(infer, index, &texts);
    ProtobufCBinaryData data = {texts.length,
                                bel_arena_copy(infer->arena, texts.text, texts.length)};
    bel_str_deinit(&texts);
    return data;
}

// Chooses the outputs in the order of the request.
static bel_status *choose_outputs(const bel_infer *infer,
                                  const Inference__ModelInferRequest *request, int *out_outputs)
{
    int count = bel_infer_output_count(infer->version);
    for (size_t i = 0; i < request->n_outputs; i++)
        BEL_TRY(bel_infer_ask(infer, request->outputs[i]->name, &out_outputs[i]));
    for (int o = 0; o < count && request->n_outputs == 0; o++)
        out_outputs[o] = o;
    return NULL;
}

// True if an output has a type that typed contents lack.
static bool needs_raw(const bel_infer *infer, const int *outputs, size_t count)
{
    bool needs = false;
    for (size_t i = 0; i < count; i++) {
        bel_dtype dtype = bel_infer_output(infer, outputs[i]).dtype;
        needs = needs || dtype == BEL_DTYPE_F16 || dtype == BEL_DTYPE_BF16;
    }
    return needs;
}

static bel_status *write_outputs(const bel_infer *infer,
                                 const Inference__ModelInferRequest *request, bel_str *out)
{
    enum { NUMBER = 24 };
    char version[NUMBER];
    size_t count = request->n_outputs;
    if (count == 0) count = (size_t)bel_infer_output_count(infer->version);
    int *outputs = bel_arena_alloc(infer->arena, (count + 1) * sizeof *outputs);
    BEL_TRY(choose_outputs(infer, request, outputs));
    bool raw = request->n_raw_input_contents > 0 || needs_raw(infer, outputs, count);
    Inference__ModelInferResponse response;
    inference__model_infer_response__init(&response);
    bel_snprintf(version, sizeof version, "%lld", (long long)infer->version->number);
    response.model_name = text_of(infer->model);
    response.model_version = version;
    response.id = request->id;
    response.n_outputs = count;
    response.outputs = bel_arena_alloc(infer->arena, (count + 1) * sizeof(output_message *));
    response.n_raw_output_contents = raw ? count : 0;
    response.raw_output_contents =
        bel_arena_alloc(infer->arena, (count + 1) * sizeof *response.raw_output_contents);
    for (size_t i = 0; i < count; i++) {
        response.outputs[i] = make_output(infer, outputs[i], raw);
        if (raw) response.raw_output_contents[i] = make_raw(infer, outputs[i]);
    }
    put_message(out, &response.base);
    return NULL;
}

static bel_status *infer_inputs(void *user, bel_infer *infer)
{
    const call *c = user;
    BEL_TRY(read_inputs(infer, c->infer));
    BEL_TRY(bel_infer_run(infer));
    return write_outputs(infer, c->infer, c->body);
}

// --- Methods ------------------------------------------------------------------------------------

static bel_status *server_live(call *c)
{
    Inference__ServerLiveResponse response;
    inference__server_live_response__init(&response);
    response.live = true;
    put_message(c->body, &response.base);
    return NULL;
}

static bel_status *server_ready(call *c)
{
    Inference__ServerReadyResponse response;
    inference__server_ready_response__init(&response);
    response.ready = bel_service_is_ready(c->call.service);
    put_message(c->body, &response.base);
    return NULL;
}

static bel_status *server_metadata(call *c)
{
    Inference__ServerMetadataResponse response;
    inference__server_metadata_response__init(&response);
    response.name = text_of("belfry");
    response.version = text_of(bel_version());
    put_message(c->body, &response.base);
    return NULL;
}

// An unknown model is not ready.
static bel_status *model_ready(call *c)
{
    ProtobufCMessage *message;
    BEL_TRY(unpack(c, &inference__model_ready_request__descriptor, &message));
    const Inference__ModelReadyRequest *request = (const Inference__ModelReadyRequest *)message;
    bel_status *status = acquire(c, request->name, request->version, NULL);
    Inference__ModelReadyResponse response;
    inference__model_ready_response__init(&response);
    response.ready = status == NULL;
    bel_status_ignore(status); // the answer shows it
    put_message(c->body, &response.base);
    free_message(message);
    return NULL;
}

// Fills in ports; the messages and their pointers are one allocation.
static port_message **make_ports(bel_arena *arena, const bel_served *version,
                                 bel_port (*port_of)(const bel_served *, int), int count)
{
    port_message **list = bel_arena_alloc(arena, ((size_t)count + 1) * sizeof(port_message *));
    for (int i = 0; i < count; i++) {
        const bel_port port = port_of(version, i);
        list[i] = bel_arena_alloc(arena, sizeof *list[i]);
        inference__model_metadata_response__tensor_metadata__init(list[i]);
        list[i]->name = text_of(port.name);
        list[i]->datatype = text_of(bel_v2_name(port.dtype));
        list[i]->n_shape = (size_t)port.shape.rank;
        list[i]->shape = bel_arena_copy(arena, port.shape.dims, sizeof port.shape.dims);
        for (int32_t d = 0; d < port.shape.rank; d++)
            if (list[i]->shape[d] < 0) list[i]->shape[d] = -1;
    }
    return list;
}

static void put_metadata(const call *c, bel_arena *arena)
{
    enum { NUMBER = 24 };
    const bel_served *v = c->call.version;
    Inference__ModelMetadataResponse response;
    inference__model_metadata_response__init(&response);
    int count;
    int64_t *numbers = bel_model_versions(c->call.model, &count);
    response.versions = bel_arena_alloc(arena, ((size_t)count + 1) * sizeof(char *));
    for (int i = 0; i < count; i++) {
        response.versions[i] = bel_arena_alloc(arena, NUMBER);
        bel_snprintf(response.versions[i], NUMBER, "%lld", (long long)numbers[i]);
    }
    bel_free(numbers);
    response.name = text_of(bel_model_name(c->call.model));
    response.platform = text_of(BEL_PLATFORM);
    response.n_versions = (size_t)count;
    response.n_inputs = (size_t)bel_infer_input_count(v);
    response.inputs = make_ports(arena, v, bel_infer_input_port, bel_infer_input_count(v));
    response.n_outputs = (size_t)bel_infer_output_count(v);
    response.outputs = make_ports(arena, v, bel_infer_output_port, bel_infer_output_count(v));
    put_message(c->body, &response.base);
}

static bel_status *model_metadata(call *c)
{
    ProtobufCMessage *message;
    BEL_TRY(unpack(c, &inference__model_metadata_request__descriptor, &message));
    const Inference__ModelMetadataRequest *request =
        (const Inference__ModelMetadataRequest *)message;
    bel_status *status = acquire(c, request->name, request->version, NULL);
    if (status == NULL) {
        bel_arena *arena = bel_arena_create();
        put_metadata(c, arena);
        bel_arena_destroy(arena);
    }
    free_message(message);
    return status;
}

static bel_status *model_infer(call *c)
{
    ProtobufCMessage *message;
    BEL_TRY(unpack(c, &inference__model_infer_request__descriptor, &message));
    c->infer = (Inference__ModelInferRequest *)message;
    bel_status *status = acquire(c, c->infer->model_name, c->infer->model_version, c->infer->id);
    if (status == NULL) status = bel_service_infer(&c->call, infer_inputs, c);
    free_message(message);
    return status;
}

enum { OPEN_METHODS = 2 }; // the first ones need no token
const char *const bel_grpc_v2_methods[] = {SERVICE "ServerLive",     SERVICE "ServerReady",
                                           SERVICE "ServerMetadata", SERVICE "ModelReady",
                                           SERVICE "ModelMetadata",  SERVICE "ModelInfer"};
static bel_status *(*const answers[])(call *c) = {server_live, server_ready,   server_metadata,
                                                  model_ready, model_metadata, model_infer};
const int bel_grpc_v2_method_count = sizeof answers / sizeof answers[0];

bel_status *bel_grpc_v2_answer(bel_service *service, const bel_rpc_request *request,
                               bel_str *out_body)
{
    call c = {.call = {.service = service,
                       .remote = request->remote,
                       .method = "gRPC",
                       .path = bel_grpc_v2_methods[request->method],
                       .bytes_in = request->body_size,
                       .deadline_ns = request->deadline_ns},
              .request = request,
              .body = out_body};
    bel_service_begin(&c.call);
    bel_status *status = NULL;
    if (request->method >= OPEN_METHODS) {
        char *authorization = bel_rpc_header(request, "authorization");
        status = bel_service_authorize(&c.call, authorization);
        bel_free(authorization);
    }
    if (status == NULL) status = answers[request->method](&c);
    bel_service_end(&c.call, bel_service_code(status), out_body->length);
    return status;
}
