// Small model for the tests of checkpoints: tensors of several dtypes, including an empty one, a
// scalar, and some long enough to be cut.
#ifndef BELFRY_TESTS_UNIT_CHECKPOINT_TEST_FIXTURE_H
#define BELFRY_TESTS_UNIT_CHECKPOINT_TEST_FIXTURE_H

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "support/bel_test.h"

enum { TENSOR_COUNT = 6, MAX_SHARDS = 4, MAX_PIECES = 64 };

typedef struct model {
    bel_tensor tensor[TENSOR_COUNT];
    const char *name[TENSOR_COUNT]; // in byte order
} model;

// Fills the model; the bytes depend only on `salt`.
static inline void model_init(model *made, unsigned salt)
{
    static const struct {
        const char *name;
        bel_dtype dtype;
        bel_shape shape;
    } rows[TENSOR_COUNT] = {
        {"a/kernel", BEL_DTYPE_F32, {2, {3, 5000}}}, // 4 grains, the last one short
        {"a/kernel/adam/m", BEL_DTYPE_F32, {2, {3, 5000}}},
        {"b/bias", BEL_DTYPE_F64, {1, {7}}},
        {"c/count", BEL_DTYPE_I64, {0, {0}}},
        {"d/mask", BEL_DTYPE_BOOL, {1, {4097}}}, // 2 grains, the last one of one element
        {"e/empty", BEL_DTYPE_F32, {2, {0, 4}}},
    };
    uint32_t state = 12345u + salt;
    for (int i = 0; i < TENSOR_COUNT; i++) {
        bel_tensor *tensor = &made->tensor[i];
        *tensor = (bel_tensor){.dtype = rows[i].dtype, .shape = rows[i].shape};
        made->name[i] = rows[i].name;
        size_t bytes = bel_tensor_bytes(tensor);
        unsigned char *data = bel_xmalloc(bytes);
        for (size_t j = 0; j < bytes; j++) {
            state = state * 1664525u + 1013904223u;
            data[j] = (unsigned char)(state >> 24);
        }
        tensor->data = data;
    }
}

static inline void model_deinit(model *made)
{
    for (int i = 0; i < TENSOR_COUNT; i++)
        bel_free(made->tensor[i].data);
}

// Pieces of one of `shard_count` shards. Grains are assigned round-robin; adjacent grains make one
// piece.
static inline int model_cut(const model *cut, int shard, int shard_count, bel_ckpt_piece *pieces)
{
    int count = 0;
    for (int i = 0; i < TENSOR_COUNT; i++) {
        const bel_tensor *tensor = &cut->tensor[i];
        int64_t elements = bel_shape_elements(&tensor->shape), grain = 0;
        bool open = false; // the last piece ends at the start of the next grain
        for (int64_t first = 0; first == 0 || first < elements; first += BEL_GRAIN, grain++) {
            int64_t size = elements - first < BEL_GRAIN ? elements - first : BEL_GRAIN;
            bool mine = (grain + i) % shard_count == shard;
            if (mine && open) pieces[count - 1].count += size;
            if (mine && !open) {
                pieces[count++] = (bel_ckpt_piece){
                    .name = cut->name[i],
                    .dtype = tensor->dtype,
                    .shape = tensor->shape,
                    .first = first,
                    .count = size,
                    .data =
                        (const char *)tensor->data + (size_t)first * bel_dtype_size(tensor->dtype),
                };
            }
            open = mine;
        }
    }
    assert_true(count <= MAX_PIECES);
    return count;
}

static const bel_input_segment fixture_segments[] = {
    {.replica_count = 4}, // as in versions before the batch size
    {.first_step = 10, .first_block = 40, .replica_count = 2, .batch_size = 8, .origin = 3}};
static const char *const fixture_names[] = {"data", "model"};
static const char *const fixture_values[] = {"0123 \"quoted\"\n", "größe"};

