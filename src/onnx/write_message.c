// Model parts around the nodes, and packing of a message piece by piece into a sink, so that a
// large model is not copied. Messages are in the caller's arena and point to elements, which must
// stay until they are packed.
#include "onnx/write_inner.h"

#include <string.h>

#include "base/number.h"

enum { IR_VERSION = 8 }; // the first one with functions

static Onnx__TensorShapeProto *shape_message(bel_arena *arena, const bel_shape *shape)
{
    Onnx__TensorShapeProto *message = bel_arena_alloc(arena, sizeof *message);
    onnx__tensor_shape_proto__init(message);
    message->n_dim = (size_t)shape->rank;
    message->dim = bel_arena_alloc(arena, (message->n_dim + 1) * sizeof *message->dim);
    for (int32_t d = 0; d < shape->rank; d++) {
        Onnx__TensorShapeProto__Dimension *dim = bel_arena_alloc(arena, sizeof *dim);
        onnx__tensor_shape_proto__dimension__init(dim);
        char symbol[32];
        bel_snprintf(symbol, sizeof symbol, "d%lld", -(long long)shape->dims[d]);
        dim->has_dim_value = shape->dims[d] >= 0;
        dim->dim_value = shape->dims[d];
        if (shape->dims[d] < 0)
            dim->dim_param =
                bel_arena_strdup(arena, shape->dims[d] == BEL_DIM_BATCH ? "N" : symbol);
        message->dim[d] = dim;
    }
    return message;
}

Onnx__ValueInfoProto *bel_onnx_port_message(bel_arena *arena, const char *name,
                                            const bel_spec *spec)
{
    Onnx__ValueInfoProto *port = bel_arena_alloc(arena, sizeof *port);
    Onnx__TypeProto *type = bel_arena_alloc(arena, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = bel_arena_alloc(arena, sizeof *tensor);
    onnx__value_info_proto__init(port);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    port->name = bel_arena_strdup(arena, name);
    port->type = type;
    type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = bel_onnx_type_number(spec->dtype);
    tensor->shape = shape_message(arena, &spec->shape);
    return port;
}

Onnx__StringStringEntryProto *bel_onnx_entry_message(bel_arena *arena, const char *key,
                                                     const char *value)
{
    Onnx__StringStringEntryProto *message = bel_arena_alloc(arena, sizeof *message);
    onnx__string_string_entry_proto__init(message);
    message->key = bel_arena_strdup(arena, key);
    message->value = bel_arena_strdup(arena, value);
    return message;
}

Onnx__OperatorSetIdProto *bel_onnx_opset_message(bel_arena *arena, const char *domain,
                                                 int64_t version)
{
    Onnx__OperatorSetIdProto *message = bel_arena_alloc(arena, sizeof *message);
    onnx__operator_set_id_proto__init(message);
    message->domain = bel_arena_strdup(arena, domain);
    message->has_version = true;
    message->version = version;
    return message;
}

void bel_onnx_begin_model(Onnx__ModelProto *model, Onnx__GraphProto *graph, bel_arena *arena)
{
    onnx__graph_proto__init(graph);
    onnx__model_proto__init(model);
    graph->name = bel_arena_strdup(arena, "belfry");
    model->has_ir_version = true;
    model->ir_version = IR_VERSION;
    model->producer_name = bel_arena_strdup(arena, "belfry");
    model->producer_version = bel_arena_strdup(arena, BEL_VERSION);
    model->graph = graph;
}

// A protobuf-c buffer that forwards packed bytes.
typedef struct sink_buffer {
    ProtobufCBuffer base;
    bel_onnx_sink *sink;
    void *context;
} sink_buffer;

static void write_message_append(ProtobufCBuffer *buffer, size_t count, const uint8_t *bytes)
{
    const sink_buffer *to = (const sink_buffer *)(const void *)buffer;
    if (count > 0) to->sink(to->context, bytes, count);
}

bel_status *bel_onnx_pack(Onnx__ModelProto *model, bel_arena *arena, bel_onnx_sink *sink,
                          void *context)
{
    bel_onnx_align_elements(model, arena);
    size_t size = onnx__model_proto__get_packed_size(model);
    if (size > INT32_MAX) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "the model takes %zu bytes, and an ONNX file has at most 2 GiB; hint: keep "
                       "the elements beside it",
                       size);
    }
    sink_buffer buffer = {
        .base = {.append = write_message_append}, .sink = sink, .context = context};
    onnx__model_proto__pack_to_buffer(model, &buffer.base);
    return NULL;
}
