// Frames between workers and parameter servers: one struct for each kind, with a writer into the
// fields of a lane's frame and a reader.
//
// A kind and its fields are written only in the tables below. The structs, their writers and
// readers, the text of error messages and the table in docs/protocol.md (tools/protocol-tables) are
// generated from them. Fields are packed in their order, each little-endian in sizeof its type
// bytes. A field has one meaning, and only in its kind.
//
// To add a kind: add a row to BEL_FRAME_KINDS, a list BEL_FIELDS_<name>, and the code that handles
// it.
#ifndef BELFRY_PS_FRAMES_FRAMES_H
#define BELFRY_PS_FRAMES_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "transport/lane.h"

// Decision of a step: how all members run it. Shard 0 decides; every report repeats the decision.
enum {
    BEL_DECIDE_SAVE = 1,       // the step's update also streams into the snapshot
    BEL_DECIDE_STOP = 2,       // the step is not run: training ends at this version
    BEL_DECIDE_CHECK = 4,      // workers hash the parameters on which they compute this step
    BEL_DECIDE_RELEASED = 8,   // the snapshot before was released: tables end theirs
    BEL_DECIDE_FUNCTION = 256, // factor of the step function's number
};

// The step function of a decision, from 0 to 255.
static inline int bel_decision_function(uint32_t decision)
{
    return (int)(decision / BEL_DECIDE_FUNCTION & 255);
}

// The same decision with another step function.
static inline uint32_t bel_decision_with(uint32_t decision, int function)
{
    return decision % BEL_DECIDE_FUNCTION + (uint32_t)function * BEL_DECIDE_FUNCTION;
}

// First block of a lease when no blocks are left.
enum { BEL_LEASE_NONE = -1 };

// KIND(NAME, name, number, from → to, meaning, payload)
#define BEL_FRAME_KINDS(KIND)                                                                      \
    KIND(REPORT, report, 1, "worker → shard, shard → mirror", "one node's sums of one chunk",      \
         "f32 sums, or narrow ones")                                                               \
    KIND(STATS, stats, 2, "worker → shard, shard → mirror",                                        \
         "one node's step statistics; they complete its report", "f64 statistics")                 \
    KIND(VERSION, version, 3, "shard → worker, master; mirror → shard", "a version is published",  \
         "none")                                                                                   \
    KIND(NORMS, norms, 4, "shard → shard 0", "sums of squares of the shard's grains", "f64 sums")  \
    KIND(FACTORS, factors, 5, "shard 0 → shard, shard → mirror", "factors of clipping or trust",   \
         "f32 factors, by variable")                                                               \
    KIND(PARAMS, params, 6, "shard → worker, master", "a chunk's values, if memory is not shared", \
         "f32 values, or narrow differences")                                                      \
    KIND(PULL, pull, 7, "worker → shard, shard → mirror", "a worker begins at this version",       \
         "none")                                                                                   \
    KIND(COUNTS, counts, 8, "shard 0 → shard", "names a worker that counts in a step", "none")     \
    KIND(LEASE, lease, 9, "shard 0 → worker", "assigns the blocks of one step to the worker",      \
         "none")                                                                                   \
    KIND(ROW_PULL, row_pull, 10, "worker → shard", "requests rows of a table",                     \
         "i64 keys, ascending")                                                                    \
    KIND(ROWS, rows, 11, "shard → worker", "the requested rows, in the same order", "f32 rows")    \
    KIND(ROW_REPORT, row_report, 12, "worker → shard", "one node's sums of rows of a table",       \
         "row set")                                                                                \
    KIND(ANSWER, answer, 13, "shard 0 → shard", "send this worker your values of this version",    \
         "none")                                                                                   \
    KIND(EXCHANGE, exchange, 14, "worker → shard 0", "the worker's part of a collective",          \
         "head, slots, elements")                                                                  \
    KIND(EXCHANGED, exchanged, 15, "shard 0 → worker", "the worker's result of a collective",      \
         "slots, elements")                                                                        \
    KIND(ROOM, room, 16, "shard → worker", "the worker may send more of its report", "none")       \
    KIND(STATE, state, 17, "mirror → shard, shard → mirror",                                       \
         "a part of the state of a chunk, for a process that lacks it", "f32 values")              \
    KIND(POINTS, points, 18, "mirror → shard, shard → mirror",                                     \
         "the state is complete; of shard 0's mirror: the newest recorded steps",                  \
         "f64 numbers, point after point")

