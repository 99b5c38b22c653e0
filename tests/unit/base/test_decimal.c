// Fast number parser: both of its paths give the same bits as strtod.
#include "base/decimal.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "unit/input/test_fixture.h"

static void assert_like_strtod(const char *text)
{
    char *stop;
    double expected = strtod(text, &stop), got = 12345;
    const char *end = text + strlen(text);
    const char *parsed = bel_decimal_parse(text, end, &got);
    if (parsed != stop || memcmp(&expected, &got, sizeof got) != 0) {
        fail_msg("\"%s\": expected %a, got %a", text, expected, got);
    }
}

static void test_chosen_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "0.0",
        "1",
        "-1",
        "+17",
        "1.",
        ".5",
        "-.5e1",
        "1e0",
        "1E5",
        "1e-5",
        "1e+22",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "0.1",
        "0.3",
        "2.675",
        "123456.789",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "-9007199254740993",
        "9007199254740992e22",
        "9007199254740993e-22",
        "123456789012345678",
        "1234567890123456789",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "0.000000000000000000000000001",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "5e-324",
        "1e-400",
        "0e999999999999",
        "3.14159265358979323846",
        "0.1000000000000000055511151231257827021181583404541015625",
        "00000000000000000000000000000000000000000000000000000000000000000000000000000000000001.5",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_like_strtod(texts[i]);
}

// Prints a number in one of the forms that programs use.
static void print_number(char *text, size_t size, uint32_t way, double value)
{
    switch (way % 7) {
    case 0: snprintf(text, size, "%.6f", value); break;
    case 1: snprintf(text, size, "%.3f", value); break;
    case 2: snprintf(text, size, "%g", value); break;
    case 3: snprintf(text, size, "%.9g", value); break;
    case 4: snprintf(text, size, "%.17g", value); break;
    case 5: snprintf(text, size, "%.18e", value); break;
    default: snprintf(text, size, "%.0f", value); break;
    }
}

// The digits after the point outweigh an exponent of which not all digits are kept.
static void test_large_exponent(void **state)
{
    (void)state;
    enum { ZEROS = 99989 };
    char *text = bel_xmalloc(ZEROS + 32);
    memcpy(text, "0.", 2);
    memset(text + 2, '0', ZEROS);
    memcpy(text + 2 + ZEROS, "1e1000000", sizeof "1e1000000");
    double got;
    assert_null(bel_decimal_parse(text, text + strlen(text), &got));
    memcpy(text + 2 + ZEROS, "1e99990", sizeof "1e99990");
    assert_non_null(bel_decimal_parse(text, text + strlen(text), &got));
    assert_true(got == 1);
    bel_free(text);
}

// Few digits and all digits, very large and very small numbers.
static void test_many_numbers(void **state)
{
    (void)state;
    bel_rng_key key = bel_rng_key_make(1, "decimal", 0);
    for (uint64_t i = 0; i < 40000; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, i, words);
        int exponent = i % 2 == 0 ? (int)(words[2] % 12) - 6 : (int)(words[2] % 120) - 60;
        double value = (double)words[0] / 4294967296.0 + (double)words[1];
        if (i % 3 == 0) value /= 4294967296.0;
        for (; exponent > 0; exponent--)
            value *= 10;
        for (; exponent < 0; exponent++)
            value /= 10;
        if (words[3] % 2 == 1) value = -value;
        char text[512];
        print_number(text, sizeof text, words[3] / 2, value);
        assert_like_strtod(text);
    }
}

static void test_stops_behind_the_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int length; // -1: not a number
    } cases[] = {
        {"1,2", 1},  {"1.5\n", 3}, {"1e", 1},    {"1e+", 1},   {"1ex", 1}, {"1.2.3", 3},
        {"12 ", 2},  {"1-2", 1},   {"", -1},     {"-", -1},    {".", -1},  {"e5", -1},
        {" 1", -1},  {"nan", -1},  {"inf", -1},  {"-inf", -1}, {"x", -1},  {"1e999", -1},
        {"--1", -1}, {"0x10", 1},  {"+.e1", -1}, {"1_000", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value;
        const char *text = cases[i].text;
        const char *stop = bel_decimal_parse(text, text + strlen(text), &value);
        int length = stop == NULL ? -1 : (int)(stop - text);
        if (length != cases[i].length) {
            fail_msg("\"%s\": expected %d bytes, got %d", text, cases[i].length, length);
        }
    }
}

// The parser stops at the given end, not at a zero byte.
static void test_reads_no_further_than_the_end(void **state)
{
    (void)state;
    double value;
    static const char text[] = "12345";
    assert_ptr_equal(bel_decimal_parse(text, text + 3, &value), text + 3);
    assert_true(value == 123);
    static const char exponent[] = "1e55";
    assert_ptr_equal(bel_decimal_parse(exponent, exponent + 3, &value), exponent + 3);
    assert_true(value == 1e5);
}

