// Arena: a list of blocks, newest first. A reset keeps them, so that a steady state allocates
// nothing. Only the newest block is filled. An object that does not fit starts another block of at
// least its size, and the rest of the old block stays unused. Allocation zeroes memory, as kept
// blocks have old contents.
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

enum { BLOCK_BYTES = 16384, ALIGNMENT = 16 };

typedef struct block {
    struct block *next;
    size_t size;
    size_t used;
    size_t padding; // keeps `bytes` 16-byte aligned
    unsigned char bytes[];
} block;

struct bel_arena {
    block *used; // blocks with content, newest first
    block *free;
    size_t bytes; // size of all blocks
};

bel_arena *bel_arena_create(void)
{
    return bel_xcalloc(1, sizeof(bel_arena));
}

size_t bel_arena_bytes(const bel_arena *arena)
{
    return arena->bytes;
}

static void free_list(block *list)
{
    while (list != NULL) {
        block *next = list->next;
        bel_free(list);
        list = next;
    }
}

void bel_arena_destroy(bel_arena *arena)
{
    if (arena == NULL) return;
    free_list(arena->used);
    free_list(arena->free);
    bel_free(arena);
}

// Reuses a kept block that is large enough, or makes one.
static block *take_block(bel_arena *arena, size_t size)
{
    for (block **link = &arena->free; *link != NULL; link = &(*link)->next) {
        if ((*link)->size < size) continue;
        block *found = *link;
        *link = found->next;
        return found;
    }
    size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    block *made = bel_xmalloc(sizeof(block) + bytes);
    made->size = bytes;
    arena->bytes += sizeof(block) + bytes;
    return made;
}

void *bel_arena_alloc(bel_arena *arena, size_t size)
{
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    block *current = arena->used;
    if (current == NULL || current->size - current->used < size) {
        current = take_block(arena, size);
        current->used = 0;
        current->next = arena->used;
        arena->used = current;
    }
    void *memory = current->bytes + current->used;
    current->used += size;
    memset(memory, 0, size);
    return memory;
}

char *bel_arena_strdup(bel_arena *arena, const char *text)
{
    return bel_arena_copy(arena, text, strlen(text) + 1);
}

void *bel_arena_copy(bel_arena *arena, const void *data, size_t size)
{
    void *copy = bel_arena_alloc(arena, size);
    memcpy(copy, data, size);
    return copy;
}

void bel_arena_reset(bel_arena *arena)
{
    while (arena->used != NULL) {
        block *first = arena->used;
        arena->used = first->next;
        first->next = arena->free;
        arena->free = first;
    }
}
