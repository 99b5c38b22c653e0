// Safetensors container: u64 little-endian header length, a JSON header, the tensors' bytes.
//
//     {"__metadata__":{"producer":"belfry"},
//      "dense_0/kernel":{"dtype":"F32","shape":[784,128],"data_offsets":[0,401408]}}
//
// Offsets count from the first byte after the header. The format allows no holes, no overlaps and
// no duplicate names; the reader refuses files that break this. Elements are little-endian,
// row-major. docs/formats/checkpoint.md defines the order and alignment that Belfry writes.
#ifndef BELFRY_CHECKPOINT_SAFETENSORS_H
#define BELFRY_CHECKPOINT_SAFETENSORS_H

#include <stdint.h>

#include "base/arena.h"
#include "belfry/tensor.h"
#include "checkpoint/disk_file.h"

// Larger headers are refused, as the reference implementation does.
enum { BEL_SAFETENSORS_MAX_HEADER = 100000000 };

// --- Writing ------------------------------------------------------------------------------------

typedef struct bel_safetensors_text {
    const char *name;
    const char *value;
} bel_safetensors_text;

typedef struct bel_safetensors_input {
    const char *name; // UTF-8, not empty, not "__metadata__"
    bel_dtype dtype;  // anything but STRING
    bel_shape shape;  // closed
    const void *data; // may be NULL if the shape has no elements
    // Instead of data, for a shape with at least one dimension: writes items [first, first + n) of
    // the first dimension. Called with `first` ascending, once for each item.
    bel_status *(*produce)(void *context, int64_t first, int64_t n, void *out_data);
    void *context;
} bel_safetensors_input;

// Writes a file, synced, and reports its size and CRC-32C (either may be NULL). The bytes depend on
// the set of tensors, not on their order. On failure no file is left. INVALID_ARGUMENT: a name is
// used twice or is not UTF-8, or the format lacks a dtype. Otherwise the errors of `produce` and of
// files.
bel_status *bel_safetensors_write(const char *path, const bel_safetensors_text *metadata,
                                  int metadata_count, const bel_safetensors_input *tensors,
                                  int tensor_count, uint64_t *out_size_bytes,
                                  uint32_t *out_crc32c) BEL_MUST_USE;

// --- Reading ------------------------------------------------------------------------------------

typedef struct bel_safetensors_entry {
    const char *name;
    bel_dtype dtype;
    bel_shape shape;
    uint64_t offset;     // offset of its first byte from the start of the file
    uint64_t size_bytes; // elements of the shape × size of the dtype
} bel_safetensors_entry;

typedef struct bel_safetensors_list {
    bel_safetensors_entry *entries; // in byte order of names
    int count;
} bel_safetensors_list;

// Reads and checks the header; the list is in `arena`. The size of the file bounds every number
// that a hostile file may claim. DATA_LOSS: malformed; the message names the file and the tensor.
bel_status *bel_safetensors_read_header(const bel_disk_file *file, bel_arena *arena,
                                        bel_safetensors_list *out_list) BEL_MUST_USE;

// Finds the entry of that name; NULL if absent.
const bel_safetensors_entry *bel_safetensors_find(const bel_safetensors_list *list,
                                                  const char *name);

#endif