// bel_decimal_parse_short on random texts of BEL_DECIMAL_ROOM bytes, dense in digits, points and
// minus signs. If it returns a number, the bits and the end are those of bel_decimal_parse.
// Exponents are the exception: it leaves them to the caller. It must always parse plain numbers.
static void test_short_numbers(void **state)
{
    (void)state;
    static const char alphabet[] =
        "0123456789012345678901234567890123456789.....---,\n\r e+x\x80\xff";
    bel_rng_key key = bel_rng_key_make(7, "short", 0);
    int given = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, i, words);
        char text[BEL_DECIMAL_ROOM];
        for (int c = 0; c < BEL_DECIMAL_ROOM; c++)
            text[c] = alphabet[(words[c / 3] >> (10 * (c % 3)) & 1023) % (sizeof alphabet - 1)];
        double got = 1, expected = 2;
        const char *stop = bel_decimal_parse_short(text, &got);
        if (stop == NULL) continue;
        given++;
        const char *end = bel_decimal_parse(text, text + sizeof text, &expected);
        if (stop < text + sizeof text && (*stop == 'e' || *stop == 'E')) continue;
        if (stop != end || memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("\"%.9s\": got %a and %td bytes, expected %a and %td", text, got, stop - text,
                     expected, end - text);
    }
    static const char *const plain[] = {"-1.2345,,", "0.12345,,", "1234567,,", "7,1,2,3,4",
                                        "-0,,,,,,,", ".5,,,,,,,", "5.,,,,,,,"};
    for (size_t i = 0; given > 0 && i < sizeof plain / sizeof *plain; i++) {
        double got;
        const char *stop = bel_decimal_parse_short(plain[i], &got);
        assert_non_null(stop);
        assert_int_equal(*stop, ',');
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    assert_true(given > 10000);
#endif
}

// bel_decimal_read_short on texts of all lengths, with random bytes after them.
static void test_short_texts(void **state)
{
    (void)state;
    static const char alphabet[] =
        "01234567890123456789012345678901234567890123456789....--, +e\xff";
    bel_rng_key key = bel_rng_key_make(8, "texts", 0);
    int given = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, i, words);
        char text[BEL_DECIMAL_ROOM];
        for (int c = 0; c < BEL_DECIMAL_ROOM; c++)
            text[c] = alphabet[(words[c / 3] >> (10 * (c % 3)) & 1023) % (sizeof alphabet - 1)];
        const size_t length = words[3] % (BEL_DECIMAL_ROOM + 1);
        double got = 1, expected = 2;
        if (!bel_decimal_read_short(text, length, sizeof text, &got)) continue;
        given++;
        bool whole = bel_decimal_parse(text, text + length, &expected) == text + length;
        if (!whole || memcmp(&got, &expected, sizeof got) != 0)
            fail_msg("\"%.*s\": got %a, expected %a", (int)length, text, got, expected);
    }
    double value;
    assert_false(bel_decimal_read_short("123456789", 9, 9, &value));
    assert_false(bel_decimal_read_short("1", 1, 1, &value)); // no room
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    assert_true(given > 100000);
    assert_true(bel_decimal_read_short("-12345.67", 9, 9, &value) && value == -12345.67);
    assert_true(bel_decimal_read_short("-0,,,,,,,", 2, 9, &value) && signbit(value));
#endif
}

// Numbers of 15 to 20 digits, among them those halfway between two doubles, or next to it.
static void test_long_numbers(void **state)
{
    (void)state;
    bel_rng_key key = bel_rng_key_make(9, "long", 0);
    for (uint64_t i = 0; i < 200000; i++) {
        uint32_t words[4];
        char text[80];
        bel_rng_block(key, 0, i, words);
        uint64_t digits = (uint64_t)words[0] << 32 | words[1];
        if (i % 3 == 0) { // halfway
            digits = (digits >> 10 | (uint64_t)1 << 53) * 2 + 1;
            digits += words[3] % 3 - 1;
        }
        int exponent = i % 3 == 0 ? 0 : (int)(words[2] % 60) - 30;
        if (i % 2 == 0) {
            snprintf(text, sizeof text, "%s0.000%llue%d", words[3] % 2 == 0 ? "" : "-",
                     (unsigned long long)digits, exponent);
        } else {
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
        }
        assert_like_strtod(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_numbers),
        cmocka_unit_test(test_short_texts),
        cmocka_unit_test(test_long_numbers),
        cmocka_unit_test(test_chosen_numbers),
        cmocka_unit_test(test_large_exponent),
        cmocka_unit_test(test_many_numbers),
        cmocka_unit_test(test_stops_behind_the_number),
        cmocka_unit_test(test_reads_no_further_than_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
