// Functions of real.h. Each is reduced to one of four kernels (a power of e, a logarithm, sine and
// cosine of a small angle, the angle of a ratio) that compute in **pairs**: hi + lo, two doubles
// with about 100 binary digits. A kernel looks up the value at the nearest point of a table and
// corrects it by a short Taylor series of the remainder. Its error is that of the last rounding and
// a few hundredths. Nothing may be fused here: sums and products of pairs are exact only if every
// operation is rounded separately (-ffp-contract=off). GPU kernels are compiled from this text as
// well (cuda/kernels/kernel.h), so it must also be C++.
#include "base/real.h"

#include <math.h>
#include <stdbool.h>

#include "base/real_tables.h"

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The nearest integer, for |x| < 2^51: adding 1.5 · 2^52 rounds.
static inline double real_nearest(double x)
{
    return x + 0x1.8p52 - 0x1.8p52;
}

// x · 2^k, rounded once: x is 0 or between 2^-100 and 2^100.
static inline double real_scale(double x, int64_t k)
{
    if (k > 1200) k = 1200;
    if (k < -1200) k = -1200;
    int64_t half = k / 2;
    return x * bel_real_two_to(half) * bel_real_two_to(k - half);
}

// --- Pairs (Dekker 1971, Knuth 1969) -------------------------------------------------------------

static inline pair pair_of(double hi, double lo)
{
    pair p = {hi, lo};
    return p;
}

// a + b exactly, if |a| >= |b| or a is 0.
static inline pair quick_sum(double a, double b)
{
    double hi = a + b;
    return pair_of(hi, b - (hi - a));
}

// a + b exactly.
static inline pair real_sum(double a, double b)
{
    double hi = a + b, of_b = hi - a;
    return pair_of(hi, (a - (hi - of_b)) + (b - of_b));
}

static inline pair pair_sum(pair a, pair b)
{
    pair s = real_sum(a.hi, b.hi);
    return quick_sum(s.hi, s.lo + (a.lo + b.lo));
}

static inline pair pair_minus(pair a)
{
    return pair_of(-a.hi, -a.lo);
}

// The first 26 digits: products of two such numbers are exact.
static inline double upper(double x)
{
    return from_bits(bits_of(x) & ~(uint64_t)0x7ffffff);
}

// a · b with an error below 2^-105 of it, without overflow or underflow.
static inline pair real_product(double a, double b)
{
    double hi = a * b, a_hi = upper(a), a_lo = a - a_hi, b_hi = upper(b), b_lo = b - b_hi;
    return pair_of(hi, a_hi * b_hi - hi + a_hi * b_lo + a_lo * b_hi + a_lo * b_lo);
}

static inline pair quotient(pair a, pair b)
{
    double inverse = 1 / b.hi, q = a.hi * inverse;
    pair back = real_product(q, b.hi);
    double rest = a.hi - back.hi - back.lo + a.lo - q * b.lo;
    return quick_sum(q, rest * inverse);
}

static inline pair real_root(pair a) // a >= 0
{
    double s = sqrt(a.hi);
    if (s == 0) return pair_of(0, 0);
    pair back = real_product(s, s);
    return quick_sum(s, (a.hi - back.hi - back.lo + a.lo) / (2 * s));
}

static inline double real_value(pair a)
{
    return a.hi + a.lo;
}

// --- Powers of e ---------------------------------------------------------------------------------

typedef struct power { // m · 2^exponent, with m between 0.9 and 2
    pair m;
    int64_t exponent;
} power;

// e^(hi + lo), |hi| < 2^45: with n / 32 the nearest to (hi + lo) / ln 2, it is 2^(n / 32) e^r where
// |r| <= ln 2 / 64. lo is smaller than hi, and than 1.
static inline power power_of(double hi, double lo)
{
    double n = real_nearest(hi * 0x1.71547652b82fep+5); // 32 / ln 2
    double r = hi - n * log_step[0] - (n * log_step[1] - lo), z = r * r;
    int64_t whole = (int64_t)n, at = whole & 31;
    double grown = z * (0.5 + r * (1.0 / 6) + z * (1.0 / 24 + r * (1.0 / 120) + z * (1.0 / 720)));
    const pair *start = &power_table[at];
    power y = {{start->hi, start->lo + start->hi * (r + grown)}, (whole - at) / 32};
    return y;
}

