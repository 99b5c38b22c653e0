// Every role of a job in one process: shards, workers as threads, inproc lanes between them. The
// same shards, clients and worker loop as in a cluster; only this wiring is different.
#ifndef BELFRY_MASTER_EMBEDDED_H
#define BELFRY_MASTER_EMBEDDED_H

#include "estimator/trainable.h"
#include "master/backend.h"

// Memory, shards and lanes; nothing runs yet. The trainable must outlive the backend.
// RESOURCE_EXHAUSTED: no memory for them.
bel_status *bel_embedded_create(const bel_trainable *trainable,
                                bel_backend **out_backend) BEL_MUST_USE;

// Before the first load: rows of a table begin with the values of those that are called `there` in
// a checkpoint of another training, and are the snapshot of that table. Errors: those of
// bel_table_warm_up.
bel_status *bel_embedded_warm_up_rows(bel_backend *backend, int table,
                                      const bel_ckpt_reader *reader,
                                      const char *there) BEL_MUST_USE;

#endif
