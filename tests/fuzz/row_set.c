// Fuzz target for sets of rows as workers report them: ascending keys, then rows. An accepted set
// is added to itself, which visits all of it. The first byte is width, shard and number of shards.
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "ps/layout/row_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    int width = 1 + (int)(first & 7), shards = 1 + (int)(first >> 3 & 3);
    int shard = (int)(first >> 5) % shards;
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, size, &count);
    void *payload = malloc(count > 0 ? count : 1); // aligned, as from a lane
    fuzz_expect(payload != NULL, "memory");
    if (count > 0) memcpy(payload, bytes, count);
    bel_row_set set;
    if (bel_row_set_read(payload, count, width, shard, shards, &set)) {
        fuzz_expect(bel_row_set_bytes(set.count, width) == count, "a set of all bytes");
        const int firsts[] = {0, 1};
        bel_row_set sets[] = {set, set};
        bel_weight weights[] = {{1, 1}, {1, 3}};
        bel_row_sum sum = {0};
        bel_row_set all = bel_row_sum_run(&sum, firsts, sets, weights, 2, width);
        fuzz_expect(all.count == set.count, "a row for each key");
        bel_row_sum_deinit(&sum);
    }
    free(payload);
    return 0;
}
