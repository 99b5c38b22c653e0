// Verb tune: a random search over flags. Trial 0 trains with the flags as given, to show what the
// search gains; each other trial draws a value for every --try. A trial's score is its
// --best_metric at the end of the training, with --folds the mean over the folds.
//
// Only the trials' folders hold state: draws follow from --tune_seed, so the same command continues
// an interrupted search, and a larger --trials adds trials.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "command/flags.h"
#include "command/results.h"
#include "command/verbs.h"
#include "evaluate/goal.h"
#include "setup/setup.h"
#include "studies/search_space.h"
#include "studies/study.h"

typedef struct tuning {
    const char *metric;
    bel_goal goal;
    bel_study *study;
    bel_search_space *space;
    char **values; // [trial - 1][flag], for trials from 1 on
    int trials, flags;
    int folds;                   // trainings per trial
    int *left;                   // per trial: unfinished trainings
    double *score;               // per trial; NaN while absent
    int best;                    // -1: not yet known
    bool unknown;                // evaluations lack the metric
    const bel_study_run *broken; // a failure that ends the search
} tuning;

// --- Trials --------------------------------------------------------------------------------------

static const char *value_of(const tuning *t, int trial, int flag)
{
    return t->values[(trial - 1) * t->flags + flag];
}

// Returns "--learning_rate 0.01 --dropout 0.2", as a user would type it.
static char *flags_text(const tuning *t, int trial)
{
    bel_str text = {0};
    bel_str_puts(&text, trial == 0 ? "the flags as they are" : "");
    for (int f = 0; f < t->flags && trial > 0; f++)
        bel_str_printf(&text, "%s--%s %s", f > 0 ? " " : "", bel_search_space_name(t->space, f),
                       value_of(t, trial, f));
    return text.text;
}

static void add_trial(tuning *t, int trial, bool by_folds)
{
    char **flags = bel_xcalloc((size_t)t->flags + 1, sizeof *flags);
    int count = trial > 0 ? t->flags : 0;
    for (int f = 0; f < count; f++)
        flags[f] = bel_strf("--%s=%s", bel_search_space_name(t->space, f), value_of(t, trial, f));
    for (int k = 0; k < t->folds; k++) {
        char *name =
            by_folds ? bel_strf("trial-%03d/fold-%d", trial, k) : bel_strf("trial-%03d", trial);
        if (by_folds) flags[count] = bel_strf("--eval_share=%d/%d", k, t->folds);
        bel_study_add(t->study, name, (const char *const *)flags, count + by_folds);
        if (by_folds) bel_free(flags[count]);
        bel_free(name);
    }
    for (int f = 0; f < count; f++)
        bel_free(flags[f]);
    bel_free(flags);
}

static const bel_study_run *first_failure(const tuning *t, int trial)
{
    for (int k = 0; k < t->folds; k++) {
        const bel_study_run *run = bel_study_at(t->study, trial * t->folds + k);
        if (run->failure != NULL) return run;
    }
    return NULL;
}

// Returns true if an evaluation of trial 0 has the metric, as a number or not.
static bool has_metric(const tuning *t)
{
    int count;
    const char **names = bel_study_metrics(bel_study_at(t->study, 0), &count);
    bool has = false;
    for (int i = 0; i < count; i++)
        has = has || strcmp(names[i], t->metric) == 0;
    bel_free(names);
    return has;
}

static bel_status *no_such_metric(const tuning *t)
{
    int count;
    bel_str list = {0};
    const char **names = bel_study_metrics(bel_study_at(t->study, 0), &count);
    for (int i = 0; i < count; i++)
        bel_str_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "--best_metric %s: evaluations have no such metric, but %s",
                t->metric, list.text);
    bel_str_deinit(&list);
    bel_free(names);
    return status;
}

// A trial that fails is a bad one. Two failures end the search instead: the one of trial 0, because
// all would fail, and that of a killed training, because the same command then continues it.
static bool take_training(void *context, int number)
{
    tuning *t = context;
    int trial = number / t->folds;
    const bel_study_run *failed = first_failure(t, trial);
    t->broken = failed != NULL && (trial == 0 || failed->killed) ? failed : NULL;
    if (t->broken != NULL) return false;
    if (--t->left[trial] > 0) return true;
    if (failed != NULL) {
        bel_log_write(BEL_LOG_WARN, "trial %d failed: %s", trial, failed->failure);
        return true;
    }
    double score = bel_study_spread_of(t->study, trial * t->folds, t->folds, t->metric).mean;
    t->score[trial] = score;
    t->unknown = trial == 0 && !has_metric(t);
    if (t->unknown) return false; // the other trials lack it, too
    double best = t->best >= 0 ? t->score[t->best] : NAN;
    if (bel_goal_is_better(t->goal, score, best)) t->best = trial;
    char *text = flags_text(t, trial);
    if (t->best >= 0) {
        bel_log_write(BEL_LOG_INFO, "trial %d: %s %.5g (best: %.5g, trial %d): %s", trial,
                      t->metric, score, t->score[t->best], t->best, text);
    } else {
        bel_log_write(BEL_LOG_INFO, "trial %d: %s %.5g: %s", trial, t->metric, score, text);
    }
    bel_free(text);
    return true;
}

// --- Results -------------------------------------------------------------------------------------