// FIELD(type, name, meaning)
#define BEL_FIELDS_report(FIELD)                                                                   \
    FIELD(int64_t, version, "version that the sums were computed on")                              \
    FIELD(uint32_t, decision, "1 save, 2 stop, 4 check, 8 released, 256 · the step's function")    \
    FIELD(int32_t, chunk, "chunk of the layout")                                                   \
    FIELD(int32_t, node, "node of the assignment")                                                 \
    FIELD(int32_t, replicas, "replicas in the sums that had examples")                             \
    FIELD(int64_t, examples, "number of examples of those replicas")
#define BEL_FIELDS_stats(FIELD)                                                                    \
    FIELD(int64_t, version, "version that the step was computed on")                               \
    FIELD(uint32_t, decision, "the step's decision")                                               \
    FIELD(int32_t, node, "node of the assignment")                                                 \
    FIELD(uint64_t, hash, "hash of that version's parameters, if the decision includes check")
#define BEL_FIELDS_version(FIELD)                                                                  \
    FIELD(int64_t, version, "the published version")                                               \
    FIELD(uint32_t, decision, "from shard 0: decision of the step that begins with the version")   \
    FIELD(int32_t, chunks, "number of params frames of the version")                               \
    FIELD(int32_t, buffer, "0 or 1: its buffer in shared memory")                                  \
    FIELD(uint32_t, limited, "1: the report on it is sent in parts, as there is room")             \
    FIELD(int32_t, reported, "if limited: parts that the shard has already")                       \
    FIELD(int32_t, room, "if limited: parts that may be sent, with those")
#define BEL_FIELDS_norms(FIELD) FIELD(int64_t, step, "step in progress")
#define BEL_FIELDS_factors(FIELD) FIELD(int64_t, step, "step in progress")
#define BEL_FIELDS_params(FIELD)                                                                   \
    FIELD(int64_t, version, "version of the values")                                               \
    FIELD(int32_t, chunk, "chunk of the layout")
#define BEL_FIELDS_pull(FIELD)                                                                     \
    FIELD(int64_t, version, "version on which it begins; with a ledger 0: the newest")
#define BEL_FIELDS_counts(FIELD)                                                                   \
    FIELD(int64_t, step, "step in progress")                                                       \
    FIELD(uint32_t, decision, "the step's decision")                                               \
    FIELD(int32_t, worker, "worker that counts in the step")                                       \
    FIELD(int32_t, needed, "number of workers that count in the step")                             \
    FIELD(int64_t, answers, "number of answers given before the step was closed")
#define BEL_FIELDS_lease(FIELD)                                                                    \
    FIELD(int64_t, number, "index among the worker's leases, from 0")                              \
    FIELD(int64_t, first_block, "first block; -1: no blocks are left")
#define BEL_FIELDS_row_pull(FIELD)                                                                 \
    FIELD(int64_t, version, "version on which the worker computes")                                \
    FIELD(int32_t, table, "table of the layout")                                                   \
    FIELD(int32_t, number, "index among the step's pulls of this table, from 0")
#define BEL_FIELDS_rows(FIELD)                                                                     \
    FIELD(int64_t, version, "the pull's version")                                                  \
    FIELD(int32_t, table, "the pull's table")                                                      \
    FIELD(int32_t, number, "the pull's number")
#define BEL_FIELDS_row_report(FIELD)                                                               \
    FIELD(int64_t, version, "version that the sums were computed on")                              \
    FIELD(uint32_t, decision, "the step's decision")                                               \
    FIELD(int32_t, table, "table of the layout")                                                   \
    FIELD(int32_t, node, "node of the assignment")                                                 \
    FIELD(int32_t, replicas, "replicas in the sums that had examples")                             \
    FIELD(int64_t, examples, "number of examples of those replicas")
