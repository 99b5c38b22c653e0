// Verb rank: assigns this process, started by mpirun, srun or torchrun, the role of its rank in a
// cluster that a file or flags describe. Rank 0 is the master; the parameter servers, the workers
// and the evaluator follow. The process becomes belfry with that role, or the user's program.
// Without this verb all ranks but the first are workers (launch/task/task_launcher.h).
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/launcher.h"
#include "base/secret.h"
#include "base/str.h"
#include "command/verbs.h"
#include "launch/task/task_launcher.h"
#include "train/distribute.h"

// Ranks of a host are consecutive, so the plan determines which of them train.
static void count_local(const bel_plan *plan, const bel_launch *launch, bel_task *task)
{
    int first = launch->rank - launch->local_rank;
    task->local_rank = -1;
    task->local_size = 0;
    for (int i = first; i < first + launch->local_size && i < plan->process_count; i++) {
        if (plan->processes[i].towers == 0) continue;
        if (i == launch->rank) task->local_rank = task->local_size;
        task->local_size++;
    }
}

// Sets the environment that the cluster file has for all processes of a job.
static bel_status *set_environment(const bel_cluster *cluster, const bel_task *task)
{
    for (size_t i = 0; i < cluster->environment_count; i++) {
        char *item = bel_xstrdup(cluster->environment[i]), *equals = strchr(item, '=');
        *equals = '\0';
        setenv(item, equals + 1, 1);
        bel_free(item);
    }
    if (cluster->secret_file != NULL) {
        char *secret;
        BEL_TRY(bel_secret_read(cluster->secret_file, "secret_file", &secret));
        setenv("BELFRY_SECRET", secret, 1);
        unsetenv("BELFRY_SECRET_FILE");
        bel_free(secret);
    }
    bel_str text = {0};
    bel_task_write(task, &text);
    setenv("BELFRY_TASK", text.text, 1);
    bel_str_deinit(&text);
    return NULL;
}

static bel_status *take_place(const bel_plan *plan, const bel_launch *launch)
{
    if (launch->size != plan->process_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s has %d rank%s, and the cluster %d processes; expected as many: mpirun "
                       "-np %d belfry rank …",
                       launch->name != NULL ? launch->name : "this process, without a launcher,",
                       launch->size, launch->size == 1 ? "" : "s", plan->process_count,
                       plan->process_count);
    }
    if (plan->cluster->roles[BEL_ROLE_PS].copies > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "parameter_servers: copies is 1, but ranks are not started again: their "
                       "launcher ends all when one has died");
    }
    bel_task *task = bel_plan_task(plan, "ranks", launch->rank);
    task->recovers = false; // its launcher ends all processes when one has died
    task->min_workers = 0;
    count_local(plan, launch, task);
    bel_status *status = bel_task_set_rank(launch, task);
    if (status == NULL) status = set_environment(plan->cluster, task);
    bel_task_destroy(task);
    return status;
}

static bel_status *rank_run(const bel_options *options, const bel_words *words,
                            const bel_cluster *cluster, int *out_exit_code)
{
    bel_launch launch;
    bel_distribution distribution;
    BEL_TRY(bel_launch_find(BEL_CLUSTER_MOST, &launch));
    BEL_TRY(bel_distribution_init(&distribution, words, bel_options_string(options, "job_dir"),
                                  cluster));
    bel_status *status = distribution.asks ? NULL : take_place(distribution.plan, &launch);
    bel_distribution_deinit(&distribution);
    return status != NULL ? status : bel_words_run(words, options, out_exit_code);
}

bel_status *bel_verb_rank(const bel_options *options, int *out_exit_code)
{
    bel_words words = {0};
    bel_cluster *cluster;
    BEL_TRY(bel_cluster_from_flags(options, &cluster));
    bel_status *status = bel_words_from_flags(&words, options, 0);
    if (status == NULL) status = rank_run(options, &words, cluster, out_exit_code);
    bel_words_deinit(&words);
    bel_cluster_destroy(cluster);
    return status;
}
