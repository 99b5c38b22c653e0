// Checkpoints: the content saved is read back, under any number of shards, with one digest. Several
// threads also share a reader here (label: threads).
#include <pthread.h>

#include "base/hash.h"
#include "unit/checkpoint/test_fixture.h"

// --- Round trip ---------------------------------------------------------------------------------

static void test_round_trip_with_any_number_of_shards(void **state)
{
    (void)state;
    model saved;
    model_init(&saved, 0);
    bel_hash128 expected = model_digest(&saved, 1);
    for (int shard_count = 1; shard_count <= 3; shard_count++) {
        char *folder = bel_test_folder();
        bel_hash128 digest;
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(model_save(&saved, folder, 20, shard_count, &digest));
        BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
        assert_non_null(strstr(bel_ckpt_folder(reader), "/ckpt-00000020"));
        assert_holds(reader, &saved, 20);
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        assert_true(same_digest(digest, expected));
        assert_true(same_digest(bel_ckpt_reader_digest(reader), expected));
        assert_true(same_digest(model_digest(&saved, shard_count), expected));
        bel_ckpt_close(reader);
        bel_test_remove_folder(folder);
    }
    model_deinit(&saved);
}

static void test_reads_any_run_across_pieces(void **state)
{
    (void)state;
    static const int64_t borders[] = {0, 1, 4095, 4096, 4097, 8192, 12287, 12288, 14999, 15000};
    enum { BORDERS = sizeof borders / sizeof borders[0] };
    model saved;
    model_init(&saved, 1);
    char *folder = bel_test_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&saved, folder, 1, 3, &digest));
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    const bel_tensor *kernel = &saved.tensor[0];
    const float *expected = kernel->data;
    float *got = bel_xcalloc(15000, sizeof *got);
    for (int i = 0; i < BORDERS; i++) {
        for (int j = i; j < BORDERS; j++) {
            int64_t first = borders[i], count = borders[j] - first;
            BEL_ASSERT_OK(bel_ckpt_read(reader, "a/kernel", kernel->dtype, &kernel->shape, first,
                                        count, got));
            assert_memory_equal(got, expected + first, (size_t)count * sizeof *got);
        }
    }
    bel_free(got);
    bel_ckpt_close(reader);
    bel_test_remove_folder(folder);
    model_deinit(&saved);
}

static void test_read_refuses_what_is_not_there(void **state)
{
    (void)state;
    model saved;
    model_init(&saved, 1);
    char *folder = bel_test_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    double room[16];
    bel_shape seven = BEL_SHAPE(7), eight = BEL_SHAPE(8);
    BEL_ASSERT_OK(model_save(&saved, folder, 1, 1, &digest));
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b", BEL_DTYPE_F64, &seven, 0, 7, room), BEL_NOT_FOUND,
                     "no tensor \"b\"");
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b/bias", BEL_DTYPE_F32, &seven, 0, 7, room),
                     BEL_DATA_LOSS, "expected f32 [7], got f64 [7]");
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b/bias", BEL_DTYPE_F64, &eight, 0, 7, room),
                     BEL_DATA_LOSS, "expected f64 [8], got f64 [7]");
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b/bias", BEL_DTYPE_F64, &seven, 1, 7, room),
                     BEL_OUT_OF_RANGE, "has 7 elements, asked for 7 from 1");
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b/bias", BEL_DTYPE_F64, &seven, -1, 1, room),
                     BEL_OUT_OF_RANGE, "from -1");
    BEL_ASSERT_FAILS(bel_ckpt_read(reader, "b/bias", BEL_DTYPE_F64, &seven, 1, INT64_MAX, room),
                     BEL_OUT_OF_RANGE, "b/bias");
    bel_ckpt_close(reader);
    bel_test_remove_folder(folder);
    model_deinit(&saved);
}

typedef struct read_job {
    const bel_ckpt_reader *reader;
    const bel_tensor *tensor;
    bool right;
} read_job;

static void *read_many_times(void *argument)
{
    read_job *job = argument;
    float *got = bel_xcalloc(15000, sizeof *got);
    job->right = true;
    for (int i = 0; i < 50 && job->right; i++) {
        bel_status *status = bel_ckpt_read(job->reader, "a/kernel", BEL_DTYPE_F32,
                                           &job->tensor->shape, 0, 15000, got);
        job->right = status == NULL && memcmp(got, job->tensor->data, 15000 * sizeof *got) == 0;
        bel_status_destroy(status);
    }
    bel_free(got);
    return NULL;
}

