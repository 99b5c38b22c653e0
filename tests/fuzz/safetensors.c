// Fuzz target for heads of safetensors files. Listed tensors must be inside the file, without
// overlap.
#include <string.h>

#include "base/arena.h"
#include "checkpoint/safetensors.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_disk_file file;
    if (!fuzz_is_good(bel_disk_file_open(fuzz_file(0, data, size), &file))) return 0;
    bel_arena *arena = bel_arena_create();
    bel_safetensors_list list;
    if (fuzz_is_good(bel_safetensors_read_header(&file, arena, &list))) {
        uint64_t all = 0;
        for (int i = 0; i < list.count; i++) {
            const bel_safetensors_entry *entry = &list.entries[i];
            bool inside = entry->offset <= size && entry->size_bytes <= size - entry->offset;
            fuzz_expect(inside, "a tensor within the file");
            fuzz_expect(bel_safetensors_find(&list, entry->name) == entry, "a unique name");
            all += entry->size_bytes;
        }
        fuzz_expect(all <= size, "tensors that do not overlap");
    }
    bel_arena_destroy(arena);
    bel_disk_file_close(&file);
    return 0;
}
