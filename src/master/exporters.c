// Exporters: versions that are kept apart. An export is the folder of a checkpoint under another
// name (checkpoint/share.h). Beside its files stands the model for other programs
// (estimator/export.h).
//
// A folder is made under a temporary name and renamed, so that whoever looks there sees whole
// exports alone. What a BEST exporter has seen is in its own folders: evaluation.json of the newest
// one is the best so far, also for a run that begins later.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "checkpoint/folder.h"
#include "checkpoint/share.h"
#include "estimator/export.h"
#include "estimator/export_folder.h"
#include "estimator/goal.h"
#include "master/job.h"
#include "master/watchdog.h"

static const char result_file[] = "evaluation.json";

// --- Names ---------------------------------------------------------------------------------------

static int kept(const bel_exporter *exporter)
{
    if (exporter->keep > 0) return exporter->keep;
    return exporter->kind == BEL_EXPORT_BEST ? 1 : 5;
}

// model_dir/export/<name>; free with bel_free.
static char *folder_of(const bel_job *job, const bel_exporter *exporter)
{
    return bel_strf("%s/export/%s", job->estimator->config.model_dir, exporter->name);
}

static bool is_good_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return name != NULL && name[0] != '\0' && strspn(name, letters) == strlen(name) &&
           strlen(name) <= 100;
}

static const char *metric_of(const bel_exporter *exporter)
{
    return exporter->metric != NULL ? exporter->metric : "loss";
}

// Its goal is known afterwards.
static bel_status *check_exporter(const bel_job_eval *eval, bel_exporter *exporter)
{
    if (!is_good_name(exporter->name)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: an exporter needs a name of letters, digits, _ and -, got %s",
                       eval->folder, exporter->name != NULL ? exporter->name : "nothing");
    }
    if (exporter->keep < 0 || (unsigned)exporter->kind > BEL_EXPORT_FINAL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "exporter %s: %s", exporter->name,
                       exporter->keep < 0 ? "keep must be at least 0" : "there is no such kind");
    }
    if (exporter->kind != BEL_EXPORT_BEST || exporter->is_better != NULL) return NULL;
    char user[128];
    bel_snprintf(user, sizeof user, "exporter %s", exporter->name);
    BEL_TRY(bel_goal_check_metric(&eval->built->spec, metric_of(exporter), user, eval->folder));
    return bel_goal_resolve(exporter->goal, metric_of(exporter), user, &exporter->goal);
}

// By the size that each was compiled with.
static bel_status *copy_exporters(bel_job_eval *eval)
{
    const bel_eval_spec *spec = eval->spec;
    if (spec->exporter_count < 0 || spec->exporter_count > BEL_MAX_EXPORTERS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: there can be from 0 to %d exporters, got %d",
                       eval->folder, BEL_MAX_EXPORTERS, spec->exporter_count);
    }
    for (int e = 0; e < spec->exporter_count; e++) {
        const bel_exporter *from = spec->exporters[e];
        bel_exporter *to = &eval->exporters[eval->exporter_count++];
        if (from->size == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s: exporter %d: size must be sizeof(bel_exporter), got 0",
                           eval->folder, e);
        }
        memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
        BEL_TRY(check_exporter(eval, to));
    }
    return NULL;
}

bel_status *bel_job_take_exporters(bel_job *job)
{
    const char *names[BEL_MAX_EVALS * BEL_MAX_EXPORTERS];
    int count = 0;
    for (int i = 0; i < job->eval_count; i++) {
        bel_job_eval *eval = &job->evals[i];
        BEL_TRY(copy_exporters(eval));
        for (int e = 0; e < eval->exporter_count; e++) {
            const char *name = eval->exporters[e].name;
            for (int k = 0; k < count; k++) {
                if (strcmp(names[k], name) != 0) continue;
                return BEL_ERR(BEL_INVALID_ARGUMENT, "two exporters are named \"%s\"", name);
            }
            names[count++] = name;
        }
    }
    return NULL;
}

// --- What is there -------------------------------------------------------------------------------

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

