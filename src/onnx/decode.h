// Bytes → protobuf-c's messages → plain structs. decode*.c alone know protobuf-c.
#ifndef BELFRY_ONNX_DECODE_H
#define BELFRY_ONNX_DECODE_H

#include "onnx.pb-c.h"
#include "onnx/model.h"

// A view of a tensor's elements: in the message where they lie as Belfry wants them, else copied to
// the arena. The caller names the tensor in errors.
bel_status *bel_onnx_decode_tensor(const Onnx__TensorProto *from, bel_arena *arena,
                                   bel_tensor *out_tensor) BEL_MUST_USE;

#endif
