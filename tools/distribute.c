// From flags to words, a cluster and a plan. The words are the command line of every process of
// the job, and are also what a job's record keeps: whoever starts, supervises or scales a job
// makes its plan from the same words and the same cluster file.
//
// Their order decides who wins: what the cluster says of training comes first, then what stands
// behind "--", then flags that hold for the command and for what it starts. Flags that count
// parts of one process are refused unless they say what the cluster has, so that none goes
// unread.
#include "distribute.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "flags.h"
#include "verbs.h"

// --- Words --------------------------------------------------------------------------------------

void bel_words_add(bel_words *words, const char *text)
{
    words->items =
        bel_xgrow(words->items, &words->capacity, words->count + 2, sizeof *words->items);
    words->items[words->count++] = bel_xstrdup(text);
    words->items[words->count] = NULL;
}

static void add_flag(bel_words *words, const char *name, const char *value)
{
    char *text = bel_strf("--%s=%s", name, value);
    bel_words_add(words, text);
    bel_free(text);
}

// Flags that hold for the program and for what it starts. Those behind "--" come first, so these
// win.
static const char *const shared_flags[] = {
    "json",  "log_format",   "log_level",       "quiet",
    "trace", "metrics_port", "metrics_address", "enable_faults"};
enum { SHARED_FLAG_COUNT = sizeof shared_flags / sizeof shared_flags[0] };

static bool has_model_dir(const bel_words *words)
{
    bel_options *training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    bel_status *status = bel_command_parse(training, (int)words->count - 1, words->items + 1);
    bool has = bel_options_string(training, "model_dir") != NULL;
    bel_status_ignore(status); // comes again, and is reported, when the words are used
    bel_options_destroy(training);
    return has;
}

void bel_words_from_flags(bel_words *words, const bel_options *options, size_t first,
                          const bel_cluster *cluster)
{
    static const double usual_stall_timeout = 600; // of cluster files
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    bel_words_add(words, "train_and_evaluate");
    if (cluster != NULL && cluster->stall_timeout_secs != usual_stall_timeout) {
        bel_str seconds = {0};
        bel_json_write_number(&seconds, cluster->stall_timeout_secs);
        add_flag(words, "stall_timeout", seconds.text);
        bel_str_deinit(&seconds);
    }
    for (size_t i = first; i < count; i++)
        bel_words_add(words, arguments[i]);
    const char *job_dir = bel_options_string(options, "job_dir");
    for (int i = 0; i < SHARED_FLAG_COUNT; i++) {
        const char *name = shared_flags[i];
        if (bel_options_is_given(options, name)) {
            add_flag(words, name, bel_options_text(options, name));
        }
    }
    words->two_folders = job_dir != NULL && has_model_dir(words);
    if (job_dir != NULL && !words->two_folders) add_flag(words, "model_dir", job_dir);
}

void bel_words_deinit(bel_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        bel_free(words->items[i]);
    bel_free(words->items);
    *words = (bel_words){0};
}

// --- The cluster --------------------------------------------------------------------------------

static void set_count(const bel_options *options, const char *flag, bel_role role,
                      bel_cluster *cluster)
{
    if (bel_options_is_given(options, flag)) {
        cluster->roles[role].count = (int)bel_options_int(options, flag);
    }
}

bel_status *bel_cluster_from_flags(const bel_options *options, bel_cluster **out_cluster)
{
    bel_cluster *cluster;
    const char *config = bel_options_string(options, "config");
    if (config != NULL) {
        BEL_TRY(bel_cluster_read(config, &cluster));
    } else {
        cluster = bel_cluster_create((int)bel_options_int(options, "worker_count"),
                                     (int)bel_options_int(options, "parameter_server_count"),
                                     (int)bel_options_int(options, "evaluator_count"));
    }
    set_count(options, "worker_count", BEL_ROLE_WORKER, cluster);
    set_count(options, "parameter_server_count", BEL_ROLE_PS, cluster);
    set_count(options, "evaluator_count", BEL_ROLE_EVALUATOR, cluster);
    if (bel_options_is_given(options, "restarts")) {
        cluster->restarts = (int)bel_options_int(options, "restarts");
    }
    if (bel_options_is_given(options, "min_workers")) {
        cluster->min_workers = (int)bel_options_int(options, "min_workers");
    }
    bel_status *status = bel_cluster_check(cluster);
    if (status == NULL) {
        *out_cluster = cluster;
    } else {
        bel_cluster_destroy(cluster);
    }
    return status;
}

