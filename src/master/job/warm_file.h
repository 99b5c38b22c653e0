// Values of a safetensors file that another program wrote, for a warm start.
#ifndef BELFRY_MASTER_WARM_FILE_H
#define BELFRY_MASTER_WARM_FILE_H

#include "checkpoint/safetensors.h"

typedef struct bel_warm_file {
    bel_disk_file file;
    bel_arena *arena;
    bel_safetensors_list list;
} bel_warm_file;

bool bel_is_warm_file(const char *path); // by the suffix .safetensors

// Opens a file; close it also after a failure. NOT_FOUND, DATA_LOSS.
bel_status *bel_warm_file_open(const char *path, bel_warm_file *file) BEL_MUST_USE;
void bel_warm_file_close(bel_warm_file *file);

// Reads a tensor as f32; a narrower float is exact, and f64 is rounded. NOT_FOUND: there is no such
// tensor. DATA_LOSS: its shape or type is another one.
bel_status *bel_warm_file_read(const bel_warm_file *file, const char *name, const bel_shape *shape,
                               float *out_values) BEL_MUST_USE;

#endif
