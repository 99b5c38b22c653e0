// From the settings of a run to the reports that make a step. Both training and --dry_run call it,
// so both give the same N and R. A sync job that wants at least one report from each worker needs
// no ledger: all workers count, and workers take turns for the surplus.
#include "ps/layout/counting.h"

bel_counting bel_counting_of(bel_counting_kind asked, int wanted, int accumulate, int workers,
                             int64_t max_lead)
{
    bool sync = asked == BEL_COUNTING_BACKUPS;
    if (sync && wanted == 0) wanted = accumulate * workers;
    if (sync && (wanted == 0 || wanted >= workers))
        return (bel_counting){
            .kind = BEL_COUNTING_ALL, .workers = wanted > 0 ? wanted : workers, .local_steps = 1};
    return (bel_counting){.kind = asked,
                          .workers = wanted > 0 ? wanted : 1,
                          .max_lead = asked == BEL_COUNTING_BOUNDED ? max_lead : 0,
                          .local_steps = 1};
}

int bel_counting_turns(const bel_counting *counting, int workers, int worker)
{
    if (counting->kind != BEL_COUNTING_ALL || counting->workers <= workers) return 1;
    return counting->workers / workers + (worker < counting->workers % workers ? 1 : 0);
}

int bel_counting_replicas(const bel_counting *counting, const int *replicas_of, int workers)
{
    if (bel_counting_takes_stale(counting)) return counting->workers * replicas_of[0];
    int replicas = 0;
    for (int w = 0; w < workers; w++)
        replicas += replicas_of[w];
    return replicas;
}
