// Statuses: codes, messages that grow at the front, traces, exit codes.
#include "base/str.h"
#include "support/bel_test.h"

static bel_status *innermost(void)
{
    return BEL_ERR(BEL_NOT_FOUND, "no variable \"%s\"", "w");
}

static bel_status *middle(void)
{
    BEL_TRY_CTX(innermost(), "checkpoint %d", 7);
    return NULL;
}

static bel_status *outermost(void)
{
    BEL_TRY(middle()); // returns it unchanged
    return NULL;
}

static void test_success(void **state)
{
    (void)state;
    assert_int_equal(bel_status_code(NULL), BEL_OK);
    assert_string_equal(bel_status_message(NULL), "ok");
    assert_string_equal(bel_status_trace(NULL), "");
    assert_int_equal(bel_status_exit_code(NULL), 0);
    assert_null(bel_status_wrap(NULL, __FILE__, __LINE__, "context"));
    bel_status_destroy(NULL);
}

static void test_context(void **state)
{
    (void)state;
    bel_status *status = outermost();
    assert_int_equal(bel_status_code(status), BEL_NOT_FOUND);
    assert_string_equal(bel_status_message(status), "checkpoint 7: no variable \"w\"");
    const char *first = strstr(bel_status_trace(status), "test_status.c:");
    assert_non_null(first);
    const char *second = strstr(first, " < ");
    assert_non_null(second); // innermost first, then the place that added context
    assert_non_null(strstr(second, "test_status.c:"));
    assert_null(strstr(second + 3, " < "));
    bel_status_destroy(status);
}

// Values may have any length. Only the middle of a long value is left out.
static void test_long_values(void **state)
{
    (void)state;
    enum { LONG = 10000 };
    static char value[LONG + 1], same[256];
    memset(value, 'x', LONG);
    value[0] = 'a';
    value[LONG - 1] = 'z';
    memset(same, 'y', 255); // with the semicolon, 256 bytes
    bel_status *status =
        BEL_ERR(BEL_NOT_FOUND, "--a: cannot open %s; hint: %s, %s", same, value, value);
    status = bel_status_wrap(status, __FILE__, __LINE__, "%s", value);
    const char *text = bel_status_message(status);
    assert_true(strlen(text) < 1000);
    assert_non_null(strstr(text, "z: --a: cannot open yyyyyy"));
    assert_non_null(strstr(text, same));
    assert_non_null(strstr(text, "y; hint: axxx"));
    assert_non_null(strstr(text, "xx…xx"));
    assert_non_null(strstr(text, "xz, axx"));
    bel_status_destroy(status);
    for (int i = 0; i < 4; i++) { // a cut never splits a character
        bel_str letters = {0};
        bel_str_printf(&letters, "%.*s", i, "abc");
        for (int k = 0; k < 200; k++)
            bel_str_puts(&letters, "€");
        status = BEL_ERR(BEL_NOT_FOUND, "%s", letters.text);
        text = bel_status_message(status);
        int euros = 0, dots = 0;
        for (text += i; *text != '\0'; text += 3) {
            euros += strncmp(text, "€", 3) == 0;
            dots += strncmp(text, "…", 3) == 0;
            assert_true(strlen(text) >= 3);
        }
        assert_true(euros > 60 && euros < 80 && dots == 1);
        bel_status_destroy(status);
        bel_str_deinit(&letters);
    }
}

static void test_goto(void **state)
{
    (void)state;
    bel_status *status = NULL;
    BEL_TRY_GOTO(status, done, NULL);
    BEL_TRY_GOTO(status, done, innermost());
    fail_msg("an error did not leave");
done:
    assert_int_equal(bel_status_code(status), BEL_NOT_FOUND);
    bel_status_ignore(status); // all of it was checked
}

static void test_exit_codes(void **state)
{
    (void)state;
    static const struct {
        bel_code code;
        int exit_code;
        const char *name;
    } rows[] = {
        {BEL_CANCELLED, 1, "CANCELLED"},
        {BEL_UNKNOWN, 1, "UNKNOWN"},
        {BEL_INVALID_ARGUMENT, 2, "INVALID_ARGUMENT"},
        {BEL_DEADLINE_EXCEEDED, 1, "DEADLINE_EXCEEDED"},
        {BEL_NOT_FOUND, 3, "NOT_FOUND"},
        {BEL_RESOURCE_EXHAUSTED, 1, "RESOURCE_EXHAUSTED"},
        {BEL_FAILED_PRECONDITION, 2, "FAILED_PRECONDITION"},
        {BEL_ABORTED, 1, "ABORTED"},
        {BEL_OUT_OF_RANGE, 1, "OUT_OF_RANGE"},
        {BEL_UNIMPLEMENTED, 2, "UNIMPLEMENTED"},
        {BEL_INTERNAL, 1, "INTERNAL"},
        {BEL_UNAVAILABLE, 1, "UNAVAILABLE"},
        {BEL_DATA_LOSS, 3, "DATA_LOSS"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_status *status = BEL_ERR(rows[i].code, "x");
        assert_int_equal(bel_status_exit_code(status), rows[i].exit_code);
        assert_string_equal(bel_code_name(rows[i].code), rows[i].name);
        bel_status_destroy(status);
    }
    assert_string_equal(bel_code_name((bel_code)99), "UNKNOWN");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success),     cmocka_unit_test(test_context),
        cmocka_unit_test(test_long_values), cmocka_unit_test(test_goto),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
