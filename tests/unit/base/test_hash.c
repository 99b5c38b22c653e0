// Hashes against published values, and streams against complete buffers.
#include "base/hash.h"
#include "support/bel_test.h"

static void test_crc32c(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0}, ones[32], rising[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        rising[i] = (unsigned char)i;
    assert_int_equal(bel_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(bel_crc32c(0, zeros, 32), 0x8a9136aa); // RFC 3720, B.4
    assert_int_equal(bel_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(bel_crc32c(0, rising, 32), 0x46dd794e);
    assert_int_equal(bel_crc32c(0, "", 0), 0);
    for (size_t cut = 0; cut <= 9; cut++) { // split at any place
        uint32_t crc = bel_crc32c(0, "123456789", cut);
        assert_int_equal(bel_crc32c(crc, &"123456789"[cut], 9 - cut), 0xe3069283);
    }
}

static void test_crc64(void **state)
{
    (void)state;
    const char *text = "123456789, and a line of more than eight bytes";
    size_t size = strlen(text);
    assert_true(bel_crc64_nvme(0, "123456789", 9) ==
                0xae8b14860a799888); // the NVMe standard has it
    assert_true(bel_crc64_nvme(0, "", 0) == 0);
    uint64_t whole = bel_crc64_nvme(0, text, size);
    for (size_t cut = 0; cut <= size; cut++) { // split at any place
        uint64_t crc = bel_crc64_nvme(0, text, cut);
        assert_true(bel_crc64_nvme(crc, text + cut, size - cut) == whole);
    }
}

static void test_xxh3(void **state)
{
    (void)state;
    assert_true(bel_hash64("", 0) == 0x2d06800538d394c2); // from xxhash's sanity test
    char data[1000], whole[33], pieces[33];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31);
    bel_hasher *hasher = bel_hasher_create();
    bel_hasher_update(hasher, data, sizeof data);
    bel_hash128_text(bel_hasher_finish(hasher), whole);
    bel_hasher_destroy(hasher);
    hasher = bel_hasher_create();
    for (size_t at = 0; at < sizeof data; at += 40)
        bel_hasher_update(hasher, data + at, 40);
    bel_hash128_text(bel_hasher_finish(hasher), pieces);
    bel_hasher_destroy(hasher);
    assert_int_equal(strlen(whole), 32);
    assert_string_equal(whole, pieces);
    bel_hash128_text(bel_hash128_of(data, sizeof data, 0), pieces);
    assert_string_equal(whole, pieces);
    bel_hash128_text(bel_hash128_of(data, sizeof data, 1), pieces);
    assert_string_not_equal(whole, pieces);
    bel_hash128 hash = {.low = 0x0123456789abcdef, .high = 0xfe};
    assert_string_equal(bel_hash128_text(hash, whole), "00000000000000fe0123456789abcdef");
}

// Long data take other ways than short ones: each length and cut gives the checksum of its bytes in
// order.
static void test_crc32c_of_long_data(void **state)
{
    (void)state;
    enum { MOST = 60000 };
    static unsigned char data[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    uint32_t plain = 0;
    for (size_t size = 0; size < MOST; size++) {
        if (size % 997 == 0 || (size >= 12280 && size < 12300) || size % 12288 < 2)
            assert_int_equal(bel_crc32c(0, data, size), plain);
        plain = bel_crc32c(plain, &data[size], 1);
    }
    static const size_t cuts[] = {0, 1, 8, 4096, 12288, 30001, MOST};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        uint32_t first = bel_crc32c(0, data, cuts[i]);
        uint32_t second = bel_crc32c(0, data + cuts[i], MOST - cuts[i]);
        assert_int_equal(bel_crc32c_joined(first, second, MOST - cuts[i]), plain);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c),
        cmocka_unit_test(test_crc32c_of_long_data),
        cmocka_unit_test(test_crc64),
        cmocka_unit_test(test_xxh3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
