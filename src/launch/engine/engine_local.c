// Engine "local": all processes on this host, under a detached supervisor (detached.h). A cluster
// file that names another host is refused, rather than run here, because a job for many machines
// would not fit on one.
#include "base/linux_host.h"
#include "base/str.h"
#include "launch/engine/detached.h"
#include "launch/engine/engines.h"

// Every named host must be this one.
static bel_status *engine_local_check(const bel_cluster *cluster)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        const bel_cluster_role *role = &cluster->roles[r];
        for (size_t i = 0; i < role->host_count; i++) {
            if (bel_linux_host_is_here(role->hosts[i])) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: host %s of the %s role is another machine, and here all processes "
                           "run on this one; leave hosts out, or submit the job with --engine ssh",
                           cluster->source, role->hosts[i], bel_role_name((bel_role)r));
        }
    }
    return NULL;
}

// The plan is the whole output.
static bel_status *engine_local_show(const bel_job_record *record, const bel_plan *plan,
                                     bel_str *out)
{
    (void)plan;
    bel_str_printf(out, "here, detached: belfry supervise %s\n", record->name);
    return NULL;
}

static bel_status *engine_local_submit(bel_job_record *record, const bel_plan *plan)
{
    enum { START_SECS = 30 };
    (void)plan; // the supervisor creates it
    return bel_detached_submit(record, START_SECS);
}

const bel_engine bel_engine_local = {
    .name = "local",
    .check = engine_local_check,
    .show = engine_local_show,
    .submit = engine_local_submit,
    .cancel = bel_detached_cancel,
};
