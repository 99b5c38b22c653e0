// Table of engines. The commands find an engine by the name in the job's record or by its index,
// and name no engine themselves. A new engine is one file, a line in engines.h and a row here.
#include "launch/engine/engine.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/engine/engines.h"

static const bel_engine *const engines[] = {&bel_engine_local, &bel_engine_ssh, &bel_engine_mpi,
                                            &bel_engine_slurm, &bel_engine_kubernetes};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

const bel_engine *bel_engine_at(int index)
{
    return index >= 0 && index < ENGINE_COUNT ? engines[index] : NULL;
}

const bel_engine *bel_engine_find(const char *name)
{
    for (int i = 0; i < ENGINE_COUNT; i++)
        if (strcmp(engines[i]->name, name) == 0) return engines[i];
    return NULL;
}

void bel_engine_place(const bel_engine *engine, bel_plan *plan)
{
    if (engine->reach != NULL || engine->far) bel_plan_move(plan, engine->apart);
}

void bel_engine_look(bel_job_record *record)
{
    const bel_engine *engine = bel_engine_find(record->engine);
    // The engine may restart a stopped job.
    bool open = !bel_job_state_is_final(record->state) || record->state == BEL_JOB_LOST ||
                record->state == BEL_JOB_CANCELLED;
    bool asked = engine != NULL && engine->look != NULL && record->engine_id[0] != '\0' && open;
    bel_status *status = asked ? engine->look(record) : NULL;
    if (status != NULL && !bel_job_state_is_final(record->state)) {
        bel_free(record->message);
        record->message =
            bel_strf("engine %s cannot be asked: %s", record->engine, bel_status_message(status));
    }
    bel_status_ignore(status); // in the message, or no longer of interest
}

bel_status *bel_engine_read_job(const char *name, bel_job_record **out_record)
{
    BEL_TRY(bel_registry_read(name, out_record));
    bel_engine_look(*out_record);
    return NULL;
}
