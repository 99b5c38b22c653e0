// Files of a model: the model file, and the files beside it that have elements of tensors.
#ifndef BELFRY_ONNX_FILES_H
#define BELFRY_ONNX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_str bel_str; // base/str.h

// Bytes within a mapped file; data NULL: absent.
typedef struct bel_onnx_bytes {
    const char *data;
    size_t size;
} bel_onnx_bytes;

typedef struct bel_onnx_files bel_onnx_files;

// Maps the model's file. Returned bytes live as long as this. Errors as of bel_mapping_open.
bel_status *bel_onnx_files_open(const char *path, bel_onnx_files **out_files) BEL_MUST_USE;
void bel_onnx_files_close(bel_onnx_files *files); // accepts NULL

bel_onnx_bytes bel_onnx_files_model(const bel_onnx_files *files);

// Finds `length` bytes from `offset` on in a file beside the model, which is mapped on first use.
// DATA_LOSS: the location is not a relative path inside the model's folder, or the file is too
// short. Other errors as of bel_mapping_open.
bel_status *bel_onnx_files_find(bel_onnx_files *files, const char *location, int64_t offset,
                                int64_t length, bel_onnx_bytes *out_bytes) BEL_MUST_USE;

size_t bel_onnx_files_side_count(const bel_onnx_files *files); // number mapped so far

// True if an address is in a mapped file.
bool bel_onnx_files_hold(const bel_onnx_files *files, const void *address);

enum { BEL_ONNX_LARGE_BYTES = 4096 }; // minimum size of elements that are used in place

// Copies a model's message without the large raw_data of its initializers, which need no copy. They
// are returned by the initializer's index (the caller frees *out_raw with bel_free). False if the
// message is malformed; unpacking it will report the reason.
bool bel_onnx_spare(bel_onnx_bytes model, bel_str *out_message, bel_onnx_bytes **out_raw,
                    size_t *out_raw_count);

#endif
