// Decoder: bytes → protobuf-c's messages → plain structs. Only decode*.c use protobuf-c.
#ifndef BELFRY_ONNX_DECODE_H
#define BELFRY_ONNX_DECODE_H

#include "onnx.pb-c.h"
#include "onnx/files.h"
#include "onnx/model.h"

// Source of tensors' elements, and destination of copied ones.
typedef struct bel_onnx_source {
    bel_arena *arena;
    bel_onnx_files *files; // NULL: only the message
    bel_onnx_bytes raw;    // instead of the message's raw_data; data NULL: use the message
} bel_onnx_source;

// Returns a view of a tensor's elements: in the message or file if their format there is Belfry's,
// otherwise copied to the arena. The caller adds the tensor's name to errors.
bel_status *bel_onnx_decode_tensor(const Onnx__TensorProto *from, const bel_onnx_source *source,
                                   bel_tensor *out_tensor) BEL_MUST_USE;

#endif
