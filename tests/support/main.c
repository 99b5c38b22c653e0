// Main function of a program of tests. The build renames the main functions of its files, and lists
// the files (tests/CMakeLists.txt).
//
// usage: PROGRAM FILE [WORD]    WORD: runs only the file's tests whose names contain it
#include <string.h>

#include "base/number.h"
#include "support/bel_test.h"

#define TEST(name) int main_of_##name(void);
#include BEL_TEST_LIST
#undef TEST

static const struct {
    const char *name;
    int (*run)(void);
} files[] = {
#define TEST(name) {#name, main_of_##name},
#include BEL_TEST_LIST
#undef TEST
};

int main(int count, char **arguments)
{
    static char pattern[128];
    if (count == 3) {
        bel_snprintf(pattern, sizeof pattern, "*%s*", arguments[2]);
        cmocka_set_test_filter(pattern);
    }
    for (size_t i = 0; (count == 2 || count == 3) && i < sizeof files / sizeof files[0]; i++)
        if (strcmp(files[i].name, arguments[1]) == 0) return files[i].run();
    fprintf(stderr, "usage: %s FILE [WORD]\nFILE is one of:\n", arguments[0]);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        fprintf(stderr, "  %s\n", files[i].name);
    return 2;
}