static inline pair power_pair(double x) // e^x, |x| < 700
{
    power p = power_of(x, 0);
    double unit = bel_real_two_to(p.exponent);
    return quick_sum(p.m.hi * unit, p.m.lo * unit);
}

bel_real_power bel_real_exp_parts(double x)
{
    power p = power_of(x, 0);
    bel_real_power parts = {real_value(p.m), p.exponent};
    return parts;
}

double bel_real_exp(double x)
{
    if (!(fabs(x) < 800)) return isnan(x) ? x : x > 0 ? INFINITY : 0;
    power p = power_of(x, 0);
    return real_scale(real_value(p.m), p.exponent);
}

double bel_real_expm1(double x)
{
    if (x == 0) return x; // with its sign
    if (fabs(x) < 0.25) {
        double p = 1.0 / 479001600;
        p = p * x + 1.0 / 39916800;
        p = p * x + 1.0 / 3628800;
        p = p * x + 1.0 / 362880;
        p = p * x + 1.0 / 40320;
        p = p * x + 1.0 / 5040;
        p = p * x + 1.0 / 720;
        p = p * x + 1.0 / 120;
        p = p * x + 1.0 / 24;
        p = p * x + 1.0 / 6;
        return x + x * x * (0.5 + x * p);
    }
    if (!(fabs(x) < 50)) return x < 0 ? -1 : bel_real_exp(x);
    return real_value(pair_sum(power_pair(x), pair_of(-1, 0)));
}

// --- Logarithms ----------------------------------------------------------------------------------

// ln((hi + lo) 2^shift) for a normal hi > 0. With hi = 2^k m, m in [0.6875, 1.375), and a short
// number c near 1 / m it is k ln 2 - ln c + ln(1 + r), where r = m c - 1 is exact and |r| < 2^-7.
// Around 1, c is 1 and -ln c is 0, so nothing cancels. Returns a pair.
static inline pair log_of(double hi, double lo, int64_t shift)
{
    const uint64_t start = 0x3fe6000000000000, below_one = 0x000a000000000000;
    uint64_t bits = bits_of(hi), k_biased = (bits + below_one) >> 52;
    int64_t k = (int64_t)k_biased - 1023;
    uint64_t m_bits = bits - (k_biased << 52) + ((uint64_t)1023 << 52);
    const log_entry *entry = &log_table[(m_bits - start) >> 45];
    double m = from_bits(m_bits), m_hi = upper(m), c = entry->inverse;
    pair r = quick_sum(m_hi * c - 1, (m - m_hi) * c); // if the first is smaller, both are short
    if (lo != 0) r = quick_sum(r.hi, r.lo + lo * bel_real_two_to(-k) * c);

    // ln(1 + r) = r - r² / 2 + r³ (1/3 - r / 4 + …), the square exact in its upper half.
    double x = r.hi, z = x * x, a = upper(x), b = x - a;
    double square_hi = 0.5 * a * a, square_lo = 0.5 * b * (x + a) + x * r.lo;
    double p = 1.0 / 3 - x * (1.0 / 4) + z * (1.0 / 5 - x * (1.0 / 6)) +
               z * z * (1.0 / 7 - x * (1.0 / 8) + z * (1.0 / 9 - x * (1.0 / 10)));
    double base = (double)(k + shift) * log_two[0] + entry->hi;
    double base_lo = (double)(k + shift) * log_two[1] + entry->lo;
    pair first = quick_sum(base, x), second = quick_sum(first.hi, -square_hi);
    double rest = first.lo + second.lo + (r.lo - square_lo + base_lo) + x * z * p;
    return quick_sum(second.hi, rest);
}

