// Tensors. Elements come as raw little-endian bytes, in the message or in a file beside the model,
// or in the typed list of their type. Belfry runs on little-endian machines, so most elements are
// used in place. Copied are BOOL, whose raw bytes may be any value but 0, and types of one or two
// bytes in a list of int32. The bytes must exactly match the shape before a pointer to them is
// returned. A shape whose product overflows counts as INT64_MAX elements, which no file has.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/number.h"
#include "base/str.h"
#include "graph/graph.h"
#include "onnx/decode.h"
#include "onnx/emit.h"

static const struct {
    const char *name;
    int dtype; // -1: Belfry lacks it
} types[] = {{"undefined", -1},
             {"float", BEL_DTYPE_F32},
             {"uint8", BEL_DTYPE_U8},
             {"int8", -1},
             {"uint16", -1},
             {"int16", -1},
             {"int32", BEL_DTYPE_I32},
             {"int64", BEL_DTYPE_I64},
             {"string", -1},
             {"bool", BEL_DTYPE_BOOL},
             {"float16", BEL_DTYPE_F16},
             {"double", BEL_DTYPE_F64},
             {"uint32", -1},
             {"uint64", -1},
             {"complex64", -1},
             {"complex128", -1},
             {"bfloat16", BEL_DTYPE_BF16}};

bel_status *bel_onnx_dtype(int64_t number, bel_dtype *out_dtype)
{
    bool known = number >= 0 && number < (int64_t)(sizeof types / sizeof types[0]);
    if (!known) {
        return BEL_ERR(BEL_DATA_LOSS, "there is no element type number %lld", (long long)number);
    }
    if (types[number].dtype < 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "element type %s; Belfry has float, double, float16, bfloat16, int32, "
                       "int64, uint8 and bool",
                       types[number].name);
    }
    *out_dtype = (bel_dtype)types[number].dtype;
    return NULL;
}

int32_t bel_onnx_type_number(bel_dtype dtype)
{
    int32_t number = 0;
    while (types[number].dtype != (int)dtype)
        number++; // STRING is not an element type here
    return number;
}

static bel_status *decode_shape(const Onnx__TensorProto *from, bel_shape *out_shape)
{
    if (from->n_dims > BEL_MAX_RANK) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%zu dimensions are more than %d", from->n_dims,
                       BEL_MAX_RANK);
    }
    bel_shape shape = {.rank = (int32_t)from->n_dims};
    for (int32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = from->dims[i];
        if (shape.dims[i] >= 0) continue;
        return BEL_ERR(BEL_DATA_LOSS, "dimension %d is %lld", (int)i, (long long)shape.dims[i]);
    }
    *out_shape = shape;
    return NULL;
}

// The typed list of a tensor's type: address, count and element size.
typedef struct typed_list {
    void *data;
    size_t count, size;
} typed_list;

static typed_list typed_list_of(const Onnx__TensorProto *from, bel_dtype dtype)
{
    switch (dtype) {
    case BEL_DTYPE_F32: return (typed_list){from->float_data, from->n_float_data, sizeof(float)};
    case BEL_DTYPE_F64: return (typed_list){from->double_data, from->n_double_data, sizeof(double)};
    case BEL_DTYPE_I64: return (typed_list){from->int64_data, from->n_int64_data, sizeof(int64_t)};
    default: return (typed_list){from->int32_data, from->n_int32_data, sizeof(int32_t)};
    }
}

// Converts types of one and two bytes from a list of int32 (floats as bits), or BOOL from raw
// bytes, where any value but 0 is true.
static bel_status *narrow(const Onnx__TensorProto *from, const char *raw, size_t count,
                          bel_arena *arena, bel_tensor *tensor)
{
    size_t size = bel_dtype_size(tensor->dtype);
    unsigned char *bytes = bel_arena_alloc(arena, count * size);
    bool is_bool = tensor->dtype == BEL_DTYPE_BOOL;
    for (size_t i = 0; i < count; i++) {
        int32_t element = raw != NULL ? (unsigned char)raw[i] : from->int32_data[i];
        if (element < 0 || element > (size == 1 ? UINT8_MAX : UINT16_MAX)) {
            return BEL_ERR(BEL_DATA_LOSS, "element %zu is %d, which %s cannot hold", i,
                           (int)element, bel_dtype_name(tensor->dtype));
        }
        if (is_bool) element = element != 0;
        memcpy(bytes + i * size, &element, size); // the low bytes
    }
    tensor->data = bytes;
    return NULL;
}

// --- Raw bytes -----------------------------------------------------------------------------------

