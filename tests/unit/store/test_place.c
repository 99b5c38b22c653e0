// Places of buckets: hosts, paths and regions of Amazon's servers and others; where a redirect may
// lead. Each test uses other buckets, as a place stays.
#include <stdlib.h>

#include "base/alloc.h"
#include "store/place.h"
#include "support/bel_test.h"

static bel_place *find(const char *text)
{
    bel_store_url url;
    bel_place *place;
    BEL_ASSERT_OK(bel_store_url_init(&url, text));
    BEL_ASSERT_OK(bel_place_get(&url, &place));
    bel_store_url_deinit(&url);
    return place;
}

static void check(bel_place *place, const char *origin, const char *path, const char *region)
{
    bel_place_view view;
    bel_place_view_init(&view, place);
    assert_string_equal(view.origin, origin);
    assert_string_equal(view.host, strstr(origin, "//") + 2);
    assert_string_equal(view.path, path);
    assert_string_equal(view.region, region);
    bel_place_view_deinit(&view);
}

static void clear(void)
{
    static const char *const names[] = {"AWS_REGION",       "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
                                        "AWS_PROFILE",      "STORAGE_EMULATOR_HOST"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", "/nonexistent", 1);
}

static void test_amazon(void **state)
{
    (void)state;
    clear();
    bel_place *place = find("s3://first/x");
    check(place, "https://first.s3.us-east-1.amazonaws.com", "", "us-east-1");
    assert_true(bel_place_is_original(place));
    assert_ptr_equal(place, find("S3://first/y"));
    check(find("s3://with.dots"), "https://s3.us-east-1.amazonaws.com", "/with.dots", "us-east-1");
    setenv("AWS_DEFAULT_REGION", "cn-north-1", 1);
    check(find("s3://china"), "https://china.s3.cn-north-1.amazonaws.com.cn", "", "cn-north-1");
    setenv("AWS_REGION", "eu-west-1", 1);
    check(find("s3://europe"), "https://europe.s3.eu-west-1.amazonaws.com", "", "eu-west-1");
    setenv("AWS_ENDPOINT_URL", "https://s3.dualstack.eu-west-1.amazonaws.com:443/", 1);
    check(find("s3://dual"), "https://dual.s3.dualstack.eu-west-1.amazonaws.com", "", "eu-west-1");
}

static void test_others(void **state)
{
    (void)state;
    clear();
    setenv("AWS_ENDPOINT_URL", "http://minio:9000/prefix/", 1);
    bel_place *place = find("s3://other/x");
    check(place, "http://minio:9000", "/prefix/other", "us-east-1");
    assert_false(bel_place_is_original(place));
    setenv("AWS_ENDPOINT_URL_S3", "http://host:80", 1);
    check(find("s3://port"), "http://host", "/port", "us-east-1");
    check(find("gs://google"), "https://storage.googleapis.com", "/google", "auto");
    setenv("STORAGE_EMULATOR_HOST", "localhost:4443", 1);
    check(find("gs://emulated"), "http://localhost:4443", "/emulated", "auto");
    check(find("https://web:8443/a/b?c"), "https://web:8443", "", "");
    bel_store_url url;
    setenv("AWS_ENDPOINT_URL_S3", "http://user@host", 1);
    BEL_ASSERT_OK(bel_store_url_init(&url, "s3://refused/x"));
    BEL_ASSERT_FAILS(bel_place_get(&url, &place), BEL_INVALID_ARGUMENT, "expected http://HOST");
    bel_store_url_deinit(&url);
}

static void test_moves(void **state)
{
    (void)state;
    clear();
    bel_place *place = find("s3://moving");
    assert_true(bel_place_move(place, "eu-west-1", "moving.s3-eu-west-1.amazonaws.com"));
    check(place, "https://moving.s3.eu-west-1.amazonaws.com", "", "eu-west-1");
    assert_false(bel_place_move(place, "eu-west-1", NULL));
    assert_false(bel_place_move(place, NULL, "thief.example"));
    assert_false(bel_place_move(place, NULL, "amazonaws.com.thief.example"));
    assert_false(bel_place_move(place, NULL, "thief.example/x.amazonaws.com"));
    assert_false(bel_place_move(place, NULL, "thief.example#.amazonaws.com"));
    assert_false(bel_place_move(place, NULL, "user@s3.amazonaws.com"));
    assert_false(bel_place_move(place, "thief.example/", NULL));
    assert_true(bel_place_move(place, NULL, "moving.s3-1.amazonaws.com"));
    check(place, "https://moving.s3-1.amazonaws.com", "", "eu-west-1");
    setenv("AWS_ENDPOINT_URL", "http://minio:9000", 1);
    place = find("s3://moving-too");
    assert_true(bel_place_move(place, "eu-west-1", NULL));
    check(place, "http://minio:9000", "/moving-too", "eu-west-1");
    assert_true(bel_place_move(place, NULL, "minio:9001"));
    assert_false(bel_place_move(place, NULL, "other:9000"));
    assert_false(bel_place_move(place, NULL, "x.amazonaws.com"));
    check(place, "http://minio:9001", "/moving-too", "eu-west-1");
    setenv("AWS_ENDPOINT_URL", "http://[::1]:9000", 1);
    place = find("s3://moving-six");
    assert_true(bel_place_move(place, NULL, "[::1]:9001"));
    assert_false(bel_place_move(place, NULL, "[::2]:9000"));
    check(place, "http://[::1]:9001", "/moving-six", "us-east-1");
}

static void test_styles(void **state)
{
    (void)state;
    static const char config[] = "[default]\ns3 =\n  addressing_style = virtual\n"
                                 "[profile path]\ns3 =\n  addressing_style = path\n"
                                 "[profile wrong]\ns3 =\n  addressing_style = both\n";
    char *file = bel_test_file(bel_test_own_folder(), "config", config, sizeof config - 1);
    clear();
    setenv("AWS_CONFIG_FILE", file, 1);
    setenv("AWS_ENDPOINT_URL", "http://oss.example:80/x", 1);
    check(find("s3://host-style"), "http://host-style.oss.example", "/x", "us-east-1");
    unsetenv("AWS_ENDPOINT_URL");
    setenv("AWS_PROFILE", "path", 1);
    check(find("s3://path-style"), "https://s3.us-east-1.amazonaws.com", "/path-style",
          "us-east-1");
    setenv("AWS_PROFILE", "wrong", 1);
    bel_store_url url;
    bel_place *place;
    BEL_ASSERT_OK(bel_store_url_init(&url, "s3://no-style/x"));
    BEL_ASSERT_FAILS(bel_place_get(&url, &place), BEL_INVALID_ARGUMENT,
                     "addressing_style: expected auto, path or virtual, got \"both\"");
    bel_store_url_deinit(&url);
    unsetenv("AWS_CONFIG_FILE");
    bel_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_amazon), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_moves),
                                       BEL_TEST_IN_FOLDER(test_styles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
