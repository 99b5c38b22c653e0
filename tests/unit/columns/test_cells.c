// Cells as dates and numbers, in every notation.
#include <math.h>

#include "columns/cell_number.h"
#include "columns/date.h"
#include "support/bel_test.h"

// --- Dates ---------------------------------------------------------------------------------------

static void assert_date(const char *text, bool day_first, int64_t seconds)
{
    bel_date date;
    assert_true(bel_date_parse(text, strlen(text), day_first, &date));
    assert_int_equal(date.seconds, seconds);
}

static void reads_dates(void **state)
{
    (void)state;
    const int64_t day = 86400;
    assert_date("1970-01-01", false, 0);
    assert_date("2000-03-01", false, 11017 * day);
    assert_date("2000/3/1", false, 11017 * day);
    assert_date("3/1/2000", false, 11017 * day);
    assert_date("1/3/2000", true, 11017 * day);
    assert_date("1.3.2000", false, 11017 * day);
    assert_date("1-Mar-00", false, 11017 * day);
    assert_date("Mar 1 2000", false, 11017 * day);
    assert_date("March 1, 2000", false, 11017 * day);
    assert_date("2000-03-01T12:30:59.5+01:00", false, 11017 * day + 45059 - 3600);
    assert_date("2000-03-01 12:00 -0530", false, 11017 * day + 43200 + 19800);
    assert_date("2000-03-01T00:00:00Z", false, 11017 * day);
    assert_date("2000-03-01T00:00+02", false, 11017 * day - 7200);
    assert_date("1969-12-31 23:59", false, -60);
    assert_date("2000-03-01 01:30 PM", false, 11017 * day + 48600);
    assert_date("3/1/2000 12:00:00 AM", false, 11017 * day);
    assert_date("2000-03-01 12 pm", false, 11017 * day + 43200);
    assert_date("2000-03-01 12:00:00 UTC", false, 11017 * day + 43200);
    assert_date("2000-03-01 00:00:01,250", false, 11017 * day + 1);
    assert_date("20000301T010203Z", false, 11017 * day + 3723);
    assert_date("20000301 0102", false, 11017 * day + 3720);
    assert_date("2000-03", false, 11017 * day);
    assert_date("2000Q2", false, 11048 * day);
    assert_date("2000-Q2", false, 11048 * day);
    assert_date("Q2 2000", false, 11048 * day);
    assert_date("[01/Mar/2000:01:00:00 +0100]", false, 11017 * day);
    assert_date("01/Mar/2000:01:00:00", false, 11017 * day + 3600);
    assert_date("Mar 1, 2000, 1:00 PM", false, 11017 * day + 46800);
    static const char *const none[] = {"2001-02-29",
                                       "2000-13",
                                       "1234-12",
                                       "2000Q5",
                                       "20000301",
                                       "2000-03-01 13:00 PM",
                                       "2000-03-01 5",
                                       "2000-03-01 12:00 UTCX",
                                       "Q2 20",
                                       "13/13/2000",
                                       "2000-00-01",
                                       "12345678",
                                       "2000-03-01x",
                                       "Marc 1 2000",
                                       "1-2",
                                       "2000-03-01 24:00",
                                       "10.1.11",
                                       "10.11.12",
                                       "0000-00-00",
                                       "2000-03-01 12:00+1",
                                       "2000-03-01 12:00+01:0",
                                       "2000-03-01 12:00+99:00"};
    bel_date date;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(bel_date_parse(none[i], strlen(none[i]), false, &date));
    assert_true(bel_date_parse("2016-12-31T23:59:60", 19, false, &date)); // a leap second
    assert_int_equal(date.hour, 23);
    assert_true(bel_date_parse("2024-07-01", 10, false, &date));
    assert_int_equal(date.weekday, 0); // a Monday
    assert_int_equal(date.month, 6);
    assert_true(bel_date_parse("2024-07-01T23:00-05:00", 22, false, &date));
    assert_true(date.weekday == 0 && date.hour == 23); // in its UTC offset
}

// --- Numbers -------------------------------------------------------------------------------------

