// Fuzz target for names of columns in checkpoints. Accepted names are written again, and read to
// the same text. The bytes as one name become UTF-8.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "input/table/column_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bel_xstrndup((const char *)data, size);
    bel_arena *arena = bel_arena_create();
    bel_column_names names;
    if (fuzz_is_good(bel_column_names_read(text, "names", arena, &names))) {
        bel_str first = {0}, second = {0};
        bel_column_names_write(&names, &first);
        fuzz_expect(fuzz_is_good(bel_column_names_read(first.text, "again", arena, &names)),
                    "names that were written are read");
        bel_column_names_write(&names, &second);
        fuzz_expect(strcmp(first.text, second.text) == 0, "the same names, written again");
        bel_str_deinit(&first);
        bel_str_deinit(&second);
    }
    for (const char *at = bel_column_name_utf8(text, arena); *at != '\0';) {
        int bytes = bel_utf8_bytes(at);
        fuzz_expect(bytes > 0, "UTF-8");
        at += bytes;
    }
    bel_arena_destroy(arena);
    bel_free(text);
    return 0;
}
