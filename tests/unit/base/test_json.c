// JSON texts that are accepted, with their values, and those that are refused, with the place.
#include "base/json_value.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "support/bel_test.h"

// Parses a list of one element, writes it again and compares.
static void assert_written(const char *text, const char *expected)
{
    bel_json *json;
    bel_str list = {0}, written = {0};
    bel_str_printf(&list, " [%s\t]\r\n", text);
    BEL_ASSERT_OK(bel_json_parse(list.text, list.length, "text", &json));
    bel_json_write_value(&written, bel_json_at(bel_json_root(json), 0));
    assert_string_equal(written.text, expected);
    bel_json_destroy(json);
    bel_str_deinit(&list);
    bel_str_deinit(&written);
}

static void test_values(void **state)
{
    (void)state;
    static const char *const same[] = {"0",
                                       "-9223372036854775808",
                                       "9223372036854775807",
                                       "0.1",
                                       "-1.5e-07",
                                       "1.0",
                                       "[]",
                                       "{}",
                                       "[[],[{}]]",
                                       "true",
                                       "false",
                                       "null",
                                       "\"\"",
                                       "\"ä\"",
                                       "{\"b\":[1,2],\"a\":{\"c\":null}}",
                                       "\"\\\\\\\"\\n\"",
                                       "3.4028234663852886e+38"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_written(same[i], same[i]);
    assert_written("-0", "0");
    assert_written("-0.0", "-0.0");
    assert_written("1e2", "100.0");
    assert_written("{ \"a\" : 1 , \"b\" : [ 2 ] }", "{\"a\":1,\"b\":[2]}");
    assert_written("\"\\u00e4\\u20ac\\ud83d\\ude00\\/\\b\"", "\"ä€😀/\\u0008\"");
}

static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "text:1:0: not valid JSON: expected a value, got the end"},
        {"[1,", "text:1:3: not valid JSON: expected a value, got the end"},
        {"[1\n 2]", "text:2:2: not valid JSON: expected ',' or ']', got '2'"},
        {"{\"ä\" 1}", "text:1:6: not valid JSON: expected ':', got '1'"},
        {"{\"a\":1,}", "text:1:8: not valid JSON: expected a name in quotation marks, got '}'"},
        {"{\"a\":1]", "expected ',' or '}', got ']'"},
        {"[1]]", "text:1:4: not valid JSON: expected the end, got ']'"},
        {"[1,]", "expected a value, got ']'"},
        {"\"a\"", "text:1:3: not valid JSON: expected an object or a list, got '\"'"},
        {"7", "expected an object or a list"},
        {"[01]", "expected no zero before a number, got '1'"},
        {"[-]", "expected a digit, got ']'"},
        {"[+1]", "expected a value, got '+'"},
        {"[.5]", "expected a value, got '.'"},
        {"[5.]", "expected a digit, got ']'"},
        {"[1e]", "expected ',' or ']', got 'e'"},
        {"[1e999]", "expected a number that a double can hold"},
        {"[9223372036854775808]", "expected an integer of 64 bits, got ']'"},
        {"[-9223372036854775809]", "expected an integer of 64 bits"},
        {"[18446744073709551617]", "expected an integer of 64 bits"},
        {"[nul]", "expected true, false or null, got ']'"},
        {"[NaN]", "expected a value, got 'N'"},
        {"[\"a", "expected a quotation mark, got the end"},
        {"[\"a\nb\"]", "text:1:4: not valid JSON: expected an escape for a control character, got "
                       "byte 0x0a"},
        {"[\"\xC3\"]", "expected UTF-8, got byte 0xc3"},
        {"[\"\xED\xA0\x80\"]", "expected UTF-8"},
        {"[\"\\x\"]", "expected an escape, got 'x'"},
        {"[\"\\u12g4\"]", "expected four hexadecimal digits, got 'g'"},
        {"[\"\\u0000\"]", "expected no zero character"},
        {"[\"\\ud83d\"]", "expected the second half of a character"},
        {"[\"\\ude00\"]", "expected the second half of a character"},
        {"[\"\\ud83d\\u0041\"]", "expected the second half of a character"},
        {"{\"a\":1,\"b\":2,\"a\":3}",
         "text:1:19: not valid JSON: expected each name once, got the duplicate \"a\""},
        {"{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"d\":0}",
         "got the duplicate \"d\""},
        {"{\"a\\nb\":1,\"a\\nb\":2}", "got the duplicate \"a\\nb\""},
        {"{\"0123456789012345678901234567890123456789\":1,"
         "\"0123456789012345678901234567890123456789\":2}",
         "got the duplicate \"0123456789012345678901234567890123456789\""},
        {"{\"012345678901234567890123456789012345678\xc3\xa9\":1,"
         "\"012345678901234567890123456789012345678\xc3\xa9\":2}",
         "got the duplicate \"012345678901234567890123456789012345678\""},
        {"[/**/1]", "expected a value, got '/'"},
    };
    bel_json *json;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        BEL_ASSERT_FAILS(bel_json_parse(cases[i].text, strlen(cases[i].text), "text", &json),
                         BEL_DATA_LOSS, cases[i].message);
    }
    bel_status *status = bel_json_parse_secret("[key]", 5, "text", &json);
    assert_string_equal(bel_status_message(status), "text:1:2: not valid JSON");
    bel_status_ignore(status); // compared
    BEL_ASSERT_FAILS(bel_json_parse("[1]\0", 4, "text", &json), BEL_DATA_LOSS, "got byte 0x00");
}