static void test_threads_share_a_reader(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    model saved;
    model_init(&saved, 1);
    char *folder = bel_test_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&saved, folder, 1, 3, &digest));
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    pthread_t threads[THREADS];
    read_job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (read_job){reader, &saved.tensor[0], false};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many_times, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(jobs[i].right);
    }
    bel_ckpt_close(reader);
    bel_test_remove_folder(folder);
    model_deinit(&saved);
}

// --- Digest -------------------------------------------------------------------------------------

static void test_any_flipped_bit_changes_the_digest(void **state)
{
    (void)state;
    model flipped;
    model_init(&flipped, 0);
    bel_hash128 before = model_digest(&flipped, 2);
    for (int i = 0; i < TENSOR_COUNT; i++) {
        size_t bytes = bel_tensor_bytes(&flipped.tensor[i]);
        unsigned char *data = flipped.tensor[i].data;
        for (size_t byte = 0; byte<bytes; byte += bytes> 100 ? 997 : 1) {
            unsigned char bit = (unsigned char)(1u << byte % 8);
            data[byte] ^= bit;
            assert_false(same_digest(model_digest(&flipped, 2), before));
            data[byte] ^= bit;
        }
    }
    assert_true(same_digest(model_digest(&flipped, 2), before));
    model_deinit(&flipped);
}

static bel_hash128 digest_of_one(const char *name, bel_dtype dtype, bel_shape shape)
{
    static const uint64_t zeros[6];
    bel_ckpt_piece piece = {name, dtype, shape, 0, bel_shape_elements(&shape), zeros};
    bel_ckpt_shard *shard = bel_ckpt_hash_shard(&piece, 1);
    bel_hash128 digest = bel_ckpt_digest(&shard, 1);
    bel_ckpt_shard_destroy(shard);
    return digest;
}

static void test_digest_covers_name_dtype_and_shape(void **state)
{
    (void)state;
    bel_hash128 digest = digest_of_one("x", BEL_DTYPE_F32, BEL_SHAPE(2, 3));
    assert_true(same_digest(digest, digest_of_one("x", BEL_DTYPE_F32, BEL_SHAPE(2, 3))));
    assert_false(same_digest(digest, digest_of_one("y", BEL_DTYPE_F32, BEL_SHAPE(2, 3))));
    assert_false(same_digest(digest, digest_of_one("x", BEL_DTYPE_I32, BEL_SHAPE(2, 3))));
    assert_false(same_digest(digest, digest_of_one("x", BEL_DTYPE_F32, BEL_SHAPE(3, 2))));
    assert_false(same_digest(digest, digest_of_one("x", BEL_DTYPE_F32, BEL_SHAPE(6))));
}

// Writes out the digest of docs/formats/checkpoint.md for two tensors.
static void test_digest_is_the_documented_one(void **state)
{
    (void)state;
    enum { COUNT = BEL_GRAIN + 2 };
    uint8_t bytes[COUNT];
    float scalar = 1.5f;
    for (int i = 0; i < COUNT; i++)
        bytes[i] = (uint8_t)i;
    bel_ckpt_piece pieces[] = {
        {"b", BEL_DTYPE_F32, bel_shape_scalar(), 0, 1, &scalar},
        {"a", BEL_DTYPE_U8, BEL_SHAPE(COUNT), BEL_GRAIN, 2, bytes + BEL_GRAIN},
        {"a", BEL_DTYPE_U8, BEL_SHAPE(COUNT), 0, BEL_GRAIN, bytes},
    };
    bel_ckpt_shard *shard = bel_ckpt_hash_shard(pieces, 3);
    bel_hash128 got = bel_ckpt_digest(&shard, 1);
    bel_ckpt_shard_destroy(shard);

    static const char head_a[] = "a\0u8\0\1\0\0\0\x02\x10\0\0\0\0\0";
    static const char head_b[] = "b\0f32\0\0\0\0";
    uint64_t first = bel_hash64(bytes, BEL_GRAIN), second = bel_hash64(bytes + BEL_GRAIN, 2);
    uint64_t third = bel_hash64(&scalar, 4);
    bel_hasher *hasher = bel_hasher_create();
    bel_hasher_update(hasher, head_a, sizeof head_a); // the last zero byte belongs to the dimension
    bel_hasher_update(hasher, &first, 8);
    bel_hasher_update(hasher, &second, 8);
    bel_hasher_update(hasher, head_b, sizeof head_b); // and here to the rank
    bel_hasher_update(hasher, &third, 8);
    bel_hash128 expected = bel_hasher_finish(hasher);
    bel_hasher_destroy(hasher);
    assert_true(same_digest(got, expected));
}

