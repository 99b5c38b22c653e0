// Fetch of checkpoint files between two ends: sizes around a piece, broken connections, unexpected
// pieces, and files that an end does not show.
#include "fetch/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "support/bel_test.h"

enum { STEP = 7, PIECE = 4 << 20 };
static const char name[] = "shard-00000-of-00001.safetensors";

typedef struct ends {
    char *from, *to, *source, *target; // the folders, and the file in each
    char *bytes;
    size_t size;
} ends;

static ends make_ends(size_t size)
{
    const char *root = bel_test_own_folder();
    ends e = {.from = bel_path_join(root, "from"),
              .to = bel_path_join(root, "to"),
              .bytes = bel_xmalloc(size + 1),
              .size = size};
    char *folder = bel_path_join(e.from, "ckpt-00000007");
    BEL_ASSERT_OK(bel_dir_create(folder));
    BEL_ASSERT_OK(bel_dir_create(e.to));
    e.source = bel_path_join(folder, name);
    e.target = bel_path_join(e.to, name);
    for (size_t i = 0; i < size; i++)
        e.bytes[i] = (char)(i * 2654435761u >> 13);
    BEL_ASSERT_OK(bel_file_write_atomic(e.source, e.bytes, size));
    bel_free(folder);
    return e;
}

static void free_ends(ends *e)
{
    BEL_ASSERT_OK(bel_dir_remove(e->from));
    BEL_ASSERT_OK(bel_dir_remove(e->to));
    bel_free(e->from);
    bel_free(e->to);
    bel_free(e->source);
    bel_free(e->target);
    bel_free(e->bytes);
}

// Answers requests in order until the file is complete or `most` requests are answered. Returns the
// number answered.
static int carry(ends *e, bel_fetch *fetch, int most)
{
    Bel__Fetch requests[16];
    int count = 0, answered = 0;
    for (;;) {
        while (bel_fetch_next(fetch, &requests[count % 16]))
            count++;
        assert_true(count - answered <= 4);
        if (answered == count || answered == most) return answered;
        Bel__Piece piece;
        bel_fetch_answer(e->from, &requests[answered++ % 16], &piece);
        BEL_ASSERT_OK(bel_fetch_take(fetch, &piece));
        bel_fetch_free_answer(&piece);
        if (bel_fetch_is_whole(fetch)) return answered;
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ends e = make_ends(sizes[i]);
        bel_fetch *fetch;
        BEL_ASSERT_OK(bel_fetch_begin(e.to, STEP, name, &fetch));
        carry(&e, fetch, -1);
        assert_true(bel_fetch_is_whole(fetch));
        assert_false(bel_file_exists(e.target));
        BEL_ASSERT_OK(bel_fetch_end(fetch, (int64_t)e.size, bel_crc32c(0, e.bytes, e.size)));
        bel_fetch_destroy(fetch);
        char *got;
        size_t size;
        BEL_ASSERT_OK(bel_file_read(e.target, &got, &size));
        assert_int_equal(size, e.size);
        assert_memory_equal(got, e.bytes, size);
        bel_free(got);
        free_ends(&e);
    }
}

// After a new connection, answers to old requests may still arrive beside those to repeated
// requests.
static void test_again(void **state)
{
    (void)state;
    ends e = make_ends(6 * PIECE + 5);
    bel_fetch *fetch;
    Bel__Fetch late;
    Bel__Piece piece;
    BEL_ASSERT_OK(bel_fetch_begin(e.to, STEP, name, &fetch));
    assert_int_equal(carry(&e, fetch, 2), 2);
    bel__fetch__init(&late);
    late.step = STEP;
    late.file = bel_xstrdup(name);
    late.offset = 2 * (int64_t)PIECE;
    for (int i = 0; i < 2; i++) { // the second answer is ignored
        bel_fetch_answer(e.from, &late, &piece);
        BEL_ASSERT_OK(bel_fetch_take(fetch, &piece));
        bel_fetch_free_answer(&piece);
    }
    bel_fetch_again(fetch);
    assert_int_equal(carry(&e, fetch, -1), 4); // received pieces are not requested again
    BEL_ASSERT_OK(bel_fetch_end(fetch, (int64_t)e.size, bel_crc32c(0, e.bytes, e.size)));
    bel_fetch_destroy(fetch);
    bel_free(late.file);
    free_ends(&e);
}

