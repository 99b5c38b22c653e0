// Checkpoints on disk: a folder `ckpt-<8-digit step>` in the model folder, holding one safetensors
// file per shard and a manifest. docs/formats/checkpoint.md is the normative description.
//
// A checkpoint is written under `ckpt-<step>.tmp-g<generation>-i<incarnation>`, every file synced,
// and becomes visible by one rename of the folder. A tensor may be cut into pieces that lie in
// different shard files; cuts lie at multiples of BEL_GRAIN elements from its start.
#ifndef BELFRY_CHECKPOINT_CHECKPOINT_H
#define BELFRY_CHECKPOINT_CHECKPOINT_H

#include "base/hash.h"
#include "base/input_segment.h"
#include "belfry/graph.h"
#include "tensor/grain.h"

// A contiguous run of elements of a tensor, in memory that outlives the call.
typedef struct bel_ckpt_piece {
    const char *name; // e.g. "dense_0/kernel" or "dense_0/kernel/adam/m"
    bel_dtype dtype;  // anything but STRING
    bel_shape shape;  // of the whole tensor
    int64_t first;    // first element of the run, a multiple of BEL_GRAIN
    int64_t count;    // elements; first + count is a multiple of BEL_GRAIN or the tensor's end
    const void *data; // `count` elements; may be NULL when there are none
} bel_ckpt_piece;

// Whether all numbers of pieces of F32 can be saved: a slot that has overflowed leaves its
// parameter as it is from then on, and no loss would show it. ABORTED: one is not finite; names its
// tensor.
bel_status *bel_ckpt_check_finite(const bel_ckpt_piece *pieces, int piece_count) BEL_MUST_USE;

// What a shard reports about the file it wrote; the master puts it into the manifest. Immutable.
typedef struct bel_ckpt_shard bel_ckpt_shard;

// Writes `<folder>/shard-<index>-of-<count>.safetensors` with the pieces, synced. The result keeps
// names, runs, per-grain hashes, size and CRC-32C, and nothing of the pieces' memory.
// INVALID_ARGUMENT: a name is empty, not UTF-8, used twice or holds a '#', or a run is not as
// above. Else the errors of files. Nothing is left behind.
bel_status *bel_ckpt_write_shard(const char *folder, int shard_index, int shard_count,
                                 const bel_ckpt_piece *pieces, int piece_count,
                                 bel_ckpt_shard **out_shard) BEL_MUST_USE;
void bel_ckpt_shard_destroy(bel_ckpt_shard *shard);

// The report as bytes, for a master in another process, and back. Free the bytes with bel_free.
// INVALID_ARGUMENT: they are no report, or one of another version.
uint8_t *bel_ckpt_shard_pack(const bel_ckpt_shard *shard, size_t *out_bytes);
bel_status *bel_ckpt_shard_unpack(const uint8_t *bytes, size_t count,
                                  bel_ckpt_shard **out_shard) BEL_MUST_USE;

// What the manifest says beside the tensors. `settings` are name/value texts that determine the
// bits (flags, model, data fingerprint …): resume compares them.
typedef struct bel_ckpt_info {
    int64_t step;
    int64_t generation;
    uint64_t seed;
    const bel_input_segment *segments;
    int segment_count;
    const char *const *setting_names;
    const char *const *setting_values;
    int setting_count;
} bel_ckpt_info;

// The temporary folder for a checkpoint of `step`, made empty. Free the path with bel_free. A
// master writes one checkpoint at a time: all that ended runs, and this one's failures, left behind
// in model_dir (temporary folders of a lower generation, or of the same one and no higher
// incarnation) is removed, or a warning where it cannot be.
bel_status *bel_ckpt_begin(const char *model_dir, int64_t step, int64_t generation,
                           int64_t incarnation, char **out_folder) BEL_MUST_USE;

// Writes the manifest (with the digest over all shards) into the folder of bel_ckpt_begin and
// renames it to its final name. An existing checkpoint of the same step is replaced. On failure the
// folder is removed, and the checkpoints that were there are still there.
// INTERNAL: a tensor is not complete, two shards disagree about it, or a shard is missing.
// DATA_LOSS: a setting is not UTF-8 or is named twice. RESOURCE_EXHAUSTED: the disk is full.
bel_status *bel_ckpt_commit(const char *model_dir, const char *folder, const bel_ckpt_info *info,
                            bel_ckpt_shard *const *shards, int shard_count,
                            bel_hash128 *out_digest) BEL_MUST_USE;

// The digest of the tensors alone, without writing anything; same definition as the manifest's. The
// shards together hold each tensor completely.
bel_hash128 bel_ckpt_digest(bel_ckpt_shard *const *shards, int shard_count);

// Same hashes as bel_ckpt_write_shard, without a file.
bel_ckpt_shard *bel_ckpt_hash_shard(const bel_ckpt_piece *pieces, int piece_count);

// An opened checkpoint. Thread-compatible; several threads may read different runs at once.
typedef struct bel_ckpt_reader bel_ckpt_reader;

