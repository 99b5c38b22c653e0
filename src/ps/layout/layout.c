// Lays out, cuts and assigns, in this order. The limit of a chunk follows from the size of the
// space. Variables are placed and cut in forward order, and chunks go to shards when all are known.
// The result is a function of only variables and shard count, so every process computes it, and
// only names, shapes and kinds travel. A chunk has variables of one kind that the same step
// functions update. Small variables share a chunk, each aligned to 64 bytes.
#include "ps/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int64_t layout_align(int64_t offset, int64_t unit)
{
    return (offset + unit - 1) / unit * unit;
}

// Copies the variables and numbers their grains. Returns the approximate size of the space.
static int64_t take_variables(bel_layout *layout, const bel_layout_variable *variables)
{
    int64_t size = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        bel_layout_variable *variable = &layout->variables[v];
        *variable = variables[v];
        variable->name = bel_xstrdup(variables[v].name);
        bel_index_put_text(&layout->names, variable->name, v);
        variable->elements = bel_shape_elements(&variable->shape);
        variable->own_elements = 0;
        if (variable->kind >= BEL_VARIABLE_REPLICA)
            variable->own_elements = variable->elements / variable->shape.dims[0];
        variable->first_grain = layout->grain_count;
        size += layout_align(variable->elements, BEL_LAYOUT_ALIGN);
        layout->grain_count += bel_grains_of(variable->elements);
        layout->slot_count += variable->slot;
        layout->parameters += variable->slot ? 0 : variable->elements;
    }
    return size;
}

// About eight chunks for each shard, within bounds; a multiple of the grain.
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

// Opens a chunk, to which the following segments are added.
static void open_chunk(cutter *c, int64_t offset, const bel_layout_variable *variable)
{
    bel_layout *layout = c->layout;
    layout->chunks = bel_xgrow(layout->chunks, &c->chunk_capacity, (size_t)layout->chunk_count + 1,
                               sizeof *layout->chunks);
    layout->chunks[layout->chunk_count++] = (bel_chunk){.offset = offset,
                                                        .first_segment = layout->segment_count,
                                                        .kind = variable->kind,
                                                        .kept_by = variable->kept_by};
}

// Adds a segment at the chunk's end. Padding between two segments of a chunk belongs to it.
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

// Returns how many of `left` elements of the variable go into the open chunk from `offset` on; 0: a
// new chunk begins. A part of a variable is a multiple of the grain, so that the cut is at a grain
// border.
static int64_t room_for(const cutter *c, const bel_layout_variable *variable, int64_t offset,
                        int64_t left)
{
    if (c->layout->chunk_count == 0) return 0;
    const bel_chunk *chunk = &c->layout->chunks[c->layout->chunk_count - 1];
    if (chunk->kind != variable->kind || chunk->kept_by != variable->kept_by) return 0;
    int64_t free = c->limit - (offset - chunk->offset);
    if (left <= free) return left;
    return free > 0 ? free / BEL_GRAIN * BEL_GRAIN : 0;
}

// Places a variable after the present ones, and cuts it.
static void place_variable(cutter *c, int v)
{
    bel_layout *layout = c->layout;
    bel_layout_variable *variable = &layout->variables[v];
    int64_t elements = variable->elements, unit = BEL_LAYOUT_ALIGN;
    bool opens = room_for(c, variable, layout_align(layout->size, BEL_LAYOUT_PAGE), elements) == 0;
    if (opens || elements >= BEL_GRAIN) unit = BEL_LAYOUT_PAGE;
    variable->offset = layout_align(layout->size, unit);
    layout->size = variable->offset + layout_align(elements, BEL_LAYOUT_ALIGN);
    for (int64_t first = 0, count; first < elements; first += count) {
        int64_t offset = variable->offset + first;
        count = room_for(c, variable, offset, elements - first);
        if (count == 0) {
            open_chunk(c, offset, variable);
            count = room_for(c, variable, offset, elements - first);
        }
        if (first == 0) variable->first_chunk = layout->chunk_count - 1;
        add_segment(c, &layout->chunks[layout->chunk_count - 1], v, first, count);
    }
}

