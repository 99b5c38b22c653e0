// Data that turned out to be damaged after training had begun on it (store/partial.h). The error
// ends the job, and the checkpoints that were made of it stay. So the model folder gets a mark,
// which the next training in it finds, on any host.
#include "checkpoint/damage.h"

#include "base/alloc.h"
#include "base/log.h"
#include "checkpoint/folder.h"
#include "input/batch/input.h"
#include "master/job/job.h"

static bel_status *refuse(const char *model_dir, const char *what)
{
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: its checkpoints were made of damaged data: %s; hint: remove the "
                   "checkpoints and caches that were made of them since then, and make %s of this "
                   "folder an empty file",
                   model_dir, what, BEL_DAMAGE_FILE);
}

// The user lifts the mark, by an empty file. No flag does: flags stay in job files, and a launcher
// repeats them. Without any checkpoint it lifts itself.
bel_status *bel_job_check_damage(const bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    char *what = NULL;
    int64_t *steps = NULL;
    size_t count = 0;
    BEL_TRY(bel_ckpt_damage_read(config->model_dir, &what));
    if (what == NULL) return NULL;
    bel_status *status = bel_ckpt_list(config->model_dir, &steps, &count);
    if (status == NULL && count > 0) status = refuse(config->model_dir, what);
    if (status == NULL) {
        bel_log_write(BEL_LOG_WARN, "%s: the mark of damaged data is lifted: %s", config->model_dir,
                      what);
        status = bel_ckpt_damage_write(config->model_dir, "");
    }
    bel_free(steps);
    bel_free(what);
    return status;
}

void bel_job_note_damage(bel_job *job)
{
    char *what = NULL;
    if (job->damage_is_noted) return;
    if (job->backend != NULL && job->backend->damage != NULL)
        what = bel_xstrdup(job->backend->damage);
    else if (job->trainable.input != NULL)
        what = bel_input_damage(job->trainable.input);
    if (what == NULL) return;
    bel_status *status = bel_ckpt_damage_write(job->estimator->config.model_dir, what);
    job->damage_is_noted = true; // one try: a warning reports its error
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "the model folder has no mark of damaged data: %s",
                      bel_status_message(status));
    bel_status_ignore(status); // the job's error is reported
    bel_free(what);
}
