// Checkpoints on disk: a folder `ckpt-<8-digit step>` in the model folder, holding one safetensors
// file per shard and a manifest. docs/formats/checkpoint.md is the normative description.
//
// A checkpoint is written under `ckpt-<step>.tmp-g<generation>-i<incarnation>`, every file synced,
// and becomes visible by one rename of the folder. A tensor may be cut into pieces in different
// shard files. Cuts are at multiples of BEL_GRAIN elements from its start.
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
    bel_shape shape;  // shape of the whole tensor
    int64_t first;    // index of the run's first element, a multiple of BEL_GRAIN
    int64_t count;    // elements; first + count is a multiple of BEL_GRAIN or the tensor's end
    const void *data; // `count` elements; may be NULL if count is 0
} bel_ckpt_piece;

// Checks that all numbers of F32 pieces are finite. A slot that has overflowed would freeze its
// parameter from then on, and no loss would show it. ABORTED: a number is not finite; the message
// names its tensor.
bel_status *bel_ckpt_check_finite(const bel_ckpt_piece *pieces, int piece_count) BEL_MUST_USE;

// A shard's report about the file it wrote. The master puts it into the manifest. Immutable.
typedef struct bel_ckpt_shard bel_ckpt_shard;

// Writes `<folder>/shard-<index>-of-<count>.safetensors` with the pieces, synced. The result keeps
// names, runs, per-grain hashes, size and CRC-32C, and nothing of the pieces' memory.
// INVALID_ARGUMENT: a name is empty, not UTF-8, used twice or holds a '#', or a run breaks the
// rules above. Otherwise the errors of files. A failure leaves no file.
bel_status *bel_ckpt_write_shard(const char *folder, int shard_index, int shard_count,
                                 const bel_ckpt_piece *pieces, int piece_count,
                                 bel_ckpt_shard **out_shard) BEL_MUST_USE;
void bel_ckpt_shard_destroy(bel_ckpt_shard *shard);

// Converts a report to bytes, for a master in another process, and back. Free the bytes with
// bel_free. INVALID_ARGUMENT: the bytes are no report, or one of another version.
uint8_t *bel_ckpt_shard_pack(const bel_ckpt_shard *shard, size_t *out_bytes);
bel_status *bel_ckpt_shard_unpack(const uint8_t *bytes, size_t count,
                                  bel_ckpt_shard **out_shard) BEL_MUST_USE;

// The full checkpoint on which a delta is based: of its tables, the delta has the rows that differ.
typedef struct bel_ckpt_base {
    int64_t step; // 0: none, as the checkpoint is full
    bel_hash128 digest;
} bel_ckpt_base;

// The manifest's contents besides the tensors. `settings` are name/value texts that determine the
// bits (flags, model, data fingerprint …). Resume compares them.
typedef struct bel_ckpt_info {
    int64_t step;
    int64_t generation;
    uint64_t seed;
    const bel_input_segment *segments;
    int segment_count;
    const char *const *setting_names;
    const char *const *setting_values;
    int setting_count;
    bel_ckpt_base base; // step 0: the checkpoint is full
} bel_ckpt_info;

// Creates an empty temporary folder for a checkpoint of `step`. Free the path with bel_free. A
// master writes one checkpoint at a time. The function therefore removes the leftovers of earlier
// runs and of this one's failures in model_dir: temporary folders of a lower generation, or of the
// same one and no higher incarnation. A leftover that it cannot remove is a warning.
bel_status *bel_ckpt_begin(const char *model_dir, int64_t step, int64_t generation,
                           int64_t incarnation, char **out_folder) BEL_MUST_USE;

// Writes the manifest (with the digest over all shards) into the folder of bel_ckpt_begin and
// renames it to its final name. An existing checkpoint of the same step is replaced. On failure the
// function removes the folder and leaves the existing checkpoints.
// INTERNAL: a tensor is not complete, two shards disagree about it, a shard is missing, or one has
// written a delta and info->base is unset, or the reverse.
// DATA_LOSS: a setting is not UTF-8 or is named twice. RESOURCE_EXHAUSTED: the disk is full.
bel_status *bel_ckpt_commit(const char *model_dir, const char *folder, const bel_ckpt_info *info,
                            bel_ckpt_shard *const *shards, int shard_count,
                            bel_hash128 *out_digest) BEL_MUST_USE;

