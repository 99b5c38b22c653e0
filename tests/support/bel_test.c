// Helpers of the tests.
#include "support/bel_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

char *bel_test_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = bel_strf("%s/belfry-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(folder) == NULL) fail_msg("cannot make a folder like %s", folder);
    return folder;
}

void bel_test_remove_folder(char *folder)
{
    bel_status_ignore(bel_dir_remove(folder)); // a leftover in /tmp must not fail the test
    bel_free(folder);
}

bool bel_test_spares(int number)
{
    return number % 3 != 0 && getenv("BELFRY_THOROUGH") == NULL;
}

// --- A folder for each test ----------------------------------------------------------------------

static char *own_folder; // NULL between tests

const char *bel_test_own_folder(void)
{
    assert_non_null(own_folder); // NULL if the test is not registered with BEL_TEST_IN_FOLDER
    return own_folder;
}

int bel_test_enter_folder(void **state)
{
    (void)state;
    own_folder = bel_test_folder();
    return 0;
}

int bel_test_leave_folder(void **state)
{
    (void)state;
    bel_fault_set("");
    bel_test_remove_folder(own_folder);
    own_folder = NULL;
    return 0;
}

// --- Files and statuses --------------------------------------------------------------------------

char *bel_test_file(const char *folder, const char *name, const void *data, size_t size)
{
    char *path = bel_path_join(folder, name);
    BEL_ASSERT_OK(bel_file_write_atomic(path, data, size));
    return path;
}

void bel_test_ok(bel_status *status, const char *expression, const char *file, int line)
{
    if (status == NULL) return;
    print_error("%s: %s\n", expression, bel_status_message(status));
    bel_status_destroy(status);
    _fail(file, line);
}

void bel_test_fails(bel_status *status, bel_code code, const char *part, const char *expression,
                    const char *file, int line)
{
    bool right = bel_status_code(status) == code && strstr(bel_status_message(status), part);
    if (!right) {
        print_error("%s: expected %s with \"%s\", got %s: %s\n", expression, bel_code_name(code),
                    part, bel_code_name(bel_status_code(status)), bel_status_message(status));
    }
    bel_status_destroy(status);
    if (!right) _fail(file, line);
}
