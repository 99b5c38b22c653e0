// Splitting of rows, and detection of plain numbers, against a loop over the fields.
#include <string.h>

#include "base/decimal.h"
#include "base/isa.h"
#include "base/rng.h"
#include "base/str.h"
#include "input/table/csv_scan.h"
#include "input/table/csv_split.h"
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

// True if each field of a line is read as a whole.
static bool are_numbers(const char *line, const char *end)
{
    for (const char *at = line;; at++) {
        const char *stop = memchr(at, ',', (size_t)(end - at));
        if (stop == NULL) stop = end;
        double value;
        if (bel_decimal_parse(at, stop, &value) != stop) return false;
        if (stop == end) return true;
        at = stop;
    }
}

// Scans the lines of a text at each level. Returns how many of them are numbers.
static int check_lines(const char *text, size_t size)
{
    enum { MOST_ROWS = 64 };
    static const bel_csv_scan_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_csv_scan_kernels)};
    const bel_csv_scan scan = {',', -1};
    bel_csv_scanned first[MOST_ROWS], rows[MOST_ROWS];
    size_t count = levels[0]->rows(&scan, text, text + size, MOST_ROWS, first);
    int numbers = 0;
    const char *line = text;
    for (size_t i = 0; i < count; i++) {
        const char *end = text + first[i].end;
        numbers += first[i].numbers;
        if (first[i].numbers && !are_numbers(line, end - (end > line && end[-1] == '\r')))
            fail_msg("\"%.*s\" was taken for numbers", (int)(end - line), line);
        line = end + 1;
    }
    for (size_t level = 1; level <= (size_t)bel_isa_get(); level++) {
        assert_int_equal(levels[level]->rows(&scan, text, text + size, MOST_ROWS, rows), count);
        for (size_t i = 0; i < count; i++)
            assert_true(rows[i].end == first[i].end && rows[i].numbers == first[i].numbers);
    }
    return numbers;
}

static void test_lines_of_numbers(void **state)
{
    (void)state;
    static const char *const alphabets[] = {"12345,", "1,.", "123456789,.-", "1234567890123,,.x",
                                            "12,\xff\x80\xb0-:/"};
    enum { LINES = 9 };
    bel_rng_key key = bel_rng_key_make(4, "numbers", 0);
    int found = 0;
    for (uint64_t i = 0; i < 40000; i++) {
        char text[LINES * 42];
        size_t size = 0;
        for (uint64_t line = 0; line < LINES; line++) {
            size += random_text(key, LINES * i + line, alphabets[i % 5], text + size,
                                i % 2 == 0 ? 9 : 40);
            if (line % 3 == 0) text[size++] = '\r';
            text[size++] = '\n';
        }
        found += check_lines(text, size);
    }
    assert_true(found > 20000);
}

static bool is_numbers(const char *line, size_t length, char delimiter)
{
    char *text = bel_strf("%.*s\n", (int)length, line);
    bel_csv_scanned row;
    const bel_csv_scan scan = {delimiter, -1};
    assert_int_equal(bel_csv_scan_rows(&scan, text, text + length + 1, 1, &row), 1);
    bel_free(text);
    return row.numbers;
}

// Each line begins at each place of a block.
static void test_chosen_lines_of_numbers(void **state)
{
    (void)state;
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
                 {"--1", false},
                 {"1-2", false},
                 {"1,NA", false},
                 {"1.2345678,1.2345678", true},
                 {"1e5", false},
                 {"12345.67890123.4", false},
                 {"1.5,2.5,3.5,4.5", true},
                 {"1,2,3 ,4", false},
                 {"", false},
                 {"1,-", false},
                 {".5", false},
                 {"1.", false},
                 {"1234567,-8", true},
                 {"1234567-,8", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line = cases[i].line;
        for (int place = 0; place < 64; place++) {
            char *row = bel_strf("%0*d,%s", place + 1, 0, line);
            if (is_numbers(row, strlen(row), ',') != cases[i].numbers) fail_msg("\"%s\"", row);
            bel_free(row);
        }
        if (is_numbers(line, strlen(line), ',') != cases[i].numbers) fail_msg("\"%s\"", line);
    }
    for (size_t digits = 1; digits < 1000; digits++) { // too many: infinite
        char many[1000];
        memset(many, '9', digits);
        if (digits < 129) assert_true(is_numbers(many, digits, ','));
        if (digits > 308) assert_false(is_numbers(many, digits, ','));
    }
    assert_false(is_numbers("1.2", 3, '.'));
    assert_false(is_numbers("1-2", 3, '-'));
    assert_false(is_numbers("102", 3, '0'));
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
