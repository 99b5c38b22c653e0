// Structs that begin with their size, of callers of other versions.
#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "belfry/ddl.h"
#include "belfry/run.h"
#include "support/bel_test.h"

typedef struct thing {
    size_t size;
    int a, b;
    int64_t c;
} thing;

static void test_shorter_and_longer(void **state)
{
    (void)state;
    thing own = {.a = 9, .b = 9, .c = 9}, given = {.size = offsetof(thing, b), .a = 1, .b = 2};
    BEL_ASSERT_OK(bel_sized_take(&own, sizeof own, &given, "thing"));
    assert_true(own.size == sizeof own && own.a == 1 && own.b == 0 && own.c == 0);
    own = (thing){.b = 7};
    BEL_ASSERT_OK(bel_sized_take_over(&own, sizeof own, &given, "thing"));
    assert_true(own.size == sizeof own && own.a == 1 && own.b == 7);
    BEL_ASSERT_OK(bel_sized_take(&own, sizeof own, NULL, "thing"));
    assert_true(own.size == sizeof own && own.a == 0);
    struct {
        thing known;
        int64_t later;
    } newer = {{.size = sizeof newer, .a = 3, .c = 4}, 0};
    BEL_ASSERT_OK(bel_sized_take(&own, sizeof own, &newer, "thing"));
    assert_true(own.size == sizeof own && own.a == 3 && own.c == 4);
    newer.later = 1;
    BEL_ASSERT_FAILS(
        bel_sized_take(&own, sizeof own, &newer, "thing"), BEL_INVALID_ARGUMENT,
        "thing: the program sets a field that this version of the library lacks: it has 24 bytes");
}

static void test_unset_sizes(void **state)
{
    (void)state;
    static const size_t wrong[] = {0, sizeof(size_t) - 1, ((size_t)1 << 14) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        thing own, given = {.size = wrong[i]};
        BEL_ASSERT_FAILS(bel_sized_take(&own, sizeof own, &given, "thing"), BEL_INVALID_ARGUMENT,
                         "thing: size must be sizeof(thing), got");
        BEL_ASSERT_FAILS(bel_sized_check(&given, "thing"), BEL_INVALID_ARGUMENT, "sizeof(thing)");
    }
    BEL_ASSERT_OK(bel_sized_check(NULL, "thing"));
}

static void test_filled_in(void **state)
{
    (void)state;
    const thing from = {.size = sizeof from, .a = 1, .b = 2, .c = 3};
    thing shorter = {.size = offsetof(thing, c), .c = -1};
    bel_sized_give(&shorter, &from, sizeof from);
    assert_true(shorter.size == offsetof(thing, c) && shorter.b == 2 && shorter.c == -1);
    struct {
        thing known;
        int64_t later;
    } newer = {{.size = sizeof newer}, 5};
    bel_sized_give(&newer, &from, sizeof from);
    assert_true(newer.known.size == sizeof newer && newer.known.c == 3 && newer.later == 0);
    bel_sized_give(NULL, &from, sizeof from);
    newer.known = (thing){.size = 0, .a = 7};
    bel_sized_give(&newer, &from, sizeof from); // an unset size: nothing is written
    assert_true(newer.known.size == 0 && newer.known.a == 7);
}

// The bytes after a program's shorter struct stay.
static void test_defaults_of_a_shorter_struct(void **state)
{
    (void)state;
    enum { GUARD = 0x5A };
    bel_run_config config;
    memset(&config, GUARD, sizeof config);
    size_t size = offsetof(bel_run_config, seed);
    bel_run_config_init(&config, size);
    assert_true(config.size == size && config.model_dir == NULL);
    const unsigned char *bytes = (const unsigned char *)&config;
    for (size_t i = size; i < sizeof config; i++)
        assert_int_equal(bytes[i], GUARD);
    BEL_ASSERT_OK(bel_run_config_set(&config, "model_dir", "there"));
    assert_string_equal(config.model_dir, "there");
    BEL_ASSERT_FAILS(bel_run_config_set(&config, "seed", "3"), BEL_FAILED_PRECONDITION,
                     "--seed: the program was compiled for a version that lacks it");
    for (size_t i = size; i < sizeof config; i++)
        assert_int_equal(bytes[i], GUARD);
    const char *before = config.model_dir;
    bel_run_config_init(&config, 0); // reported by the call that reads it
    assert_true(config.size == 0 && config.model_dir == before);
    bel_ddl_options options;
    memset(&options, GUARD, sizeof options);
    bel_ddl_options_init(&options, offsetof(bel_ddl_options, device));
    assert_true(options.timeout_secs == 600);
    assert_int_equal(((const unsigned char *)&options)[offsetof(bel_ddl_options, device)], GUARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorter_and_longer), cmocka_unit_test(test_unset_sizes),
        cmocka_unit_test(test_filled_in), cmocka_unit_test(test_defaults_of_a_shorter_struct)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