// --- Format -------------------------------------------------------------------------------------

// The worked example of docs/formats/checkpoint.md; another program checked its numbers.
static const char example_manifest[] =
    "{\n"
    "  \"format\": \"belfry-checkpoint\",\n"
    "  \"format_version\": 1,\n"
    "  \"step\": 5,\n"
    "  \"generation\": 0,\n"
    "  \"seed\": \"42\",\n"
    "  \"digest\": \"faebafa673d30cb22ddd4145413a9aaf\",\n"
    "  \"segments\": [\n"
    "    {\"first_step\": 0, \"first_block\": 0, \"replica_count\": 2}\n"
    "  ],\n"
    "  \"settings\": {\n"
    "    \"model\": \"mlp\"\n"
    "  },\n"
    "  \"files\": [\n"
    "    {\"name\": \"shard-00000-of-00002.safetensors\", \"size\": 266, "
    "\"crc32c\": \"6c250b5f\"},\n"
    "    {\"name\": \"shard-00001-of-00002.safetensors\", \"size\": 4288, "
    "\"crc32c\": \"b3be3522\"}\n"
    "  ],\n"
    "  \"tensors\": [\n"
    "    {\"name\": \"bias\", \"dtype\": \"f32\", \"shape\": [2], \"pieces\": [[0, 0, 2]]},\n"
    "    {\"name\": \"mask\", \"dtype\": \"u8\", \"shape\": [4098], "
    "\"pieces\": [[1, 0, 4096], [0, 4096, 2]]}\n"
    "  ],\n"
    "  \"crc32c\": \"ec8f888c\"\n"
    "}\n";

static void assert_file_is(const char *folder, const char *name, const char *expected)
{
    char *path = bel_path_join(folder, name), *text;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &text, &size));
    assert_string_equal(text, expected);
    bel_free(text);
    bel_free(path);
}

static void test_the_worked_example(void **state)
{
    (void)state;
    static const float bias[] = {1.0f, -2.0f};
    static const char *const name = "model", *const value = "mlp";
    uint8_t mask[4098] = {0};
    mask[4097] = 1;
    const bel_ckpt_piece first[] = {
        {"bias", BEL_DTYPE_F32, BEL_SHAPE(2), 0, 2, bias},
        {"mask", BEL_DTYPE_U8, BEL_SHAPE(4098), 4096, 2, mask + 4096},
    };
    const bel_ckpt_piece second = {"mask", BEL_DTYPE_U8, BEL_SHAPE(4098), 0, 4096, mask};
    const bel_input_segment segment = {.replica_count = 2};
    const bel_ckpt_info info = {.step = 5,
                                .seed = 42,
                                .segments = &segment,
                                .segment_count = 1,
                                .setting_names = &name,
                                .setting_values = &value,
                                .setting_count = 1};
    char *model_dir = bel_test_folder(), *folder;
    bel_ckpt_shard *shards[2];
    bel_hash128 digest;
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 5, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 2, first, 2, &shards[0]));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 1, 2, &second, 1, &shards[1]));
    BEL_ASSERT_OK(bel_ckpt_commit(model_dir, folder, &info, shards, 2, &digest));
    assert_file_is(model_dir, "ckpt-00000005/manifest.json", example_manifest);
    bel_ckpt_shard_destroy(shards[0]);
    bel_ckpt_shard_destroy(shards[1]);
    bel_free(folder);
    bel_test_remove_folder(model_dir);
}

// --- Refusals -----------------------------------------------------------------------------------