// Digest of only the tensors, without writing anything, defined as in the manifest. The shards
// together hold each tensor completely.
bel_hash128 bel_ckpt_digest(bel_ckpt_shard *const *shards, int shard_count);

// Makes the hashes of bel_ckpt_write_shard without a file.
bel_ckpt_shard *bel_ckpt_hash_shard(const bel_ckpt_piece *pieces, int piece_count);

// An opened checkpoint. Thread-compatible; several threads may read different runs at once.
typedef struct bel_ckpt_reader bel_ckpt_reader;

// Opens `<model_dir>/ckpt-…` or any folder with a manifest, and checks size and CRC-32C of every
// shard file. A delta is opened with its base, from its folder `base` or beside it, and reads like
// a full checkpoint. NOT_FOUND: the manifest, a shard file or the base is missing. DATA_LOSS: a
// file is torn or corrupt, or the base is another one; the message names it.
bel_status *bel_ckpt_open(const char *folder, bel_ckpt_reader **out_reader) BEL_MUST_USE;
// The same, but a shard file is checked before the first read from it, and one that nothing is read
// from never. The reader is then for one thread.
bel_status *bel_ckpt_open_lazily(const char *folder, bel_ckpt_reader **out_reader) BEL_MUST_USE;
// The same for the checkpoint of a step that bel_ckpt_list returned, while another process saves
// and removes checkpoints in model_dir: one that was replaced during the look is opened anew.
// NOT_FOUND: it was removed, or a part of it is missing.
bel_status *bel_ckpt_open_listed(const char *model_dir, int64_t step,
                                 bel_ckpt_reader **out_reader) BEL_MUST_USE;
void bel_ckpt_close(bel_ckpt_reader *reader);

// Opens the newest good checkpoint in model_dir; logs bad ones with their reason and skips them.
// Other processes may save and remove checkpoints there meanwhile. *out_reader is NULL if there are
// no checkpoints. DATA_LOSS: all checkpoints are bad; the message has the newest one's reason.
// UNIMPLEMENTED: the newest that is not bad has a later format. System errors (PERMISSION_DENIED,
// RESOURCE_EXHAUSTED) are returned: they do not make a checkpoint bad.
bel_status *bel_ckpt_open_latest(const char *model_dir, bel_ckpt_reader **out_reader) BEL_MUST_USE;

// Reads a setting of the newest checkpoint after step 0 in model_dir whose manifest is good; does
// not look at its shard files. Free with bel_free. *out_value is NULL if the setting or such a
// checkpoint is absent. System errors are returned.
bel_status *bel_ckpt_latest_setting(const char *model_dir, const char *name,
                                    char **out_value) BEL_MUST_USE;

// Calls bel_ckpt_open for a checkpoint's folder, bel_ckpt_open_latest for a model's. NOT_FOUND: it
// is neither. DATA_LOSS: the folder has a manifest and lacks a shard file; the message names it.
bel_status *bel_ckpt_open_any(const char *folder, bel_ckpt_reader **out_reader) BEL_MUST_USE;

// Reads only a manifest: the base of the checkpoint in that folder. Errors are those of a manifest.
bel_status *bel_ckpt_read_base(const char *folder, bel_ckpt_base *out_base) BEL_MUST_USE;

// Checks that the full checkpoint `base` is in model_dir, with this digest, and that its files have
// their sizes. Does not read them. The error names what differs or is missing.
bel_status *bel_ckpt_check_full(const char *model_dir, const bel_ckpt_base *base) BEL_MUST_USE;

// Path of the base's folder: `folder`/base, or beside it; it may be missing. Free with bel_free.
char *bel_ckpt_base_path(const char *folder, int64_t base_step);

// The full checkpoint on which a delta is, as it was opened and checked with it; NULL: the
// checkpoint is full. The reader owns it.
const bel_ckpt_reader *bel_ckpt_base_reader(const bel_ckpt_reader *reader);

