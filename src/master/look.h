// What the master shows of the running job, once a second: the metrics on its HTTP port, and in a
// cluster the file board.json in the model's folder. Bound to the master's thread.
#ifndef BELFRY_MASTER_LOOK_H
#define BELFRY_MASTER_LOOK_H

#include "estimator/estimator_inner.h"
#include "launch/task.h"
#include "master/crew.h"

typedef struct bel_look bel_look;

// Opens the port, when the configuration asks for one, and says which. `task` is NULL in one
// process. UNAVAILABLE: the port is taken.
bel_status *bel_look_create(const bel_estimator *estimator, const bel_task *task,
                            bel_look **out_look) BEL_MUST_USE;

// Looks again when a second has passed since the last time, or at once with `now`.
void bel_look_again(bel_look *look, bel_crew *crew, int64_t last_step, bool now);

// The workers have ended: says which was the slowest, when one was.
void bel_look_end(bel_look *look, bel_crew *crew, int64_t last_step);

void bel_look_destroy(bel_look *look); // NULL is fine

#endif