// Orders equal chunks by offset, so that the order is the same in every process.
static int larger_first(const void *a, const void *b)
{
    const bel_chunk *p = *(bel_chunk *const *)a, *q = *(bel_chunk *const *)b;
    if (p->count != q->count) return p->count < q->count ? 1 : -1;
    return (p->offset > q->offset) - (p->offset < q->offset);
}

// Assigns chunks to shards: largest first, each to the least loaded shard, lowest number on a tie.
static void assign_chunks(bel_layout *layout)
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
    int64_t size = take_variables(layout, variables);
    cutter c = {.layout = layout, .limit = chunk_limit(size, shard_count)};
    for (int v = 0; v < variable_count; v++)
        place_variable(&c, v);
    assign_chunks(layout);
    return layout;
}

void bel_layout_destroy(bel_layout *layout)
{
    if (layout == NULL) return;
    for (int v = 0; v < layout->variable_count; v++)
        bel_free(layout->variables[v].name);
    for (int t = 0; t < layout->table_count; t++)
        bel_free(layout->tables[t].name);
    bel_index_deinit(&layout->names);
    bel_free(layout->tables);
    bel_free(layout->variables);
    bel_free(layout->segments);
    bel_free(layout->chunks);
    bel_free(layout);
}

bel_layout *bel_layout_join(const bel_layout *layout)
{
    size_t count = (size_t)layout->chunk_count;
    bel_layout *joined = bel_xcalloc(1, sizeof *joined);
    *joined = *layout;
    joined->shard_count = 1;
    joined->chunks = bel_xcalloc(count + 1, sizeof *joined->chunks);
    for (size_t c = 0; c < count; c++) {
        joined->chunks[c] = layout->chunks[c];
        joined->chunks[c].shard = 0;
    }
    return joined;
}

void bel_layout_destroy_joined(bel_layout *joined)
{
    if (joined == NULL) return;
    bel_free(joined->chunks);
    bel_free(joined);
}

// Tables follow the variables and take no part of the space.
void bel_layout_add_table(bel_layout *layout, const bel_layout_table *table)
{
    size_t count = (size_t)layout->table_count + 1;
    layout->tables = bel_xrealloc(layout->tables, count * sizeof *layout->tables);
    bel_layout_table *to = &layout->tables[layout->table_count++];
    *to = *table;
    to->name = bel_xstrdup(table->name);
}

int bel_layout_find(const bel_layout *layout, const char *name)
{
    size_t at = 0;
    for (int v; (v = bel_index_next_text(&layout->names, name, &at)) >= 0;)
        if (strcmp(layout->variables[v].name, name) == 0) return v;
    return -1;
}

uint64_t bel_layout_fingerprint(const bel_layout *layout)
{
    bel_hasher *hasher = bel_hasher_create();
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (variable->slot) continue;
        int64_t numbers[2] = {variable->kind, variable->shape.rank};
        bel_hasher_update(hasher, variable->name, strlen(variable->name) + 1);
        bel_hasher_update(hasher, numbers, sizeof numbers);
        bel_hasher_update(hasher, variable->shape.dims,
                          (size_t)variable->shape.rank * sizeof variable->shape.dims[0]);
        if (variable->kept_by != 0) // only with several step functions
            bel_hasher_update(hasher, &variable->kept_by, sizeof variable->kept_by);
    }
    for (int t = 0; t < layout->table_count; t++) {
        const bel_layout_table *table = &layout->tables[t];
        double numbers[3] = {table->width, table->initializer.kind, table->initializer.value};
        bel_hasher_update(hasher, table->name, strlen(table->name) + 1);
        bel_hasher_update(hasher, numbers, sizeof numbers);
        if (table->kept_by != 0) bel_hasher_update(hasher, &table->kept_by, sizeof table->kept_by);
    }
    uint64_t fingerprint = bel_hasher_finish(hasher).low;
    bel_hasher_destroy(hasher);
    return fingerprint;
}