// Ranks best first, trials without a score last; of equals the earlier first, whose flags are
// simpler.
static int *ranked(const tuning *t)
{
    int *order = bel_xcalloc((size_t)t->trials, sizeof *order);
    for (int i = 0; i < t->trials; i++) {
        int place = i;
        for (; place > 0 && bel_goal_is_better(t->goal, t->score[i], t->score[order[place - 1]]);
             place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
    return order;
}

static void put_json(const tuning *t, int trial, bel_str *out)
{
    bel_str_printf(out, "{\"trial\":%d,", trial);
    bel_json_write_string(out, t->metric);
    bel_str_puts(out, ":");
    bel_json_write_number(out, t->score[trial]);
    bel_str_puts(out, ",\"flags\":{");
    for (int f = 0; f < t->flags && trial > 0; f++) {
        if (f > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, bel_search_space_name(t->space, f));
        bel_str_puts(out, ":");
        bel_json_write_string(out, value_of(t, trial, f));
    }
    bel_str_printf(out, "},\"folder\":\"trial-%03d\"}\n", trial);
}

static void put_text(const tuning *t, int trial, bel_str *out)
{
    char *text = flags_text(t, trial);
    if (isfinite(t->score[trial])) {
        bel_str_printf(out, "trial %d %s %.6g %s\n", trial, t->metric, t->score[trial], text);
    } else {
        bool failed = first_failure(t, trial) != NULL;
        bel_str_printf(out, "trial %d %s %s %s\n", trial, t->metric, failed ? "failed" : "nan",
                       text);
    }
    bel_free(text);
}

static bel_status *tuning_print(const tuning *t, bool json)
{
    int *order = ranked(t);
    bel_str out = {0};
    for (int i = 0; i < t->trials; i++)
        (json ? put_json : put_text)(t, order[i], &out);
    bel_free(order);
    bel_status *status = bel_results_write(out.text);
    bel_str_deinit(&out);
    return status;
}

// --- The verb ------------------------------------------------------------------------------------

static bel_status *check_space(const bel_options *options, const bel_search_space *space)
{
    for (int f = 0; f < bel_search_space_count(space); f++) {
        const char *name = bel_search_space_name(space, f);
        const bel_option *flag = bel_options_find(options, name);
        if (flag == NULL || (flag->uses & BEL_VERB_TRAIN_AND_EVALUATE) == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "--try: train_and_evaluate has no flag --%s",
                           name);
        }
        if (!bel_options_is_given(options, name)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s is given, and --try varies it: one of the two",
                       name);
    }
    return NULL;
}

static bel_status *check_data(const bel_options *options)
{
    size_t files;
    bel_options_list(options, "eval_files", &files);
    bool share = bel_options_string(options, "eval_share") != NULL;
    int ways = (files > 0) + share + (bel_options_int(options, "folds") > 0);
    if (ways == 1) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "trials are compared on one of --eval_files, --eval_share or --folds, and %s",
                   ways == 0 ? "none is given" : "more are given");
}

static bel_status *tuning_prepare(tuning *t, const bel_options *options)
{
    size_t count;
    const char *const *tries = bel_options_list(options, "try", &count);
    if (count == 0 || count > 100) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--try is needed, up to 100 times: what to vary, such as "
                       "--try learning_rate=log:1e-4:1e-1");
    }
    BEL_TRY(check_data(options));
    BEL_TRY(bel_goal_resolve(bel_setup_goal(options), t->metric, "--best_metric", &t->goal));
    BEL_TRY(bel_search_space_create(tries, (int)count, &t->space));
    BEL_TRY(check_space(options, t->space));
    BEL_TRY(bel_study_create(options, &t->study));
    int drawn = 0, wanted = (int)bel_options_int(options, "trials");
    uint64_t seed = (uint64_t)bel_options_int(options, "tune_seed");
    t->flags = bel_search_space_count(t->space);
    t->values = bel_search_space_draw(t->space, seed, wanted - 1, &drawn);
    t->trials = drawn + 1;
    if (drawn + 1 < wanted)
        bel_log_write(BEL_LOG_INFO, "there are only %d trials that differ", drawn + 1);
    int folds = (int)bel_options_int(options, "folds");
    t->folds = folds > 0 ? folds : 1;
    t->left = bel_xcalloc((size_t)t->trials, sizeof *t->left);
    t->score = bel_xcalloc((size_t)t->trials, sizeof *t->score);
    for (int i = 0; i < t->trials; i++) {
        t->left[i] = t->folds;
        t->score[i] = NAN;
        add_trial(t, i, folds > 0);
    }
    return NULL;
}

static bel_status *tuning_search(tuning *t, const bel_options *options, int *out_exit_code)
{
    BEL_TRY(bel_study_execute(t->study, take_training, t, out_exit_code));
    if (t->broken != NULL) {
        *out_exit_code = t->broken->exit_code;
        return BEL_ERR(BEL_ABORTED, "%s", t->broken->failure);
    }
    if (t->unknown) return no_such_metric(t);
    return tuning_print(t, bel_options_bool(options, "json"));
}

bel_status *bel_verb_tune(const bel_options *options, int *out_exit_code)
{
    tuning t = {.metric = bel_options_string(options, "best_metric"), .best = -1};
    bel_status *status = tuning_prepare(&t, options);
    if (status == NULL) status = tuning_search(&t, options, out_exit_code);
    for (int i = 0; t.values != NULL && i < (t.trials - 1) * t.flags; i++)
        bel_free(t.values[i]);
    bel_free(t.values);
    bel_free(t.left);
    bel_free(t.score);
    bel_study_destroy(t.study);
    bel_search_space_destroy(t.space);
    return status;
}