#define BEL_FIELDS_answer(FIELD)                                                                   \
    FIELD(int64_t, number, "index of the answer, from 0")                                          \
    FIELD(int64_t, version, "version that shard 0 gave")                                           \
    FIELD(uint32_t, decision, "decision of the step that begins with that version")                \
    FIELD(int32_t, worker, "worker that was answered")                                             \
    FIELD(uint32_t, worker_incarnation, "incarnation of the process that was answered")

#define BEL_FIELDS_exchange(FIELD)                                                                 \
    FIELD(int64_t, version, "version on which the step is computed")                               \
    FIELD(int32_t, exchange, "index in the step, from 0; -1: no examples in this step")            \
    FIELD(int32_t, part, "index of the collective in the exchange, from 0")                        \
    FIELD(int32_t, piece, "piece of the collective's value, from 0")                               \
    FIELD(uint32_t, at, "the payload's offset in the worker's room")                               \
    FIELD(uint32_t, answer_at, "the answer's offset in the worker's room for answers")
#define BEL_FIELDS_exchanged(FIELD)                                                                \
    FIELD(int64_t, version, "the exchange's version")                                              \
    FIELD(int32_t, exchange, "the exchange's index")                                               \
    FIELD(int32_t, part, "the exchange's part")                                                    \
    FIELD(int32_t, piece, "the exchange's piece")                                                  \
    FIELD(uint32_t, at, "the exchange's `answer_at`")
#define BEL_FIELDS_room(FIELD)                                                                     \
    FIELD(int64_t, version, "version that the report is computed on")                              \
    FIELD(int32_t, parts, "parts that may be sent, with those before")
#define BEL_FIELDS_state(FIELD)                                                                    \
    FIELD(int64_t, version, "the chunk's version: the first of the generation, or the next one")   \
    FIELD(int32_t, chunk, "chunk of the layout")                                                   \
    FIELD(int32_t, array,                                                                          \
          "0, 1: values of the first version, of the next one; then slots, averages")
#define BEL_FIELDS_points(FIELD) FIELD(int32_t, count, "number of points")

// BEL_FRAME_REPORT = 1, …
typedef enum bel_frame_kind {
#define ENUMERATOR(NAME, name, number, way, what, carries) BEL_FRAME_##NAME = number,
    BEL_FRAME_KINDS(ENUMERATOR)
#undef ENUMERATOR
} bel_frame_kind;

// Bit set of the kinds that the step statistics follow on the same lane.
enum { BEL_FRAMES_OF_REPORT = 1 << BEL_FRAME_REPORT | 1 << BEL_FRAME_ROW_REPORT };

// For each kind a struct bel_NAME_frame of its fields, and
//
//   bel_frame bel_NAME_frame_write(bel_NAME_frame fields, const void *payload, size_t bytes)
//     Returns a frame that borrows the payload. The sender sets generation, incarnation and sender.
//   bel_NAME_frame bel_NAME_frame_read(const bel_frame *frame)
//     Returns the fields of a frame of this kind. They come from a peer and are not checked.
#define MEMBER(type, name, meaning) type name;
#define DECLARE(NAME, name, number, way, what, carries)                                            \
    typedef struct bel_##name##_frame {                                                            \
        BEL_FIELDS_##name(MEMBER)                                                                  \
    } bel_##name##_frame;                                                                          \
    bel_frame bel_##name##_frame_write(bel_##name##_frame fields, const void *payload,             \
                                       size_t bytes);                                              \
    bel_##name##_frame bel_##name##_frame_read(const bel_frame *frame);
BEL_FRAME_KINDS(DECLARE)
#undef DECLARE
#undef MEMBER

// Returns "report", …; "unknown" for kind 99.
const char *bel_frame_kind_name(uint32_t kind);

// Describes a frame for messages: "report, version 3, decision 0, chunk 1, …, 40 bytes".
enum { BEL_FRAME_WORDS_BYTES = 256 };
void bel_frame_words(const bel_frame *frame, char out_words[BEL_FRAME_WORDS_BYTES]);

#endif
