// Verb jobs scale: writes a request into the job's model folder, which its supervisor and its
// master find; the command does not wait for them. The possible counts follow from the job's words
// and its cluster file. The job's folder has copies of both, from which this verb makes the plan
// again. On the command line workers do not include a master that trains, in the request they do.
// Settings of a user's program are unknown here: its master reports that it cannot meet the
// request.
#include "base/alloc.h"
#include "base/linux_host.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "cuda/choose.h"
#include "jobs/job_text.h"
#include "launch/engine/engine.h"
#include "launch/folder/scale.h"
#include "setup/setup.h"
#include "train/distribute.h"

// Returns the number of replicas R, which is constant: a worker plays at least one of them.
static int most_workers(const bel_distribution *distribution)
{
    const bel_plan *plan = distribution->plan;
    if (bel_options_bool(distribution->training, "elastic_rescale")) return BEL_CLUSTER_MOST;
    return plan->replica_count < BEL_CLUSTER_MOST ? plan->replica_count : BEL_CLUSTER_MOST;
}

// For a job whose workers are all on this host: a worker that finds no GPU would end the job.
static bel_status *check_cards(const bel_job_record *record, const bel_distribution *distribution,
                               int workers)
{
    const bel_options *training = distribution->training;
    const bel_plan *plan = distribution->plan;
    bool shared = bel_options_bool(training, "virtual_devices");
    if (shared || workers <= plan->worker_count || bel_setup_card_count(training) == 0) return NULL;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *its = &plan->processes[i];
        if (its->towers > 0 && its->host != NULL && !bel_linux_host_is_here(its->host)) return NULL;
    }
    int towers = bel_plan_towers(plan, workers),
        cards = bel_cards_count(bel_options_string(training, "gpus"));
    if (cards == 0 || towers <= cards) return NULL; // without GPUs they share the processor
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "job %s: %d workers have %d towers, and here are %d GPUs for them; hint: a job "
                   "that is submitted with --virtual_devices lets towers share GPUs",
                   record->name, workers, towers, cards);
}

// Servers are another matter than workers: replicas do not depend on their number.
static bel_status *check_servers(const bel_job_record *record, const bel_cluster *cluster,
                                 int servers)
{
    const bel_engine *engine = bel_engine_find(record->engine);
    int submitted = cluster->roles[BEL_ROLE_PS].count;
    if (engine == NULL || !engine->fixed_size || servers <= submitted) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "job %s of engine %s has room for the %d parameter servers with which it was "
                   "submitted, got %d",
                   record->name, engine->name, submitted, servers);
}

static bel_status *check_workers(const bel_job_record *record, const bel_distribution *distribution,
                                 int workers)
{
    char *what = bel_strf("job %s cannot be scaled", record->name);
    bel_status *status =
        bel_distribution_check_elastic(distribution->training, distribution->plan, what);
    bel_free(what);
    int most = most_workers(distribution), submitted = distribution->plan->worker_count;
    const bel_engine *engine = bel_engine_find(record->engine);
    if (status == NULL && engine != NULL && engine->fixed_size && workers > submitted) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "job %s of engine %s has room for the %d workers with which it was "
                       "submitted, got %d",
                       record->name, engine->name, submitted, workers);
    }
    if (status != NULL) return status;
    if (workers <= most) return check_cards(record, distribution, workers);
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "job %s has %d replicas in a step and each worker plays at least one, so %d "
        "workers%s are the most, got %d; hint: with --elastic_rescale replicas follow the "
        "workers",
        record->name, most, most,
        distribution->plan->cluster->master_trains ? ", the master among them," : "", workers);
}

// Checks and writes the request, with the numbers that are in force already. Checks of workers see
// the number of servers that the job has or will have.
static bel_status *request(const bel_job_record *record, bel_cluster *cluster,
                           const bel_words *words, bel_scale asked)
{
    bel_scale wish = asked, before = bel_scale_read(record->model_dir);
    if (wish.workers > 0 && cluster->master_trains) wish.workers++;
    if (wish.servers == 0) wish.servers = before.servers;
    BEL_TRY(check_servers(record, cluster, wish.servers));
    if (wish.servers > 0)
        BEL_TRY(bel_distribution_scale(words, record->model_dir, cluster, wish.servers));
    bel_distribution distribution;
    BEL_TRY(bel_distribution_init(&distribution, words, record->model_dir, cluster));
    bel_status *status = NULL;
    if (wish.workers > 0) status = check_workers(record, &distribution, wish.workers);
    if (wish.workers == 0) wish.workers = before.workers;
    if (status == NULL) status = bel_scale_write(record->model_dir, wish);
    bel_distribution_deinit(&distribution);
    return status;
}

// `asked`: as on the command line, where workers do not include a master that trains.
static bel_status *scale(const bel_job_record *record, bel_cluster *cluster, bel_scale asked)
{
    bel_words words = {0};
    bel_words_from_record(&words, record);
    bel_status *status = request(record, cluster, &words, asked);
    bel_words_deinit(&words);
    if (status != NULL) return status;
    bel_str text = {0};
    bel_str_printf(&text, "job %s was asked to continue with", record->name);
    if (asked.workers > 0)
        bel_str_printf(&text, " %d worker%s", asked.workers, asked.workers == 1 ? "" : "s");
    if (asked.servers > 0) {
        bel_str_printf(&text, "%s %d parameter server%s", asked.workers > 0 ? " and" : "",
                       asked.servers, asked.servers == 1 ? "" : "s");
    }
    bel_str_puts(&text, "\n");
    status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *check_running(const bel_job_record *record)
{
    const bel_engine *engine = bel_engine_find(record->engine);
    if (engine != NULL && engine->far) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "job %s is one of engine %s, which does not change the number of processes",
                       record->name, engine->name);
    }
    if (record->state == BEL_JOB_RUNNING) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "job %s is %s: there is nothing to scale", record->name,
                   bel_job_state_name(record->state));
}

bel_status *bel_verb_jobs_scale(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    const char *name;
    BEL_TRY(bel_job_take_name(options, false, &name));
    bel_scale asked = {0};
    if (bel_options_is_given(options, "worker_count"))
        asked.workers = (int)bel_options_int(options, "worker_count");
    if (bel_options_is_given(options, "parameter_server_count"))
        asked.servers = (int)bel_options_int(options, "parameter_server_count");
    if (asked.workers == 0 && asked.servers == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--worker_count or --parameter_server_count is needed: the number of "
                       "workers or parameter servers to continue with");
    }
    bel_job_record *record;
    bel_cluster *cluster;
    BEL_TRY(bel_engine_read_job(name, &record));
    bel_status *status = check_running(record);
    if (status == NULL) status = bel_job_record_cluster(record, &cluster);
    if (status == NULL) {
        status = scale(record, cluster, asked);
        bel_cluster_destroy(cluster);
    }
    bel_job_record_destroy(record);
    return status;
}