static void numbers_may_have_decimal_commas(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"5,1", 5.1},     {"-0,125", -0.125},     {"17", 17},
                {",5", 0.5},      {"1.234,5", 1234.5},    {"1.500", 1500},
                {"3,2e4", 3.2e4}, {"1.234.567", 1234567}, {"1.234.567,25", 1234567.25},
                {"+2,5", 2.5},    {"1234,5", 1234.5}};
    static const char *const bad[] = {"1.5",     "1,2,3", "1.2345", "",    ",",         "1.234.5",
                                      "0.125,5", "a",     "12,5x",  "1,.", "1234.567,5"};
    double value;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(bel_cell_number_read(',', good[i].text, strlen(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bel_cell_number_read(',', bad[i], strlen(bad[i]), &value));
    assert_true(bel_cell_number_read('.', "1.5", 3, &value) && value == 1.5);
    assert_false(bel_cell_number_read('.', "1,5", 3, &value));
    assert_true(bel_cell_number_has_comma("1,5", 3) && bel_cell_number_has_comma("0,125", 5));
    assert_false(bel_cell_number_has_comma("1,125", 5) || bel_cell_number_has_comma("17", 2));
}

static void dressed_numbers_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bel_cell_dress dress;
    } cases[] = {{"$1,125.73", BEL_DRESS_CURRENCY},
                 {"-$5", BEL_DRESS_CURRENCY},
                 {"3 EUR", BEL_DRESS_CURRENCY},
                 {"\xE2\x82\xAC 1.234,50", BEL_DRESS_CURRENCY},
                 {"3.6%", BEL_DRESS_PERCENT},
                 {"3,6 %", BEL_DRESS_PERCENT},
                 {"113,200", BEL_DRESS_THOUSAND},
                 {"-1,234,567.5", BEL_DRESS_THOUSAND},
                 {"5,1", BEL_DRESS_COMMA},
                 {"$", BEL_DRESS_NONE},
                 {"%", BEL_DRESS_NONE},
                 {"a,b", BEL_DRESS_NONE},
                 {"$x", BEL_DRESS_NONE},
                 {"1,2,3", BEL_DRESS_NONE},
                 {"113,2005,1", BEL_DRESS_NONE},
                 {"EUR", BEL_DRESS_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(bel_cell_number_dress(cases[i].text, strlen(cases[i].text)),
                         cases[i].dress);
}

static void numbers_have_one_key(void **state)
{
    (void)state;
    static const struct {
        char decimal;
        const char *text, *key;
    } cases[] = {{'.', "9", "9e0"},
                 {'.', "+9.00", "9e0"},
                 {'.', "0.9e+1", "9e0"},
                 {'.', "-9.99e2", "-999e0"},
                 {'.', "900", "9e2"},
                 {'.', "0.050", "5e-2"},
                 {'.', "-0.0", "0e0"},
                 {'.', "1234567890123456789", "1234567890123456789e0"},
                 {',', "1.234,50", "12345e-1"},
                 {',', "9,0", "9e0"},
                 {'.', "007", ""},
                 {'.', "x", ""},
                 {'.', "", ""},
                 {'.', "1e9999", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[BEL_CELL_NUMBER_ROOM] = "";
        size_t length =
            bel_cell_number_key(cases[i].decimal, cases[i].text, strlen(cases[i].text), key);
        assert_string_equal(length > 0 ? key : "", cases[i].key);
    }
    assert_true(bel_cell_number_is_long("9007199254740993", 16));
    assert_true(bel_cell_number_is_long("-12345678901234567890123", 24));
    assert_false(bel_cell_number_is_long("9007199254740992", 16));
    assert_false(bel_cell_number_is_long("100000000000000000000", 21));
    assert_false(bel_cell_number_is_long("0.12345678901234567", 19));
}

static void numbers_may_be_dressed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *unit;
        bool commas, clear;
        double value;
    } good[] = {{"43.2 kg", "kg", false, false, 43.2},
                {"-$1,125.50", "$", true, true, -1125.5},
                {"EUR 12", "EUR", false, false, 12},
                {"\xE2\x82\xAC-3", "\xE2\x82\xAC", false, false, -3},
                {"3.5%", "%", false, false, 3.5},
                {"52,300.00", NULL, true, true, 52300},
                {"113,200", NULL, true, false, 113200},
                {"1,234,567 m/s", "m/s", true, true, 1234567},
                {"1\xE2\x80\x99"
                 "250.5 km",
                 "km", false, false, 1250.5}};
    static const char *const bad[] = {
        "kg", "$", "", "12", "1,5 kg", "A12", "1.2.3 kg", "5, kg", "12 and some more words"};
    bel_cell_dressed number;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(bel_cell_number_undress('.', good[i].text, strlen(good[i].text), &number));
        assert_true(number.value == good[i].value);
        assert_true(number.commas == good[i].commas && number.clear == good[i].clear);
        assert_true((number.unit == NULL) == (good[i].unit == NULL));
        if (number.unit == NULL) continue;
        assert_int_equal(number.unit_length, strlen(good[i].unit));
        assert_memory_equal(number.unit, good[i].unit, number.unit_length);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bel_cell_number_undress('.', bad[i], strlen(bad[i]), &number));
    double value;
    assert_true(bel_cell_number_read('.', "1'234'567", 9, &value) && value == 1234567);
    assert_true(bel_cell_number_read(',',
                                     "1\xC2\xA0"
                                     "250,5",
                                     8, &value) &&
                value == 1250.5);
    assert_false(bel_cell_number_read('.', "12'34", 5, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_dates),
        cmocka_unit_test(numbers_may_have_decimal_commas),
        cmocka_unit_test(dressed_numbers_are_known),
        cmocka_unit_test(numbers_have_one_key),
        cmocka_unit_test(numbers_may_be_dressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
