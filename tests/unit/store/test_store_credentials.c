// Errors of credentials: their codes are those that store/credentials.h promises, whatever a place
// returns. A lease, a condition or a list would else take another code for the store's answer.
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "store/credentials.h"
#include "store/store.h"
#include "support/bel_test.h"

static const char *folder;

static void clear(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_PROFILE",
                                        "AWS_DEFAULT_PROFILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "GS_ACCESS_KEY_ID",
                                        "GS_SECRET_ACCESS_KEY",
                                        "STORAGE_EMULATOR_HOST",
                                        BEL_STORE_ANONYMOUS_VARIABLE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    folder = bel_test_own_folder();
    setenv("HOME", folder, 1);
}

// The default profile has `command` as credential_process.
static void check_program(const char *command, bel_code code, const char *words)
{
    bel_credentials *c;
    char *text = bel_strf("[default]\ncredential_process = %s\n", command);
    char *path = bel_test_file(folder, "config", text, strlen(text));
    setenv("AWS_CONFIG_FILE", path, 1);
    BEL_ASSERT_FAILS(bel_credentials_get(BEL_STORE_S3, NULL, &c), code, words);
    bel_free(path);
    bel_free(text);
}

static void test_programs(void **state)
{
    (void)state;
    clear();
    check_program("sh -c 'echo locked >&2; exit 3'", BEL_PERMISSION_DENIED,
                  "credential_process: exit code 3 of sh: locked");
    check_program("./none", BEL_PERMISSION_DENIED, "credential_process: ");
    check_program("echo {", BEL_PERMISSION_DENIED, "credential_process:2:0: not valid JSON");
    check_program("echo {}", BEL_PERMISSION_DENIED, "expected AccessKeyId");
    check_program("echo 'a", BEL_INVALID_ARGUMENT, "expected a command with closed quotes");
    bel_str words = {0};
    for (int i = 0; i < 65; i++)
        bel_str_puts(&words, "x ");
    check_program(words.text, BEL_INVALID_ARGUMENT, "expected at most 64 words");
    bel_str_deinit(&words);
    double before = bel_store_set_patience(1.5);
    check_program("sleep 50", BEL_UNAVAILABLE, "took more than 1 s");
    bel_store_set_patience(before);
}

static void test_google(void **state)
{
    (void)state;
    clear();
    bel_credentials *c;
    char *path = bel_test_file(folder, "user.json", "{\"a\": hush}", 11);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", path, 1);
    bel_status *status = bel_credentials_get(BEL_STORE_GS, NULL, &c);
    assert_int_equal(bel_status_code(status), BEL_PERMISSION_DENIED);
    assert_null(strstr(bel_status_message(status), "hush"));
    bel_status_destroy(status);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/user.json", 1);
    BEL_ASSERT_FAILS(bel_credentials_get(BEL_STORE_GS, NULL, &c), BEL_PERMISSION_DENIED,
                     "GOOGLE_APPLICATION_CREDENTIALS");
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(test_programs),
                                       BEL_TEST_IN_FOLDER(test_google)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
