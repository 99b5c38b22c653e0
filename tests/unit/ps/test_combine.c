// Values of replicas along the summation tree. Moments are those of all elements together, even if
// replicas have different numbers of elements or none, or if the mean is large compared with the
// deviation. Sums of batches of different sizes are as exact as their type.
#include "ps/layout/combine.h"

#include <math.h>

#include "base/alloc.h"
#include "support/bel_test.h"
#include "tensor/moments.h"

enum { REPLICAS = 7, CHANNELS = 3, MOST = 40 };

static const int counts[REPLICAS] = {0, 13, 1, 40, 0, 0, 22};

// A number near `offset`, for one element of a replica.
static double element(int replica, int index, int channel, double offset)
{
    return offset + sin(1.7 * replica + 0.9 * index + 2.3 * channel) + 0.5 * replica;
}

static void fill(int replica, double offset, float (*out)[CHANNELS])
{
    int n = counts[replica];
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++)
            sum += element(replica, i, c, offset);
        double mean = n > 0 ? sum / n : 0;
        for (int i = 0; i < n; i++)
            squares += pow(element(replica, i, c, offset) - mean, 2);
        out[BEL_MOMENTS_COUNT][c] = (float)n;
        out[BEL_MOMENTS_MEAN][c] = (float)mean;
        out[BEL_MOMENTS_SQUARES][c] = (float)squares;
    }
}

// Returns the variance of all elements of channel c, and their mean.
static double variance_of(int c, double offset, double *out_mean)
{
    double sum = 0, squares = 0, n = 0;
    for (int r = 0; r < REPLICAS; r++)
        for (int i = 0; i < counts[r]; i++, n++)
            sum += element(r, i, c, offset);
    for (int r = 0; r < REPLICAS; r++)
        for (int i = 0; i < counts[r]; i++)
            squares += pow(element(r, i, c, offset) - sum / n, 2);
    *out_mean = sum / n;
    return squares / n;
}

// Replica 4 is absent, 0 and 5 have no elements.
static void test_moments(void **state)
{
    (void)state;
    static const double offsets[] = {0, -100, 1e4};
    static const double tolerances[] = {1e-6, 1e-5, 1e-3};
    for (int o = 0; o < 3; o++) {
        float values[REPLICAS][BEL_MOMENTS_ROWS][CHANNELS];
        void *slots[REPLICAS];
        bel_weight weights[REPLICAS], all;
        for (int r = 0; r < REPLICAS; r++) {
            fill(r, offsets[o], values[r]);
            slots[r] = r == 4 ? NULL : (void *)values[r];
            weights[r] = (bel_weight){1, 1 + r};
        }
        const bel_combining c = {(bel_reduce_op)BEL_REDUCE_MOMENTS, BEL_DTYPE_F32,
                                 BEL_MOMENTS_ROWS * CHANNELS};
        const float *sum = bel_combine(&c, slots, weights, REPLICAS, &all);
        float got[BEL_MOMENTS_ROWS][CHANNELS];
        bel_combine_give(&c, sum, all, (bel_weight){1, 3}, got); // weights do not matter
        for (int ch = 0; ch < CHANNELS; ch++) {
            double mean, variance = variance_of(ch, offsets[o], &mean);
            double squares = (double)got[BEL_MOMENTS_SQUARES][ch];
            assert_true(got[BEL_MOMENTS_COUNT][ch] == 76);
            assert_true(fabs((double)got[BEL_MOMENTS_MEAN][ch] - mean) <= 1e-7 * (1 + fabs(mean)));
            assert_true(fabs(squares / 76 - variance) <= tolerances[o] * variance);
        }
    }
}

// No replica has an element.
static void test_none(void **state)
{
    (void)state;
    float values[2][BEL_MOMENTS_ROWS][1] = {{{0}, {0}, {0}}, {{0}, {0}, {0}}};
    void *slots[2] = {values[0], values[1]};
    bel_weight weights[2] = {{1, 1}, {1, 1}}, all;
    const bel_combining c = {(bel_reduce_op)BEL_REDUCE_MOMENTS, BEL_DTYPE_F32, BEL_MOMENTS_ROWS};
    const float *sum = bel_combine(&c, slots, weights, 2, &all);
    for (int i = 0; i < BEL_MOMENTS_ROWS; i++)
        assert_true(sum[i] == 0);
}

// Means of batches of 1, 2, … examples add up to replicas / examples times the sum over examples.
static void check_uneven(bel_dtype dtype, double tolerance)
{
    double wide[REPLICAS], expected = 0, examples = 0;
    float narrow[REPLICAS];
    void *slots[REPLICAS];
    bel_weight weights[REPLICAS], all;
    for (int r = 0; r < REPLICAS; r++) {
        narrow[r] = (float)(wide[r] = (double)(float)sin(1 + 2.3 * r));
        slots[r] = dtype == BEL_DTYPE_F32 ? (void *)&narrow[r] : &wide[r];
        weights[r] = (bel_weight){1, 1 + r};
        expected += (1 + r) * wide[r];
        examples += 1 + r;
    }
    const bel_combining c = {BEL_REDUCE_SUM, dtype, 1};
    const void *sum = bel_combine(&c, slots, weights, REPLICAS, &all);
    double got = dtype == BEL_DTYPE_F32 ? (double)*(const float *)sum : *(const double *)sum;
    expected *= REPLICAS / examples;
    if (fabs(got - expected) > tolerance * fabs(expected))
        fail_msg("the sum is %.17g, expected %.17g", got, expected);
}

static void test_uneven(void **state)
{
    (void)state;
    check_uneven(BEL_DTYPE_F32, 1e-6);
    check_uneven(BEL_DTYPE_F64, 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moments), cmocka_unit_test(test_none),
                                       cmocka_unit_test(test_uneven)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
