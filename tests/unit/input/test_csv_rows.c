// Rows that are split, and found to be numbers, eight bytes at a time: each against the plain way.
#include <string.h>

#include "base/decimal.h"
#include "base/rng.h"
#include "input/csv_numbers.h"
#include "input/csv_split.h"
#include "unit/input/test_fixture.h"

enum { MOST_FIELDS = 64 };

// A text of an alphabet, each character as likely as the others.
static size_t random_text(bel_rng_key key, uint64_t number, const char *alphabet, char *out,
                          size_t most)
{
    uint32_t words[4];
    bel_rng_block(key, 2 * number, 0, words);
    size_t length = words[0] % most, letters = strlen(alphabet);
    for (size_t i = 0; i < length; i++) {
        if (i % 4 == 0) bel_rng_block(key, 2 * number + 1, i, words);
        out[i] = alphabet[words[i % 4] % letters];
    }
    return length;
}

// --- Splitting -----------------------------------------------------------------------------------

static void assert_field(const char *text, bel_csv_field got, bel_csv_field expected)
{
    if (got.text != expected.text || got.length != expected.length ||
        got.doubled != expected.doubled)
        fail_msg("\"%s\": another field at %td", text, expected.text - text);
}

// The fields that one after the other are split off, up to `count`.
static void check_split(const char *text, size_t length, int count)
{
    const char *starts[MOST_FIELDS + BEL_CSV_SPARE_STARTS], *fault, *at = text;
    const char *end = text + length;
    bel_csv_stop stop = bel_csv_split_row(text, end, ',', count, starts, &fault);
    bel_csv_stop expected = BEL_CSV_DELIMITER;
    for (int i = 0; i < count; i++) {
        bel_csv_field field;
        if (expected == BEL_CSV_ROW_END) {
            assert_int_equal(stop, BEL_CSV_SHORT_ROW);
            return;
        }
        expected = bel_csv_next_field(at, end, ',', &field, &at);
        if (expected > BEL_CSV_ROW_END) {
            assert_true(stop > BEL_CSV_ROW_END);
            return;
        }
        if (stop == BEL_CSV_ROW_END)
            assert_field(text, bel_csv_field_between(starts[i], starts[i + 1]), field);
    }
    assert_int_equal(stop, BEL_CSV_ROW_END);
}

static void test_rows_are_split_as_fields_are(void **state)
{
    (void)state;
    static const char *const alphabets[] = {"12345678,", "1,", "1234567890123456789,\n",
                                            "12,\"\n\r", ",,,\"\"a\n"};
    bel_rng_key key = bel_rng_key_make(3, "split", 0);
    for (uint64_t i = 0; i < 50000; i++) {
        char text[64];
        size_t length = random_text(key, i, alphabets[i % 5], text, sizeof text - 1);
        text[length] = '\0';
        for (int count = 1; count < 5; count++)
            check_split(text, length, count);
        check_split(text, length, MOST_FIELDS);
    }
}

static void test_chosen_rows(void **state)
{
    (void)state;
    const char *starts[3 + BEL_CSV_SPARE_STARTS], *fault;
    static const char row[] = "1,\"a,\"\"b\",\r\n2,3";
    assert_int_equal(bel_csv_split_row(row, row + strlen(row), ',', 3, starts, &fault),
                     BEL_CSV_ROW_END);
    bel_csv_field field = bel_csv_field_between(starts[1], starts[2]);
    assert_true(field.doubled && field.length == 5 && field.text == row + 3);
    assert_int_equal(bel_csv_field_between(starts[2], starts[3]).length, 0);
    assert_int_equal(bel_csv_split_row(row + 12, row + strlen(row), ',', 3, starts, &fault),
                     BEL_CSV_SHORT_ROW);
    assert_ptr_equal(fault, row + strlen(row));
}

// --- Numbers -------------------------------------------------------------------------------------

// Whether each field of a line is read as a whole, and how many there are.
static bool are_numbers(const char *line, const char *end, size_t *out_fields)
{
    *out_fields = 0;
    for (const char *at = line;; at++) {
        const char *stop = memchr(at, ',', (size_t)(end - at));
        if (stop == NULL) stop = end;
        double value;
        if (bel_decimal_parse(at, stop, &value) != stop) return false;
        ++*out_fields;
        if (stop == end) return true;
        at = stop;
    }
}

static void test_lines_of_numbers(void **state)
{
    (void)state;
    static const char *const alphabets[] = {"12345,", "1,.", "123456789,.-", "1234567890123,,.x",
                                            "12,\xff\x80\xb0-"};
    bel_rng_key key = bel_rng_key_make(4, "numbers", 0);
    int found = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        char line[64];
        size_t length = random_text(key, i, alphabets[i % 5], line, i % 2 == 0 ? 9 : 40);
        size_t delimiters, fields;
        if (!bel_csv_line_is_numbers(line, line + length, ',', &delimiters)) continue;
        found++;
        if (!are_numbers(line, line + length, &fields) || fields != delimiters + 1)
            fail_msg("\"%.*s\" was taken for numbers", (int)length, line);
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    assert_true(found > 20000);
#else
    (void)found;
#endif
}

static void test_chosen_lines_of_numbers(void **state)
{
    (void)state;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const struct {
        const char *line;
        bool numbers;
    } cases[] = {{"1", true},
                 {"-1.5,2,-0.25", true},
                 {"12345678,1", true},
                 {"1.2.3", false},
                 {"1234567.,1", false},
                 {"1234567.8.9", false},
                 {"1,,2", false},
                 {"1,", false},
                 {"-", false},
                 {"1-2", false},
                 {"1,NA", false},
                 {"1.2345678,1.2345678", true},
                 {"1e5", false},
                 {"12345.67890123.4", false},
                 {"1.5,2.5,3.5,4.5", true},
                 {"1,2,3 ,4", false},
                 {"", false},
                 {"1,-", false},
                 {"1234567,-8", true},
                 {"1234567-,8", false}};
    size_t delimiters;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line = cases[i].line;
        if (bel_csv_line_is_numbers(line, line + strlen(line), ',', &delimiters) !=
            cases[i].numbers)
            fail_msg("\"%s\"", line);
    }
    char many[1000]; // digits: infinite
    memset(many, '9', sizeof many);
    assert_false(bel_csv_line_is_numbers(many, many + sizeof many, ',', &delimiters));
    static const char points[] = "1.2";
    assert_false(bel_csv_line_is_numbers(points, points + 3, '.', &delimiters));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_split_as_fields_are),
        cmocka_unit_test(test_chosen_rows),
        cmocka_unit_test(test_lines_of_numbers),
        cmocka_unit_test(test_chosen_lines_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
