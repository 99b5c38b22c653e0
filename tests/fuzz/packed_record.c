// Fuzz target for records in a cache file (bel_dataset_cache), which others may have written.
#include "input/source/packed_record.h"
#include "base/arena.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_arena *arena = bel_arena_create();
    bel_record record = {0};
    bel_str again = {0};
    bool skip = false;
    bel_record_init(&record, arena);
    if (fuzz_is_good(bel_packed_record_read((const char *)data, size, &record, &skip)) && !skip)
        bel_packed_record_write(&record, &again);
    bel_str_deinit(&again);
    bel_record_deinit(&record);
    bel_arena_destroy(arena);
    return 0;
}
