// Profiles of Amazon's tools, and times in answers with credentials.
#include <stdlib.h>

#include "base/alloc.h"
#include "store/credentials.h"
#include "store/profile.h"
#include "support/bel_test.h"

static const char text[] = "# keys\n"
                           "[default]\n"
                           "aws_access_key_id = AK1\r\n"
                           "aws_secret_access_key=s/+==\n"
                           "empty =\n"
                           "\n"
                           "[ profile  dev ]\n"
                           "region = eu-west-1 \n"
                           "s3 =\n"
                           "  region = nested\n"
                           "  addressing_style = virtual\n"
                           "; region = x\n"
                           "endpoint_url = http://h:1\n"
                           "[profile device]\n"
                           "region = mars-1\n";

static void check(const char *section, const char *name, const char *expected)
{
    char *value;
    assert_true(bel_profile_find(text, section, NULL, name, &value));
    if (expected == NULL)
        assert_null(value);
    else
        assert_string_equal(value, expected);
    bel_free(value);
}

static void test_find(void **state)
{
    (void)state;
    char *value;
    check("default", "aws_access_key_id", "AK1");
    check("default", "aws_secret_access_key", "s/+==");
    check("default", "empty", NULL);
    check("default", "region", NULL);
    check("profile dev", "region", "eu-west-1");
    check("profile dev", "endpoint_url", "http://h:1");
    check("profile device", "region", "mars-1");
    assert_false(bel_profile_find(text, "dev", NULL, "region", &value));
    assert_false(bel_profile_find(text, "profile de", NULL, "region", &value));
}