// ln x, including numbers below 2^-1022.
static inline pair log_of_positive(double x)
{
    return x < 0x1p-1022 ? log_of(x * 0x1p54, 0, -54) : log_of(x, 0, 0);
}

double bel_real_log(double x)
{
    if (x > 0 && x < INFINITY) return log_of_positive(x).hi;
    return x == 0 ? -INFINITY : x < 0 ? NAN : x;
}

double bel_real_log1p(double x)
{
    if (!(x > -1 && x < INFINITY)) return x == -1 ? -INFINITY : x < -1 ? NAN : x;
    if (fabs(x) < 0x1p-54) return x;
    pair whole = real_sum(1, x);
    return log_of(whole.hi, whole.lo, 0).hi;
}

// --- Powers --------------------------------------------------------------------------------------

static bool is_whole(double y)
{
    return floor(y) == y;
}

// x^y if x is 0 or infinite, or y is infinite; x >= 0.
static double pow_at_ends(double x, double y)
{
    if (x == 1) return 1;
    return (x > 1) == (y > 0) ? INFINITY : 0;
}

double bel_real_pow(double x, double y)
{
    if (y == 0 || x == 1) return 1;
    if (isnan(x) || isnan(y)) return x + y;
    double base = fabs(x), sign = 1;
    if (signbit(x)) {
        bool whole = is_whole(y);
        if (!whole && x != 0 && base != INFINITY) return NAN;
        if (whole && fabs(y) < 0x1p53 && !is_whole(y / 2)) sign = -1;
    }
    if (base == 0 || base == INFINITY || fabs(y) == INFINITY) return sign * pow_at_ends(base, y);
    pair log_x = log_of_positive(base);
    double rough = y * log_x.hi;
    if (!(fabs(rough) < 800)) return sign * (rough > 0 ? INFINITY : 0);
    pair exponent = real_product(y, log_x.hi);
    power p = power_of(exponent.hi, exponent.lo + y * log_x.lo);
    return sign * real_scale(real_value(p.m), p.exponent);
}

// --- Sine, cosine, tangent -----------------------------------------------------------------------

typedef struct turned { // an angle less `quarters` times pi / 2
    pair angle;         // at most about pi / 4
    uint64_t quarters;  // from 0 on or, if counted down, modulo 2^64
} turned;

// Reduces any |x| >= 2^-1, by Payne and Hanek (1983). With x = m 2^e, the digits of 2 / pi that
// make full turns are skipped, and seven of the following words suffice: no double is closer to a
// multiple of pi / 2 than about 2^-62 of it. The words of the product are the quarters' last two
// digits, followed by the fraction of a quarter.
static turned turn_exactly(double x)
{
    enum { WORDS = 7 };
    uint64_t bits = bits_of(x), m = (bits & 0xfffffffffffff) | (uint64_t)1 << 52;
    int64_t e = (int64_t)(bits >> 52 & 0x7ff) - 1075, skipped = (e + 62) / 32 - 2; // e >= -53
    const uint32_t *digits = two_over_pi + 2 + skipped; // the first may be worth 2^(e - 32 skipped)
    uint64_t halves[2] = {m & 0xffffffff, m >> 32};
    uint32_t words[WORDS] = {0}; // m · digits, the highest first; overflow is full turns
    for (int half = 0; half < 2; half++) {
        uint64_t carry = 0;
        for (int i = WORDS - 1; i - half >= 0; i--) {
            uint64_t part = halves[half] * digits[i] + words[i - half] + carry;
            words[i - half] = (uint32_t)part;
            carry = part >> 32;
        }
    }
    int up = (int)(e - 32 * skipped) - 2; // 0 … 31: shift of the quarters to their place
    for (int i = 0; i < WORDS && up > 0; i++)
        words[i] = words[i] << up | (i + 1 < WORDS ? words[i + 1] >> (32 - up) : 0);
    uint64_t quarters = words[0] >> 30;
    words[0] &= 0x3fffffff;
    bool beyond = words[0] >> 29 != 0; // more than half a quarter: counted from the next one
    if (beyond) {
        uint64_t carry = 1;
        for (int i = WORDS - 1; i >= 0; i--) {
            carry += (uint32_t)~words[i];
            words[i] = (uint32_t)carry;
            carry >>= 32;
        }
        words[0] &= 0x3fffffff;
        quarters++;
    }
    pair fraction = {0, 0};
    for (int i = WORDS - 1; i >= 0; i--)
        fraction = pair_sum(pair_of((double)words[i] * bel_real_two_to(-30 - 32 * i), 0), fraction);
    pair angle = real_product(fraction.hi, half_pi.hi);
    angle.lo += fraction.hi * half_pi.lo + fraction.lo * half_pi.hi;
    angle = quick_sum(angle.hi, angle.lo);
    bool minus = signbit(x);
    turned y = {minus != beyond ? pair_minus(angle) : angle, minus ? 0 - quarters : quarters};
    return y;
}

