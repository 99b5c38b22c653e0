// Layout and program of a job, only for their sizes: the model is built as for training, its
// program is compiled for a full batch, and nothing runs. The number of workers is set in the
// estimator itself, so do not train with it afterwards. Shards are measured by the real layout,
// because one large variable makes them uneven.
#include "trainable/measure.h"

#include "base/alloc.h"
#include "optim/rule.h"
#include "ps/layout/assignment.h"
#include "ps/layout/row_buffer.h"
#include "runtime/program.h"
#include "trainable/trainable_inner.h"

// Fills in the plan's sizes from the real layout; row sizes are worker 0's.
bel_status *bel_trainable_measure(const bel_trainable *t, bel_plan_sizes *sizes,
                                  int64_t **out_shard_bytes)
{
    *sizes = (bel_plan_sizes){0};
    const bel_layout *layout = t->layout;
    const bel_program_options options = bel_estimator_program_options(t->estimator);
    BEL_TRY(bel_trainable_arena_bytes(t, &options, &sizes->activation_bytes));
    int kept = bel_optimizers_kept(t->built->optimizers);
    sizes->parameters = layout->parameters;
    if (bel_counting_is_local(&t->counting)) {
        kept = t->built->optimizers->main.moving_average_decay > 0 ? 1 : 0;
        for (int v = 0; v < layout->variable_count; v++)
            sizes->exchanged += layout->variables[v].elements;
        sizes->activation_bytes += layout->parameters * (int64_t)sizeof(float);
    }
    sizes->slot_elements = layout->parameters * kept;
    sizes->rounding = bel_trainable_rounding(t);
    if (layout->table_count > 0) {
        BEL_TRY(bel_row_buffer_check(layout, t->estimator->replica_count));
        bel_assignment *assignment =
            bel_assignment_create(t->estimator->replicas_of, t->estimator->config.num_workers);
        sizes->row_bytes = (int64_t)(bel_row_buffer_bytes(layout, assignment, 0) +
                                     bel_row_buffer_answer_bytes(layout, assignment, 0));
        bel_assignment_destroy(assignment);
    }
    int shards = t->estimator->config.parameter_server_count; // some may hold nothing
    int64_t *bytes = bel_xcalloc((size_t)shards, sizeof *bytes);
    for (int c = 0; c < layout->chunk_count; c++)
        bytes[layout->chunks[c].shard] += layout->chunks[c].count * (int64_t)sizeof(float);
    sizes->shard_bytes = *out_shard_bytes = bytes;
    return NULL;
}

bel_status *bel_estimator_measure(bel_estimator *estimator, const bel_train_spec *train,
                                  int worker_count, int shard_count, bel_plan_sizes *out_sizes,
                                  int64_t **out_shard_bytes)
{
    BEL_TRY(bel_estimator_place(estimator, worker_count, NULL, shard_count, 1));
    bel_trainable trainable;
    bel_plan_sizes sizes;
    bel_status *status = bel_trainable_init(&trainable, estimator, train);
    if (status == NULL) status = bel_trainable_measure(&trainable, &sizes, out_shard_bytes);
    bel_trainable_deinit(&trainable);
    if (status == NULL) *out_sizes = sizes;
    return status;
}
