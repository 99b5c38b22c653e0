// Runs the program's loop (belfry/replica.h) beside the master: a thread that requests steps, and
// functions for the master's thread, which checks its progress and ends it.
//
// Requests of the loop are kept by version until the step is made, with the loop's memory before
// each. So a checkpoint has the memory of its version, however far ahead the loop is, and steps
// that a pause has skipped are requested again.
#ifndef BELFRY_MASTER_JOB_REPLICATOR_H
#define BELFRY_MASTER_JOB_REPLICATOR_H

#include "ps/server/control.h"
#include "trainable/trainable.h"

// Requests a step from shard 0. Called on the loop's thread, or the master's.
typedef void bel_replicator_ask(void *context, int64_t version, int function, bool wanted);

typedef struct bel_replicator_look {
    bool returned;    // the loop has finished
    int64_t asked;    // version on which its next step would be made
    double idle_secs; // since it could request a step and has not; 0: steps are under way
} bel_replicator_look;

// The spec must have a loop, which is copied. The trainable must outlive the replicator.
bel_replicator *bel_replicator_create(const bel_trainable *trainable, const bel_train_spec *spec);

// Ends a running loop with bel_replicator_end.
void bel_replicator_destroy(bel_replicator *replicator);

// The loop's memory as a hook for checkpoints; state_bytes is 0 if it has none. Reading a
// checkpoint fills it before bel_replicator_start.
bel_hook bel_replicator_hook(bel_replicator *replicator);

// Loads how often each step function had run, in the format of checkpoints ("120,40"; NULL:
// unknown). INVALID_ARGUMENT: it is malformed.
bel_status *bel_replicator_load_runs(bel_replicator *replicator, const char *text) BEL_MUST_USE;

// Continues training from `step`. A waiting loop continues (after a pause); otherwise the loop
// starts, with its memory from the hook. RESOURCE_EXHAUSTED: no thread.
bel_status *bel_replicator_start(bel_replicator *replicator, int64_t step, bel_replicator_ask *ask,
                                 void *context) BEL_MUST_USE;

// Callback for bel_control_config.made, with the replicator as context. Any thread.
void bel_replicator_made(void *replicator, const bel_control_made *made);

// Blocks requests until the next start: the loop waits.
void bel_replicator_pause(bel_replicator *replicator);

bel_replicator_look bel_replicator_look_at(bel_replicator *replicator);

// For a loop that waits for something else before its next step: its memory is that of the version
// on which this will be made, so that the version can be saved meanwhile. The loop has not hung, as
// of this call.
void bel_replicator_rest(bel_replicator *replicator);

// Returns true if the loop's thread did not return at its end: it still uses what the loop uses.
// NULL: false.
bool bel_replicator_still_runs(const bel_replicator *replicator);

// Returns true if bel_replicator_run would fail now.
bool bel_replicator_ends(bel_replicator *replicator);

// Makes bel_replicator_run fail from now on, with this code and words, and waits for the loop's
// thread, up to `secs`. *out_error is the loop's error, or NULL. DEADLINE_EXCEEDED: it does not
// return.
bel_status *bel_replicator_end(bel_replicator *replicator, bel_code code, const char *words,
                               double secs, bel_status **out_error) BEL_MUST_USE;

// Copies the loop's memory before the step on `version` to the hook, and the runs of each function
// by then to `text` (in the format of bel_replicator_load_runs; "" for a single one). False: the
// loop has not yet reached that version.
enum { BEL_RUNS_TEXT = 24 * BEL_MAX_STEP_FUNCTIONS };
bool bel_replicator_recall(bel_replicator *replicator, int64_t version, char *text);

#endif
