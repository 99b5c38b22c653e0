// Unpacking: gzip of one and of several members, zlib, sizes around the guessed size, and every
// kind of damage.
#include <zlib.h>

#include "base/alloc.h"
#include "base/unpack.h"
#include "support/bel_test.h"

enum { GZIP_WINDOW = 15 + 16, ZLIB_WINDOW = 15 };

// Packs `size` bytes; free with bel_free.
static char *pack(const char *data, size_t size, int window, size_t *out_size)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&stream, size);
    char *packed = bel_xmalloc(room);
    unsigned char *input = bel_xmalloc(size + 1);
    memcpy(input, data, size);
    stream.next_in = input;
    stream.avail_in = (unsigned)size;
    stream.next_out = (unsigned char *)packed;
    stream.avail_out = (unsigned)room;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    *out_size = stream.total_out;
    deflateEnd(&stream);
    bel_free(input);
    return packed;
}

// Content that packs at about `run` to 1: runs of equal bytes of that length.
static char *make_content(size_t size, size_t run)
{
    char *data = bel_xmalloc(size + 1);
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        if (i % run == 0) state = state * 1664525u + 1013904223u;
        data[i] = (char)(state >> 24);
    }
    return data;
}

typedef struct taken {
    char *data;
    size_t size;
    bool full; // no room: refuses the next piece
} taken;

static bel_status *take(void *user, const void *data, size_t size)
{
    taken *all = user;
    if (all->full) return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "no room for %zu bytes", size);
    all->data = bel_xrealloc(all->data, all->size + size + 1);
    memcpy(all->data + all->size, data, size);
    all->size += size;
    return NULL;
}

// Unpacks in one call and in pieces.
static void assert_unpacks(const char *packed, size_t size, const char *expected, size_t length)
{
    char *data;
    size_t got;
    taken all = {0};
    BEL_ASSERT_OK(bel_unpack("x.gz", packed, size, &data, &got));
    assert_int_equal(got, length);
    assert_memory_equal(data, expected, length);
    assert_int_equal(data[length], '\0');
    BEL_ASSERT_OK(bel_unpack_to("x.gz", packed, size, take, &all));
    assert_int_equal(all.size, length);
    assert_memory_equal(all.data, expected, length);
    bel_free(all.data);
    bel_free(data);
}

static void assert_damaged(const char *packed, size_t size, const char *part)
{
    char *data;
    size_t got;
    taken all = {0};
    BEL_ASSERT_FAILS(bel_unpack("x.gz", packed, size, &data, &got), BEL_DATA_LOSS, part);
    BEL_ASSERT_FAILS(bel_unpack_to("x.gz", packed, size, take, &all), BEL_DATA_LOSS, part);
    bel_free(all.data);
}

static void test_sizes_and_ratios(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, 70000, 3000000};
    static const size_t runs[] = {1, 3, 50, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            char *content = make_content(sizes[s], runs[r]);
            for (int window = ZLIB_WINDOW; window <= GZIP_WINDOW; window += 16) {
                size_t size;
                char *packed = pack(content, sizes[s], window, &size);
                assert_int_equal(bel_is_gzip(packed, size), window == GZIP_WINDOW);
                assert_int_equal(bel_is_zlib(packed, size), window == ZLIB_WINDOW);
                assert_unpacks(packed, size, content, sizes[s]);
                bel_free(packed);
            }
            bel_free(content);
        }
    }
}

// A small member before a large one: the size at the end of the file says nothing about the first.
static void test_members_behind_each_other(void **state)
{
    (void)state;
    enum { MEMBERS = 3 };
    static const size_t sizes[MEMBERS] = {100000, 5, 40000};
    char joined[200000], expected[200000];
    size_t joined_size = 0, expected_size = 0;
    for (int i = 0; i < MEMBERS; i++) {
        char *content = make_content(sizes[i], 20);
        size_t size;
        char *packed = pack(content, sizes[i], GZIP_WINDOW, &size);
        memcpy(joined + joined_size, packed, size);
        memcpy(expected + expected_size, content, sizes[i]);
        joined_size += size;
        expected_size += sizes[i];
        bel_free(packed);
        bel_free(content);
    }
    assert_unpacks(joined, joined_size, expected, expected_size);
    memset(joined + joined_size, 0, 512); // padding as on a tape
    assert_unpacks(joined, joined_size + 512, expected, expected_size);
}

static void test_damage(void **state)
{
    (void)state;
    char *content = make_content(5000, 4), *data;
    for (int window = ZLIB_WINDOW; window <= GZIP_WINDOW; window += 16) {
        size_t size;
        char *packed = pack(content, 5000, window, &size);
        const char *part = window == GZIP_WINDOW ? "x.gz: gzip stream is truncated or corrupt"
                                                 : "x.gz: zlib stream is truncated or corrupt";
        for (size_t cut = 2; cut < size; cut += cut < 32 || size - cut < 32 ? 1 : 97)
            assert_damaged(packed, cut, part);
        packed[size - 5 + (window == ZLIB_WINDOW)] ^= 1; // the checksum
        assert_damaged(packed, size, part);
        bel_free(packed);
    }
    BEL_ASSERT_FAILS(bel_unpack("x.gz", "plain", 5, &data, &(size_t){0}), BEL_DATA_LOSS, "zlib");
    bel_free(content);
}

// A size that deflate cannot reach is not believed: bel_unpack does not allocate 4 GiB.
static void test_a_size_that_lies(void **state)
{
    (void)state;
    size_t size, got;
    char *packed = pack("abc", 3, GZIP_WINDOW, &size), *data;
    memset(packed + size - 4, 0xff, 4);
    BEL_ASSERT_FAILS(bel_unpack("x.gz", packed, size, &data, &got), BEL_DATA_LOSS, "truncated");
    bel_free(packed);
}

// Around each limit: all of the content, or NULL and no error.
static void test_at_most(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    char *content = make_content(LENGTH, 20);
    for (int window = ZLIB_WINDOW; window <= GZIP_WINDOW; window += 16) {
        size_t size, got;
        char *packed = pack(content, LENGTH, window, &size), *data;
        for (size_t most = LENGTH - 2; most <= LENGTH + 2; most++) {
            BEL_ASSERT_OK(bel_unpack_at_most("x.gz", packed, size, most, &data, &got));
            assert_int_equal(data != NULL, most >= LENGTH);
            if (data != NULL) assert_memory_equal(data, content, LENGTH);
            bel_free(data);
        }
        bel_free(packed);
    }
    bel_free(content);
}

static void test_a_taker_that_fails(void **state)
{
    (void)state;
    size_t size;
    taken all = {.full = true};
    char *content = make_content(1000, 3), *packed = pack(content, 1000, GZIP_WINDOW, &size);
    BEL_ASSERT_FAILS(bel_unpack_to("x.gz", packed, size, take, &all), BEL_RESOURCE_EXHAUSTED,
                     "no room for 1000 bytes");
    bel_free(packed);
    bel_free(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_ratios), cmocka_unit_test(test_members_behind_each_other),
        cmocka_unit_test(test_damage),           cmocka_unit_test(test_a_size_that_lies),
        cmocka_unit_test(test_at_most),          cmocka_unit_test(test_a_taker_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