// Cody and Waite's reduction for angles below 2^20, where products of n with parts of pi / 2 are
// exact. An angle close to a multiple of pi / 2, with a small remainder, uses turn_exactly.
static inline turned real_turn(double x)
{
    if (!(fabs(x) < 0x1p20)) return turn_exactly(x);
    double n = real_nearest(x * 0x1.45f306dc9c883p-1); // 2 / pi
    turned unturned = {{x, 0}, 0};
    if (n == 0) return unturned;
    pair a = real_sum(x - n * half_pi_parts[0], -(n * half_pi_parts[1]));
    if (fabs(a.hi) < 0x1p-30) return turn_exactly(x);
    pair angle = quick_sum(a.hi, a.lo - n * half_pi_parts[2]);
    turned y = {angle, (uint64_t)(int64_t)n};
    return y;
}

// Taylor's series, |angle| <= 0.8. The terms after the first are a tenth of it at most.
static inline pair sine(pair angle)
{
    double x = angle.hi, z = x * x;
    double p = 1.0 / 355687428096000;
    p = p * z - 1.0 / 1307674368000;
    p = p * z + 1.0 / 6227020800;
    p = p * z - 1.0 / 39916800;
    p = p * z + 1.0 / 362880;
    p = p * z - 1.0 / 5040;
    p = p * z + 1.0 / 120;
    p = p * z - 1.0 / 6;
    return quick_sum(x, x * z * p + angle.lo * (1 - 0.5 * z));
}

static inline pair cosine(pair angle)
{
    double x = angle.hi, z = x * x, a = upper(x), b = x - a;
    double p = 1.0 / 20922789888000;
    p = p * z - 1.0 / 87178291200;
    p = p * z + 1.0 / 479001600;
    p = p * z - 1.0 / 3628800;
    p = p * z + 1.0 / 40320;
    p = p * z - 1.0 / 720;
    p = p * z + 1.0 / 24;
    pair first = quick_sum(1, -0.5 * a * a); // exact: 1 - x² / 2 = 1 - a² / 2 - b (x + a) / 2
    return quick_sum(first.hi, first.lo - 0.5 * b * (x + a) + z * z * p - x * angle.lo);
}

// The sine of an angle and `quarters` quarter turns.
static inline double sine_of(turned t, uint64_t quarters)
{
    pair y = (t.quarters + quarters) % 2 == 0 ? sine(t.angle) : cosine(t.angle);
    return (t.quarters + quarters) % 4 < 2 ? y.hi : -y.hi;
}

double bel_real_sin(double x)
{
    if (!(fabs(x) < INFINITY)) return isnan(x) ? x : NAN;
    return fabs(x) < 0x1p-27 ? x : sine_of(real_turn(x), 0);
}

double bel_real_cos(double x)
{
    if (!(fabs(x) < INFINITY)) return isnan(x) ? x : NAN;
    return sine_of(real_turn(x), 1);
}

