// The loop of a program's own (belfry/replica.h) beside the master: a thread that asks for steps,
// and the master's thread, which looks at how far it has come and ends it.
//
// What the loop has asked for is kept by version until the step is made, with the loop's memory as
// it was before each: so a checkpoint has the memory of its version, however far ahead the loop is,
// and steps that a paused training has not made are asked for again.
#ifndef BELFRY_MASTER_REPLICATOR_H
#define BELFRY_MASTER_REPLICATOR_H

#include "estimator/trainable.h"
#include "ps/server/control.h"

// Asks shard 0 for a step. Called on the loop's thread, or the master's.
typedef void bel_replicator_ask(void *context, int64_t version, int function, bool wanted);

typedef struct bel_replicator_look {
    bool returned;    // the loop is over
    int64_t asked;    // the version on which its next step would be made
    double idle_secs; // since it could ask for a step and has not; 0: steps are under way
} bel_replicator_look;

// The spec must have a loop. Everything must outlive the replicator.
bel_replicator *bel_replicator_create(const bel_trainable *trainable, const bel_train_spec *spec);

// Ends the loop as bel_replicator_end does, if it runs.
void bel_replicator_destroy(bel_replicator *replicator);

// The memory of the loop as the hook that checkpoints keep it with; state_bytes is 0 where it has
// none. Reading a checkpoint fills it before bel_replicator_start.
bel_hook bel_replicator_hook(bel_replicator *replicator);

// How often each step function had run, as a checkpoint says it ("120,40"; NULL: nothing is said).
// INVALID_ARGUMENT: it is malformed.
bel_status *bel_replicator_load_runs(bel_replicator *replicator, const char *text) BEL_MUST_USE;

// Training goes on from `step`: a loop that waits goes on where it is (after a pause); else it
// begins, with its memory as the hook has it. RESOURCE_EXHAUSTED: no thread.
bel_status *bel_replicator_start(bel_replicator *replicator, int64_t step, bel_replicator_ask *ask,
                                 void *context) BEL_MUST_USE;

// For bel_control_config.made, with the replicator as context. Any thread.
void bel_replicator_made(void *replicator, const bel_control_made *made);

// Nothing can be asked for until the next start: the loop waits.
void bel_replicator_pause(bel_replicator *replicator);

bel_replicator_look bel_replicator_look_at(bel_replicator *replicator);

// bel_replicator_run fails from now on, with this code and words, and the loop's thread is waited
// for, up to `secs`. *out_error is the loop's own error, or NULL. DEADLINE_EXCEEDED: it does not
// return.
bel_status *bel_replicator_end(bel_replicator *replicator, bel_code code, const char *words,
                               double secs, bel_status **out_error) BEL_MUST_USE;

// Brings the memory of the loop before the step on `version` into the hook's, and how often each
// function had run by then into `text` (as bel_replicator_load_runs reads it; "" with a single
// one). False: the loop has not yet come there.
enum { BEL_RUNS_TEXT = 24 * BEL_MAX_STEP_FUNCTIONS };
bool bel_replicator_recall(bel_replicator *replicator, int64_t version, char *text);

#endif
