// Emitter of a model's nodes, for the graph or for a function's body. Everything is in the
// emitter's arena; names are unique within one emitter.
#ifndef BELFRY_ONNX_EMIT_H
#define BELFRY_ONNX_EMIT_H

#include "base/arena.h"
#include "belfry/tensor.h"
#include "onnx.pb-c.h"
#include "onnx/names.h"

typedef struct bel_onnx_emitter {
    bel_arena *arena;
    bel_names *names;        // names in use
    Onnx__NodeProto **nodes; // free with bel_onnx_emitter_deinit
    size_t node_count, node_capacity;
} bel_onnx_emitter;

void bel_onnx_emitter_init(bel_onnx_emitter *emitter, bel_arena *arena);
void bel_onnx_emitter_deinit(bel_onnx_emitter *emitter); // frees everything except the arena

// Reserves a new name: `wanted`, or with a number after it if `wanted` is in use.
const char *bel_onnx_new_name(bel_onnx_emitter *emitter, const char *wanted);

// Adds a node of ONNX's domain. A NULL input is omitted. Outputs are reserved names.
Onnx__NodeProto *bel_onnx_emit(bel_onnx_emitter *emitter, const char *op, const char *const *inputs,
                               int input_count, const char *const *outputs, int output_count);

// The same with one output of a new name, which it returns: BEL_ONNX_NEW(e, "Mul", a, b).
const char *bel_onnx_emit_new(bel_onnx_emitter *emitter, const char *op, const char *const *inputs,
                              int input_count);
#define BEL_ONNX_NEW(emitter, op, ...)                                                             \
    bel_onnx_emit_new(emitter, op, (const char *const[]){__VA_ARGS__},                             \
                      (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

// Attributes of the last emitted node.
void bel_onnx_put_int(bel_onnx_emitter *emitter, const char *name, int64_t value);
void bel_onnx_put_float(bel_onnx_emitter *emitter, const char *name, double value);
void bel_onnx_put_ints(bel_onnx_emitter *emitter, const char *name, const int64_t *values,
                       int count);
void bel_onnx_put_text(bel_onnx_emitter *emitter, const char *name, const char *value);
void bel_onnx_put_f64(bel_onnx_emitter *emitter, const char *name, double value); // as a tensor
void bel_onnx_put_tensor(bel_onnx_emitter *emitter, const char *name,
                         const bel_tensor *tensor); // its elements are not copied

// Emit constants and return their names. Lists are I64 [count].
const char *bel_onnx_emit_ints(bel_onnx_emitter *emitter, const int64_t *values, int count);
const char *bel_onnx_emit_number(bel_onnx_emitter *emitter, bel_dtype dtype, double value);

// Emits a constant with this reserved name; its elements are not copied.
void bel_onnx_emit_constant(bel_onnx_emitter *emitter, const char *name, const bel_tensor *tensor);

// Makes a tensor message; elements are not copied. `data` may be NULL if they are stored elsewhere.
Onnx__TensorProto *bel_onnx_tensor_message(bel_arena *arena, const char *name,
                                           const bel_tensor *tensor);

// Returns ONNX's number of a type.
int32_t bel_onnx_type_number(bel_dtype dtype);

#endif
