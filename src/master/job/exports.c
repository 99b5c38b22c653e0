// The master's exporters (export/exporters.h): the checkpoints that are kept after an
// evaluation. An exporter copies a checkpoint, so an evaluated version without one is saved first.
// Names of exporters are folders. They are checked before the first step, as two equal ones would
// overwrite each other. The watchdog must rest while files are written.
#include "master/backend/watchdog.h"
#include "master/job/job.h"

bel_status *bel_job_take_exporters(bel_job *job, const bel_eval_spec *own)
{
    for (int i = 0; i < job->evals.count; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        BEL_TRY(bel_exporters_init(&eval->exporters, job->estimator, eval->spec, eval->folder,
                                   &eval->built->spec));
    }
    BEL_TRY(bel_exporters_check_names(own, job->evals.count));
    return bel_exporters_check_names(job->evaluator.specs, job->evaluator.count);
}

// Rests the watchdog: a large model on a slow disk takes long, and is no hang.
static void export_chosen(bel_job *job, bel_exporters *exporters, unsigned chosen,
                          const bel_result *result)
{
    bel_watchdog_feed(job->cluster.watchdog, true);
    bel_exporters_keep(exporters, chosen, result);
    bel_watchdog_feed(job->cluster.watchdog, false);
}

bel_status *bel_job_export(bel_job *job, bel_job_eval *eval, const bel_result *result, bool over)
{
    unsigned chosen = bel_exporters_choose(&eval->exporters, result, over);
    if (chosen == 0) return NULL;
    if (job->steps.saved != result->global_step) BEL_TRY(bel_job_save(job, result->global_step));
    export_chosen(job, &eval->exporters, chosen, result);
    return NULL;
}

void bel_job_export_saved(bel_job *job, bel_exporters *exporters, const bel_result *result,
                          bool over)
{
    unsigned chosen = bel_exporters_choose(exporters, result, over);
    if (chosen != 0) export_chosen(job, exporters, chosen, result);
}