static void test_write_shard_refuses_bad_pieces(void **state)
{
    (void)state;
    static const float data[2 * BEL_GRAIN];
    static const struct {
        const char *name;
        bel_dtype dtype;
        int64_t first, count;
        const char *part;
    } rows[] = {
        {"", BEL_DTYPE_F32, 0, 8000, "name is empty"},
        {"a#0", BEL_DTYPE_F32, 0, 8000, "holds a \"#\""},
        {"\xff", BEL_DTYPE_F32, 0, 8000, "expected UTF-8, got byte 0xff"},
        {"__metadata__", BEL_DTYPE_F32, 0, 8000, "__metadata__"},
        {"x", BEL_DTYPE_STRING, 0, 8000, "text cannot be saved"},
        {"x", BEL_DTYPE_F32, 1, 7999, "begins beside a grain border"},
        {"x", BEL_DTYPE_F32, -4096, 4096, "begins beside a grain border"},
        {"x", BEL_DTYPE_F32, 8192, 1, "begins after the tensor's end"},
        {"x", BEL_DTYPE_F32, 4096, 4096, "ends too late"},
        {"x", BEL_DTYPE_F32, 0, INT64_MAX, "ends too late"},
        {"x", BEL_DTYPE_F32, 0, 0, "it is empty"},
        {"x", BEL_DTYPE_F32, 0, 4095, "ends beside a grain border"},
    };
    char *folder = bel_test_folder();
    bel_ckpt_shard *shard;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_ckpt_piece piece = {rows[i].name,  rows[i].dtype, BEL_SHAPE(8, 1000),
                                rows[i].first, rows[i].count, data};
        BEL_ASSERT_FAILS(bel_ckpt_write_shard(folder, 0, 1, &piece, 1, &shard),
                         BEL_INVALID_ARGUMENT, rows[i].part);
    }
    bel_ckpt_piece twice[] = {{"x", BEL_DTYPE_F32, BEL_SHAPE(4), 0, 4, data},
                              {"x", BEL_DTYPE_F32, BEL_SHAPE(4), 0, 4, data}};
    BEL_ASSERT_FAILS(bel_ckpt_write_shard(folder, 0, 1, twice, 2, &shard), BEL_INVALID_ARGUMENT,
                     "duplicate");
    char **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    assert_int_equal(count, 0); // no folder remains
    bel_free(names);
    bel_test_remove_folder(folder);
}

// Commits two shards of one tensor x [8192]; the second shard holds `second`.
static bel_status *commit_two(const char *model_dir, const bel_ckpt_piece *second, int second_count,
                              int second_index)
{
    static const float data[2 * BEL_GRAIN];
    bel_ckpt_piece first = {"x", BEL_DTYPE_F32, BEL_SHAPE(8192), 0, 4096, data};
    bel_ckpt_shard *shards[2];
    bel_ckpt_info info = fixture_info(7);
    bel_hash128 digest;
    char *folder;
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 7, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 2, &first, 1, &shards[0]));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, second_index, 2, second, second_count, &shards[1]));
    bel_status *status = bel_ckpt_commit(model_dir, folder, &info, shards, 2, &digest);
    bel_ckpt_shard_destroy(shards[0]);
    bel_ckpt_shard_destroy(shards[1]);
    bel_free(folder);
    return status;
}

static void test_commit_refuses_what_is_not_whole(void **state)
{
    (void)state;
    static const double data[2 * BEL_GRAIN];
    const bel_ckpt_piece right = {"x", BEL_DTYPE_F32, BEL_SHAPE(8192), 4096, 4096, data};
    bel_ckpt_piece overlap = right, dtype = right, shape = right;
    overlap.first = 0;
    dtype.dtype = BEL_DTYPE_F64;
    shape.shape = BEL_SHAPE(2, 4096);
    char *folder = bel_test_folder();
    BEL_ASSERT_FAILS(commit_two(folder, &right, 0, 1), BEL_INTERNAL,
                     "expected 8192 elements, the shards have 4096");
    BEL_ASSERT_FAILS(commit_two(folder, &overlap, 1, 1), BEL_INTERNAL,
                     "expected a piece from element 4096 on, shard 1 has one from 0");
    BEL_ASSERT_FAILS(commit_two(folder, &dtype, 1, 1), BEL_INTERNAL,
                     "shard 0 has f32 [8192], shard 1 has f64 [8192]");
    BEL_ASSERT_FAILS(commit_two(folder, &shape, 1, 1), BEL_INTERNAL, "shard 1 has f32 [2, 4096]");
    BEL_ASSERT_FAILS(commit_two(folder, &right, 1, 0), BEL_INTERNAL, "shard 0 of 2 out of place");
    char **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    assert_int_equal(count, 0); // the temporary folders are gone too
    bel_free(names);
    BEL_ASSERT_OK(commit_two(folder, &right, 1, 1)); // so these were the reasons for the refusals
    bel_test_remove_folder(folder);
}

static void test_commit_refuses_shards_without_a_file(void **state)
{
    (void)state;
    char *model_dir = bel_test_folder(), *folder;
    bel_ckpt_info info = fixture_info(7);
    bel_hash128 digest;
    bel_ckpt_shard *shard = bel_ckpt_hash_shard(NULL, 0);
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 7, 0, 0, &folder));
    BEL_ASSERT_FAILS(bel_ckpt_commit(model_dir, folder, &info, &shard, 1, &digest), BEL_INTERNAL,
                     "without a file");
    bel_ckpt_shard_destroy(shard);
    bel_free(folder);
    bel_test_remove_folder(model_dir);
}

