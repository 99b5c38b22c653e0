// The files that a model is read from: its own, and those beside it that hold elements of tensors.
#ifndef BELFRY_ONNX_FILES_H
#define BELFRY_ONNX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"

// Bytes that lie somewhere in a mapped file; data NULL: there are none.
typedef struct bel_onnx_bytes {
    const char *data;
    size_t size;
} bel_onnx_bytes;

typedef struct bel_onnx_files bel_onnx_files;

// Maps the model's file. What is handed out lives as long as this. Errors as of bel_mapping_open.
bel_status *bel_onnx_files_open(const char *path, bel_onnx_files **out_files) BEL_MUST_USE;
void bel_onnx_files_close(bel_onnx_files *files); // accepts NULL

bel_onnx_bytes bel_onnx_files_model(const bel_onnx_files *files);

// `length` bytes from `offset` on of a file beside the model, which is mapped when it is first
// asked for. DATA_LOSS: the location is no relative path that stays in the model's folder, or the
// file is shorter; else errors as of bel_mapping_open.
bel_status *bel_onnx_files_find(bel_onnx_files *files, const char *location, int64_t offset,
                                int64_t length, bel_onnx_bytes *out_bytes) BEL_MUST_USE;

size_t bel_onnx_files_side_count(const bel_onnx_files *files); // that were asked for

// Whether an address lies in a file that is mapped.
bool bel_onnx_files_hold(const bel_onnx_files *files, const void *address);

enum { BEL_ONNX_LARGE_BYTES = 4096 }; // from here on elements are worth leaving where they lie

// A model's message without the large raw_data of its initializers, which need no copy: they are
// told by the initializer's index (the caller frees *out_raw with bel_free). False where the
// message is not as expected; who unpacks it will say why.
bool bel_onnx_spare(bel_onnx_bytes model, bel_str *out_message, bel_onnx_bytes **out_raw,
                    size_t *out_raw_count);

#endif
