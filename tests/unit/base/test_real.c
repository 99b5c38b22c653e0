// Functions of real numbers. The tests compare stored numbers (real_oracle.txt, computed to 400
// binary digits by real_oracle.py), special values, and the C library's results at many points. A
// hash of a sweep checks that every processor gives the same bits.
#include "base/real.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "support/bel_test.h"

typedef double unary(double x);

static const struct {
    const char *name;
    unary *own, *library;
    double low, high; // limits of the sweep
    double units;     // largest error, in units in the last place
} functions[] = {
    {"exp", bel_real_exp, exp, -740, 705, 1},   {"expm1", bel_real_expm1, expm1, -40, 300, 1},
    {"log", bel_real_log, log, 1e-5, 40, 1},    {"log1p", bel_real_log1p, log1p, -1, 40, 1},
    {"sin", bel_real_sin, sin, -2e6, 2e6, 1},   {"cos", bel_real_cos, cos, -2e6, 2e6, 1},
    {"tan", bel_real_tan, tan, -2e6, 2e6, 1},   {"asin", bel_real_asin, asin, -1, 1, 1},
    {"acos", bel_real_acos, acos, -1, 1, 1},    {"atan", bel_real_atan, atan, -30, 30, 1},
    {"sinh", bel_real_sinh, sinh, -40, 40, 1},  {"cosh", bel_real_cosh, cosh, -40, 40, 1},
    {"tanh", bel_real_tanh, tanh, -25, 25, 1},  {"asinh", bel_real_asinh, asinh, -30, 30, 1},
    {"acosh", bel_real_acosh, acosh, 1, 30, 1}, {"atanh", bel_real_atanh, atanh, -1, 1, 1},
    {"erf", bel_real_erf, erf, -6.5, 6.5, 2},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

// Distance between the two, in units in the last place of `want`.
static double units_between(double got, double want)
{
    if (memcmp(&got, &want, sizeof got) == 0 || (isnan(got) && isnan(want))) return 0;
    if (!isfinite(got) || !isfinite(want)) return INFINITY;
    double unit = nextafter(fabs(want), INFINITY) - fabs(want);
    return fabs(got - want) / unit;
}

static void check(const char *name, double x, double y, double got, double want, double units)
{
    if (units_between(got, want) <= units) return;
    fail_msg("%s of %a (%a): got %a, expected %a", name, x, y, got, want);
}

// --- Stored numbers ------------------------------------------------------------------------------

static void test_stored(void **state)
{
    (void)state;
    FILE *file = fopen("tests/unit/base/real_oracle.txt", "r");
    assert_non_null(file);
    char line[128], name[16];
    int seen = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        double numbers[3] = {0};
        int begin = 0, count = 0;
        assert_int_equal(sscanf(line, "%15s%n", name, &begin), 1);
        for (char *at = line + begin, *end; count < 3; at = end) {
            numbers[count] = strtod(at, &end);
            if (end == at) break;
            count++;
        }
        seen++;
        double x = numbers[0], y = numbers[1];
        if (strcmp(name, "pow") == 0) {
            assert_int_equal(count, 3);
            check(name, x, y, bel_real_pow(x, y), numbers[2], 1);
            continue;
        }
        assert_int_equal(count, 2);
        int f = 0;
        while (f < FUNCTIONS && strcmp(functions[f].name, name) != 0)
            f++;
        assert_true(f < FUNCTIONS);
        check(name, x, 0, functions[f].own(x), y, functions[f].units);
    }
    fclose(file);
    assert_true(seen > 3000);
}

// --- A sweep: bits, and the C library ------------------------------------------------------------

enum { POINTS = 20011 };

static double point(int f, int i)
{
    double unit = (double)(i * 7919LL % POINTS) / (POINTS - 1);
    return functions[f].low + (functions[f].high - functions[f].low) * unit;
}

// If you change the bits on purpose, raise BEL_ARITHMETIC too (CONTRIBUTING.md).
static void test_bits(void **state)
{
    (void)state;
    uint64_t hash = 0;
    for (int f = 0; f < FUNCTIONS; f++) {
        for (int i = 0; i < POINTS; i++) {
            double y = functions[f].own(point(f, i));
            hash = bel_hash64_more(hash, &y, sizeof y);
        }
    }
    for (int i = 0; i < POINTS; i++) {
        double y = bel_real_pow(point(2, i), point(8, i) * 9);
        hash = bel_hash64_more(hash, &y, sizeof y);
    }
    assert_int_equal(hash, 0x686b3d306356543d);
}

static void test_library(void **state)
{
    (void)state;
    for (int f = 0; f < FUNCTIONS; f++) {
        for (int i = 0; i < POINTS; i++) {
            double x = point(f, i);
            check(functions[f].name, x, 0, functions[f].own(x), functions[f].library(x), 4);
        }
    }
    for (int i = 0; i < POINTS; i++) {
        double x = point(2, i), y = point(8, i) * 9;
        check("pow", x, y, bel_real_pow(x, y), pow(x, y), 2);
    }
}

// --- Special values ------------------------------------------------------------------------------