const char *bel_ckpt_folder(const bel_ckpt_reader *reader);
const bel_ckpt_info *bel_ckpt_reader_info(const bel_ckpt_reader *reader);
const char *bel_ckpt_setting(const bel_ckpt_reader *reader, const char *name); // NULL: absent
bel_hash128 bel_ckpt_reader_digest(const bel_ckpt_reader *reader);             // as recorded

// Recomputes the digest from the files. DATA_LOSS: it differs from the manifest's.
bel_status *bel_ckpt_verify(bel_ckpt_reader *reader) BEL_MUST_USE;

// Tensors in byte order of their names.
int bel_ckpt_tensor_count(const bel_ckpt_reader *reader);
void bel_ckpt_tensor(const bel_ckpt_reader *reader, int index, const char **out_name,
                     bel_dtype *out_dtype, bel_shape *out_shape);
int bel_ckpt_find(const bel_ckpt_reader *reader, const char *name); // -1: absent

// Reads elements [first, first + count) of a tensor into `out_data`, in whichever files its pieces
// are. NOT_FOUND: no such tensor. DATA_LOSS: the tensor's dtype or shape differs from `dtype` and
// `shape` (the message has both), or the file cannot be read. OUT_OF_RANGE: the tensor has no such
// elements.
bel_status *bel_ckpt_read(const bel_ckpt_reader *reader, const char *name, bel_dtype dtype,
                          const bel_shape *shape, int64_t first, int64_t count,
                          void *out_data) BEL_MUST_USE;

// The same for the moving average of a variable, "<variable>/average". Reads the variable's values
// if the checkpoint has no average.
#define BEL_CKPT_AVERAGE "average"
bel_status *bel_ckpt_read_average(const bel_ckpt_reader *reader, const char *variable,
                                  bel_dtype dtype, const bel_shape *shape, int64_t first,
                                  int64_t count, void *out_data) BEL_MUST_USE;

// Like bel_ckpt_read, for a variable with values of replicas (belfry/graph.h), F32 [replicas, …].
// If the checkpoint has values for another number of replicas, or one value that all share, each
// replica gets their aggregate, or an equal part of it for a sum. FAILED_PRECONDITION: `kind` has
// no aggregate.
bel_status *bel_ckpt_read_replicas(const bel_ckpt_reader *reader, const char *name,
                                   bel_variable_kind kind, const bel_shape *shape, int64_t first,
                                   int64_t count, float *out) BEL_MUST_USE;

// Steps of all visible checkpoints, ascending; free with bel_free.
bel_status *bel_ckpt_list(const char *model_dir, int64_t **out_steps,
                          size_t *out_count) BEL_MUST_USE;

// Removes old checkpoints until at most `keep_max` are left (0: keeps all), the newest ones. With
// `keep_every_n_hours` > 0 it also keeps the oldest, and then each one committed at least that long
// after the previous one kept for this reason. It also keeps the best one (best.h) and that of step
// `held` (-1: unset), and the bases of all that are kept, which it logs. If all these depend on one
// base, it also keeps the newest other full one. A checkpoint that it cannot remove stays, with a
// warning.
void bel_ckpt_retain(const char *model_dir, int keep_max, double keep_every_n_hours, int64_t held);

// A known checkpoint of a model folder.
typedef struct bel_ckpt_known {
    int64_t step, base; // base: 0 for a full one
} bel_ckpt_known;

// The bases that retention has read, or that were noted after a save, so that it reads a manifest
// only once. Zero-initialize; for one model folder.
typedef struct bel_ckpt_bases {
    bel_ckpt_known *items;
    size_t count, capacity;
    int64_t spare; // the last full checkpoint that was kept beside an only base; 0: none
} bel_ckpt_bases;

void bel_ckpt_bases_note(bel_ckpt_bases *bases, int64_t step, int64_t base);
void bel_ckpt_bases_deinit(bel_ckpt_bases *bases);

// The same with up to two held steps. `bases` may be NULL.
void bel_ckpt_retain_but(const char *model_dir, int keep_max, double keep_every_n_hours,
                         const int64_t *held, int held_count, bel_ckpt_bases *bases);

#endif
