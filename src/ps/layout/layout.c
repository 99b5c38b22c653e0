// Laying out, cutting, dealing.
#include "ps/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void place_variables(bel_layout *layout, const bel_layout_variable *variables)
{
    int64_t offset = 0, grain = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        bel_layout_variable *variable = &layout->variables[v];
        *variable = variables[v];
        variable->name = bel_xstrdup(variables[v].name);
        variable->elements = bel_shape_elements(&variable->shape);
        variable->offset = offset;
        variable->first_grain = grain;
        offset += (variable->elements + BEL_LAYOUT_ALIGN - 1) / BEL_LAYOUT_ALIGN * BEL_LAYOUT_ALIGN;
        grain += bel_grains_of(variable->elements);
        layout->parameters += variable->elements;
    }
    layout->size = offset;
    layout->grain_count = grain;
}

static int64_t chunk_limit(int64_t size, int shard_count)
{
    int64_t limit = size / (8 * (int64_t)shard_count);
    if (limit < 16384) limit = 16384;
    if (limit > 1 << 20) limit = 1 << 20;
    return limit / BEL_GRAIN * BEL_GRAIN;
}

typedef struct cutter {
    bel_layout *layout;
    size_t segment_capacity, chunk_capacity;
    int64_t limit;
} cutter;

static bel_chunk *open_chunk(cutter *c, int64_t offset, bel_variable_kind kind)
{
    bel_layout *layout = c->layout;
    layout->chunks = bel_xgrow(layout->chunks, &c->chunk_capacity, (size_t)layout->chunk_count + 1,
                               sizeof *layout->chunks);
    bel_chunk *chunk = &layout->chunks[layout->chunk_count++];
    *chunk = (bel_chunk){.offset = offset, .first_segment = layout->segment_count, .kind = kind};
    return chunk;
}

static void add_segment(cutter *c, bel_chunk *chunk, int variable, int64_t first, int64_t count)
{
    bel_layout *layout = c->layout;
    layout->segments = bel_xgrow(layout->segments, &c->segment_capacity,
                                 (size_t)layout->segment_count + 1, sizeof *layout->segments);
    int64_t offset = layout->variables[variable].offset + first;
    layout->segments[layout->segment_count++] = (bel_segment){variable, first, count, offset};
    chunk->segment_count++;
    chunk->count = offset + count - chunk->offset;
}

static void cut_variable(cutter *c, int v)
{
    bel_layout_variable *variable = &c->layout->variables[v];
    bel_chunk *chunk = NULL;
    if (c->layout->chunk_count > 0) chunk = &c->layout->chunks[c->layout->chunk_count - 1];
    for (int64_t first = 0; first < variable->elements;) {
        int64_t used = chunk == NULL ? c->limit : variable->offset + first - chunk->offset;
        int64_t room = (c->limit - used) / BEL_GRAIN * BEL_GRAIN;
        int64_t left = variable->elements - first;
        bool fits = left <= c->limit - used;
        if (chunk == NULL || chunk->kind != variable->kind || (room <= 0 && !fits)) {
            chunk = open_chunk(c, variable->offset + first, variable->kind);
            continue;
        }
        if (first == 0) variable->first_chunk = c->layout->chunk_count - 1;
        int64_t count = fits ? left : room;
        add_segment(c, chunk, v, first, count);
        first += count;
    }
}

static int larger_first(const void *a, const void *b)
{
    const bel_chunk *p = *(bel_chunk *const *)a, *q = *(bel_chunk *const *)b;
    if (p->count != q->count) return p->count < q->count ? 1 : -1;
    return (p->offset > q->offset) - (p->offset < q->offset);
}

// Deals chunks to shards: largest first, each to the least loaded shard, lowest number on a tie.
static void deal_chunks(bel_layout *layout)
{
    size_t count = (size_t)layout->chunk_count;
    int64_t *load = bel_xcalloc((size_t)layout->shard_count, sizeof *load);
    bel_chunk **order = bel_xcalloc(count, sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = &layout->chunks[i];
    if (count > 0) qsort(order, count, sizeof *order, larger_first);
    for (size_t i = 0; i < count; i++) {
        int shard = 0;
        for (int s = 1; s < layout->shard_count; s++)
            if (load[s] < load[shard]) shard = s;
        order[i]->shard = shard;
        load[shard] += order[i]->count;
    }
    bel_free(load);
    bel_free(order);
}

bel_layout *bel_layout_create(const bel_layout_variable *variables, int variable_count,
                              int shard_count)
{
    bel_layout *layout = bel_xcalloc(1, sizeof *layout);
    layout->variable_count = variable_count;
    layout->shard_count = shard_count;
    layout->variables = bel_xcalloc((size_t)variable_count, sizeof *layout->variables);
    place_variables(layout, variables);
    cutter c = {.layout = layout, .limit = chunk_limit(layout->size, shard_count)};
    for (int v = 0; v < variable_count; v++)
        cut_variable(&c, v);
    deal_chunks(layout);
    return layout;
}

void bel_layout_destroy(bel_layout *layout)
{
    if (layout == NULL) return;
    for (int v = 0; v < layout->variable_count; v++)
        bel_free(layout->variables[v].name);
    bel_free(layout->variables);
    bel_free(layout->segments);
    bel_free(layout->chunks);
    bel_free(layout);
}

int bel_layout_find(const bel_layout *layout, const char *name)
{
    for (int v = 0; v < layout->variable_count; v++)
        if (strcmp(layout->variables[v].name, name) == 0) return v;
    return -1;
}

uint64_t bel_layout_fingerprint(const bel_layout *layout)
{
    bel_hasher *hasher = bel_hasher_create();
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        int64_t numbers[3] = {variable->kind, variable->offset, variable->shape.rank};
        bel_hasher_update(hasher, variable->name, strlen(variable->name) + 1);
        bel_hasher_update(hasher, numbers, sizeof numbers);
        bel_hasher_update(hasher, variable->shape.dims,
                          (size_t)variable->shape.rank * sizeof variable->shape.dims[0]);
    }
    uint64_t fingerprint = bel_hasher_finish(hasher).low;
    bel_hasher_destroy(hasher);
    return fingerprint;
}