double bel_real_tan(double x)
{
    if (!(fabs(x) < INFINITY)) return isnan(x) ? x : NAN;
    if (fabs(x) < 0x1p-27) return x;
    turned t = real_turn(x);
    pair s = sine(t.angle), c = cosine(t.angle);
    return t.quarters % 2 == 0 ? quotient(s, c).hi : quotient(pair_minus(c), s).hi;
}

// --- Angles --------------------------------------------------------------------------------------

// atan(p / q) for p, q >= 0 and not both 0: reduced to the smaller over the larger, and then to
// atan(i / 16) + atan(t) with t = (p - c q) / (q + c p), c = i / 16. Below 3 / 32 c is 0, so
// nothing cancels.
static pair angle_of(pair p, pair q)
{
    bool steep = p.hi > q.hi;
    if (steep) {
        pair other = p;
        p = q;
        q = other;
    }
    double n = real_nearest((double)((float)p.hi / (float)q.hi) * 16);
    if (n < 2) n = 0;
    double c = n / 16, q_hi = upper(q.hi), q_lo = q.hi - q_hi;
    pair above = real_sum(p.hi - c * q_hi, p.lo - c * q.lo - c * q_lo); // the first part is exact
    pair below = real_sum(q.hi, c * p.hi);
    below.lo += q.lo + c * p.lo;
    pair t = quotient(above, below);
    double z = t.hi * t.hi;
    double series = 1.0 / 15;
    series = 1.0 / 13 - z * series;
    series = 1.0 / 11 - z * series;
    series = 1.0 / 9 - z * series;
    series = 1.0 / 7 - z * series;
    series = 1.0 / 5 - z * series;
    series = 1.0 / 3 - z * series;
    const pair *start = &atan_table[(int)n];
    pair y = real_sum(start->hi, t.hi);
    y = quick_sum(y.hi, y.lo + (start->lo + t.lo - t.hi * z * series));
    return steep ? pair_sum(half_pi, pair_minus(y)) : y;
}

double bel_real_atan(double x)
{
    if (!(fabs(x) >= 0x1p-27)) return x; // and NaN
    double y = fabs(x) > 0x1p60 ? half_pi.hi : angle_of(pair_of(fabs(x), 0), pair_of(1, 0)).hi;
    return copysign(y, x);
}

// 1 - x², |x| <= 1.
static pair one_less_square(double x)
{
    pair square = real_product(x, x), rest = real_sum(1, -square.hi);
    return quick_sum(rest.hi, rest.lo - square.lo);
}

double bel_real_asin(double x)
{
    if (!(fabs(x) <= 1)) return isnan(x) ? x : NAN;
    if (fabs(x) < 0x1p-27) return x;
    return copysign(angle_of(pair_of(fabs(x), 0), real_root(one_less_square(x))).hi, x);
}

double bel_real_acos(double x)
{
    if (!(fabs(x) <= 1)) return isnan(x) ? x : NAN;
    pair y = angle_of(real_root(one_less_square(x)), pair_of(fabs(x), 0));
    const pair pi = {2 * half_pi.hi, 2 * half_pi.lo};
    return x < 0 ? pair_sum(pi, pair_minus(y)).hi : y.hi;
}

// --- Hyperbolic functions ------------------------------------------------------------------------

// |x| < 0.25, by Taylor's series.
static inline pair small_sinh(double x)
{
    double z = x * x, p = 1.0 / 6227020800;
    p = p * z + 1.0 / 39916800;
    p = p * z + 1.0 / 362880;
    p = p * z + 1.0 / 5040;
    p = p * z + 1.0 / 120;
    p = p * z + 1.0 / 6;
    return quick_sum(x, x * z * p);
}

static inline pair small_cosh(double x)
{
    double z = x * x, p = 1.0 / 479001600;
    p = p * z + 1.0 / 3628800;
    p = p * z + 1.0 / 40320;
    p = p * z + 1.0 / 720;
    p = p * z + 1.0 / 24;
    p = p * z + 0.5;
    return quick_sum(1, z * p);
}

