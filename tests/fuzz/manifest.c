// Fuzz target for manifest.json of a checkpoint. Bytes that do not end with a checksum get a
// correct one, so that the data after it is reached. An accepted manifest is written again, and
// that is accepted.
#include "checkpoint/manifest.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_arena *arena = bel_arena_create();
    bel_manifest manifest;
    const char *text = (const char *)data;
    bel_str sealed = {0}, again = {0};
    bool good = fuzz_is_good(bel_manifest_parse(text, size, "manifest.json", arena, &manifest));
    if (!good) {
        bel_str_append(&sealed, text, size);
        bel_str_printf(&sealed, "  \"crc32c\": \"%08x\"\n}\n", bel_crc32c(0, text, size));
        good = fuzz_is_good(
            bel_manifest_parse(sealed.text, sealed.length, "manifest.json", arena, &manifest));
    }
    if (good) {
        bel_manifest_write(&manifest, &again);
        good = fuzz_is_good(
            bel_manifest_parse(again.text, again.length, "manifest.json", arena, &manifest));
        fuzz_expect(good, "a manifest that was written is read");
    }
    bel_str_deinit(&again);
    bel_str_deinit(&sealed);
    bel_arena_destroy(arena);
    return 0;
}
