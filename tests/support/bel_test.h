// Common header of the tests: cmocka, and assertions on statuses. Assert only on the test's own
// thread.
#ifndef BELFRY_TESTS_SUPPORT_BEL_TEST_H
#define BELFRY_TESTS_SUPPORT_BEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "belfry/status.h"

// New, empty folder below the build tree. bel_test_remove_folder removes it.
char *bel_test_folder(void);
void bel_test_remove_folder(char *folder);

// Folder of the running test, new and empty, if the test is registered with
// BEL_TEST_IN_FOLDER. If the two functions are a group's setup and teardown, it is the group's.
// The teardown removes the folder and turns off all faults that were set.
const char *bel_test_own_folder(void);
int bel_test_enter_folder(void **state);
int bel_test_leave_folder(void **state);

// An element of cmocka's list: a test with a separate folder.
#define BEL_TEST_IN_FOLDER(function)                                                               \
    cmocka_unit_test_setup_teardown(function, bel_test_enter_folder, bel_test_leave_folder)

// Writes a file into a folder and returns its path (free with bel_free).
char *bel_test_file(const char *folder, const char *name, const void *data, size_t size);

void bel_test_ok(bel_status *status, const char *expression, const char *file, int line);
void bel_test_fails(bel_status *status, bel_code code, const char *part, const char *expression,
                    const char *file, int line);

// Asserts that the call succeeds; otherwise prints its message.
#define BEL_ASSERT_OK(expression) bel_test_ok((expression), #expression, __FILE__, __LINE__)

// Asserts that the call fails with `code` and that its message contains `part`.
#define BEL_ASSERT_FAILS(expression, code, part)                                                   \
    bel_test_fails((expression), (code), (part), #expression, __FILE__, __LINE__)

// True for two of three numbers of similar checks that take long, except with BELFRY_THOROUGH.
bool bel_test_spares(int number);

// Kinds of streams that a build can test: on unix sockets, and over gRPC. The thread sanitizer does
// not see the synchronization of gRPC, which is built without it. RACES: it is there, and checks
// with one thread are left out.
#if defined(__SANITIZE_THREAD__)
enum { BEL_TEST_CARRIERS = 1, BEL_TEST_RACES = 1 };
#else
enum { BEL_TEST_CARRIERS = 2, BEL_TEST_RACES = 0 };
#endif

#endif
