// Signatures, compared with those that Amazon has published: the test suite of version 4 ("get-…"),
// and the examples of "Authenticating Requests: Using the Authorization Header" in the reference of
// S3. Hashes, base64 and RS256.
#include "base/alloc.h"
#include "store/crypto.h"
#include "store/sign.h"
#include "support/bel_test.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// 2015-08-30 12:36:00 and 2013-05-24 00:00:00.
enum { SUITE_TIME = 1440938160, S3_TIME = 1369353600 };

static const bel_sign_input suite = {.method = "GET",
                                     .host = "example.amazonaws.com",
                                     .path = "/",
                                     .query = "",
                                     .payload = EMPTY,
                                     .key_id = "AKIDEXAMPLE",
                                     .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                     .region = "us-east-1",
                                     .service = "service",
                                     .time = SUITE_TIME};

static const bel_sign_input s3 = {.method = "GET",
                                  .host = "examplebucket.s3.amazonaws.com",
                                  .path = "/",
                                  .query = "",
                                  .payload = EMPTY,
                                  .key_id = "AKIAIOSFODNN7EXAMPLE",
                                  .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                  .region = "us-east-1",
                                  .service = "s3",
                                  .time = S3_TIME};

// Signs and frees `headers`.
static void check(const bel_sign_input *input, bel_headers *headers, const char *names,
                  const char *signature)
{
    bel_sign_request(input, headers);
    const char *text = bel_headers_find(headers, "authorization");
    assert_non_null(text);
    char *expected = bel_strf("SignedHeaders=%s,Signature=%s", names, signature);
    const char *got = strstr(text, "SignedHeaders=");
    assert_string_equal(got, expected);
    bel_free(expected);
    bel_headers_deinit(headers);
}

static void test_suite(void **state)
{
    (void)state;
    bel_headers h = {0};
    check(&suite, &h, "host;x-amz-date",
          "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    bel_sign_input post = suite;
    post.method = "POST";
    check(&post, &h, "host;x-amz-date",
          "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
    bel_sign_input query = suite;
    query.query = "Param1=value1&Param2=value2";
    check(&query, &h, "host;x-amz-date",
          "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    // get-header-value-trim
    bel_headers_add(&h, "my-header1", " value1");
    bel_headers_add(&h, "my-header2", " \"a   b   c\"");
    check(&suite, &h, "host;my-header1;my-header2;x-amz-date",
          "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void test_s3(void **state)
{
    (void)state;
    bel_headers h = {0};
    bel_sign_input get = s3;
    get.path = "/test.txt";
    bel_headers_add(&h, "range", "bytes=0-9");
    bel_headers_add(&h, "x-amz-content-sha256", EMPTY);
    check(&get, &h, "host;range;x-amz-content-sha256;x-amz-date",
          "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");

    bel_sign_input put = s3;
    char hash[BEL_HEX_BYTES];
    bel_sha256_hex("Welcome to Amazon S3.", 21, hash);
    put.method = "PUT";
    put.path = "/test%24file.text";
    put.payload = hash;
    bel_headers_add(&h, "date", "Fri, 24 May 2013 00:00:00 GMT");
    bel_headers_add(&h, "x-amz-storage-class", "REDUCED_REDUNDANCY");
    bel_headers_add(&h, "x-amz-content-sha256", "%s", hash);
    check(&put, &h, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
          "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

    bel_sign_input lifecycle = s3;
    lifecycle.query = "lifecycle"; // becomes "lifecycle="
    bel_headers_add(&h, "x-amz-content-sha256", EMPTY);
    check(&lifecycle, &h, "host;x-amz-content-sha256;x-amz-date",
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

    bel_sign_input list = s3;
    list.query = "max-keys=2&prefix=J";
    bel_headers_add(&h, "x-amz-content-sha256", EMPTY);
    check(&list, &h, "host;x-amz-content-sha256;x-amz-date",
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_google(void **state)
{
    (void)state;
    bel_headers h = {0};
    bel_sign_input input = suite;
    input.google = true;
    bel_sign_request(&input, &h);
    assert_string_equal(bel_headers_find(&h, "x-goog-date"), "20150830T123600Z");
    const char *text = bel_headers_find(&h, "authorization");
    assert_non_null(strstr(text, "GOOG4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/"
                                 "service/goog4_request,SignedHeaders=host;x-goog-date,"));
    bel_headers_deinit(&h);
}

static void test_hashes(void **state)
{
    (void)state;
    char text[BEL_HEX_BYTES];
    bel_sha256_hex("", 0, text);
    assert_string_equal(text, EMPTY);
    bel_digest *d = bel_digest_create(BEL_DIGEST_MD5);
    bel_digest_update(d, "he", 2);
    bel_digest_update(d, "llo", 3);
    bel_digest_finish_hex(d, text);
    assert_string_equal(text, "5d41402abc4b2a76b9719d911017c592");
    d = bel_digest_create(BEL_DIGEST_MD5);
    bel_digest_update(d, "hello", 5);
    bel_digest_finish_base64(d, text);
    assert_string_equal(text, "XUFAKrxLKna5cZ2REBfFkg==");
    bel_str out = {0};
    bel_base64(&out, "\xfb\xff\xfe?", 4, true);
    assert_string_equal(out.text, "-__-Pw");
    bel_base64(&out, "a", 1, false);
    assert_string_equal(out.text, "-__-PwYQ==");
    BEL_ASSERT_FAILS(bel_rs256_sign("-----BEGIN secret", "x", &out), BEL_DATA_LOSS, "RSA private");
    bel_str_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suite), cmocka_unit_test(test_s3),
                                       cmocka_unit_test(test_google),
                                       cmocka_unit_test(test_hashes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
