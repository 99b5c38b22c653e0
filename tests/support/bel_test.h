// What every test includes: cmocka, and assertions on statuses. Assert on the test's own thread
// only.
#ifndef BELFRY_TESTS_SUPPORT_BEL_TEST_H
#define BELFRY_TESTS_SUPPORT_BEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "belfry/status.h"

// A new, empty folder below the build tree; removed by bel_test_remove_folder.
char *bel_test_folder(void);
void bel_test_remove_folder(char *folder);

// Writes a file into a folder and returns its path (free with bel_free).
char *bel_test_file(const char *folder, const char *name, const void *data, size_t size);

void bel_test_ok(bel_status *status, const char *expression, const char *file, int line);
void bel_test_fails(bel_status *status, bel_code code, const char *part, const char *expression,
                    const char *file, int line);

// The call succeeds; otherwise its message is printed.
#define BEL_ASSERT_OK(expression) bel_test_ok((expression), #expression, __FILE__, __LINE__)

// The call fails with `code` and its message holds `part`.
#define BEL_ASSERT_FAILS(expression, code, part)                                                   \
    bel_test_fails((expression), (code), (part), #expression, __FILE__, __LINE__)

#endif
