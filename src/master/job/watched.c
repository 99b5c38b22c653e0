// Evaluation and metric of a rule (early stopping, the best checkpoint). Both are checked before
// training begins, so that a wrong name does not show only after hours. Both rules name them alike,
// so they share this check.
#include <string.h>

#include "evaluate/goal.h"
#include "master/job/job.h"

bool bel_job_is_named(const char *folder, const char *name)
{
    if (name == NULL) return strcmp(folder, "eval") == 0;
    return strncmp(folder, "eval_", 5) == 0 && strcmp(folder + 5, name) == 0;
}

bel_status *bel_job_check_metric(const bel_job *job, const char *user, const char *name,
                                 const char *metric)
{
    for (int i = 0; i < job->evals.count; i++) {
        const bel_job_eval *eval = &job->evals.items[i];
        if (!bel_job_is_named(eval->folder, name)) continue;
        return bel_goal_check_metric(&eval->built->spec, metric, user, eval->folder);
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: there is no evaluation %s", user,
                   name != NULL ? name : "without a name");
}