// Nested settings belong to the group before them, and to no other.
static void test_groups(void **state)
{
    (void)state;
    static const char groups[] = "[services dev]\n"
                                 "s3 =\n"
                                 "  endpoint_url = http://h:1\n"
                                 "sts =\n"
                                 "\tendpoint_url=http://h:2\n"
                                 "sso = x\n"
                                 "  endpoint_url = http://h:3\n"
                                 "[services other]\n"
                                 "  endpoint_url = http://h:4\n";
    static const struct {
        const char *section, *group, *expected;
    } cases[] = {{"services dev", "s3", "http://h:1"}, {"services dev", "sts", "http://h:2"},
                 {"services dev", "sso", NULL},        {"services dev", "s4", NULL},
                 {"services dev", NULL, NULL},         {"services other", "sts", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *value;
        assert_true(
            bel_profile_find(groups, cases[i].section, cases[i].group, "endpoint_url", &value));
        if (cases[i].expected == NULL)
            assert_null(value);
        else
            assert_string_equal(value, cases[i].expected);
        bel_free(value);
    }
}

static void check_endpoint(const char *service, bool shared, const char *origin, const char *path)
{
    bel_profiles files;
    char *got_origin, *got_path;
    bel_profiles_read(&files);
    BEL_ASSERT_OK(bel_profile_endpoint(&files, service, shared, &got_origin, &got_path));
    if (origin == NULL) {
        assert_null(got_origin);
        assert_null(got_path);
    } else {
        assert_string_equal(got_origin, origin);
        assert_string_equal(got_path, path);
    }
    bel_free(got_origin);
    bel_free(got_path);
    bel_profiles_deinit(&files);
}

static void refuse_server(const char *service, const char *words)
{
    bel_profiles files;
    char *origin, *path;
    bel_profiles_read(&files);
    BEL_ASSERT_FAILS(bel_profile_endpoint(&files, service, true, &origin, &path),
                     BEL_INVALID_ARGUMENT, words);
    bel_profiles_deinit(&files);
}

// The server's setting: a service's section counts before the profile. Settings that choose
// another one and are not supported are refused by name.
static void test_servers(void **state)
{
    (void)state;
    static const char config[] =
        "[default]\nservices = own\nendpoint_url = http://h:9\n"
        "s3 =\n  addressing_style = path\n  use_accelerate_endpoint = true\n"
        "[profile fips]\nuse_fips_endpoint = true\nca_bundle = /x\n"
        "[profile lost]\nservices = none\n"
        "[services own]\ns3 =\n  endpoint_url = http://h:5\n"
        "sso =\n  endpoint_url = http://h:6\n";
    char *path = bel_test_file(bel_test_own_folder(), "config", config, sizeof config - 1);
    char *origin, *rest;
    bel_profiles files;
    bel_profile_addressing style;
    setenv("AWS_CONFIG_FILE", path, 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_ENDPOINT_URL_S3");
    unsetenv("AWS_ENDPOINT_URL_SSO");
    unsetenv("AWS_ENDPOINT_URL_STS");
    unsetenv("AWS_CA_BUNDLE");
    bel_profiles_read(&files);
    check_endpoint("S3", true, "http://h:5", "");
    check_endpoint("SSO", false, "http://h:6", "");
    check_endpoint("STS", false, NULL, NULL);
    BEL_ASSERT_OK(bel_profile_style(&files, &style));
    assert_int_equal(style, BEL_ADDRESSING_PATH);
    BEL_ASSERT_OK(bel_profile_check(&files));
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://h:8", 1);
    refuse_server("S3", "s3: use_accelerate_endpoint is not supported; hint: set "
                        "AWS_ENDPOINT_URL_S3");
    check_endpoint("STS", true, NULL, NULL); // it has no such server
    unsetenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    unsetenv("AWS_ENDPOINT_URL_S3");
    setenv("AWS_PROFILE", "lost", 1);
    BEL_ASSERT_FAILS(bel_profile_endpoint(&files, "S3", true, &origin, &rest), BEL_INVALID_ARGUMENT,
                     "services = none: there is no section [services none]");
    setenv("AWS_PROFILE", "fips", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://h:8", 1);
    check_endpoint("S3", true, "http://h:8", "");
    refuse_server("STS", "config: use_fips_endpoint is not supported; hint: set "
                         "AWS_ENDPOINT_URL_STS"); // the keys would go to another server
    unsetenv("AWS_ENDPOINT_URL_S3");
    BEL_ASSERT_FAILS(bel_profile_check(&files), BEL_INVALID_ARGUMENT, "set AWS_CA_BUNDLE");
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    refuse_server("SSO", "AWS_USE_FIPS_ENDPOINT is not supported");
    setenv("AWS_USE_FIPS_ENDPOINT", "false", 1);
    check_endpoint("S3", true, NULL, NULL);
    setenv("AWS_CA_BUNDLE", "/x", 1);
    BEL_ASSERT_OK(bel_profile_check(&files));
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    unsetenv("AWS_CA_BUNDLE");
    bel_profiles_deinit(&files);
    bel_free(path);
}

static void test_files(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    static const char dev[] = "[dev]\naws_access_key_id = AK2\n";
    static const char later[] = "[dev]\naws_access_key_id = AK3\n";
    char *keys = bel_test_file(folder, "credentials", dev, sizeof dev - 1);
    char *config = bel_test_file(folder, "config", text, sizeof text - 1);
    char *value;
    bel_profiles files;
    setenv("AWS_SHARED_CREDENTIALS_FILE", keys, 1);
    setenv("AWS_CONFIG_FILE", config, 1);
    setenv("AWS_PROFILE", "dev", 1);
    unsetenv("AWS_REGION");
    unsetenv("AWS_DEFAULT_REGION");
    unsetenv("AWS_ENDPOINT_URL");
    bel_profiles_read(&files);
    bel_free(bel_test_file(folder, "credentials", later, sizeof later - 1));
    BEL_ASSERT_OK(bel_profile_get(&files, NULL, "aws_access_key_id", &value));
    assert_string_equal(value, "AK2"); // the file was read before
    bel_free(value);
    BEL_ASSERT_OK(bel_profile_region(&files, &value));
    assert_string_equal(value, "eu-west-1");
    bel_free(value);
    check_endpoint("S3", true, "http://h:1", "");
    check_endpoint("SSO", false, NULL, NULL);
    setenv("AWS_ENDPOINT_URL", "http://h:2/a/", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://h:3", 1);
    check_endpoint("S3", true, "http://h:3", "");
    check_endpoint("STS", true, "http://h:2", "/a");
    check_endpoint("SSO", false, NULL, NULL);
    setenv("AWS_ENDPOINT_URL_SSO", "HTTPS://sso.example:443/", 1);
    check_endpoint("SSO", false, "https://sso.example", "");
    setenv("AWS_ENDPOINT_URL_STS", "localhost:9000", 1);
    char *origin, *path;
    BEL_ASSERT_FAILS(bel_profile_endpoint(&files, "STS", true, &origin, &path),
                     BEL_INVALID_ARGUMENT, "AWS_ENDPOINT_URL_STS: expected http://HOST");
    setenv("AWS_PROFILE", "unknown", 1);
    BEL_ASSERT_FAILS(bel_profile_get(&files, NULL, "region", &value), BEL_INVALID_ARGUMENT,
                     "profile \"unknown\" is in neither");
    setenv("AWS_REGION", "eu west", 1);
    BEL_ASSERT_FAILS(bel_profile_region(&files, &value), BEL_INVALID_ARGUMENT, "eu west");
    bel_profiles_deinit(&files);
    bel_free(keys);
    bel_free(config);
}

static void test_amazon(void **state)
{
    (void)state;
    char *origin = bel_profile_amazon("portal.sso", "cn-north-1");
    assert_string_equal(origin, "https://portal.sso.cn-north-1.amazonaws.com.cn");
    bel_free(origin);
}

static void test_time(void **state)
{
    (void)state;
    assert_true(bel_credentials_time("1970-01-01T00:00:00Z") == 0);
    assert_true(bel_credentials_time("2015-08-30T12:36:00Z") == 1440938160);
    assert_true(bel_credentials_time("2024-02-29T23:59:59.123Z") == 1709251199);
    assert_true(bel_credentials_time("2100-03-01T00:00:00Z") == 4107542400.0);
    assert_true(bel_credentials_time("2015-08-30T12:36:00") == 1440938160);
    assert_true(bel_credentials_time("2015-08-30T12:36:00UTC") == 1440938160);
    assert_true(bel_credentials_time("2015-08-30T14:36:00+02:00") == 1440938160);
    assert_true(bel_credentials_time("2015-08-30T07:06:00.5-05:30") == 1440938160);
    static const char *const malformed[] = {"soon",
                                            "",
                                            "2015-08-30",
                                            "2015-08-30T12:36:00CET",
                                            "2015-08-30T12:36:00+0200",
                                            "2015-08-30T12:36:00+02:60",
                                            "2015-08-30T12:36:00+02:00 ",
                                            "2015-08-30T12:36:00.Z",
                                            "2015-08-30T24:36:00Z",
                                            "2015-13-30T12:36:00Z",
                                            "2015-00-30T12:36:00Z",
                                            "2015-02-29T12:36:00Z",
                                            "2015-8-30T12:36:00Z",
                                            "2015-08-30T12:60:00Z",
                                            "+015-08-30T12:36:00Z"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        assert_true(bel_credentials_time(malformed[i]) == 0);
    assert_true(bel_credentials_time(NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),      cmocka_unit_test(test_groups),
        BEL_TEST_IN_FOLDER(test_servers), BEL_TEST_IN_FOLDER(test_files),
        cmocka_unit_test(test_amazon),    cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
