// The parameter space: all dense variables end to end in one flat f32 array, and its division.
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
    uint32_t kept_by; // bit f: step function f does not change it
    bool slot;        // an optimizer's slot of another variable, which replicas update
    int64_t elements;
    // elements of each replica's separate value, in order; 0: one shared value
    int64_t own_elements;
    int64_t offset;      // first element in the space
    int64_t first_grain; // number of its first grain among all grains
    int first_chunk;     // the chunk of its first element
} bel_layout_variable;

// Returns the first element of the variable for which replica `replica` reports.
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
    bel_variable_kind kind; // all its variables have it
    uint32_t kept_by;       // bit f: step function f does not change its variables
} bel_chunk;

// True if a step of that function gives the chunk new values; otherwise it keeps its values.
static inline bool bel_chunk_changes(const bel_chunk *chunk, int function)
{
    return chunk->kind != BEL_VARIABLE_FROZEN && (chunk->kept_by >> function & 1) == 0;
}

// A variable made of rows. It is in no chunk: the shards hold rows by their keys.
typedef struct bel_layout_table {
    char *name;
    int width;   // floats of a row
    int64_t ids; // maximum number of ids in a replica's batch
    bel_initializer initializer;
    bool counts_replicas; // rows of reports end with the number of replicas in their sums
    uint32_t kept_by;     // bit f: step function f does not change it
} bel_layout_table;

// True if a step of the function updates rows of the table.
static inline bool bel_layout_table_changes(const bel_layout_table *table, int function)
{
    return (table->kept_by >> function & 1) == 0;
}

// Returns the floats of a row in a report.
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
    size_t stats_bytes; // bytes of a node's step statistics if too long for a frame, else 0; set by
                        // the creator
    bool exchanges;     // workers exchange values within a step (exchange.h); set by the creator
    bel_index names;    // by name: the variables
    int slot_count;     // the last of the variables are slots (local steps, counting.h)
    int shard_count;
    int64_t size;        // elements of the space
    int64_t grain_count; // grains of all variables
    int64_t parameters;  // elements without padding and slots
} bel_layout;

// Lays out the variables for `shard_count` shards; reads and copies name, shape, kind, kept_by,
// slot and initializer. Slots come last. Chunks have min(1 Mi, max(16 Ki, size / (8 shards)))
// elements; each goes, largest first, to the least loaded shard. A shard may own no chunk.
bel_layout *bel_layout_create(const bel_layout_variable *variables, int variable_count,
                              int shard_count);
void bel_layout_destroy(bel_layout *layout);

// Returns the same layout with all chunks on one shard, for a lane that carries all of them.
// Borrows the variables, segments and tables of `layout`, which must outlive it.
bel_layout *bel_layout_join(const bel_layout *layout);
void bel_layout_destroy_joined(bel_layout *joined);

// Adds a table. Call it before another thread sees the layout. The name is copied.
void bel_layout_add_table(bel_layout *layout, const bel_layout_table *table);

int bel_layout_find(const bel_layout *layout, const char *name); // -1: not found

// Returns the number of the model's variables, which come before the slots.
static inline int bel_layout_model_variables(const bel_layout *layout)
{
    return layout->variable_count - layout->slot_count;
}

// Hash on which two processes must agree: names, shapes and kinds in their order, what step
// functions keep, and tables. Shards are not part of it, nor are slots, which follow from the
// optimizer.
uint64_t bel_layout_fingerprint(const bel_layout *layout);

// Returns the grains of a run of elements that starts at a grain border of a variable.
static inline int64_t bel_grains_of(int64_t elements)
{
    return (elements + BEL_GRAIN - 1) / BEL_GRAIN;
}

// Returns the number of frames on a lane that carries values of snapshots: two snapshots of one
// shard's part. The receiver may ask for the next one before the sender knows that all frames of
// the last one were received.
static inline size_t bel_layout_snapshot_frames(const bel_layout *layout)
{
    return 2 * ((size_t)layout->chunk_count + 1); // a version follows the chunks
}

#endif