// Opens `<model_dir>/ckpt-…` or any folder with a manifest; checks sizes and CRC-32C of every shard
// file. NOT_FOUND: no manifest or a shard file is missing. DATA_LOSS: a torn or corrupt
// file, which is named.
bel_status *bel_ckpt_open(const char *folder, bel_ckpt_reader **out_reader) BEL_MUST_USE;
void bel_ckpt_close(bel_ckpt_reader *reader);

// The newest good checkpoint in model_dir; bad ones are logged with their reason and passed over.
// Meanwhile others may save and remove checkpoints there.
// *out_reader is NULL when there is none at all. DATA_LOSS: there are checkpoints, none is good;
// names the newest one's reason. UNIMPLEMENTED: the newest that is not bad has a later format.
// Errors of the system (PERMISSION_DENIED, RESOURCE_EXHAUSTED) are returned: they do not make a
// checkpoint bad.
bel_status *bel_ckpt_open_latest(const char *model_dir, bel_ckpt_reader **out_reader) BEL_MUST_USE;

// A setting of the newest checkpoint in model_dir with a good manifest that is behind step 0; its
// files are not looked at. Free with bel_free. *out_value is NULL: it has none, or there is no such
// checkpoint. Errors of the system are returned.
bel_status *bel_ckpt_latest_setting(const char *model_dir, const char *name,
                                    char **out_value) BEL_MUST_USE;

// bel_ckpt_open of a checkpoint's folder, or bel_ckpt_open_latest of a model's. NOT_FOUND: neither.
// DATA_LOSS: the folder has a manifest and lacks a shard file, which is named.
bel_status *bel_ckpt_open_any(const char *folder, bel_ckpt_reader **out_reader) BEL_MUST_USE;

const char *bel_ckpt_folder(const bel_ckpt_reader *reader);
const bel_ckpt_info *bel_ckpt_reader_info(const bel_ckpt_reader *reader);
const char *bel_ckpt_setting(const bel_ckpt_reader *reader, const char *name); // NULL: not there
bel_hash128 bel_ckpt_reader_digest(const bel_ckpt_reader *reader);             // as written

// Recomputes the digest from the files. DATA_LOSS when it differs from the manifest's.
bel_status *bel_ckpt_verify(bel_ckpt_reader *reader) BEL_MUST_USE;

// Tensors in byte order of their names.
int bel_ckpt_tensor_count(const bel_ckpt_reader *reader);
void bel_ckpt_tensor(const bel_ckpt_reader *reader, int index, const char **out_name,
                     bel_dtype *out_dtype, bel_shape *out_shape);
int bel_ckpt_find(const bel_ckpt_reader *reader, const char *name); // -1: not there

// Reads elements [first, first + count) of a tensor into `out_data`, wherever its pieces lie.
// NOT_FOUND: no such tensor. DATA_LOSS: wrong dtype or shape against `dtype`, `shape` (both said),
// or the file cannot be read. OUT_OF_RANGE: the tensor has no such elements.
bel_status *bel_ckpt_read(const bel_ckpt_reader *reader, const char *name, bel_dtype dtype,
                          const bel_shape *shape, int64_t first, int64_t count,
                          void *out_data) BEL_MUST_USE;

// The same for the moving average of a variable, "<variable>/average"; its values where the
// checkpoint has none.
#define BEL_CKPT_AVERAGE "average"
bel_status *bel_ckpt_read_average(const bel_ckpt_reader *reader, const char *variable,
                                  bel_dtype dtype, const bel_shape *shape, int64_t first,
                                  int64_t count, void *out_data) BEL_MUST_USE;

// As bel_ckpt_read, of a variable with values of replicas (belfry/graph.h), F32 [replicas, …].
// Where the checkpoint has those of another number of replicas, or one value that all share, each
// of the replicas has what they come to; of a sum, its part. FAILED_PRECONDITION: `kind` does not
// say what they come to.
bel_status *bel_ckpt_read_replicas(const bel_ckpt_reader *reader, const char *name,
                                   bel_variable_kind kind, const bel_shape *shape, int64_t first,
                                   int64_t count, float *out) BEL_MUST_USE;

// Steps of all visible checkpoints, ascending; free with bel_free.
bel_status *bel_ckpt_list(const char *model_dir, int64_t **out_steps,
                          size_t *out_count) BEL_MUST_USE;

// Removes old checkpoints until at most `keep_max` are left (0: keep all), newest kept. With
// `keep_every_n_hours` > 0 the oldest stays as well, and each for which that time has passed
// between its commit and that of the previous one that stayed for this reason. The best one
// (best.h) stays besides, and that of step `held` (-1: none). What cannot be removed is a warning,
// and stays.
void bel_ckpt_retain(const char *model_dir, int keep_max, double keep_every_n_hours, int64_t held);

// The same where up to two steps are held.
void bel_ckpt_retain_but(const char *model_dir, int keep_max, double keep_every_n_hours,
                         const int64_t *held, int held_count);

#endif