static void test_special(void **state)
{
    (void)state;
    const double inf = INFINITY, half_pi = 0x1.921fb54442d18p+0, least = 0x1p-1074;
    static const struct {
        unary *own;
        double x, y;
    } odd[] = {{bel_real_sin, 0, 0},   {bel_real_tan, 0, 0},         {bel_real_asin, 0, 0},
               {bel_real_atan, 0, 0},  {bel_real_sinh, 0, 0},        {bel_real_tanh, 0, 0},
               {bel_real_asinh, 0, 0}, {bel_real_atanh, 0, 0},       {bel_real_erf, 0, 0},
               {bel_real_expm1, 0, 0}, {bel_real_log1p, 0, 0},       {bel_real_sinh, 800, INFINITY},
               {bel_real_erf, 7, 1},   {bel_real_tanh, INFINITY, 1}, {bel_real_atanh, 1, INFINITY}};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        check("an odd function", odd[i].x, 0, odd[i].own(odd[i].x), odd[i].y, 0);
        check("an odd function", -odd[i].x, 0, odd[i].own(-odd[i].x), -odd[i].y, 0);
        assert_true(signbit(odd[i].own(-odd[i].x))); // -0 gives -0, too
    }
    const struct {
        unary *own;
        double x, y;
    } others[] = {{bel_real_exp, 0, 1},
                  {bel_real_exp, -0.0, 1},
                  {bel_real_exp, inf, inf},
                  {bel_real_exp, -inf, 0},
                  {bel_real_exp, 710, inf},
                  {bel_real_exp, -746, 0},
                  {bel_real_exp, -745.1, least},
                  {bel_real_expm1, -inf, -1},
                  {bel_real_expm1, inf, inf},
                  {bel_real_log, 0, -inf},
                  {bel_real_log, -0.0, -inf},
                  {bel_real_log, 1, 0},
                  {bel_real_log, inf, inf},
                  {bel_real_log, -1, NAN},
                  {bel_real_log1p, -1, -inf},
                  {bel_real_log1p, -2, NAN},
                  {bel_real_log1p, inf, inf},
                  {bel_real_cos, 0, 1},
                  {bel_real_sin, inf, NAN},
                  {bel_real_cos, -inf, NAN},
                  {bel_real_tan, inf, NAN},
                  {bel_real_asin, 1, half_pi},
                  {bel_real_asin, 1.5, NAN},
                  {bel_real_acos, 1, 0},
                  {bel_real_acos, -1, 2 * half_pi},
                  {bel_real_acos, 0, half_pi},
                  {bel_real_acos, -2, NAN},
                  {bel_real_atan, inf, half_pi},
                  {bel_real_atan, -1e300, -half_pi},
                  {bel_real_cosh, 0, 1},
                  {bel_real_cosh, -inf, inf},
                  {bel_real_acosh, 1, 0},
                  {bel_real_acosh, inf, inf},
                  {bel_real_acosh, 0.5, NAN},
                  {bel_real_asinh, -inf, -inf},
                  {bel_real_atanh, 2, NAN},
                  {bel_real_erf, -inf, -1}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        check("a function", others[i].x, 0, others[i].own(others[i].x), others[i].y, 0);
    for (int f = 0; f < FUNCTIONS; f++)
        check(functions[f].name, NAN, 0, functions[f].own(NAN), NAN, 0);
}

// C17, F.10.4.4.
static void test_pow_special(void **state)
{
    (void)state;
    const double inf = INFINITY;
    const struct {
        double x, y, power;
    } cases[] = {
        {0, -3, inf},        {-0.0, -3, -inf},  {0, -2.5, inf},     {-0.0, -2, inf},
        {-0.0, -2.5, inf},   {0, -inf, inf},    {-0.0, 3, -0.0},    {0, 3, 0},
        {-0.0, 2, 0},        {0, 0.5, 0},       {-0.0, 0.5, 0},     {-1, inf, 1},
        {-1, -inf, 1},       {1, NAN, 1},       {1, inf, 1},        {NAN, 0, 1},
        {0, 0, 1},           {inf, -0.0, 1},    {-8, 1.0 / 3, NAN}, {0.5, -inf, inf},
        {-0.5, -inf, inf},   {2, -inf, 0},      {0.5, inf, 0},      {-2, inf, inf},
        {-inf, -3, -0.0},    {-inf, -2, 0},     {-inf, -2.5, 0},    {-inf, 3, -inf},
        {-inf, 2, inf},      {-inf, 2.5, inf},  {inf, -1, 0},       {inf, 0.1, inf},
        {NAN, 1, NAN},       {2, NAN, NAN},     {-2, 3, -8},        {-2, -2, 0.25},
        {2, 1023, 0x1p1023}, {2, 1024, inf},    {-2, 1025, -inf},   {2, -1074, 0x1p-1074},
        {2, -1076, 0},       {-2, -1077, -0.0}, {4, 0.5, 2},        {0x1p-1074, 0.5, 0x1p-537},
        {1.5, 1e300, inf},   {1.5, -1e300, 0},  {-1, 1e300, 1},     {-3, 0x1p53, inf},
        {-1, 0x1p52 + 1, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double got = bel_real_pow(cases[i].x, cases[i].y);
        check("pow", cases[i].x, cases[i].y, got, cases[i].power, 0);
    }
}

static void test_parts(void **state)
{
    (void)state;
    for (double x = -3e5; x < 3e5; x += 997.25) {
        bel_real_power p = bel_real_exp_parts(x);
        assert_true(p.m > 0.9 && p.m < 2);
        assert_true(fabs(log(p.m) + (double)p.exponent * 0.693147180559945309 - x) < 1e-9);
        if (fabs(x) < 700) check("exp", x, 0, ldexp(p.m, (int)p.exponent), exp(x), 2);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),      cmocka_unit_test(test_bits),
        cmocka_unit_test(test_library),     cmocka_unit_test(test_special),
        cmocka_unit_test(test_pow_special), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
