// A shard's part of a checkpoint: hashes of its pieces, and the file that holds them. Grain hashes
// and checksum are computed from memory. Opening and verifying compute them from the disk, so they
// detect an error in between. The result is a report for the master, which may be another process:
// it has copies of all names and no pointer into the caller's memory.
//
// bel_ckpt_hash_shard makes the same report without a file, only for a digest; it cannot be
// committed.
#include "checkpoint/shard.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_tables.h"

char *bel_ckpt_shard_file_name(int shard_index, int shard_count)
{
    return bel_strf("shard-%05d-of-%05d.safetensors", shard_index, shard_count);
}

char *bel_ckpt_stored_name(const char *name, bool whole, int64_t first)
{
    return whole ? bel_xstrdup(name) : bel_strf("%s#%lld", name, (long long)first);
}

// The fault of a name, or NULL. The file's rules (UTF-8, no duplicates) are checked in addition.
static const char *name_fault(const char *name)
{
    if (name[0] == '\0') return "its name is empty";
    if (strchr(name, '#') != NULL) return "its name holds a \"#\"";
    return NULL;
}

// The fault of a run, or NULL.
static const char *run_fault(const bel_ckpt_piece *piece)
{
    int64_t elements = bel_shape_elements(&piece->shape);
    if (piece->dtype == BEL_DTYPE_STRING) return "text cannot be saved";
    if (elements < 0) return "its shape is open";
    if (piece->first < 0 || piece->first % BEL_GRAIN != 0) return "it begins beside a grain border";
    if (piece->first > elements) return "it begins after the tensor's end";
    if (piece->count < 0 || piece->count > elements - piece->first) return "it ends too late";
    if (piece->count == 0 && elements > 0) return "it is empty";
    bool reaches_end = piece->first + piece->count == elements;
    if (!reaches_end && piece->count % BEL_GRAIN != 0) return "it ends beside a grain border";
    return NULL;
}

static bel_status *check_pieces(const bel_ckpt_piece *pieces, int piece_count)
{
    for (int i = 0; i < piece_count; i++) {
        const bel_ckpt_piece *piece = &pieces[i];
        const char *fault = name_fault(piece->name);
        if (fault == NULL) fault = run_fault(piece);
        if (fault == NULL) continue;
        char shape_text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cannot save %lld elements from %lld of tensor \"%s\" %s: %s",
                       (long long)piece->count, (long long)piece->first, piece->name,
                       bel_shape_text(&piece->shape, shape_text), fault);
    }
    return NULL;
}

static bel_ckpt_shard *make_shard(int shard_index, int shard_count, const bel_ckpt_piece *pieces,
                                  int piece_count)
{
    bel_arena *arena = bel_arena_create();
    bel_ckpt_shard *shard = bel_xcalloc(1, sizeof *shard);
    shard->arena = arena;
    shard->shard_index = shard_index;
    shard->shard_count = shard_count;
    shard->run_count = piece_count;
    shard->runs = bel_arena_alloc(arena, (size_t)piece_count * sizeof *shard->runs);
    for (int i = 0; i < piece_count; i++) {
        const bel_ckpt_piece *piece = &pieces[i];
        uint64_t *hashes =
            bel_arena_alloc(arena, bel_ckpt_grain_count(piece->count) * sizeof *hashes);
        bel_ckpt_hash_grains(piece->dtype, piece->data, piece->count, hashes);
        shard->runs[i] = (bel_ckpt_run){
            .name = bel_arena_strdup(arena, piece->name),
            .dtype = piece->dtype,
            .shape = piece->shape,
            .first = piece->first,
            .count = piece->count,
            .grain_hashes = hashes,
            .shard_index = shard_index,
        };
    }
    return shard;
}

static bel_status *write_pieces(const char *path, bel_ckpt_shard *shard,
                                const bel_ckpt_piece *pieces, int piece_count,
                                const bel_table_streams *streams)
{
    int tensor_count = piece_count + streams->count;
    bel_safetensors_input *tensors = bel_xcalloc((size_t)tensor_count, sizeof *tensors);
    char **names = bel_xcalloc((size_t)piece_count, sizeof *names);
    for (int i = 0; i < piece_count; i++) {
        const bel_ckpt_piece *piece = &pieces[i];
        bool whole = piece->count == bel_shape_elements(&piece->shape);
        names[i] = bel_ckpt_stored_name(piece->name, whole, piece->first);
        tensors[i] = (bel_safetensors_input){
            .name = names[i],
            .dtype = piece->dtype,
            .shape = whole ? piece->shape : BEL_SHAPE(piece->count),
            .data = piece->data,
        };
    }
    for (int i = 0; i < streams->count; i++)
        tensors[piece_count + i] = streams->inputs[i];
    char index_text[16], count_text[16];
    bel_snprintf(index_text, sizeof index_text, "%d", shard->shard_index);
    bel_snprintf(count_text, sizeof count_text, "%d", shard->shard_count);
    const bel_safetensors_text metadata[] = {
        {"producer", "belfry"}, {"shard_index", index_text}, {"shard_count", count_text}};
    bel_status *status =
        bel_safetensors_write(path, metadata, (int)(sizeof metadata / sizeof metadata[0]), tensors,
                              tensor_count, &shard->file_size_bytes, &shard->file_crc32c);
    for (int i = 0; i < piece_count; i++)
        bel_free(names[i]);
    bel_free(names);
    bel_free(tensors);
    return status;
}

