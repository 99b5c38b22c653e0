// Emits nodes, attributes and constants as protobuf-c's structs, in one arena. protobuf-c packs
// from plain pointers and frees only memory that it has allocated. So the caller's constants are
// not copied, and must stay until the model is packed.
#include "onnx/emit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "onnx/build.h"
#include "ops/kernels/elements.h"

enum { MOST_ATTRS = 8 };

void bel_onnx_emitter_init(bel_onnx_emitter *emitter, bel_arena *arena)
{
    *emitter = (bel_onnx_emitter){.arena = arena, .names = bel_names_create()};
}

void bel_onnx_emitter_deinit(bel_onnx_emitter *emitter)
{
    bel_names_destroy(emitter->names);
    bel_free(emitter->nodes);
}

const char *bel_onnx_new_name(bel_onnx_emitter *emitter, const char *wanted)
{
    bool added;
    const char *name = bel_arena_strdup(emitter->arena, wanted);
    bel_names_add(emitter->names, name, &added);
    for (int i = 2; !added; i++) {
        char *longer = bel_strf("%s_%d", wanted, i);
        name = bel_arena_strdup(emitter->arena, longer);
        bel_free(longer);
        bel_names_add(emitter->names, name, &added);
    }
    return name;
}

// --- Nodes ---------------------------------------------------------------------------------------

// protobuf-c's lists have non-const pointers, but packing does not write through them.
static char **list_of(bel_onnx_emitter *emitter, const char *const *names, int count)
{
    char **list = bel_arena_alloc(emitter->arena, (size_t)(count + 1) * sizeof *list);
    for (int i = 0; i < count; i++)
        list[i] = bel_arena_strdup(emitter->arena, names[i] != NULL ? names[i] : "");
    return list;
}

Onnx__NodeProto *bel_onnx_emit(bel_onnx_emitter *emitter, const char *op, const char *const *inputs,
                               int input_count, const char *const *outputs, int output_count)
{
    Onnx__NodeProto *node = bel_arena_alloc(emitter->arena, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = bel_arena_strdup(emitter->arena, op);
    node->input = list_of(emitter, inputs, input_count);
    node->n_input = (size_t)input_count;
    node->output = list_of(emitter, outputs, output_count);
    node->n_output = (size_t)output_count;
    node->attribute = bel_arena_alloc(emitter->arena, MOST_ATTRS * sizeof(Onnx__AttributeProto *));
    emitter->nodes = bel_xgrow(emitter->nodes, &emitter->node_capacity, emitter->node_count + 1,
                               sizeof(Onnx__NodeProto *));
    emitter->nodes[emitter->node_count++] = node;
    return node;
}

const char *bel_onnx_emit_new(bel_onnx_emitter *emitter, const char *op, const char *const *inputs,
                              int input_count)
{
    const char *name = bel_onnx_new_name(emitter, op);
    bel_onnx_emit(emitter, op, inputs, input_count, &name, 1);
    return name;
}

// --- Attributes ----------------------------------------------------------------------------------

static Onnx__AttributeProto *onnx_emitter_put(bel_onnx_emitter *emitter, const char *name,
                                              bel_onnx_kind kind)
{
    Onnx__NodeProto *node = emitter->nodes[emitter->node_count - 1];
    Onnx__AttributeProto *attr = bel_arena_alloc(emitter->arena, sizeof *attr);
    onnx__attribute_proto__init(attr);
    BEL_CHECK(node->n_attribute < MOST_ATTRS);
    attr->name = bel_arena_strdup(emitter->arena, name);
    attr->has_type = true;
    attr->type = (int32_t)kind;
    node->attribute[node->n_attribute++] = attr;
    return attr;
}

void bel_onnx_put_int(bel_onnx_emitter *emitter, const char *name, int64_t value)
{
    Onnx__AttributeProto *attr = onnx_emitter_put(emitter, name, BEL_ONNX_INT);
    attr->has_i = true;
    attr->i = value;
}

void bel_onnx_put_float(bel_onnx_emitter *emitter, const char *name, double value)
{
    Onnx__AttributeProto *attr = onnx_emitter_put(emitter, name, BEL_ONNX_FLOAT);
    attr->has_f = true;
    attr->f = (float)value;
}

void bel_onnx_put_ints(bel_onnx_emitter *emitter, const char *name, const int64_t *values,
                       int count)
{
    Onnx__AttributeProto *attr = onnx_emitter_put(emitter, name, BEL_ONNX_INTS);
    attr->ints = bel_arena_copy(emitter->arena, values, (size_t)count * sizeof *values);
    attr->n_ints = (size_t)count;
}

void bel_onnx_put_text(bel_onnx_emitter *emitter, const char *name, const char *value)
{
    Onnx__AttributeProto *attr = onnx_emitter_put(emitter, name, BEL_ONNX_STRING);
    attr->has_s = true;
    attr->s.len = strlen(value);
    attr->s.data = bel_arena_copy(emitter->arena, value, attr->s.len);
}

void bel_onnx_put_tensor(bel_onnx_emitter *emitter, const char *name, const bel_tensor *tensor)
{
    onnx_emitter_put(emitter, name, BEL_ONNX_TENSOR)->t =
        bel_onnx_tensor_message(emitter->arena, NULL, tensor);
}

void bel_onnx_put_f64(bel_onnx_emitter *emitter, const char *name, double value)
{
    double *copy = bel_arena_copy(emitter->arena, &value, sizeof value);
    bel_onnx_put_tensor(emitter, name, &(bel_tensor){.dtype = BEL_DTYPE_F64, .data = copy});
}

// --- Constants -----------------------------------------------------------------------------------

static const char *onnx_emitter_constant(bel_onnx_emitter *emitter, const bel_tensor *tensor)
{
    const char *name = bel_onnx_emit_new(emitter, "Constant", NULL, 0);
    bel_onnx_put_tensor(emitter, "value", tensor);
    return name;
}

void bel_onnx_emit_constant(bel_onnx_emitter *emitter, const char *name, const bel_tensor *tensor)
{
    bel_onnx_emit(emitter, "Constant", NULL, 0, &name, 1);
    bel_onnx_put_tensor(emitter, "value", tensor);
}

const char *bel_onnx_emit_ints(bel_onnx_emitter *emitter, const int64_t *values, int count)
{
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(count)};
    tensor.data = bel_arena_copy(emitter->arena, values, (size_t)count * sizeof *values);
    return onnx_emitter_constant(emitter, &tensor);
}

const char *bel_onnx_emit_number(bel_onnx_emitter *emitter, bel_dtype dtype, double value)
{
    bel_tensor tensor = {.dtype = dtype, .data = bel_arena_alloc(emitter->arena, sizeof(int64_t))};
    bel_element_set(&tensor, 0, value);
    return onnx_emitter_constant(emitter, &tensor);
}

// --- Tensors -------------------------------------------------------------------------------------

Onnx__TensorProto *bel_onnx_tensor_message(bel_arena *arena, const char *name,
                                           const bel_tensor *tensor)
{
    Onnx__TensorProto *message = bel_arena_alloc(arena, sizeof *message);
    onnx__tensor_proto__init(message);
    if (name != NULL) message->name = bel_arena_strdup(arena, name);
    message->dims =
        bel_arena_copy(arena, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof(int64_t));
    message->n_dims = (size_t)tensor->shape.rank;
    message->has_data_type = true;
    message->data_type = bel_onnx_type_number(tensor->dtype);
    if (tensor->data == NULL) return message;
    message->has_raw_data = true;
    message->raw_data.data = tensor->data;
    message->raw_data.len = bel_tensor_bytes(tensor);
    return message;
}
