// Verbs train_and_evaluate and train, in every role: the environment assigns this process its part
// of a job, and all parts have the same flags. Only the process that represents the job (the
// master, or a single process) prints results. bel_run_job ends the run, as in any program.
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "evaluate/goal.h"
#include "launch/task/task.h"
#include "setup/huggingface.h"
#include "setup/setup.h"
#include "setup/setup_text.h"

// Place of this process by its environment: 0 and false without a task.
typedef struct place {
    bool has_supervisor;
    int worker_count;
} place;

// Writes all flags: --config_file accepts the text again, also in one process. Free with bel_free.
static char *make_job_file(const bel_options *options, const place *where)
{
    bel_str text = {0};
    bel_options_dump(options, &text);
    if (where->worker_count > 0 && !bel_options_is_given(options, "num_workers")) {
        bel_str_printf(&text, "num_workers: %d # of the cluster\n", where->worker_count);
    }
    return text.text;
}

static bel_status *find_place(const bel_options *options, place *out_place)
{
    bel_task *task;
    BEL_TRY(bel_task_from_environment(bel_options_bool(options, "chief_trains"), &task));
    *out_place = (place){0};
    if (task != NULL) {
        *out_place =
            (place){.has_supervisor = task->supervisor > 0, .worker_count = task->worker_count};
    }
    bel_task_destroy(task);
    return NULL;
}

// A task sets the counts, so flags of one process would have no effect. A supervisor has compared
// them with its cluster before it started any process.
static bel_status *check_counts(const bel_options *options, const place *where)
{
    static const char *const flags[] = {"num_workers", "parameter_server_count",
                                        "towers_of_workers"};
    bool alone = where->worker_count == 0;
    for (int i = 0; i < 3 && !alone && !where->has_supervisor; i++) {
        if (!bel_options_is_given(options, flags[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s is for one process, and the environment (TF_CONFIG, BELFRY_TASK or "
                       "the ranks of a launcher) says which there are; leave the flag out",
                       flags[i]);
    }
    return NULL;
}

// Returns the goal of a metric in another flag: --best_goal applies if it is the same metric, or
// its goal is unknown.
static bel_goal goal_of(const bel_options *options, const char *metric)
{
    bool same = strcmp(metric, bel_options_string(options, "best_metric")) == 0;
    bool known = bel_goal_of(metric) != BEL_GOAL_AUTO;
    return known && !same ? BEL_GOAL_AUTO : bel_setup_goal(options);
}

enum { KINDS = BEL_EXPORT_FINAL + 1 };

// Training and evaluations as the flags describe them, with the memory that they point to.
typedef struct plan {
    bel_train_spec train;
    bel_eval_spec eval;
    bel_arena *arena; // for the names of a warm start, and of a metric
    bel_exporter exporters[KINDS];
    const bel_exporter *list[KINDS];
    bel_huggingface *face; // folder that the training begins with; NULL: no such folder
} plan;

// Plans the exports: each kind at most once, under its name.
static bel_status *plan_exports(const bel_options *options, plan *p)
{
    static const char *const names[KINDS] = {
        [BEL_EXPORT_LATEST] = "latest", [BEL_EXPORT_BEST] = "best", [BEL_EXPORT_FINAL] = "final"};
    size_t count;
    const char *const *kinds = bel_options_list(options, "export", &count);
    bool wanted[KINDS] = {false};
    for (size_t i = 0; i < count; i++) {
        int kind = 0;
        while (kind < KINDS && strcmp(kinds[i], names[kind]) != 0)
            kind++;
        if (kind == KINDS) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--export: expected best, latest or final, got \"%s\"", kinds[i]);
        }
        wanted[kind] = true;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (!wanted[kind]) continue;
        bel_exporter *exporter = &p->exporters[p->eval.exporter_count];
        *exporter = (bel_exporter){.size = sizeof *exporter,
                                   .name = names[kind],
                                   .kind = (bel_export_kind)kind,
                                   .keep = (int)bel_options_int(options, "export_keep"),
                                   .metric = bel_options_string(options, "best_metric"),
                                   .goal = bel_setup_goal(options)};
        p->list[p->eval.exporter_count++] = exporter;
    }
    p->eval.exporters = p->list;
    return NULL;
}

// Parses "N" or "METRIC:N".
static bel_status *plan_stopping(const bel_options *options, plan *p)
{
    enum { MOST = 1000000 };
    const char *text = bel_options_string(options, "early_stopping");
    const char *colon = strrchr(text, ':'), *number = colon != NULL ? colon + 1 : text;
    const char *metric = bel_options_string(options, "best_metric");
    int64_t patience = -1;
    bool whole = strspn(number, "0123456789") == strlen(number) &&
                 bel_parse_i64(number, strlen(number), &patience);
    if (!whole || patience > MOST || colon == text) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--early_stopping: expected a number of evaluations in [0, %d], or "
                       "METRIC:NUMBER, got \"%s\"",
                       MOST, text);
    }
    if (colon != NULL) {
        char *named = bel_arena_strdup(p->arena, text);
        named[colon - text] = '\0';
        metric = named;
    }
    p->train.early_stopping =
        (bel_early_stopping){.patience = (int)patience,
                             .min_delta = bel_options_double(options, "min_delta"),
                             .metric = metric,
                             .goal = goal_of(options, metric)};
    return NULL;
}