// Steps of the exports in a folder, ascending; free with bel_free.
static bel_status *list_steps(const char *folder, int64_t **out_steps, size_t *out_count)
{
    char **names = NULL;
    size_t count = 0, used = 0;
    if (bel_file_exists(folder)) BEL_TRY(bel_dir_list(folder, &names, &count));
    int64_t *steps = bel_xcalloc(count + 1, sizeof *steps);
    for (size_t i = 0; i < count; i++) {
        bool whole = strspn(names[i], "0123456789") == strlen(names[i]);
        if (whole && bel_parse_i64(names[i], strlen(names[i]), &steps[used])) used++;
    }
    bel_dir_names_free(names, count);
    if (used > 0) qsort(steps, used, sizeof *steps, compare_steps);
    *out_steps = steps;
    *out_count = used;
    return NULL;
}

static void write_result(const bel_result *result, bel_str *out)
{
    bel_str_printf(out, "{\"global_step\":%lld,\"loss\":", (long long)result->global_step);
    bel_json_write_number(out, result->loss);
    bel_str_puts(out, ",\"batch_mean_loss\":");
    bel_json_write_number(out, result->batch_mean_loss);
    bel_str_printf(out, ",\"examples\":%lld,\"metrics\":{", (long long)result->examples);
    for (int m = 0; m < result->metric_count; m++) {
        if (m > 0) bel_str_puts(out, ",");
        bel_json_write_string(out, result->metrics[m].name);
        bel_str_puts(out, ":");
        bel_json_write_number(out, result->metrics[m].value);
    }
    bel_str_puts(out, "}}\n");
}

typedef struct metrics_read {
    const bel_json_value *object;
    bel_result *result;
} metrics_read;

static bel_status *take_metric(void *context, const char *name, const bel_json_value *value)
{
    (void)value;
    const metrics_read *read = context;
    bel_result *result = read->result;
    if (result->metric_count == BEL_MAX_METRICS) return NULL;
    int m = result->metric_count++;
    bel_snprintf(result->metrics[m].name, sizeof result->metrics[m].name, "%s", name);
    if (!bel_json_f64(read->object, name, &result->metrics[m].value)) {
        result->metrics[m].value = NAN;
    }
    return NULL;
}

// Figures that were not finite are null in the file, and NaN again.
static bel_status *read_result(const char *folder, int64_t step, bel_result *out_result)
{
    char *path = bel_strf("%s/%lld/%s", folder, (long long)step, result_file), *text = NULL;
    size_t size = 0;
    bel_json *json = NULL;
    bel_status *status = bel_file_read(path, &text, &size);
    if (status == NULL) status = bel_json_parse(text, size, path, &json);
    if (status == NULL) {
        const bel_json_value *root = bel_json_root(json);
        *out_result = (bel_result){.loss = NAN, .batch_mean_loss = NAN};
        (void)bel_json_i64(root, "global_step", &out_result->global_step);
        out_result->evaluation_step = out_result->global_step;
        (void)bel_json_f64(root, "loss", &out_result->loss);
        (void)bel_json_f64(root, "batch_mean_loss", &out_result->batch_mean_loss);
        (void)bel_json_i64(root, "examples", &out_result->examples);
        metrics_read read = {bel_json_member(root, "metrics"), out_result};
        if (read.object != NULL) status = bel_json_each(read.object, take_metric, &read);
    }
    bel_json_destroy(json);
    bel_free(text);
    bel_free(path);
    return status;
}

// --- Better --------------------------------------------------------------------------------------

static bool is_better(const bel_exporter *exporter, const bel_result *best, const bel_result *now)
{
    if (exporter->is_better != NULL) return exporter->is_better(exporter->user, best, now);
    const char *metric = metric_of(exporter);
    return bel_goal_is_better(exporter->goal, bel_goal_value(now, metric),
                              bel_goal_value(best, metric));
}

// True when nothing there is as good. A result that cannot be read counts as none, with a warning.
static bel_status *is_best(const char *folder, const bel_exporter *exporter,
                           const bel_result *result, bool *out_best)
{
    int64_t *steps;
    size_t count;
    BEL_TRY(list_steps(folder, &steps, &count));
    bool best = true;
    if (count > 0) {
        bel_result before;
        bel_status *status = read_result(folder, steps[count - 1], &before);
        if (status == NULL) best = is_better(exporter, &before, result);
        if (status != NULL) {
            bel_log_write(BEL_LOG_WARN, "exporter %s: %s", exporter->name,
                          bel_status_message(status));
            bel_status_destroy(status);
        }
    }
    bel_free(steps);
    *out_best = best;
    return NULL;
}

