// A row's values before its first update: Philox numbers of (seed, name) at the counter (key, four
// elements). The computation has only + - × ÷, and no function of the C library, whose last bit
// differs between versions: so shards on different machines agree.
#include <string.h>

#include "ps/table/table_inner.h"

// Quantile of the standard normal distribution at 1/2 + q, |q| < 0.4773 (two deviations): P. J.
// Acklam's rational approximation for the middle, here to 4e-8.
static double quantile(double q)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01};
    double r = q * q;
    double over = ((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5];
    double under = ((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1;
    return q * over / under;
}

// One 32-bit word gives one element.
static float start_element(const bel_table *table, uint32_t word)
{
    if (table->start == BEL_TABLE_UNIFORM) {
        return (2.0f * bel_rng_unit(word) - 1.0f) * table->scale;
    }
    const double within = 0.9544997361036416; // the distribution's share within two deviations
    double q = ((double)word + 0.5) * 0x1p-32 - 0.5;
    return (float)(quantile(q * within) * (double)table->scale);
}

// A block of random words gives four elements, whichever thread or shard computes them.
void bel_table_start_values(const bel_table *table, int64_t key, float *out_values)
{
    if (table->start == BEL_TABLE_ZEROS) {
        memset(out_values, 0, (size_t)table->width * sizeof *out_values);
        return;
    }
    for (int i = 0; i < table->width; i += 4) {
        uint32_t words[4];
        bel_rng_block(table->random, (uint64_t)key, (uint64_t)i / 4, words);
        for (int j = 0; j < 4 && i + j < table->width; j++)
            out_values[i + j] = start_element(table, words[j]);
    }
}

void bel_table_start_slots(const bel_table *table, float *record)
{
    for (int k = 0; k < table->slot_count; k++) {
        float *slot = record + (int64_t)(k + 1) * table->width;
        for (int i = 0; i < table->width; i++)
            slot[i] = table->slot_start[k];
    }
}