// Reads external_data: the required key location, and the optional keys offset (default 0) and
// length (default `needed`).
static bel_status *find_external(const Onnx__TensorProto *from, bel_onnx_files *files,
                                 int64_t needed, bel_onnx_bytes *out_raw)
{
    const char *location = "";
    int64_t offset = 0, length = needed;
    if (files == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "its elements are in another file (external data), and the model was not "
                       "read by its path");
    }
    for (size_t i = 0; i < from->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = from->external_data[i];
        const char *key = entry->key == NULL ? "" : entry->key;
        const char *value = entry->value == NULL ? "" : entry->value;
        int64_t *number = strcmp(key, "offset") == 0   ? &offset
                          : strcmp(key, "length") == 0 ? &length
                                                       : NULL;
        if (strcmp(key, "location") == 0) location = value;
        if (number == NULL || bel_parse_i64(value, strlen(value), number)) continue;
        return BEL_ERR(BEL_DATA_LOSS, "%s of its external data is \"%.40s\"", key, value);
    }
    return bel_onnx_files_find(files, location, offset, length, out_raw);
}

// False: the elements are in a typed list.
static bel_status *find_raw(const Onnx__TensorProto *from, const bel_onnx_source *source,
                            int64_t needed, bool *out_there, bel_onnx_bytes *out_raw)
{
    enum { EXTERNAL = 1 };
    bool external = from->data_location == EXTERNAL;
    *out_there = external || source->raw.data != NULL || from->has_raw_data;
    *out_raw = source->raw;
    if (external) return find_external(from, source->files, needed, out_raw);
    if (source->raw.data == NULL && from->has_raw_data)
        *out_raw = (bel_onnx_bytes){(const char *)from->raw_data.data, from->raw_data.len};
    return NULL;
}

// Returns the elements in place, or an aligned copy.
static void *at_its_place(const bel_onnx_bytes *raw, bel_dtype dtype, bel_arena *arena)
{
    union {
        const char *read;
        void *data; // views have no const type
    } place = {.read = raw->data};
    if ((uintptr_t)raw->data % bel_dtype_size(dtype) == 0) return place.data;
    enum { LINE = BEL_GRAPH_CONSTANT_ALIGNMENT }; // so that no further copy is needed
    char *room = bel_arena_alloc(arena, raw->size + LINE);
    room += (LINE - (uintptr_t)room % LINE) % LINE;
    memcpy(room, raw->data, raw->size);
    return room;
}

bel_status *bel_onnx_decode_tensor(const Onnx__TensorProto *from, const bel_onnx_source *source,
                                   bel_tensor *out_tensor)
{
    bel_tensor tensor = {.data = NULL};
    BEL_TRY(bel_onnx_dtype(from->data_type, &tensor.dtype));
    BEL_TRY(decode_shape(from, &tensor.shape));
    int64_t elements = bel_shape_elements(&tensor.shape), needed;
    bool is_raw;
    bel_onnx_bytes raw;
    if (__builtin_mul_overflow(elements, (int64_t)bel_dtype_size(tensor.dtype), &needed))
        needed = INT64_MAX;
    BEL_TRY(find_raw(from, source, needed, &is_raw, &raw));
    typed_list list = typed_list_of(from, tensor.dtype);
    size_t size = is_raw ? bel_dtype_size(tensor.dtype) : list.size;
    size_t have = is_raw ? raw.size : list.count * list.size;
    if ((uint64_t)elements > SIZE_MAX / size || (size_t)elements * size != have) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_DATA_LOSS, "shape %s of %s needs %lld elements, got %zu bytes",
                       bel_shape_text(&tensor.shape, text), bel_dtype_name(tensor.dtype),
                       (long long)elements, have);
    }
    if (is_raw && list.count > 0) {
        return BEL_ERR(BEL_DATA_LOSS, "elements stand both in raw_data and in a typed list");
    }
    if (elements == 0) {
        tensor.data = bel_arena_alloc(source->arena, 1);
    } else if (tensor.dtype == BEL_DTYPE_BOOL || (bel_dtype_size(tensor.dtype) <= 2 && !is_raw)) {
        BEL_TRY(narrow(from, is_raw ? raw.data : NULL, (size_t)elements, source->arena, &tensor));
    } else if (is_raw) {
        tensor.data = at_its_place(&raw, tensor.dtype, source->arena);
    } else {
        tensor.data = list.data;
    }
    *out_tensor = tensor;
    return NULL;
}

bel_status *bel_onnx_read_tensor(const void *bytes, size_t size, bel_tensor *out_tensor)
{
    bel_budget budget = bel_budget_of(size);
    ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
    Onnx__TensorProto *message = onnx__tensor_proto__unpack(&allocator, size, bytes);
    if (message == NULL) return BEL_ERR(BEL_DATA_LOSS, "this is no TensorProto");
    bel_arena *arena = bel_arena_create();
    bel_onnx_source source = {.arena = arena};
    bel_tensor view;
    bel_status *status = bel_onnx_decode_tensor(message, &source, &view);
    if (status == NULL) {
        size_t length = bel_tensor_bytes(&view);
        *out_tensor = view;
        out_tensor->data = bel_xmalloc(length + 1);
        memcpy(out_tensor->data, view.data, length);
    }
    bel_arena_destroy(arena);
    onnx__tensor_proto__free_unpacked(message, &allocator);
    return status;
}
