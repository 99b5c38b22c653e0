// Backend with every role of a job in one process: shards, workers as threads, inproc lanes between
// them. Shards, clients and worker loop are those of a cluster; only the wiring differs.
#ifndef BELFRY_MASTER_BACKEND_EMBEDDED_H
#define BELFRY_MASTER_BACKEND_EMBEDDED_H

#include "master/backend/backend.h"
#include "trainable/trainable.h"

// Creates memory, shards and lanes; nothing runs yet. The trainable must outlive the backend.
// RESOURCE_EXHAUSTED: not enough memory.
bel_status *bel_embedded_create(const bel_trainable *trainable,
                                bel_backend **out_backend) BEL_MUST_USE;

// Before the first load: initializes rows of a table from the table `there` in a checkpoint of
// another training. They become the snapshot of that table. Errors: those of bel_table_warm_up.
bel_status *bel_embedded_warm_up_rows(bel_backend *backend, int table,
                                      const bel_ckpt_reader *reader,
                                      const char *there) BEL_MUST_USE;

#endif