// --- Training flags -----------------------------------------------------------------------------

// Flags that count parts of one process count for nothing in a cluster; those of a file that a
// cluster has written say what there is.
static bel_status *check_count(const bel_options *training, const char *flag, int there,
                               const char *what)
{
    if (!bel_options_is_given(training, flag) || bel_options_int(training, flag) == there)
        return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "--%s %lld among the training flags: that is for one process, and the cluster "
                   "has %d %s; leave the flag out, or change the cluster",
                   flag, (long long)bel_options_int(training, flag), there, what);
}

bel_status *bel_distribution_check_elastic(const bel_options *training, const bel_plan *plan,
                                           const char *what)
{
    if (plan->cluster->roles[BEL_ROLE_PS].count == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the workers hold the parameters, so they cannot become more or fewer; "
                       "give the cluster at least one parameter server",
                       what);
    }
    int64_t counted = bel_options_int(training, "replicas_to_aggregate");
    bool sync = strcmp(bel_options_string(training, "mode"), "sync") == 0;
    if (sync && (counted == 0 || counted >= plan->worker_count)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: workers can become more or fewer only where all count in every step, with "
                   "--mode sync and without backups",
                   what);
}

static bel_status *check_min_workers(const bel_options *training, const bel_plan *plan)
{
    if (plan->cluster->min_workers == 0) return NULL;
    return bel_distribution_check_elastic(training, plan, "min_workers");
}

static bel_status *check_training(const bel_options *training, const bel_plan *plan)
{
    // AI Platform's users count workers without the master that trains beside them.
    int beside = plan->cluster->roles[BEL_ROLE_WORKER].count;
    if (!plan->cluster->from_ai_platform || bel_options_int(training, "num_workers") != beside) {
        BEL_TRY(check_count(training, "num_workers", plan->worker_count, "workers"));
    }
    BEL_TRY(check_count(training, "parameter_server_count", plan->shard_count, "shards"));
    if (bel_options_is_given(training, "towers_of_workers")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--towers_of_workers is for one process; in a cluster, workers have "
                       "--num_gpus towers each, or the devices of their machine");
    }
    return check_min_workers(training, plan);
}

static bel_counting_kind counting_kind(const bel_options *training)
{
    const char *mode = bel_options_string(training, "mode");
    if (strcmp(mode, "sync") == 0) return BEL_COUNTING_BACKUPS;
    return strcmp(mode, "async") == 0 ? BEL_COUNTING_ASYNC : BEL_COUNTING_BOUNDED;
}

bel_status *bel_words_check(const bel_words *words)
{
    if (!words->two_folders) return NULL;
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "--job_dir and, among the training flags, --model_dir name the same folder: give "
        "one of them");
}

bel_status *bel_distribution_init(bel_distribution *out_distribution, const bel_words *words,
                                  const bel_cluster *cluster)
{
    BEL_TRY(bel_words_check(words));
    bel_distribution d = {.training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE)};
    bel_status *status;
    BEL_TRY_GOTO(status, failed,
                 bel_command_parse(d.training, (int)words->count - 1, words->items + 1));
    d.asks = bel_options_bool(d.training, "help") || bel_options_bool(d.training, "print_config");
    if (d.asks) {
        *out_distribution = d;
        return NULL;
    }
    size_t extra_count;
    const char *const *extra = bel_options_arguments(d.training, &extra_count);
    d.model_dir = bel_options_string(d.training, "model_dir");
    if (extra_count > 0) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "unexpected argument \"%s\" among the training flags", extra[0]);
        goto failed;
    }
    if (d.model_dir == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "--job_dir is needed, or --model_dir among the training flags: the folder "
                         "for checkpoints");
        goto failed;
    }
    BEL_TRY_GOTO(status, failed,
                 bel_plan_create(cluster, (int)bel_options_int(d.training, "num_gpus"),
                                 (int)bel_options_int(d.training, "num_threads"), &d.plan));
    BEL_TRY_GOTO(status, failed, check_training(d.training, d.plan));
    bel_plan_set_counting(d.plan, counting_kind(d.training),
                          (int)bel_options_int(d.training, "replicas_to_aggregate"),
                          bel_options_int(d.training, "max_staleness"));
    *out_distribution = d;
    return NULL;
failed:
    bel_distribution_deinit(&d);
    return status;
}

void bel_distribution_deinit(bel_distribution *distribution)
{
    bel_plan_destroy(distribution->plan);
    bel_options_destroy(distribution->training);
}
