// Files of a checkpoint: those that a shard needs, those present, and reading a part.
#include "checkpoint/files.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "unit/checkpoint/test_fixture.h"

static char *file_of(const char *folder, int shard, int count)
{
    return bel_strf("%s/ckpt-00000005/shard-%05d-of-%05d.safetensors", folder, shard, count);
}

static int count_whole(const char *folder, const int *only, int only_count, int shard_count,
                       int *out_count)
{
    bel_ckpt_file *files;
    int whole = 0;
    int64_t base = -1;
    BEL_ASSERT_OK(
        bel_ckpt_files_needed(folder, 5, only, only_count, shard_count, &files, out_count, &base));
    assert_int_equal(base, 0);
    for (int i = 0; i < *out_count; i++)
        whole += files[i].whole;
    bel_ckpt_files_free(files, *out_count);
    return whole;
}

static void test_needed(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    model saved;
    bel_hash128 digest;
    int count;
    const int own[] = {1, 0};
    model_init(&saved, 1);
    BEL_ASSERT_OK(model_save(&saved, folder, 5, 3, &digest));
    assert_int_equal(count_whole(folder, own, 1, 3, &count), 1);
    assert_int_equal(count, 1);
    assert_int_equal(count_whole(folder, own, 2, 3, &count), 2); // with a mirror
    assert_int_equal(count, 2);
    assert_int_equal(count_whole(folder, NULL, 0, 3, &count), 3);
    assert_int_equal(count, 3);
    assert_int_equal(count_whole(folder, own, 1, 2, &count), 3); // saved with 3 shards, not 2
    assert_int_equal(count, 3);

    char *first = file_of(folder, 0, 3), *last = file_of(folder, 2, 3), *bytes;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(last, &bytes, &size));
    bytes[size - 1] ^= 1;
    BEL_ASSERT_OK(bel_file_write_atomic(last, bytes, size));
    assert_int_equal(remove(first), 0);
    assert_int_equal(count_whole(folder, NULL, 0, 3, &count), 1);
    bel_free(bytes);
    bel_free(first);
    bel_free(last);

    bel_ckpt_file *files;
    int64_t base;
    BEL_ASSERT_FAILS(bel_ckpt_files_needed(folder, 6, own, 1, 3, &files, &count, &base),
                     BEL_NOT_FOUND, "ckpt-00000006");
    model_deinit(&saved);
}

// Reads a piece: its elements, or with another code than BEL_OK that error with the text.
static void check_piece(const bel_ckpt_reader *reader, const bel_ckpt_piece *p, bel_code code,
                        const char *text)
{
    char *got = bel_xmalloc((size_t)p->count * 8 + 1);
    bel_status *status =
        bel_ckpt_read(reader, p->name, p->dtype, &p->shape, p->first, p->count, got);
    if (code == BEL_OK) {
        BEL_ASSERT_OK(status);
        assert_memory_equal(got, p->data, (size_t)p->count * bel_dtype_size(p->dtype));
    } else {
        BEL_ASSERT_FAILS(status, code, text);
    }
    bel_free(got);
}

// bel_ckpt_open_part reads pieces of the file that is present and refuses the others. Other readers
// refuse the checkpoint.
static void test_part(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    model saved;
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    model_init(&saved, 1);
    BEL_ASSERT_OK(model_save(&saved, folder, 5, 3, &digest));
    for (int shard = 0; shard < 3; shard += 2) {
        char *path = file_of(folder, shard, 3);
        assert_int_equal(remove(path), 0);
        bel_free(path);
    }
    bel_ckpt_piece pieces[16];
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(folder, &reader), BEL_DATA_LOSS, "shard-00000-of-00003");
    BEL_ASSERT_OK(bel_ckpt_open_part(folder, 5, &reader));
    for (int shard = 0; shard < 3; shard++) {
        int count = model_cut(&saved, shard, 3, pieces);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            const bel_ckpt_piece *p = &pieces[i];
            bool is_here = shard == 1 || p->count == 0;
            check_piece(reader, p, is_here ? BEL_OK : BEL_NOT_FOUND, "is not here");
        }
    }
    bel_ckpt_close(reader);
    model_deinit(&saved);
}

// bel_ckpt_open_lazily checks a file when a piece of it is read, and no other file.
static void test_lazily(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    model saved;
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    model_init(&saved, 1);
    BEL_ASSERT_OK(model_save(&saved, folder, 5, 3, &digest));
    char *path = file_of(folder, 2, 3), *bytes, *checkpoint = bel_strf("%s/ckpt-00000005", folder);
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &bytes, &size));
    bytes[size - 1] ^= 1;
    BEL_ASSERT_OK(bel_file_write_atomic(path, bytes, size));
    BEL_ASSERT_FAILS(bel_ckpt_open(checkpoint, &reader), BEL_DATA_LOSS, "shard-00002-of-00003");
    BEL_ASSERT_OK(bel_ckpt_open_lazily(checkpoint, &reader));
    bel_ckpt_piece pieces[16];
    for (int round = 0; round < 6; round++) {
        int shard = round % 3, count = model_cut(&saved, shard, 3, pieces);
        const bel_ckpt_piece *p = &pieces[0];
        assert_true(count > 0 && p->count > 0);
        check_piece(reader, p, shard < 2 ? BEL_OK : BEL_DATA_LOSS, "shard-00002-of-00003");
    }
    bel_ckpt_close(reader);
    assert_int_equal(remove(path), 0); // absent files are noticed at once
    BEL_ASSERT_FAILS(bel_ckpt_open_lazily(checkpoint, &reader), BEL_NOT_FOUND, "shard-00002");
    bel_free(bytes);
    bel_free(path);
    bel_free(checkpoint);
    model_deinit(&saved);
}

static void test_make_folder(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    static const int steps[] = {1, 3, 5, 9};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char *path = bel_strf("%s/ckpt-%08d", folder, steps[i]);
        BEL_ASSERT_OK(bel_dir_create(path));
        bel_free(path);
    }
    char *made;
    int64_t *left;
    size_t count;
    BEL_ASSERT_OK(bel_ckpt_make_folder(folder, 6, &made));
    bel_free(made);
    bel_ckpt_remove_others(folder, 6, 3);
    BEL_ASSERT_OK(bel_ckpt_list(folder, &left, &count));
    assert_int_equal(count, 3); // the base stays, too
    assert_int_equal(left[0], 3);
    bel_free(left);
    BEL_ASSERT_OK(bel_ckpt_make_folder(folder, 6, &made));
    assert_true(bel_dir_exists(made));
    bel_ckpt_remove_others(folder, 6, 0);
    bel_free(made);
    BEL_ASSERT_OK(bel_ckpt_list(folder, &left, &count));
    assert_int_equal(count, 2); // removed: the later steps and all but the newest earlier one
    assert_int_equal(left[0], 5);
    assert_int_equal(left[1], 6);
    bel_free(left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_needed),
        BEL_TEST_IN_FOLDER(test_part),
        BEL_TEST_IN_FOLDER(test_lazily),
        BEL_TEST_IN_FOLDER(test_make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