// Lists in lists, up to the bound and beyond.
static void test_depth(void **state)
{
    (void)state;
    enum { MOST = 2048 };
    char text[2 * MOST + 3];
    bel_json *json;
    memset(text, '[', MOST + 1);
    memset(text + MOST + 1, ']', MOST + 1);
    BEL_ASSERT_OK(bel_json_parse(text + 1, 2 * MOST, "text", &json));
    bel_json_destroy(json);
    BEL_ASSERT_FAILS(bel_json_parse(text, 2 * MOST + 2, "text", &json), BEL_DATA_LOSS,
                     "expected fewer lists and objects in each other");
}

// Members of small and large objects by name, and in the order of the text.
static bel_status *join_names(void *context, const char *name, const bel_json_value *value)
{
    int64_t number;
    bel_str *names = context;
    assert_true(bel_json_value_i64(value, &number));
    bel_str_printf(names, "%s=%d ", name, (int)number);
    return NULL;
}

static void test_members(void **state)
{
    (void)state;
    for (int count = 0; count <= 40; count += 4) {
        bel_str text = {0}, names = {0}, expected = {0};
        bel_json *json;
        for (int i = 0; i < count; i++) {
            bel_str_printf(&text, "%s\"m%d\":%d", i > 0 ? "," : "{", i * 7 % 41, i);
            bel_str_printf(&expected, "m%d=%d ", i * 7 % 41, i);
        }
        bel_str_puts(&text, count > 0 ? "}" : "{}");
        BEL_ASSERT_OK(bel_json_parse(text.text, text.length, "text", &json));
        const bel_json_value *root = bel_json_root(json);
        for (int i = 0; i < 41; i++) {
            int64_t number = -1;
            char *name = bel_strf("m%d", i * 7 % 41);
            assert_int_equal(bel_json_i64(root, name, &number), i < count);
            assert_int_equal(number, i < count ? i : -1);
            bel_free(name);
        }
        BEL_ASSERT_OK(bel_json_each(root, join_names, &names));
        if (count > 0) assert_string_equal(names.text, expected.text);
        bel_json_destroy(json);
        bel_str_deinit(&text);
        bel_str_deinit(&names);
        bel_str_deinit(&expected);
    }
}

// Values of the texts that need most need no more than 18 times the bytes.
static void test_memory(void **state)
{
    (void)state;
    static const char *const items[] = {"0,",   "\"\",",   "[],",      "{},",
                                        "[0],", "[\"\"],", "{\"\":0},"};
    enum { COUNT = 1 << 18, SPARE = 16 << 20 };
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        bel_arena *arena = bel_arena_create();
        const bel_json_value *root;
        bel_str text = {0};
        bel_str_puts(&text, "[");
        for (int at = 0; at < COUNT; at++)
            bel_str_puts(&text, items[i]);
        bel_str_puts(&text, "0]");
        BEL_ASSERT_OK(bel_json_parse_in(arena, text.text, text.length, "text", &root));
        assert_int_equal(bel_json_length(root), COUNT + 1);
        size_t stack = 2 * (size_t)COUNT * sizeof(bel_json_value);
        assert_true(bel_arena_bytes(arena) + stack <= 18 * text.length + SPARE);
        bel_arena_destroy(arena);
        bel_str_deinit(&text);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const char text[] = "{\"n\":[1,-2.5,16777217,0.1,\"x\",3],\"all\":[1e-3]}";
    float out[8];
    bel_json *json;
    BEL_ASSERT_OK(bel_json_parse(text, sizeof text - 1, "text", &json));
    const bel_json_value *root = bel_json_root(json);
    assert_int_equal(bel_json_take_f32(bel_json_member(root, "n"), out), 4);
    assert_true(out[0] == 1 && out[1] == -2.5F && out[2] == 16777216 && out[3] == 0.1F);
    assert_int_equal(bel_json_take_f32(bel_json_member(root, "all"), out), 1);
    assert_int_equal(bel_json_take_f32(root, out), 0);
    bel_json_destroy(json);
    // Rounded twice: the nearest floats are 1 + 2^-23 and 2^53 + 2^30.
    static const char twice[] = "[1.0000000596046447753906251,9007199791611905,1e39]";
    BEL_ASSERT_OK(bel_json_parse(twice, sizeof twice - 1, "text", &json));
    assert_int_equal(bel_json_take_f32(bel_json_root(json), out), 3);
    assert_true(out[0] == 1 && out[1] == 0x1p53F && isinf(out[2]));
    assert_int_equal(bel_json_take_f32(NULL, out), 0);
    bel_json_destroy(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_members),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