static bel_status *plan_evaluations(const bel_options *options, const bel_setup *setup, plan *p)
{
    int64_t every = bel_options_int(options, "eval_every_steps");
    p->eval.steps = bel_options_int(options, "eval_steps");
    p->eval.every_steps = every > 0 ? every : setup->eval_every_steps;
    p->eval.start_delay_secs = bel_options_double(options, "eval_start_delay_secs");
    p->eval.throttle_secs = bel_options_double(options, "eval_throttle_secs");
    const char *best = bel_options_string(options, "keep_best");
    if (best != NULL) {
        p->train.keep_best = (bel_keep_best){.metric = best, .goal = goal_of(options, best)};
    }
    BEL_TRY(plan_stopping(options, p));
    return plan_exports(options, p);
}

// A folder of Hugging Face has other names, and kernels that are turned: a function reads it.
static bel_status *plan_huggingface(const bel_options *options, const char *folder, plan *p)
{
    static const char *const flags[] = {"warm_start_names", "warm_start_variables"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (bel_options_is_given(options, flags[i]))
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--%s has no effect with --warm_start %s, a folder of Hugging Face; "
                           "hint: --warm_start %s/model.safetensors",
                           flags[i], folder, folder);
    p->face = bel_huggingface_create(folder);
    p->train.init_fn = bel_huggingface_init;
    p->train.init_user = p->face;
    return NULL;
}

// The parsed flag is "here=there".
static bel_status *plan_warm_start(const bel_options *options, const bel_setup *setup, plan *p)
{
    const char *folder = bel_options_string(options, "warm_start");
    if (folder != NULL && bel_is_huggingface(folder)) return plan_huggingface(options, folder, p);

    bel_warm_start *warm = &p->train.warm_start;
    size_t names, patterns;
    const char *const *pairs = bel_options_list(options, "warm_start_names", &names);
    warm->checkpoint = folder;
    warm->variables = bel_options_list(options, "warm_start_variables", &patterns);
    warm->variable_count = (int)patterns;
    BEL_TRY(bel_setup_text_start(options, setup, &warm->variables, &warm->variable_count));
    bel_rename *list = bel_arena_alloc(p->arena, (names + 1) * sizeof *list);
    for (size_t i = 0; i < names; i++) {
        char *to = bel_arena_strdup(p->arena, pairs[i]), *equals = strchr(to, '=');
        *equals = '\0';
        list[i] = (bel_rename){.from = equals + 1, .to = to};
    }
    warm->names = list;
    warm->name_count = (int)names;
    return NULL;
}

static bel_status *train_run(const bel_options *options, bel_setup *setup, int *out_exit_code)
{
    bool evaluates = bel_flag_inputs_evaluates(options);
    bel_result result = {.size = sizeof result};
    plan p = {.train = {.size = sizeof p.train,
                        .input_fn = setup->input_fn,
                        .input_user = setup->input_user,
                        .max_steps = bel_options_int(options, "train_steps"),
                        .max_seconds = bel_options_double(options, "train_secs"),
                        .hooks = setup->model->hooks,
                        .hook_count = setup->model->hook_count},
              .eval = {.size = sizeof p.eval,
                       .input_fn = setup->input_fn,
                       .input_user = setup->input_user}};
    p.arena = bel_arena_create();
    bel_status *status = plan_warm_start(options, setup, &p);
    if (status == NULL) bel_flag_inputs_say(options);
    if (status == NULL && evaluates) status = plan_evaluations(options, setup, &p);
    if (status == NULL)
        *out_exit_code =
            bel_run_job(setup->estimator, &p.train, &p.eval, evaluates ? 1 : 0, &result);
    bel_huggingface_destroy(p.face);
    bel_arena_destroy(p.arena);
    BEL_TRY(status);
    if (result.digest[0] == '\0') return NULL; // another process reports it
    return bel_results_print(&result, true, evaluates, bel_options_bool(options, "json"));
}

bel_status *bel_verb_train(const bel_options *options, int *out_exit_code)
{
    place where;
    bel_task_follow_supervisor();
    BEL_TRY(find_place(options, &where));
    BEL_TRY(check_counts(options, &where));
    bel_setup *setup;
    char *job_file = make_job_file(options, &where);
    bel_status *status = bel_setup_for_training(options, job_file, &setup);
    bel_free(job_file);
    BEL_TRY(status);
    status = train_run(options, setup, out_exit_code);
    bel_setup_destroy(setup);
    return status;
}
