// A shard's state in memory that outlives its process: values, slots and averages, and how far each
// chunk is. A successor of the process continues with it, and no step is lost.
//
// A kill leaves at most one piece of each chunk half updated. Values are written into the other
// buffer, so the old ones are whole. Slots and averages change in place, so a piece's are copied
// here before. The successor takes the copy back, and continues with that piece: its gradients are
// computed again, to the same bits. A chunk that was complete keeps its new values and slots.
//
// The newest snapshot is here as well, so a checkpoint or an evaluation that was under way
// continues, too.
//
// The supervisor holds the memory and never reads it (launch/supervise). The beginning has the two
// buffers of values, as workers map them (member/member_memory.c); the last page says how the rest
// is laid out.
#ifndef BELFRY_PS_SERVER_KEPT_H
#define BELFRY_PS_SERVER_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ps/layout/layout.h"
#include "ps/layout/shard_settings.h"

typedef struct bel_kept bel_kept;

// Returns why such a shard cannot keep its state; NULL: it can. All workers must count in every
// step, which has one step function; there are no tables, whose rows are elsewhere, and no rule
// whose first of two passes changes slots (LAMB).
const char *bel_kept_why_not(const bel_layout *layout, const bel_shard_settings *settings);

// Returns the bytes of the memory. Only pages that the shard uses take memory.
size_t bel_kept_bytes(const bel_layout *layout, int shard, const bel_shard_settings *settings);

// Makes a view of the memory, which is zeroed or has a predecessor's state of the same layout and
// settings. It must outlive the view.
bel_kept *bel_kept_over(void *memory, const bel_layout *layout, int shard,
                        const bel_shard_settings *settings);
void bel_kept_destroy(bel_kept *kept); // the view only; accepts NULL

// State in a memory.
typedef struct bel_kept_state {
    uint32_t generation; // 0: none
    int64_t step;        // the shard's; chunks have this version or the next one
    int64_t snapshot;    // version of its complete snapshot; 0: none
} bel_kept_state;

// Finds the state in a memory of `bytes`, before the layout is known.
bel_kept_state bel_kept_look(const void *memory, size_t bytes);

// Arrays laid out as the space.
float *bel_kept_buffer(const bel_kept *kept, int buffer);
float *bel_kept_slots(const bel_kept *kept, int slot);
float *bel_kept_averages(const bel_kept *kept);
float *bel_kept_snapshot_values(const bel_kept *kept);
float *bel_kept_snapshot_slots(const bel_kept *kept, int slot);
float *bel_kept_snapshot_averages(const bel_kept *kept);

// Declares that the memory holds no state, before it is overwritten; then that it holds one of this
// generation, whose shard is at `step`. `loaded` is the version whose values were in buffer 0
// (bel_shard.loaded).
void bel_kept_clear(bel_kept *kept);
void bel_kept_begin(bel_kept *kept, uint32_t generation, int64_t loaded, int64_t step);
// The shard has published a version, of which everything else is recorded.
void bel_kept_set_step(bel_kept *kept, int64_t step);
// The snapshot is complete, of that version; 0: another one is about to overwrite it.
void bel_kept_set_snapshot(bel_kept *kept, int64_t version);
int64_t bel_kept_snapshot(const bel_kept *kept);
bool bel_kept_holds(const bel_kept *kept);
int64_t bel_kept_loaded(const bel_kept *kept);

// Version of a chunk, which is the shard's `local`th.
int64_t bel_kept_version(const bel_kept *kept, int local);

// Shard 0: order of the last save that the master has used (bel_clock_ns, of this host); 0: none.
void bel_kept_set_saved(bel_kept *kept, int64_t ns);
int64_t bel_kept_saved(const bel_kept *kept);

// Shard 0: the newest recorded steps (bel_control_point), numbered from `first` up to `end`.
enum { BEL_KEPT_POINTS = 1024 };
typedef struct bel_control_point bel_control_point; // ps/server/control.h
void bel_kept_add_point(bel_kept *kept, const bel_control_point *point);
void bel_kept_drop_points_after(bel_kept *kept, int64_t step);
int64_t bel_kept_first_point(const bel_kept *kept);
int64_t bel_kept_end_point(const bel_kept *kept);
void bel_kept_read_point(const bel_kept *kept, int64_t number, bel_control_point *out_point);

// Passes of a chunk, by the thread that passes it. First the version on which the pass is made:
// returns the number of pieces that a predecessor has finished, after it took back the copy of an
// unfinished one. Then before and after each piece of `count` elements at `offset` of the space; at
// last the version that the pass has made.
int64_t bel_kept_open_chunk(bel_kept *kept, int local, int64_t version);
void bel_kept_copy_piece(bel_kept *kept, int local, int64_t piece, int64_t offset, int64_t count);
void bel_kept_end_piece(bel_kept *kept, int local, int64_t piece);
void bel_kept_set_version(bel_kept *kept, int local, int64_t version);

#endif
