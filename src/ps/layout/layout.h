// The parameter space: all dense variables end to end in one flat f32 array, and how it is cut.
//
//   variable  a run of elements, in forward order; starts are aligned to 64 bytes, those of a grain
//             or more to pages; padding is zero
//   chunk     the unit of exchange and update; cut only at grain borders or variable starts; begins
//             with a page, so that chunks of several processes can be mapped side by side
//   segment   variable ∩ chunk
//   grain     BEL_GRAIN elements from a variable's start: the unit of norms and hashes
//
// Immutable after creation, so thread-safe.
#ifndef BELFRY_PS_LAYOUT_LAYOUT_H
#define BELFRY_PS_LAYOUT_LAYOUT_H

#include "base/hash.h"
#include "base/index.h"
#include "belfry/graph.h"
#include "tensor/grain.h"

enum { BEL_LAYOUT_ALIGN = 16 /* elements */, BEL_LAYOUT_PAGE = 1024 /* elements */ };

// A job may have several step functions (belfry/replica.h), of which each updates some variables.
enum { BEL_MAX_STEP_FUNCTIONS = 8 };

typedef struct bel_layout_variable {
    char *name;
    bel_shape shape;
    bel_variable_kind kind;
    bel_initializer initializer;
    uint32_t kept_by; // bit f: step function f leaves it as it is
    int64_t elements;
    int64_t own_elements; // of each replica's own value, replica r's the r-th; 0: all share one
    int64_t offset;       // first element in the space
    int64_t first_grain;  // number of its first grain among all grains
    int first_chunk;      // the chunk of its first element
} bel_layout_variable;

// Where what replica `replica` reports of a variable begins in it.
static inline int64_t bel_layout_own_first(const bel_layout_variable *variable, int replica)
{
    return variable->own_elements * replica;
}

typedef struct bel_segment {
    int variable;
    int64_t first; // element of the variable; a multiple of BEL_GRAIN
    int64_t count;
    int64_t offset; // in the space
} bel_segment;

typedef struct bel_chunk {
    int64_t offset, count; // elements of the space, padding between segments included
    int first_segment, segment_count;
    int shard;
    bel_variable_kind kind; // of all its variables
    uint32_t kept_by;       // the same
} bel_chunk;

// Whether a step of that function brings the chunk new values; else it keeps those that it has.
static inline bool bel_chunk_changes(const bel_chunk *chunk, int function)
{
    return chunk->kind != BEL_VARIABLE_FROZEN && (chunk->kept_by >> function & 1) == 0;
}

// A variable of rows: it lies in no chunk. Rows are spread over the shards by their keys.
typedef struct bel_layout_table {
    char *name;
    int width;   // floats of a row
    int64_t ids; // that a replica's batch has at most
    bel_initializer initializer;
    bool counts_replicas; // rows of reports end with how many replicas are in their sums
    uint32_t kept_by;     // bit f: step function f leaves it as it is
} bel_layout_table;

// Whether a step of the function updates rows of the table.
static inline bool bel_layout_table_changes(const bel_layout_table *table, int function)
{
    return (table->kept_by >> function & 1) == 0;
}

// Floats of a row in a report.
static inline int bel_layout_report_width(const bel_layout_table *table)
{
    return table->width + (table->counts_replicas ? 1 : 0);
}

typedef struct bel_layout {
    bel_layout_variable *variables;
    int variable_count;
    bel_segment *segments;
    int segment_count;
    bel_chunk *chunks;
    int chunk_count;
    bel_layout_table *tables;
    int table_count;
    size_t stats_bytes; // of a node's step statistics that are too long for a frame, else 0; set
                        // by who creates it
    bool exchanges;     // workers exchange values within a step (exchange.h); set by who creates it
    bel_index names;    // of variables
    int shard_count;
    int64_t size;        // elements of the space
    int64_t grain_count; // of all variables
    int64_t parameters;  // elements without padding
} bel_layout;

// Lays out the variables (name, shape, kind, kept_by and
// initializer are read and copied) for `shard_count`
// shards: chunks of min(1 Mi, max(16 Ki, size / (8 shards))) elements, assigned largest first to
// the least loaded shard. A shard may own none.
bel_layout *bel_layout_create(const bel_layout_variable *variables, int variable_count,
                              int shard_count);
void bel_layout_destroy(bel_layout *layout);

// Adds a table; before anybody else sees the layout. The name is copied.
void bel_layout_add_table(bel_layout *layout, const bel_layout_table *table);

int bel_layout_find(const bel_layout *layout, const char *name); // -1: not there

// Hash of names, shapes, kinds and what step functions keep, in their order, and of tables: what
// two processes must agree on. Shards do not enter.
uint64_t bel_layout_fingerprint(const bel_layout *layout);

// Grains of a run of elements of a variable that starts at a grain border.
static inline int64_t bel_grains_of(int64_t elements)
{
    return (elements + BEL_GRAIN - 1) / BEL_GRAIN;
}

// How many frames a lane holds that carries values of snapshots, of which a shard has a part: two
// of them, since the receiver may ask for the next one before the sender has heard that all of the
// last were taken.
static inline size_t bel_layout_snapshot_frames(const bel_layout *layout)
{
    return 2 * ((size_t)layout->chunk_count + 1); // a version follows the chunks
}

#endif
