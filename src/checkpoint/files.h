// Files of a checkpoint, to be carried to a host that cannot access the model folder (src/fetch).
// `folder` is a model folder, or one like it with checkpoints in it.
#ifndef BELFRY_CHECKPOINT_FILES_H
#define BELFRY_CHECKPOINT_FILES_H

#include "checkpoint/checkpoint.h"

#define BEL_CKPT_MANIFEST "manifest.json"

typedef struct bel_ckpt_file {
    int64_t step; // the checkpoint's, or its base's
    char *name;
    int64_t size; // -1: unknown, for a manifest
    uint32_t crc32c;
    bool whole; // it exists, and matches the manifest
} bel_ckpt_file;

// Lists the shard files that a checkpoint's manifest names, and for a delta those of its base; only
// the manifest need be present. With `only`, lists only the files of those shards, if the
// checkpoint has `shard_count` shards. Without the base's manifest the list is only that file. Free
// with bel_ckpt_files_free. *out_base: step of the base; 0: none. Errors are those of a manifest.
bel_status *bel_ckpt_files_needed(const char *folder, int64_t step, const int *only, int only_count,
                                  int shard_count, bel_ckpt_file **out_files, int *out_count,
                                  int64_t *out_base) BEL_MUST_USE;
void bel_ckpt_files_free(bel_ckpt_file *files, int count);

// Reads up to `most` bytes of a file from `offset` on, and reports the file's size. NOT_FOUND: no
// such file. OUT_OF_RANGE: the file ends before `offset`.
bel_status *bel_ckpt_read_file(const char *folder, int64_t step, const char *name, int64_t offset,
                               size_t most, void *out, size_t *out_bytes,
                               int64_t *out_size) BEL_MUST_USE;

// Like bel_ckpt_open_lazily, for a checkpoint whose shard files may be partly absent, or left from
// another run. Reading from one of these is NOT_FOUND.
bel_status *bel_ckpt_open_part(const char *folder, int64_t step,
                               bel_ckpt_reader **out_reader) BEL_MUST_USE;

// "shard-00000-of-00002.safetensors"; free with bel_free.
char *bel_ckpt_shard_file_name(int shard_index, int shard_count);

// Gets size and CRC-32C of the file that a shard reports.
void bel_ckpt_shard_file(const bel_ckpt_shard *shard, int64_t *out_size, uint32_t *out_crc32c);

// Creates the folder for a checkpoint of this step. Free the path with bel_free.
bel_status *bel_ckpt_make_folder(const char *folder, int64_t step, char **out_path) BEL_MUST_USE;

// Makes room for the checkpoint of this step, whose base is that of step `base` (0: it is full).
// Removes those of later steps, which belong to an abandoned run, and all earlier ones but the
// base, the newest, and the base that the manifest of the newest names.
void bel_ckpt_remove_others(const char *folder, int64_t step, int64_t base);

#endif
