// Random numbers of a record: Philox, keyed by seed and index, counted by epoch and number. They do
// not depend on which process reads a record, when, or in which batch (base/rng.h). They need no
// state: an epoch that is read again, perhaps after a kill, has the same numbers.
#include "base/rng.h"
#include "belfry/features.h"

double bel_record_random(const bel_record *record, uint64_t seed, uint32_t index)
{
    uint32_t words[4];
    bel_rng_block(bel_rng_key_make(seed, "record", index), (uint64_t)bel_record_epoch(record),
                  (uint64_t)bel_record_number(record), words);
    return ((double)(words[0] >> 5) * 0x1p26 + (double)(words[1] >> 6)) * 0x1p-53;
}
