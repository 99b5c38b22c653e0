// Open addressing over XXH3, with linear probing; at most half of the slots are taken. Slots
// hold numbers and not pointers, so growing moves no name and the numbers stay: they are the ids
// of values. Names are compared in full, so equal hashes are no mistake. Nothing is ever
// removed.
#include "onnx/names.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

struct bel_names {
    const char **texts; // by number
    size_t count, capacity;
    int *slots; // numbers, -1: free
    size_t slot_count;
};

bel_names *bel_names_create(void)
{
    return bel_xcalloc(1, sizeof(bel_names));
}

void bel_names_destroy(bel_names *names)
{
    if (names == NULL) return;
    bel_free(names->texts);
    bel_free(names->slots);
    bel_free(names);
}

// The slot that holds the name, or the free one where it belongs.
static size_t slot_of(const bel_names *names, const char *text)
{
    size_t slot = bel_hash64(text, strlen(text)) % names->slot_count;
    while (names->slots[slot] >= 0 && strcmp(names->texts[names->slots[slot]], text) != 0)
        slot = (slot + 1) % names->slot_count;
    return slot;
}

int bel_names_find(const bel_names *names, const char *text)
{
    return names->slot_count == 0 ? -1 : names->slots[slot_of(names, text)];
}

static void grow(bel_names *names)
{
    names->slot_count = names->slot_count == 0 ? 64 : 2 * names->slot_count;
    names->slots = bel_xrealloc(names->slots, names->slot_count * sizeof *names->slots);
    memset(names->slots, 0xff, names->slot_count * sizeof *names->slots);
    for (size_t i = 0; i < names->count; i++)
        names->slots[slot_of(names, names->texts[i])] = (int)i;
}

int bel_names_add(bel_names *names, const char *text, bool *out_new)
{
    if (2 * (names->count + 1) > names->slot_count) grow(names);
    size_t slot = slot_of(names, text);
    *out_new = names->slots[slot] < 0;
    if (*out_new) {
        names->texts =
            bel_xgrow(names->texts, &names->capacity, names->count + 1, sizeof *names->texts);
        names->texts[names->count] = text;
        names->slots[slot] = (int)names->count++;
    }
    return names->slots[slot];
}

int bel_names_count(const bel_names *names)
{
    return (int)names->count;
}

const char *bel_names_text(const bel_names *names, int number)
{
    return names->texts[number];
}