// --- Exporting -----------------------------------------------------------------------------------

// The model as files for other programs, beside the checkpoint. That it cannot be written, or has
// no form in ONNX, is no reason to end a training: it is a warning, and the checkpoint is kept.
// Where it never can be that is said once. Meanwhile the master's own clock rests: a large model on
// a slow disk is no standstill.
static void write_model(bel_job *job, const char *checkpoint, const char *folder)
{
    if (job->cannot_export) return;
    bel_watchdog_feed(job->watchdog, true);
    bel_status *status = bel_export_files(job->estimator, checkpoint, NULL, folder);
    bel_watchdog_feed(job->watchdog, false);
    if (status == NULL) return;
    bel_code code = bel_status_code(status);
    job->cannot_export = code == BEL_UNIMPLEMENTED || code == BEL_INVALID_ARGUMENT;
    bel_log_write(BEL_LOG_WARN, "an exporter keeps the checkpoint alone, without model.onnx: %s",
                  bel_status_message(status));
    bel_status_destroy(status);
}

static bel_status *fill(bel_job *job, const char *checkpoint, const bel_result *result,
                        const char *folder)
{
    BEL_TRY(bel_dir_remove(folder)); // of a run that was killed
    BEL_TRY(bel_ckpt_share_folder(checkpoint, folder));
    BEL_TRY(bel_export_share_source(job->estimator, folder));
    write_model(job, checkpoint, folder);
    bel_str text = {0};
    write_result(result, &text);
    char *path = bel_path_join(folder, result_file);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// Those beyond the newest `keep` go.
static bel_status *retain(const char *folder, int keep)
{
    int64_t *steps;
    size_t count;
    BEL_TRY(list_steps(folder, &steps, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i + (size_t)keep < count && status == NULL; i++) {
        char *old = bel_strf("%s/%lld", folder, (long long)steps[i]);
        status = bel_dir_remove(old);
        bel_free(old);
    }
    bel_free(steps);
    return status;
}

// An export of the same step is replaced: a run that went back makes the same one again.
static bel_status *export_to(bel_job *job, const bel_exporter *exporter, const char *folder,
                             const bel_result *result)
{
    long long step = (long long)result->global_step;
    char *checkpoint = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    char *temporary = bel_strf("%s/.%lld", folder, step);
    char *path = bel_strf("%s/%lld", folder, step);
    bel_status *status = fill(job, checkpoint, result, temporary);
    if (status == NULL) status = bel_dir_remove(path);
    if (status == NULL) status = bel_file_rename(temporary, path);
    if (status == NULL) status = retain(folder, kept(exporter));
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "exporter %s: step %lld is kept in %s", exporter->name, step,
                      path);
    }
    bel_free(path);
    bel_free(temporary);
    bel_free(checkpoint);
    return status;
}

bel_status *bel_job_export(bel_job *job, const bel_job_eval *eval, const bel_result *result,
                           bool over)
{
    for (int e = 0; e < eval->exporter_count; e++) {
        const bel_exporter *exporter = &eval->exporters[e];
        bool wanted = (exporter->kind == BEL_EXPORT_FINAL) == over;
        if (!wanted) continue;
        char *folder = folder_of(job, exporter);
        bool best = true;
        bel_status *status = NULL;
        if (exporter->kind == BEL_EXPORT_BEST) status = is_best(folder, exporter, result, &best);
        // What is exported is a checkpoint: an evaluation between two of them makes one.
        if (status == NULL && best && job->saved_step != result->global_step) {
            status = bel_job_save(job, result->global_step);
        }
        if (status == NULL && best) status = export_to(job, exporter, folder, result);
        bel_free(folder);
        if (status != NULL) {
            return bel_status_wrap(status, __FILE__, __LINE__, "exporter %s", exporter->name);
        }
    }
    return NULL;
}
