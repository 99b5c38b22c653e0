// Works block by block, so that partial sums stay in the L1 cache and each array is read once. The
// tree is that of bel_assignment: neighbors are added, an odd last one moves up unchanged, and no
// zero is added for absent ranks.
#include "ddl/add.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/isa.h"
#include "belfry/ddl.h"

static bel_ddl_add_pair *add_choose(bel_dtype dtype)
{
    static const bel_ddl_adders *const levels[] = {BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_ddl_adders)};
    const bel_ddl_adders *adders = levels[bel_isa_get()];
    switch (dtype) {
    case BEL_DTYPE_F32: return adders->f32;
    case BEL_DTYPE_F64: return adders->f64;
    case BEL_DTYPE_I32: return adders->i32;
    default: BEL_CHECK(dtype == BEL_DTYPE_I64); return adders->i64;
    }
}

// BELFRY_FAULT=sum_sequential: adds one after another.
static void add_in_turn(bel_ddl_add_pair *pair, size_t size, const void *const *arrays, int count,
                        size_t bytes, double divisor, char *out, char *also, void *scratch)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        length = bytes - at < BEL_DDL_ADD_BLOCK ? bytes - at : BEL_DDL_ADD_BLOCK;
        const char *sum = (const char *)arrays[0] + at;
        int64_t n = (int64_t)(length / size);
        for (int i = 1; i + 1 < count; i++, sum = scratch)
            pair(sum, (const char *)arrays[i] + at, n, 1, scratch, NULL);
        pair(sum, (const char *)arrays[count - 1] + at, n, divisor, out + at,
             also == NULL ? NULL : also + at);
    }
}

void bel_ddl_add(bel_dtype dtype, const void *const *arrays, int count, size_t bytes,
                 double divisor, void *out, void *also, void *scratch)
{
    bel_ddl_add_pair *pair = add_choose(dtype);
    size_t size = bel_dtype_size(dtype), block = count > 2 ? BEL_DDL_ADD_BLOCK : bytes;
    if (bel_fault_is(BEL_FAULT_SUM_SEQUENTIAL)) {
        add_in_turn(pair, size, arrays, count, bytes, divisor, out, also, scratch);
        return;
    }
    for (size_t at = 0, length; at < bytes; at += length) {
        const char *parts[BEL_DDL_MAX_RANKS];
        int left = count;
        length = bytes - at < block ? bytes - at : block;
        int64_t n = (int64_t)(length / size);
        for (int i = 0; i < count; i++)
            parts[i] = (const char *)arrays[i] + at;
        for (; left > 2; left = (left + 1) / 2) {
            for (int i = 0; i + 1 < left; i += 2) { // into a block that no later pair reads
                char *partial = (char *)scratch + (size_t)(i / 2) * BEL_DDL_ADD_BLOCK;
                pair(parts[i], parts[i + 1], n, 1, partial, NULL);
                parts[i / 2] = partial;
            }
            if (left % 2 == 1) parts[left / 2] = parts[left - 1];
        }
        pair(parts[0], parts[1], n, divisor, (char *)out + at,
             also == NULL ? NULL : (char *)also + at);
    }
}
