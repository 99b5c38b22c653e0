// The table of engines. The commands find an engine by the name in the job's record or by its
// index, and know no engine by themselves: a further one is a file of its own, a line in
// engines.h and a row here.
#include "launch/engine.h"

#include <poll.h>
#include <string.h>

#include "launch/engines.h"

static const bel_engine *const engines[] = {&bel_engine_local, &bel_engine_ssh, &bel_engine_slurm,
                                            &bel_engine_kubernetes};
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

bel_status *bel_engine_read_job(const char *name, bel_job_record **out_record)
{
    BEL_TRY(bel_registry_read(name, out_record));
    bel_job_record *record = *out_record;
    const bel_engine *engine = bel_engine_find(record->engine);
    bool open = !bel_job_state_is_final(record->state) || record->state == BEL_JOB_LOST;
    bool asked = engine != NULL && engine->look != NULL && record->engine_id[0] != '\0' && open;
    bel_status *status = asked ? engine->look(record) : NULL;
    if (status == NULL) return NULL;
    bel_job_record_destroy(record);
    *out_record = NULL;
    return status;
}

void bel_engine_pause(const bel_job_record *record)
{
    const bel_engine *engine = bel_engine_find(record->engine);
    bool says = engine != NULL && engine->pause_ms > 0;
    poll(NULL, 0, says ? engine->pause_ms : BEL_ENGINE_PAUSE_MS);
}
