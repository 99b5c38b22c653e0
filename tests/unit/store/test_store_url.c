// URLs of objects: their parts, and the errors of malformed ones. Percent-encoding.
#include <stdlib.h>

#include "base/alloc.h"
#include "store/store.h"
#include "store/url.h"
#include "support/bel_test.h"

static void test_is_url(void **state)
{
    (void)state;
    assert_true(bel_store_is_url("s3://b/k"));
    assert_true(bel_store_is_url("S3://b/k"));
    assert_true(bel_store_is_url("gs://"));
    assert_true(bel_store_is_url("https://x"));
    assert_true(bel_store_is_url("HTTP://x"));
    assert_false(bel_store_is_url("s3:/b/k"));
    assert_false(bel_store_is_url("/s3://b"));
    assert_false(bel_store_is_url("ftp://b"));
    assert_false(bel_store_is_url(""));
}

static void check_parts(const char *text, bel_store_scheme scheme, const char *bucket,
                        const char *key, const char *shown)
{
    bel_store_url url;
    BEL_ASSERT_OK(bel_store_url_init(&url, text));
    assert_int_equal(url.scheme, scheme);
    assert_string_equal(url.bucket, bucket);
    assert_string_equal(url.key, key);
    assert_string_equal(url.shown, shown);
    bel_store_url_deinit(&url);
}

static void test_parts(void **state)
{
    (void)state;
    check_parts("s3://bkt/a/b c%20+é#x", BEL_STORE_S3, "bkt", "a/b c%20+é#x",
                "s3://bkt/a/b c%20+é#x");
    check_parts("GS://b_k.t", BEL_STORE_GS, "b_k.t", "", "GS://b_k.t");
    check_parts("s3://bkt//a//", BEL_STORE_S3, "bkt", "/a//", "s3://bkt//a//");
    check_parts("https://h:8/a?x=1#f", BEL_STORE_WEB, "https://h:8", "/a?x=1", "https://h:8/a?…");
    check_parts("http://u:secret@h/a", BEL_STORE_WEB, "http://u:secret@h", "/a", "http://h/a");
    check_parts("http://h", BEL_STORE_WEB, "http://h", "", "http://h");
}

static void check_bad(const char *url, const char *part)
{
    BEL_ASSERT_FAILS(bel_store_check_url(url), BEL_INVALID_ARGUMENT, part);
}

static void test_bad(void **state)
{
    (void)state;
    check_bad("s3://", "no bucket");
    check_bad("s3:///key", "no bucket");
    check_bad("gs://ab/key", "bucket \"ab\"");
    check_bad("s3://my bucket/key", "bucket \"my bucket\"");
    check_bad("s3://-bkt/key", "letter or digit at both ends");
    check_bad("s3://id:secret@bkt/key", "got a user");
    check_bad("s3://bkt/key?versionId=1", "query");
    check_bad("s3://bkt/a/../b", "\"..\"");
    check_bad("s3://bkt/..", "\"..\"");
    check_bad("s3://bkt/a\nb", "control character 0x0a at byte 1");
    check_bad("s3://bkt/\x7f", "control character 0x7f");
    check_bad("s3://bkt/ab\xff", "expected UTF-8, got the byte 0xff at byte 2");
    check_bad("https:///x", "no host");
    check_bad("https://h/a b", "%20");
    check_bad("data.csv", "expected s3://");
    BEL_ASSERT_OK(bel_store_check_url("s3://bkt/a..b/..c/d.."));
    char *key = bel_xmalloc(1100);
    memset(key, 'k', 1099);
    memcpy(key, "s3://bkt/", 9);
    key[9 + 1024] = '\0';
    BEL_ASSERT_OK(bel_store_check_url(key));
    key[9 + 1024] = 'k';
    key[9 + 1025] = '\0';
    check_bad(key, "at most 1024 bytes, got 1025");
    bel_free(key);
}

static void test_secrets(void **state)
{
    (void)state;
    static const char *const urls[] = {"s3://id:secret@bkt/key", "gs://secret@bkt/key*",
                                       "s3://id:secret/x@bkt/key", "s3://bkt/key?X-Sig=secret",
                                       "s3://bkt/a?/key?a%2F=secret"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        bel_status *status = bel_store_check_url(urls[i]);
        assert_non_null(status);
        assert_null(strstr(bel_status_message(status), "secret"));
        bel_status_ignore(status);
    }
    assert_null(bel_store_find_query("s3://bkt/year=1/part-?.csv"));
    assert_null(bel_store_find_query("s3://bkt/part-?/year=1.csv"));
    assert_string_equal(bel_store_find_query("s3://bkt/part-?.csv?a=1"), "?a=1");
}

static void test_object(void **state)
{
    (void)state;
    bel_store_url url;
    BEL_ASSERT_FAILS(bel_store_url_init_object(&url, "s3://bkt/"), BEL_INVALID_ARGUMENT,
                     "expected an object, got a bucket");
    bel_store_info info;
    BEL_ASSERT_FAILS(bel_store_write("https://h/x", "", 0, NULL, &info), BEL_INVALID_ARGUMENT,
                     "only read");
    bel_store_entry *entries;
    size_t count;
    BEL_ASSERT_FAILS(bel_store_list("http://h/x", false, &entries, &count), BEL_UNIMPLEMENTED,
                     "lists no files");
    assert_true(bel_store_clock_offset_secs("s3://never-asked/x") == 0);
}

static void test_encoding(void **state)
{
    (void)state;
    bel_str out = {0};
    bel_url_encode(&out, "a/b c+~é", true);
    assert_string_equal(out.text, "a/b%20c%2B~%C3%A9");
    bel_url_decode(out.text, false);
    assert_string_equal(out.text, "a/b c+~é");
    bel_str_deinit(&out);
    bel_url_encode(&out, "a/b", false);
    assert_string_equal(out.text, "a%2Fb");
    bel_str_deinit(&out);
    char odd[] = "a+b%2b%zz%4%00%";
    bel_url_decode(odd, true);
    assert_string_equal(odd, "a b+%zz%4%00%");
}

static void test_patience(void **state)
{
    (void)state;
    assert_true(bel_store_set_patience(7) == 120);
    assert_true(bel_store_set_patience(120) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_url),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bad),      cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_object),   cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
