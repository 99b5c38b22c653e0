// Fuzz target for a shard's report about its file of a checkpoint: bytes in a control message. An
// accepted report is written again to the same bytes.
#include <string.h>

#include "base/alloc.h"
#include "checkpoint/checkpoint.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_ckpt_shard *shard;
    if (!fuzz_is_good(bel_ckpt_shard_unpack(data, size, &shard))) return 0;
    size_t bytes;
    uint8_t *again = bel_ckpt_shard_pack(shard, &bytes);
    fuzz_expect(bytes == size && memcmp(again, data, size) == 0, "the same report, written again");
    bel_free(again);
    bel_ckpt_shard_destroy(shard);
    return 0;
}
