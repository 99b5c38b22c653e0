// The frames between workers and parameter servers: one struct for each kind, and its way into the
// fields of a lane's frame and out of them again.
//
// The tables below are the one place where a kind and its fields are written. The structs, their
// writers and readers, the words of error messages and the table in docs/protocol.md (by
// tools/protocol-tables) are made of them. Fields are packed in the order in which they stand, each
// little-endian in as many bytes as its type has. A field means one thing, and only in its kind.
//
// To add a kind: a row in BEL_FRAME_KINDS, a list BEL_FIELDS_<name>, and code that takes it.
#ifndef BELFRY_PS_FRAMES_FRAMES_H
#define BELFRY_PS_FRAMES_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "transport/lane.h"

// What all do at a step; decided by shard 0, repeated in every report.
enum {
    BEL_DECIDE_SAVE = 1,       // the update of this step also streams into the snapshot
    BEL_DECIDE_STOP = 2,       // this step is not run: training ends at this version
    BEL_DECIDE_CHECK = 4,      // workers hash the parameters that they compute this step on
    BEL_DECIDE_FUNCTION = 256, // times the number of the step function that is run
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

// The first block of a lease that says: there are none left.
enum { BEL_LEASE_NONE = -1 };

// KIND(NAME, name, number, from → to, what it says, payload)
#define BEL_FRAME_KINDS(KIND)                                                                      \
    KIND(REPORT, report, 1, "worker → shard", "one node's sums of one chunk", "f32 sums")          \
    KIND(STATS, stats, 2, "worker → shard", "one node's step statistics; its report is complete",  \
         "f64 statistics")                                                                         \
    KIND(VERSION, version, 3, "shard → worker, master", "a version is published", "none")          \
    KIND(NORMS, norms, 4, "shard → shard 0", "sums of squares of its grains", "f64 sums")          \
    KIND(FACTORS, factors, 5, "shard 0 → shard", "factors of clipping or trust",                   \
         "f32 factors, by variable")                                                               \
    KIND(PARAMS, params, 6, "shard → worker, master",                                              \
         "a chunk's values, where memory is not shared", "f32 values")                             \
    KIND(PULL, pull, 7, "worker → shard", "a worker begins at this version", "none")               \
    KIND(COUNTS, counts, 8, "shard 0 → shard", "one worker that counts in a step", "none")         \
    KIND(LEASE, lease, 9, "shard 0 → worker", "the blocks of one step are the worker's", "none")   \
    KIND(ROW_PULL, row_pull, 10, "worker → shard", "rows of a table that it wants",                \
         "i64 keys, ascending")                                                                    \
    KIND(ROWS, rows, 11, "shard → worker", "those rows, in that order", "f32 rows")                \
    KIND(ROW_REPORT, row_report, 12, "worker → shard", "one node's sums of rows of a table",       \
         "row set")                                                                                \
    KIND(ANSWER, answer, 13, "shard 0 → shard", "give this worker your values of this version",    \
         "none")                                                                                   \
    KIND(EXCHANGE, exchange, 14, "worker → shard 0", "its part of a collective",                   \
         "head, slots, elements")                                                                  \
    KIND(EXCHANGED, exchanged, 15, "shard 0 → worker", "what it is given of a collective",         \
         "slots, elements")

// FIELD(type, name, meaning)
#define BEL_FIELDS_report(FIELD)                                                                   \
    FIELD(int64_t, version, "that the sums were computed on")                                      \
    FIELD(uint32_t, decision, "of the step: 1 save, 2 stop, 4 check, 256 · its function")          \
    FIELD(int32_t, chunk, "of the layout")                                                         \
    FIELD(int32_t, node, "of the assignment")                                                      \
    FIELD(int32_t, replicas, "in the sums that had examples")                                      \
    FIELD(int64_t, examples, "of those replicas")
#define BEL_FIELDS_stats(FIELD)                                                                    \
    FIELD(int64_t, version, "that the step was computed on")                                       \
    FIELD(uint32_t, decision, "of the step")                                                       \
    FIELD(int32_t, node, "of the assignment")                                                      \
    FIELD(uint64_t, hash, "of the parameters of that version, where the decision says check")
#define BEL_FIELDS_version(FIELD)                                                                  \
    FIELD(int64_t, version, "that is published")                                                   \
    FIELD(uint32_t, decision, "shard 0: of the step that begins with it")                          \
    FIELD(int32_t, chunks, "params frames that belong to it")                                      \
    FIELD(int32_t, buffer, "0 or 1: where it lies in memory that is shared")
#define BEL_FIELDS_norms(FIELD) FIELD(int64_t, step, "that is made")
#define BEL_FIELDS_factors(FIELD) FIELD(int64_t, step, "that is made")
#define BEL_FIELDS_params(FIELD)                                                                   \
    FIELD(int64_t, version, "that the values belong to")                                           \
    FIELD(int32_t, chunk, "of the layout")
#define BEL_FIELDS_pull(FIELD)                                                                     \
    FIELD(int64_t, version, "on which it begins; with a ledger 0: whatever is newest")
#define BEL_FIELDS_counts(FIELD)                                                                   \
    FIELD(int64_t, step, "that is made")                                                           \
    FIELD(uint32_t, decision, "of the step")                                                       \
    FIELD(int32_t, worker, "that counts in it")                                                    \
    FIELD(int32_t, needed, "so many workers count in it")                                          \
    FIELD(int64_t, answers, "given before the step was closed")
#define BEL_FIELDS_lease(FIELD)                                                                    \
    FIELD(int64_t, number, "of the worker's leases, from 0")                                       \
    FIELD(int64_t, first_block, "-1: none are left")
#define BEL_FIELDS_row_pull(FIELD)                                                                 \
    FIELD(int64_t, version, "on which the worker computes")                                        \
    FIELD(int32_t, table, "of the layout")                                                         \
    FIELD(int32_t, number, "of the pulls of this table in this step, from 0")
#define BEL_FIELDS_rows(FIELD)                                                                     \
    FIELD(int64_t, version, "of the pull")                                                         \
    FIELD(int32_t, table, "of the pull")                                                           \
    FIELD(int32_t, number, "of the pull")
#define BEL_FIELDS_row_report(FIELD)                                                               \
    FIELD(int64_t, version, "that the sums were computed on")                                      \
    FIELD(uint32_t, decision, "of the step")                                                       \
    FIELD(int32_t, table, "of the layout")                                                         \
    FIELD(int32_t, node, "of the assignment")                                                      \
    FIELD(int32_t, replicas, "in the sums that had examples")                                      \
    FIELD(int64_t, examples, "of those replicas")
#define BEL_FIELDS_answer(FIELD)                                                                   \
    FIELD(int64_t, number, "of the answers, from 0")                                               \
    FIELD(int64_t, version, "that shard 0 gave")                                                   \
    FIELD(uint32_t, decision, "of the step that begins with it")                                   \
    FIELD(int32_t, worker, "that was answered")                                                    \
    FIELD(uint32_t, worker_incarnation, "of the process that was answered")

#define BEL_FIELDS_exchange(FIELD)                                                                 \
    FIELD(int64_t, version, "on which the step is computed")                                       \
    FIELD(int32_t, exchange, "of the step, from 0; -1: it has no examples in this step")           \
    FIELD(int32_t, part, "of the exchange: a collective, from 0")                                  \
    FIELD(int32_t, piece, "of the collective's value, from 0")                                     \
    FIELD(uint32_t, at, "offset of the payload in the worker's room")                              \
    FIELD(uint32_t, answer_at, "where in its room for answers the answer shall lie")
#define BEL_FIELDS_exchanged(FIELD)                                                                \
    FIELD(int64_t, version, "of the exchange")                                                     \
    FIELD(int32_t, exchange, "of the exchange")                                                    \
    FIELD(int32_t, part, "of the exchange")                                                        \
    FIELD(int32_t, piece, "of the exchange")                                                       \
    FIELD(uint32_t, at, "answer_at of the exchange")

// BEL_FRAME_REPORT = 1, …
typedef enum bel_frame_kind {
#define ENUMERATOR(NAME, name, number, way, what, carries) BEL_FRAME_##NAME = number,
    BEL_FRAME_KINDS(ENUMERATOR)
#undef ENUMERATOR
} bel_frame_kind;

// For each kind a struct bel_NAME_frame of its fields, and
//
//   bel_frame bel_NAME_frame_write(bel_NAME_frame fields, const void *payload, size_t bytes)
//     A frame that borrows the payload; its sender fills in generation, incarnation and sender.
//   bel_NAME_frame bel_NAME_frame_read(const bel_frame *frame)
//     The fields of a frame of this kind. They are a peer's word: nothing was checked.
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

// "report", …; "kind 99" is "unknown".
const char *bel_frame_kind_name(uint32_t kind);

// What a frame says, for messages: "report, version 3, decision 0, chunk 1, …, 40 bytes".
enum { BEL_FRAME_WORDS_BYTES = 256 };
void bel_frame_words(const bel_frame *frame, char out_words[BEL_FRAME_WORDS_BYTES]);

#endif