static void test_commit_refuses_settings_that_cannot_be_read_back(void **state)
{
    (void)state;
    static const char *const twice[] = {"lr", "lr"};
    static const char *const once[] = {"lr", "path"};
    static const char *const broken[] = {"0.1", "/data/\xff"};
    static const char *const plain[] = {"0.1", "0.2"};
    char *model_dir = bel_test_folder();
    for (int i = 0; i < 2; i++) {
        char *folder;
        bel_ckpt_shard *shard;
        bel_hash128 digest;
        bel_ckpt_info info = fixture_info(7);
        info.setting_names = i == 0 ? twice : once;
        info.setting_values = i == 0 ? plain : broken;
        BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 7, 0, 0, &folder));
        BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 1, NULL, 0, &shard));
        BEL_ASSERT_FAILS(bel_ckpt_commit(model_dir, folder, &info, &shard, 1, &digest),
                         BEL_DATA_LOSS, i == 0 ? "duplicate" : "expected UTF-8, got byte 0xff");
        bel_ckpt_shard_destroy(shard);
        bel_free(folder);
    }
    bel_test_remove_folder(model_dir);
}

// A manifest too large to read back is not written.
static void test_too_large_a_manifest(void **state)
{
    (void)state;
    enum { BYTES = 101000000 };
    char *model_dir = bel_test_folder(), *value = bel_xmalloc(BYTES + 1), *folder;
    memset(value, 'x', BYTES);
    value[BYTES] = '\0';
    static const char *const names[] = {"long"};
    const char *const values[] = {value};
    bel_ckpt_shard *shard;
    bel_hash128 digest;
    bel_ckpt_info info = fixture_info(7);
    info.setting_count = 1;
    info.setting_names = names;
    info.setting_values = values;
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 7, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 1, NULL, 0, &shard));
    BEL_ASSERT_FAILS(bel_ckpt_commit(model_dir, folder, &info, &shard, 1, &digest),
                     BEL_RESOURCE_EXHAUSTED, "at most 100000000 can be read back");
    bel_ckpt_shard_destroy(shard);
    bel_free(folder);
    bel_free(value);
    bel_test_remove_folder(model_dir);
}

static void test_a_shard_may_own_nothing(void **state)
{
    (void)state;
    static const float data[2 * BEL_GRAIN];
    const bel_ckpt_piece none = {"x", BEL_DTYPE_F32, BEL_SHAPE(8192), 0, 8192, data};
    char *model_dir = bel_test_folder(), *folder;
    bel_ckpt_shard *shards[2];
    bel_ckpt_info info = fixture_info(7);
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_begin(model_dir, 7, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 1, 2, &none, 1, &shards[0]));
    BEL_ASSERT_OK(bel_ckpt_write_shard(folder, 0, 2, NULL, 0, &shards[1]));
    BEL_ASSERT_OK(bel_ckpt_commit(model_dir, folder, &info, shards, 2, &digest)); // in any order
    BEL_ASSERT_OK(bel_ckpt_open_latest(model_dir, &reader));
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    bel_ckpt_close(reader);
    bel_ckpt_shard_destroy(shards[0]);
    bel_ckpt_shard_destroy(shards[1]);
    bel_free(folder);
    bel_test_remove_folder(model_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_with_any_number_of_shards),
        cmocka_unit_test(test_reads_any_run_across_pieces),
        cmocka_unit_test(test_read_refuses_what_is_not_there),
        cmocka_unit_test(test_threads_share_a_reader),
        cmocka_unit_test(test_any_flipped_bit_changes_the_digest),
        cmocka_unit_test(test_digest_covers_name_dtype_and_shape),
        cmocka_unit_test(test_digest_is_the_documented_one),
        cmocka_unit_test(test_the_worked_example),
        cmocka_unit_test(test_write_shard_refuses_bad_pieces),
        cmocka_unit_test(test_commit_refuses_what_is_not_whole),
        cmocka_unit_test(test_commit_refuses_shards_without_a_file),
        cmocka_unit_test(test_commit_refuses_settings_that_cannot_be_read_back),
        cmocka_unit_test(test_too_large_a_manifest),
        cmocka_unit_test(test_a_shard_may_own_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
