// Texts by number, with a hash index, because models have thousands of values. Numbers never
// change, since nothing is ever removed: they are the ids of values. Names are compared in full, so
// hash collisions are harmless. The callers own the texts.
#include "onnx/names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/index.h"

struct bel_names {
    const char **texts; // by number
    size_t count, capacity;
    bel_index index;
};

bel_names *bel_names_create(void)
{
    return bel_xcalloc(1, sizeof(bel_names));
}

void bel_names_destroy(bel_names *names)
{
    if (names == NULL) return;
    bel_index_deinit(&names->index);
    bel_free(names->texts);
    bel_free(names);
}

int bel_names_find(const bel_names *names, const char *text)
{
    size_t at = 0;
    int number = bel_index_next_text(&names->index, text, &at);
    while (number >= 0 && strcmp(names->texts[number], text) != 0)
        number = bel_index_next_text(&names->index, text, &at);
    return number;
}

int bel_names_add(bel_names *names, const char *text, bool *out_new)
{
    int number = bel_names_find(names, text);
    *out_new = number < 0;
    if (number >= 0) return number;
    number = (int)names->count;
    names->texts =
        bel_xgrow(names->texts, &names->capacity, names->count + 1, sizeof *names->texts);
    names->texts[names->count++] = text;
    bel_index_put_text(&names->index, text, number);
    return number;
}

int bel_names_count(const bel_names *names)
{
    return (int)names->count;
}

const char *bel_names_text(const bel_names *names, int number)
{
    return names->texts[number];
}
