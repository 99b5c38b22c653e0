// Strings: growth, numbers at the limits of their range, nearest names, readable sizes.
#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "support/bel_test.h"

static void test_growing(void **state)
{
    (void)state;
    bel_str str = {0};
    for (int i = 0; i < 1000; i++)
        bel_str_printf(&str, "%d,", i % 10);
    assert_int_equal(str.length, 2000);
    assert_int_equal(strlen(str.text), 2000);
    bel_str_append(&str, "a\0b", 3);
    assert_int_equal(str.length, 2003);
    bel_str_deinit(&str);
    assert_null(str.text);
    char *text = bel_strf("%s-%03d", "x", 7);
    assert_string_equal(text, "x-007");
    bel_free(text);
}

static void test_parse_i64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"+12", true, 12},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"92233720368547758070", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+", false, 0},
        {"1 ", false, 0},
        {" 1", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"--1", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t value = 77;
        assert_int_equal(bel_parse_i64(rows[i].text, strlen(rows[i].text), &value), rows[i].good);
        assert_true(value == (rows[i].good ? rows[i].value : 77));
    }
    int64_t value;
    assert_true(bel_parse_i64("123456", 3, &value)); // the length ends the text, not a zero byte
    assert_int_equal(value, 123);
}

static void test_parse_f64(void **state)
{
    (void)state;
    double value = 77;
    assert_true(bel_parse_f64("-1.5e3", 6, &value) && value == -1500);
    assert_true(bel_parse_f64("inf", 3, &value) && value > 1e308);
    value = 77;
    static const char *const bad[] = {"", "1.5x", "1,5", "0x1p3", "e", " 1", "1 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bel_parse_f64(bad[i], strlen(bad[i]), &value));
    assert_true(value == 77);
}

static void test_nearest_name(void **state)
{
    (void)state;
    static const char *const names[] = {"batch_size", "learning_rate", "optimizer", "seed"};
    assert_int_equal(bel_nearest_name("batchsize", names, 4), 0);
    assert_int_equal(bel_nearest_name("Y", (const char *const[]){"x", "y"}, 2), 1); // case differs
    assert_int_equal(bel_nearest_name("lerning_rate", names, 4), 1);
    assert_int_equal(bel_nearest_name("optimiser", names, 4), 2);
    assert_int_equal(bel_nearest_name("seed", names, 4), 3);
    assert_int_equal(bel_nearest_name("xyzzy", names, 4), -1);
    assert_int_equal(bel_nearest_name("seed", names, 0), -1);
    char endless[200];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(bel_nearest_name(endless, names, 4), -1);
}

static void test_list_find(void **state)
{
    (void)state;
    assert_int_equal(bel_list_find("sgd|adam|ftrl", "|", "sgd"), 0);
    assert_int_equal(bel_list_find("sgd|adam|ftrl", "|", "ftrl"), 2);
    assert_int_equal(bel_list_find("cpu,cpuacct", ",", "cpuacct"), 1);
    assert_int_equal(bel_list_find("cpuset", ",", "cpu"), -1); // only complete words match
    assert_int_equal(bel_list_find("cpu", ",", "cpuset"), -1);
    assert_int_equal(bel_list_find("a||b", "|", ""), 1);
}

static void test_for_people(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(bel_bytes_text(0, text), "0 B");
    assert_string_equal(bel_bytes_text(1023, text), "1023 B");
    assert_string_equal(bel_bytes_text(1536, text), "1.5 KiB");
    assert_string_equal(bel_bytes_text(UINT64_MAX, text), "16777216.0 TiB");
    assert_string_equal(bel_seconds_text(-1, text), "0.0 s");
    assert_string_equal(bel_seconds_text(2.25, text), "2.2 s");
    assert_string_equal(bel_seconds_text(61, text), "1 min 01 s");
    assert_string_equal(bel_seconds_text(3720, text), "1 h 02 min");
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int bytes;
    } cases[] = {{"a", 1},
                 {"\xc3\xa9", 2},
                 {"\xe2\x82\xac", 3},
                 {"\xf0\x9f\x94\x94", 4},
                 {"", 1},
                 {"\x80", 0},
                 {"\xc3", 0},
                 {"\xc0\xaf", 0},
                 {"\xe0\x80\xaf", 0},
                 {"\xed\xa0\x80", 0},
                 {"\xf4\x90\x80\x80", 0},
                 {"\xe2\x82", 0},
                 {"\xff", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(bel_utf8_bytes(cases[i].text), cases[i].bytes);
}

// A JSON line is valid whatever bytes the message contains.
static void test_json_strings(void **state)
{
    (void)state;
    bel_str out = {0};
    bel_json *json;
    const char *got;
    bel_str_puts(&out, "{\"m\":");
    bel_json_write_string(&out, "caf\xc3\xa9 \"\x01\n\xe9 cut \xe2\x82");
    bel_str_puts(&out, "}");
    BEL_ASSERT_OK(bel_json_parse(out.text, out.length, "text", &json));
    assert_true(bel_json_string(bel_json_root(json), "m", &got));
    assert_string_equal(got, "caf\xc3\xa9 \"\x01\n\xef\xbf\xbd cut \xef\xbf\xbd\xef\xbf\xbd");
    bel_json_destroy(json);
    out.length = 0;
    bel_json_write_exact(&out, "\xe9");
    assert_string_equal(out.text, "\"\xe9\"");
    bel_str_deinit(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing),      cmocka_unit_test(test_parse_i64),
        cmocka_unit_test(test_parse_f64),    cmocka_unit_test(test_nearest_name),
        cmocka_unit_test(test_for_people),   cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_json_strings), cmocka_unit_test(test_list_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