static inline bel_ckpt_info fixture_info(int64_t step)
{
    return (bel_ckpt_info){
        .step = step,
        .generation = 2,
        .seed = UINT64_MAX - 1, // too large for a JSON number
        .segments = fixture_segments,
        .segment_count = 2,
        .setting_names = fixture_names,
        .setting_values = fixture_values,
        .setting_count = 2,
    };
}

// Writes all shards and commits. Like a run, it stops at the first error.
static inline bel_status *model_save(const model *saved, const char *model_dir, int64_t step,
                                     int shard_count, bel_hash128 *out_digest)
{
    bel_ckpt_shard *shards[MAX_SHARDS] = {NULL};
    bel_ckpt_piece pieces[MAX_PIECES];
    bel_ckpt_info info = fixture_info(step);
    char *folder = NULL;
    bel_status *status = bel_ckpt_begin(model_dir, step, 2, 1, &folder);
    for (int i = 0; i < shard_count && status == NULL; i++) {
        int count = model_cut(saved, i, shard_count, pieces);
        status = bel_ckpt_write_shard(folder, i, shard_count, pieces, count, &shards[i]);
    }
    if (status == NULL) {
        status = bel_ckpt_commit(model_dir, folder, &info, shards, shard_count, out_digest);
    }
    for (int i = 0; i < shard_count; i++)
        bel_ckpt_shard_destroy(shards[i]);
    bel_free(folder);
    return status;
}

// Digest computed only from memory.
static inline bel_hash128 model_digest(const model *hashed, int shard_count)
{
    bel_ckpt_shard *shards[MAX_SHARDS] = {NULL};
    bel_ckpt_piece pieces[MAX_PIECES];
    for (int i = 0; i < shard_count; i++) {
        int count = model_cut(hashed, i, shard_count, pieces);
        shards[i] = bel_ckpt_hash_shard(pieces, count);
    }
    bel_hash128 digest = bel_ckpt_digest(shards, shard_count);
    for (int i = 0; i < shard_count; i++)
        bel_ckpt_shard_destroy(shards[i]);
    return digest;
}

static inline bool same_digest(bel_hash128 a, bel_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

// Checks that the checkpoint holds the model, bit for bit, and the values of fixture_info.
static inline void assert_holds(const bel_ckpt_reader *reader, const model *expected, int64_t step)
{
    const bel_ckpt_info *info = bel_ckpt_reader_info(reader);
    assert_int_equal(info->step, step);
    assert_int_equal(info->generation, 2);
    assert_true(info->seed == UINT64_MAX - 1);
    assert_int_equal(info->segment_count, 2);
    assert_memory_equal(info->segments, fixture_segments, sizeof fixture_segments);
    assert_int_equal(info->setting_count, 2);
    assert_string_equal(bel_ckpt_setting(reader, "data"), fixture_values[0]);
    assert_string_equal(bel_ckpt_setting(reader, "model"), fixture_values[1]);
    assert_null(bel_ckpt_setting(reader, "absent"));
    assert_int_equal(bel_ckpt_tensor_count(reader), TENSOR_COUNT);
    for (int i = 0; i < TENSOR_COUNT; i++) {
        const bel_tensor *tensor = &expected->tensor[i];
        const char *name;
        bel_dtype dtype;
        bel_shape shape;
        bel_ckpt_tensor(reader, i, &name, &dtype, &shape);
        assert_string_equal(name, expected->name[i]);
        assert_int_equal(dtype, tensor->dtype);
        assert_true(bel_shape_equal(&shape, &tensor->shape));
        assert_int_equal(bel_ckpt_find(reader, name), i);
        size_t bytes = bel_tensor_bytes(tensor);
        char *data = bel_xcalloc(1, bytes);
        BEL_ASSERT_OK(
            bel_ckpt_read(reader, name, dtype, &shape, 0, bel_shape_elements(&shape), data));
        assert_memory_equal(data, tensor->data, bytes);
        bel_free(data);
    }
}

#endif
