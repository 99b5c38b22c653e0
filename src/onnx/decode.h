// Bytes → protobuf-c's messages → plain structs. decode*.c alone know protobuf-c.
#ifndef BELFRY_ONNX_DECODE_H
#define BELFRY_ONNX_DECODE_H

#include "onnx.pb-c.h"
#include "onnx/files.h"
#include "onnx/model.h"

// Where elements of tensors come from, and where those go that are copied.
typedef struct bel_onnx_source {
    bel_arena *arena;
    bel_onnx_files *files; // NULL: the message is all there is
    bel_onnx_bytes raw;    // instead of the message's raw_data; data NULL: the message has them
} bel_onnx_source;

// A view of a tensor's elements: in the message or file where they lie as Belfry wants them, else
// copied to the arena. The caller names the tensor in errors.
bel_status *bel_onnx_decode_tensor(const Onnx__TensorProto *from, const bel_onnx_source *source,
                                   bel_tensor *out_tensor) BEL_MUST_USE;

#endif
