// Arena: many small objects with one lifetime. Thread-compatible (one thread at a time).
#ifndef BELFRY_BASE_ARENA_H
#define BELFRY_BASE_ARENA_H

#include <stddef.h>

typedef struct bel_arena bel_arena;

bel_arena *bel_arena_create(void);
void bel_arena_destroy(bel_arena *arena);

// Allocates zeroed memory, 16-byte aligned, valid until the arena is reset or destroyed. Never
// NULL.
void *bel_arena_alloc(bel_arena *arena, size_t size);
char *bel_arena_strdup(bel_arena *arena, const char *text);
void *bel_arena_copy(bel_arena *arena, const void *data, size_t size);

// Drops all objects but keeps the memory for later ones.
void bel_arena_reset(bel_arena *arena);

// Returns the size of its memory, which a reset keeps.
size_t bel_arena_bytes(const bel_arena *arena);

#endif
