// Texts of floats equal printf's, for every kind of number and a million others.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "support/bel_test.h"

static void check(float value)
{
    char expected[64], got[BEL_F32_TEXT];
    bel_snprintf(expected, sizeof expected, "%.9g", (double)value);
    size_t length = bel_format_f32(value, got);
    if (strcmp(got, expected) != 0 || length != strlen(expected)) {
        fail_msg("got \"%s\", expected \"%s\"", got, expected);
    }
}

static void test_edges(void **state)
{
    (void)state;
    static const float numbers[] = {0,
                                    -0.0F,
                                    1,
                                    -1,
                                    10,
                                    100000000,
                                    999999936,
                                    1e9F,
                                    1e-4F,
                                    1e-5F,
                                    9.99999975e-5F,
                                    0.1F,
                                    0.5F,
                                    123456.789F,
                                    16777216,
                                    3.4028234664e38F,
                                    1.17549435e-38F,
                                    1e-45F,
                                    1e-20F,
                                    1e20F,
                                    1e27F,
                                    1e-18F,
                                    1e-19F,
                                    INFINITY,
                                    -INFINITY,
                                    NAN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        check(numbers[i]);
    for (int e = -45; e <= 38; e++) { // powers of ten and their neighbors
        float power = strtof((char[]){'1', 'e', (char)(e < 0 ? '-' : '+'),
                                      (char)('0' + abs(e) / 10), (char)('0' + abs(e) % 10), 0},
                             NULL);
        check(power);
        check(nextafterf(power, 0));
        check(nextafterf(power, INFINITY));
    }
}

static void test_many(void **state)
{
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 1000000; i++) {
        float value;
        bits = bits * 1664525U + 1013904223U;
        memcpy(&value, &bits, sizeof value);
        check(value);
        check((float)(bits >> 8) / 16777216); // like probabilities
    }
}

static void test_shortest(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *text;
    } numbers[] = {
        {0.9F, "0.9"},          {0, "0"},         {-2.5F, "-2.5"},   {0.233983293F, "0.2339833"},
        {16777216, "16777216"}, {1e20F, "1e+20"}, {1e-45F, "1e-45"}, {1.0F / 3, "0.33333334"},
        {200, "200"},           {-120, "-120"},   {1e9F, "1e+09"},   {-0.0F, "-0"}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char got[BEL_F32_TEXT], *end;
        assert_int_equal(bel_shortest_f32(numbers[i].value, got), strlen(numbers[i].text));
        assert_string_equal(got, numbers[i].text);
        assert_true((float)bel_strtod(got, &end) == numbers[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_shortest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