static void test_not_as_expected(void **state)
{
    (void)state;
    ends e = make_ends(100);
    uint32_t crc = bel_crc32c(0, e.bytes, e.size);
    for (int wrong = 0; wrong < 2; wrong++) {
        bel_fetch *fetch;
        BEL_ASSERT_OK(bel_fetch_begin(e.to, STEP, name, &fetch));
        carry(&e, fetch, -1);
        BEL_ASSERT_FAILS(bel_fetch_end(fetch, wrong == 0 ? 101 : 100, wrong == 1 ? crc + 1 : crc),
                         BEL_DATA_LOSS, "came with 100 bytes");
        bel_fetch_destroy(fetch);
        assert_false(bel_file_exists(e.target));
    }
    char **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(e.to, &names, &count));
    assert_int_equal(count, 0);
    bel_dir_names_free(names, count);
    free_ends(&e);
}

static void test_malformed(void **state)
{
    (void)state;
    ends e = make_ends(10);
    static const struct {
        int64_t size;
        size_t length;
    } pieces[] = {{-1, 0}, {10, 9}, {10, 11}, {INT64_MAX, 10}, {0, 10}};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        bel_fetch *fetch;
        Bel__Fetch request;
        Bel__Piece piece;
        BEL_ASSERT_OK(bel_fetch_begin(e.to, STEP, name, &fetch));
        assert_true(bel_fetch_next(fetch, &request));
        bel__piece__init(&piece);
        piece.size = pieces[i].size;
        piece.data.len = pieces[i].length;
        piece.data.data = (uint8_t *)e.bytes;
        BEL_ASSERT_FAILS(bel_fetch_take(fetch, &piece), BEL_INVALID_ARGUMENT, "malformed piece");
        bel_fetch_destroy(fetch);
    }
    free_ends(&e);
}

// An end shows files of checkpoints and no other file of its host.
static void test_not_shown(void **state)
{
    (void)state;
    ends e = make_ends(10);
    static const struct {
        const char *file;
        int64_t step, offset;
        const char *why;
    } requests[] = {
        {"../../secret", STEP, 0, "it is no file of a checkpoint"},
        {"shard-/../../../etc/passwd", STEP, 0, "it is no file of a checkpoint"},
        {"events.out", STEP, 0, "it is no file of a checkpoint"},
        {"", STEP, 0, "it is no file of a checkpoint"},
        {"shard-1", STEP, 0, "shard-1"},
        {name, STEP + 1, 0, "ckpt-00000008"},
        {name, -1, 0, "it is no file of a checkpoint"},
        {name, STEP, -1, "it is no file of a checkpoint"},
        {name, STEP, 11, "has 10 bytes"},
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        bel_fetch *fetch;
        Bel__Fetch request;
        Bel__Piece piece;
        bel__fetch__init(&request);
        request.file = bel_xstrdup(requests[i].file);
        request.step = requests[i].step;
        request.offset = requests[i].offset;
        bel_fetch_answer(e.from, &request, &piece);
        assert_int_not_equal(piece.code, BEL_OK);
        assert_int_equal(piece.data.len, 0);
        BEL_ASSERT_OK(bel_fetch_begin(e.to, STEP, name, &fetch));
        BEL_ASSERT_FAILS(bel_fetch_take(fetch, &piece), (bel_code)piece.code, requests[i].why);
        bel_fetch_destroy(fetch);
        bel_fetch_free_answer(&piece);
        bel_free(request.file);
    }
    free_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_sizes),           BEL_TEST_IN_FOLDER(test_again),
        BEL_TEST_IN_FOLDER(test_not_as_expected), BEL_TEST_IN_FOLDER(test_malformed),
        BEL_TEST_IN_FOLDER(test_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
