// The files of a checkpoint as such, for whoever carries them to a host that does not see the
// model's folder (src/fetch). `folder` is a model's, or one like it, with checkpoints in it.
#ifndef BELFRY_CHECKPOINT_FILES_H
#define BELFRY_CHECKPOINT_FILES_H

#include "checkpoint/checkpoint.h"

#define BEL_CKPT_MANIFEST "manifest.json"

typedef struct bel_ckpt_file {
    char *name;
    int64_t size;
    uint32_t crc32c;
    bool whole; // it is there, and is what the manifest says
} bel_ckpt_file;

// The shards' files that the manifest of a checkpoint names; it alone need be there. With `least`,
// those that shard `shard` of `shard_count` needs, if that is what has been saved: its own, and all
// of them where rows of tables are in them, as which shard holds a row is decided anew. Free with
// bel_ckpt_files_free. Errors of a manifest.
bel_status *bel_ckpt_files_needed(const char *folder, int64_t step, int shard, int shard_count,
                                  bool least, bel_ckpt_file **out_files,
                                  int *out_count) BEL_MUST_USE;
void bel_ckpt_files_free(bel_ckpt_file *files, int count);

// Up to `most` bytes of a file from `offset` on, and how large the file is. NOT_FOUND,
// OUT_OF_RANGE: no such file, or byte.
bel_status *bel_ckpt_read_file(const char *folder, int64_t step, const char *name, int64_t offset,
                               size_t most, void *out, size_t *out_bytes,
                               int64_t *out_size) BEL_MUST_USE;

// bel_ckpt_open of a checkpoint of which not all shards' files are there; reading what lies in one
// that is not is NOT_FOUND.
bel_status *bel_ckpt_open_part(const char *folder, int64_t step,
                               bel_ckpt_reader **out_reader) BEL_MUST_USE;

// "shard-00000-of-00002.safetensors"; free with bel_free.
char *bel_ckpt_shard_file_name(int shard_index, int shard_count);

// Size and CRC-32C of the file of which a shard reports.
void bel_ckpt_shard_file(const bel_ckpt_shard *shard, int64_t *out_size, uint32_t *out_crc32c);

// The folder for a checkpoint of this step, made; those of later steps are removed, as they are of
// a run that was given up, and all but the newest before it. Free the path with bel_free.
bel_status *bel_ckpt_make_folder(const char *folder, int64_t step, char **out_path) BEL_MUST_USE;

#endif
