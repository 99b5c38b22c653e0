// Hash table with open addressing and linear probing, from hashes to numbers. The caller computes
// the hash and compares the keys, since hashes may collide. There is no removal, so no tombstones.
// At most half of the places are occupied, so a search soon ends at a free one.
#include "base/index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { LEAST = 16 };

static void index_put(bel_index *index, uint64_t hash, int number)
{
    size_t mask = index->capacity - 1, at = (size_t)hash & mask;
    while (index->places[at].number != 0)
        at = (at + 1) & mask;
    index->places[at] = (bel_index_place){hash, number + 1};
    index->count++;
}

void bel_index_put(bel_index *index, uint64_t hash, int number)
{
    if (2 * (index->count + 1) > index->capacity) {
        bel_index old = *index;
        index->capacity = old.capacity == 0 ? LEAST : 2 * old.capacity;
        index->places = bel_xcalloc(index->capacity, sizeof *index->places);
        index->count = 0;
        for (size_t i = 0; i < old.capacity; i++)
            if (old.places[i].number != 0)
                index_put(index, old.places[i].hash, old.places[i].number - 1);
        bel_free(old.places);
    }
    index_put(index, hash, number);
}

// *at counts the inspected places.
int bel_index_next(const bel_index *index, uint64_t hash, size_t *at)
{
    if (index->capacity == 0) return -1;
    for (;;) {
        const bel_index_place *place = &index->places[((size_t)hash + *at) & (index->capacity - 1)];
        if (place->number == 0) return -1;
        ++*at;
        if (place->hash == hash) return place->number - 1;
    }
}

void bel_index_put_text(bel_index *index, const char *text, int number)
{
    bel_index_put(index, bel_hash64(text, strlen(text)), number);
}

int bel_index_next_text(const bel_index *index, const char *text, size_t *at)
{
    return bel_index_next(index, bel_hash64(text, strlen(text)), at);
}

void bel_index_deinit(bel_index *index)
{
    bel_free(index->places);
    *index = (bel_index){.capacity = 0};
}