bel_status *bel_ckpt_check_finite(const bel_ckpt_piece *pieces, int piece_count)
{
    for (int i = 0; i < piece_count; i++) {
        const float *numbers = pieces[i].data;
        bool finite = true;
        for (int64_t k = 0; k < pieces[i].count; k++)
            finite &= isfinite(numbers[k]) != 0; // tests all: a loop without an exit is fast
        if (finite) continue;
        return BEL_ERR(BEL_ABORTED,
                       "\"%s\" is not finite, so nothing was saved; hint: a lower learning_rate or "
                       "clip_global_norm often helps",
                       pieces[i].name);
    }
    return NULL;
}

bel_status *bel_ckpt_write_shard(const char *folder, int shard_index, int shard_count,
                                 const bel_ckpt_piece *pieces, int piece_count,
                                 bel_ckpt_shard **out_shard)
{
    return bel_ckpt_write_shard_tables(folder, shard_index, shard_count, pieces, piece_count, NULL,
                                       0, out_shard);
}

bel_status *bel_ckpt_write_shard_tables(const char *folder, int shard_index, int shard_count,
                                        const bel_ckpt_piece *pieces, int piece_count,
                                        const bel_ckpt_rows *tables, int table_count,
                                        bel_ckpt_shard **out_shard)
{
    BEL_TRY(check_pieces(pieces, piece_count));
    BEL_TRY(bel_ckpt_check_tables(tables, table_count, pieces, piece_count));
    char *name = bel_ckpt_shard_file_name(shard_index, shard_count);
    char *path = bel_path_join(folder, name);
    bel_ckpt_shard *shard = make_shard(shard_index, shard_count, pieces, piece_count);
    bel_table_streams streams;
    bel_ckpt_open_streams(tables, table_count, &streams);
    bel_status *status = write_pieces(path, shard, pieces, piece_count, &streams);
    if (status == NULL) status = bel_ckpt_describe_tables(tables, table_count, &streams, shard);
    bel_ckpt_close_streams(&streams);
    bel_free(name);
    bel_free(path);
    if (status != NULL) {
        bel_ckpt_shard_destroy(shard);
        return status;
    }
    bel_fault_point("checkpoint_shard_written");
    shard->has_file = true;
    *out_shard = shard;
    return NULL;
}

bel_ckpt_shard *bel_ckpt_hash_shard(const bel_ckpt_piece *pieces, int piece_count)
{
    for (int i = 0; i < piece_count; i++)
        BEL_CHECK(run_fault(&pieces[i]) == NULL);
    return make_shard(0, 1, pieces, piece_count);
}

void bel_ckpt_shard_destroy(bel_ckpt_shard *shard)
{
    if (shard == NULL) return;
    bel_arena_destroy(shard->arena);
    bel_free(shard);
}

const bel_ckpt_run **bel_ckpt_gather_runs(bel_ckpt_shard *const *shards, int shard_count,
                                          size_t *out_run_count)
{
    size_t count = 0;
    for (int i = 0; i < shard_count; i++)
        count += (size_t)shards[i]->run_count;
    const bel_ckpt_run **runs = bel_xcalloc(count, sizeof *runs);
    size_t next = 0;
    for (int i = 0; i < shard_count; i++) {
        for (int j = 0; j < shards[i]->run_count; j++)
            runs[next++] = &shards[i]->runs[j];
    }
    bel_ckpt_sort_runs(runs, count);
    *out_run_count = count;
    return runs;
}

const bel_ckpt_table_run **bel_ckpt_gather_tables(bel_ckpt_shard *const *shards, int shard_count,
                                                  size_t *out_table_count)
{
    size_t count = 0, next = 0;
    for (int i = 0; i < shard_count; i++)
        count += (size_t)shards[i]->table_count;
    const bel_ckpt_table_run **tables = bel_xcalloc(count, sizeof *tables);
    for (int i = 0; i < shard_count; i++) {
        for (int j = 0; j < shards[i]->table_count; j++)
            tables[next++] = &shards[i]->tables[j];
    }
    bel_ckpt_sort_tables(tables, count);
    *out_table_count = count;
    return tables;
}

bel_hash128 bel_ckpt_digest(bel_ckpt_shard *const *shards, int shard_count)
{
    size_t run_count, table_count;
    const bel_ckpt_run **runs = bel_ckpt_gather_runs(shards, shard_count, &run_count);
    const bel_ckpt_table_run **tables = bel_ckpt_gather_tables(shards, shard_count, &table_count);
    bel_hash128 digest = bel_ckpt_digest_runs(runs, run_count, tables, table_count);
    bel_free(runs);
    bel_free(tables);
    return digest;
}
