// Audit of a training run's reads: workers note each batch that they use for a step, and a check
// tells whether each record was read exactly once in each epoch.
//
// A checkpoint decides which notes count: by its step, and by its segments, which give the block
// that a replica reads in a step (base/input_segment.h). A step that was begun, lost and repeated
// is noted twice, with equal notes. Notes for later steps than the checkpoint's, or for another
// assignment of replicas than the final one, are not counted. So kills, resumed runs and other
// numbers of workers change nothing.
#ifndef BELFRY_INPUT_BATCH_AUDIT_H
#define BELFRY_INPUT_BATCH_AUDIT_H

#include "base/input_segment.h"
#include "input/batch/input.h"

#define BEL_AUDIT_FOLDER "audit" // below model_dir

// Writer of one worker's notes, to separate files in a folder. Thread-safe.
typedef struct bel_audit bel_audit;

// `block_end`: the first block that is not read. Errors of files.
bel_status *bel_audit_open(const char *folder, int worker, const bel_input *input,
                           int64_t block_end, bel_audit **out_audit) BEL_MUST_USE;
void bel_audit_close(bel_audit *audit); // accepts NULL

// Notes a batch that is about to be used. A note outlives the process, but not the machine.
bel_status *bel_audit_note(bel_audit *audit, int64_t step, int64_t replica,
                           const bel_batch *batch) BEL_MUST_USE;

// Steps that a checkpoint counts.
typedef struct bel_audit_scope {
    int64_t step; // steps below this one count
    const bel_input_segment *segments;
    int segment_count;
    uint64_t fingerprint; // the input's
} bel_audit_scope;

// Records that were read in one epoch.
typedef struct bel_audit_epoch {
    int64_t epoch;
    int64_t records; // records read, each once
    bool whole;      // the epoch was read completely
} bel_audit_epoch;

typedef struct bel_audit_result {
    bel_audit_epoch *epochs; // ascending
    int64_t epoch_count;
    int64_t blocks;      // blocks that count
    int64_t not_counted; // repeated notes, and notes for steps that were lost
    int64_t epoch_records;
} bel_audit_result;

// Reads all notes of a folder. NOT_FOUND: no notes. DATA_LOSS names the first batch that is missing
// or was noted in two ways; or the first record that was read twice, or not at all in an epoch
// before a complete one. Free the result with bel_audit_result_deinit.
bel_status *bel_audit_check(const char *folder, const bel_audit_scope *scope,
                            bel_audit_result *out_result) BEL_MUST_USE;
void bel_audit_result_deinit(bel_audit_result *result);

#endif
