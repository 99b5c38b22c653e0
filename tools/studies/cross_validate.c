// Verb cross_validate: splits the data into folds, trains a model on all other folds and evaluates
// it on the fold. Descriptions of columns are inferred from training rows only, so a model never
// sees its fold.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "studies/study.h"

static bool take_fold(void *context, int fold)
{
    const bel_study_run *run = bel_study_at(context, fold);
    if (run->failure != NULL) return false;
    bel_log_write(BEL_LOG_INFO, "fold %d: loss %.5g on %.0f examples", fold,
                  bel_study_metric(run, "loss"), bel_study_metric(run, "examples"));
    return true;
}

// Checks the results. The exit code is that of the failed training.
static bel_status *check_folds(const bel_study *study, int folds, int *out_exit_code)
{
    for (int i = 0; i < folds; i++) {
        const bel_study_run *run = bel_study_at(study, i);
        if (run->failure == NULL) continue;
        *out_exit_code = run->exit_code;
        return BEL_ERR(BEL_ABORTED, "%s", run->failure);
    }
    return NULL;
}

static void put_metric(bel_str *out, const bel_study *study, int folds, const char *name, bool json)
{
    bel_study_spread spread = bel_study_spread_of(study, 0, folds, name);
    if (json) {
        bel_json_write_string(out, name);
        bel_str_puts(out, ":{\"mean\":");
        bel_json_write_number(out, spread.mean);
        bel_str_puts(out, ",\"deviation\":");
        bel_json_write_number(out, spread.deviation);
        bel_str_puts(out, ",\"folds\":[");
    } else {
        bel_str_printf(out, "%s %.6g deviation %.3g folds", name, spread.mean, spread.deviation);
    }
    for (int i = 0; i < folds; i++) {
        double value = bel_study_metric(bel_study_at(study, i), name);
        if (!json) {
            bel_str_printf(out, " %.6g", value);
            continue;
        }
        if (i > 0) bel_str_puts(out, ",");
        bel_json_write_number(out, value);
    }
    bel_str_puts(out, json ? "]}" : "\n");
}

// Lists the metrics that any fold has, in order of appearance: a fold's metrics depend on the
// classes in its training rows. Free with bel_free.
static const char **all_metrics(const bel_study *study, int folds, int *out_count)
{
    const char **all = NULL;
    size_t capacity = 0;
    *out_count = 0;
    for (int i = 0; i < folds; i++) {
        int count;
        const char **names = bel_study_metrics(bel_study_at(study, i), &count);
        for (int n = 0; n < count; n++) {
            bool known = false;
            for (int k = 0; k < *out_count && !known; k++)
                known = strcmp(all[k], names[n]) == 0;
            if (known) continue;
            all = bel_xgrow(all, &capacity, (size_t)*out_count + 1, sizeof *all);
            all[(*out_count)++] = names[n];
        }
        bel_free(names);
    }
    return all;
}

static bel_status *cross_validate_print(const bel_study *study, int folds, bool json)
{
    int count;
    const char **names = all_metrics(study, folds, &count);
    bel_str out = {0};
    bel_str_printf(&out, json ? "{\"folds\":%d,\"metrics\":{" : "folds %d\n", folds);
    for (int i = 0; i < count; i++) {
        int have = bel_study_spread_of(study, 0, folds, names[i]).count;
        if (have < folds)
            bel_log_write(BEL_LOG_WARN,
                          "%s: %d of %d folds have none, and are left out of its mean: their rows, "
                          "or those that they are trained on, lack a class",
                          names[i], folds - have, folds);
        if (json && i > 0) bel_str_puts(&out, ",");
        put_metric(&out, study, folds, names[i], json);
    }
    if (json) bel_str_puts(&out, "}}\n");
    bel_status *status = bel_results_write(out.text);
    bel_str_deinit(&out);
    bel_free(names);
    return status;
}

bel_status *bel_verb_cross_validate(const bel_options *options, int *out_exit_code)
{
    bel_study *study;
    int folds = (int)bel_options_int(options, "folds");
    BEL_TRY(bel_study_create(options, &study));
    for (int i = 0; i < folds; i++) {
        char *name = bel_strf("fold-%d", i), *share = bel_strf("--eval_share=%d/%d", i, folds);
        bel_study_add(study, name, (const char *[]){share}, 1);
        bel_free(name);
        bel_free(share);
    }
    bel_status *status = bel_study_execute(study, take_fold, study, out_exit_code);
    if (status == NULL) status = check_folds(study, folds, out_exit_code);
    if (status == NULL)
        status = cross_validate_print(study, folds, bel_options_bool(options, "json"));
    bel_study_destroy(study);
    return status;
}
