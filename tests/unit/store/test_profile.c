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
                           "; region = x\n"
                           "endpoint_url = http://h:1\n"
                           "[profile device]\n"
                           "region = mars-1\n";

static void check(const char *section, const char *name, const char *expected)
{
    char *value;
    assert_true(bel_profile_find(text, section, name, &value));
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
    assert_false(bel_profile_find(text, "dev", "region", &value));
    assert_false(bel_profile_find(text, "profile de", "region", &value));
}

static void test_files(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    static const char dev[] = "[dev]\naws_access_key_id = AK2\n";
    char *keys = bel_test_file(folder, "credentials", dev, sizeof dev - 1);
    char *config = bel_test_file(folder, "config", text, sizeof text - 1);
    char *value;
    setenv("AWS_SHARED_CREDENTIALS_FILE", keys, 1);
    setenv("AWS_CONFIG_FILE", config, 1);
    setenv("AWS_PROFILE", "dev", 1);
    unsetenv("AWS_REGION");
    unsetenv("AWS_DEFAULT_REGION");
    unsetenv("AWS_ENDPOINT_URL");
    BEL_ASSERT_OK(bel_profile_get(NULL, "aws_access_key_id", &value));
    assert_string_equal(value, "AK2");
    bel_free(value);
    BEL_ASSERT_OK(bel_profile_region(&value));
    assert_string_equal(value, "eu-west-1");
    bel_free(value);
    BEL_ASSERT_OK(bel_profile_endpoint("S3", &value));
    assert_string_equal(value, "http://h:1");
    bel_free(value);
    setenv("AWS_ENDPOINT_URL", "http://h:2", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://h:3", 1);
    BEL_ASSERT_OK(bel_profile_endpoint("S3", &value));
    assert_string_equal(value, "http://h:3");
    bel_free(value);
    BEL_ASSERT_OK(bel_profile_endpoint("STS", &value));
    assert_string_equal(value, "http://h:2");
    bel_free(value);
    setenv("AWS_PROFILE", "unknown", 1);
    BEL_ASSERT_FAILS(bel_profile_get(NULL, "region", &value), BEL_INVALID_ARGUMENT,
                     "profile \"unknown\" is in neither");
    setenv("AWS_REGION", "eu west", 1);
    BEL_ASSERT_FAILS(bel_profile_region(&value), BEL_INVALID_ARGUMENT, "eu west");
    bel_free(keys);
    bel_free(config);
}

static void test_time(void **state)
{
    (void)state;
    assert_true(bel_credentials_time("1970-01-01T00:00:00Z") == 0);
    assert_true(bel_credentials_time("2015-08-30T12:36:00Z") == 1440938160);
    assert_true(bel_credentials_time("2024-02-29T23:59:59.123Z") == 1709251199);
    assert_true(bel_credentials_time("2100-03-01T00:00:00Z") == 4107542400.0);
    assert_true(bel_credentials_time("soon") == 0);
    assert_true(bel_credentials_time(NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), BEL_TEST_IN_FOLDER(test_files),
                                       cmocka_unit_test(test_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