// e^x / 2 for x above 22, where e^-x is negligible.
static double half_power(double x)
{
    if (x >= 800) return INFINITY;
    power p = power_of(x, 0);
    return real_scale(real_value(p.m), p.exponent - 1);
}

double bel_real_sinh(double x)
{
    double a = fabs(x);
    if (a < 0x1p-27) return x;
    if (a < 0.25) return small_sinh(x).hi;
    if (!(a <= 22)) return isnan(x) ? x : copysign(half_power(a), x);
    return copysign(0.5 * pair_sum(power_pair(a), pair_minus(power_pair(-a))).hi, x);
}

double bel_real_cosh(double x)
{
    double a = fabs(x);
    if (!(a <= 22)) return isnan(x) ? x : half_power(a);
    return 0.5 * pair_sum(power_pair(a), power_pair(-a)).hi;
}

double bel_real_tanh(double x)
{
    double a = fabs(x);
    if (!(a >= 0x1p-27)) return x; // and NaN
    if (a < 0.25) return quotient(small_sinh(x), small_cosh(x)).hi;
    if (a > 22) return copysign(1.0, x);
    pair e = power_pair(2 * a), one = {1, 0};
    return copysign(quotient(pair_sum(e, pair_minus(one)), pair_sum(e, one)).hi, x);
}

// ln(x + sqrt(x² + c)), c = ±1.
static pair log_with_root(double x, double c)
{
    if (x > 0x1p28) return log_of(x, 0, 1); // ln 2x
    pair square = real_product(x, x), whole = real_sum(square.hi, c);
    pair y = real_root(quick_sum(whole.hi, whole.lo + square.lo));
    y = pair_sum(pair_of(x, 0), y);
    return log_of(y.hi, y.lo, 0);
}

double bel_real_asinh(double x)
{
    if (!(fabs(x) >= 0x1p-27 && fabs(x) < INFINITY)) return x;
    return copysign(log_with_root(fabs(x), 1).hi, x);
}

double bel_real_acosh(double x)
{
    if (!(x >= 1 && x < INFINITY)) return x < 1 ? NAN : x;
    return log_with_root(x, -1).hi;
}

// (ln(1 + x) - ln(1 - x)) / 2
double bel_real_atanh(double x)
{
    if (!(fabs(x) < 1)) return fabs(x) == 1 ? copysign(INFINITY, x) : isnan(x) ? x : NAN;
    if (fabs(x) < 0x1p-27) return x;
    pair more = real_sum(1, x), less = real_sum(1, -x);
    pair y = pair_sum(log_of(more.hi, more.lo, 0), pair_minus(log_of(less.hi, less.lo, 0)));
    return 0.5 * y.hi;
}

// --- The error function --------------------------------------------------------------------------

// erf expanded at the nearest multiple c of 1/8: erf(c + h) = erf(c) + erf'(c) sum u_n h^(n + 1) /
// (n + 1), where u_n are the coefficients of e^(-2ch - h²): (n + 1) u_{n + 1} = -2 (c u_n + u_{n -
// 1}).
double bel_real_erf(double x)
{
    enum { TERMS = 14 };
    static const double inverse[TERMS + 1] = {0,        1,        1.0 / 2,  1.0 / 3,  1.0 / 4,
                                              1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9,
                                              1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};
    if (!(fabs(x) <= 6)) return isnan(x) ? x : copysign(1.0, x);
    double n = real_nearest(fabs(x) * 8), c = n / 8, h = fabs(x) - c;
    double before = 0, u = 1, h_power = h, total = 0; // total: all but the first term
    for (int i = 1; i < TERMS; i++) {
        double next = -2 * (c * u + before) * inverse[i];
        before = u;
        u = next;
        h_power *= h;
        total += u * h_power * inverse[i + 1];
    }
    const erf_entry *start = &erf_table[(int)n];
    return copysign(start->value + start->slope * (h + total), x);
}
