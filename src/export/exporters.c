// Exporters: an export is the folder of a checkpoint under another name (checkpoint/share.h), with
// the evaluation's result and the model for other programs (export.h) beside its files.
//
// A folder is made under a temporary name and renamed, so readers see only complete exports. The
// result file also has the export's position in time. This order, not the number of the step,
// determines the newest export: a training that went back makes exports of smaller steps later.
// BEST compares with the newest export, even of an earlier run.
#include "export/exporters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "checkpoint/share.h"
#include "estimator/estimator_inner.h"
#include "evaluate/goal.h"
#include "export/export.h"
#include "export/export_folder.h"

static const char result_file[] = "evaluation.json";

// --- Names ---------------------------------------------------------------------------------------

static int kept(const bel_exporter *exporter)
{
    if (exporter->keep > 0) return exporter->keep;
    return exporter->kind == BEL_EXPORT_BEST ? 1 : 5;
}

// model_dir/export/<name>; free with bel_free.
static char *folder_of(const bel_exporters *exporters, int e)
{
    return bel_strf("%s/export/%s", exporters->estimator->config.model_dir,
                    exporters->items[e].name);
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

// Checks an exporter and resolves its goal.
static bel_status *check_exporter(const char *eval, const bel_estimator_spec *spec,
                                  bel_exporter *exporter)
{
    if (!is_good_name(exporter->name)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: an exporter needs a name of letters, digits, _ and -, got %s", eval,
                       exporter->name != NULL ? exporter->name : "nothing");
    }
    if (exporter->keep < 0 || (unsigned)exporter->kind > BEL_EXPORT_FINAL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "exporter %s: %s", exporter->name,
                       exporter->keep < 0 ? "keep must be at least 0" : "there is no such kind");
    }
    if (exporter->kind != BEL_EXPORT_BEST || exporter->is_better != NULL) return NULL;
    char user[128];
    bel_snprintf(user, sizeof user, "exporter %s", exporter->name);
    if (spec != NULL) BEL_TRY(bel_goal_check_metric(spec, metric_of(exporter), user, eval));
    return bel_goal_resolve(exporter->goal, metric_of(exporter), user, &exporter->goal);
}

bel_status *bel_exporters_init(bel_exporters *exporters, const bel_estimator *estimator,
                               const bel_eval_spec *eval, const char *name,
                               const bel_estimator_spec *spec)
{
    exporters->estimator = estimator;
    if (eval->exporter_count < 0 || eval->exporter_count > BEL_MAX_EXPORTERS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: there can be from 0 to %d exporters, got %d",
                       name, BEL_MAX_EXPORTERS, eval->exporter_count);
    }
    for (int e = 0; e < eval->exporter_count; e++) {
        const bel_exporter *from = eval->exporters[e];
        bel_exporter *to = &exporters->items[exporters->count++];
        BEL_TRY_CTX(bel_sized_take(to, sizeof *to, from, "bel_exporter"), "%s: exporter %d", name,
                    e);
        BEL_TRY(check_exporter(name, spec, to));
    }
    return NULL;
}

bel_status *bel_exporters_check_names(const bel_eval_spec *evals, int count)
{
    const char *names[BEL_MAX_EVALS * BEL_MAX_EXPORTERS];
    int used = 0;
    for (int i = 0; i < count; i++)
        for (int e = 0; e < evals[i].exporter_count; e++) {
            bel_exporter exporter;
            BEL_TRY_CTX(
                bel_sized_take(&exporter, sizeof exporter, evals[i].exporters[e], "bel_exporter"),
                "exporter %d", e);
            const char *name = exporter.name;
            if (!is_good_name(name) || e >= BEL_MAX_EXPORTERS) {
                return BEL_ERR(
                    BEL_INVALID_ARGUMENT,
                    "expected at most %d exporters of an evaluation, each with a name of "
                    "letters, digits, _ and -",
                    BEL_MAX_EXPORTERS);
            }
            for (int k = 0; k < used; k++) {
                if (strcmp(names[k], name) != 0) continue;
                return BEL_ERR(BEL_INVALID_ARGUMENT, "two exporters are named \"%s\"", name);
            }
            names[used++] = name;
        }
    return NULL;
}

// --- Existing exports ---------------------------------------------------------------------------

static void write_result(const bel_result *result, int64_t order, bel_str *out)
{
    bel_str_printf(out,
                   "{\"global_step\":%lld,\"order\":%lld,\"loss\":", (long long)result->global_step,
                   (long long)order);
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

// An existing export, with its result. Values that were not finite are null in the file, and read
// back as NaN.
typedef struct found {
    int64_t step, order; // order 0: written by an earlier version of Belfry
    bool read;           // false: the result is unreadable
    bel_result result;
} found;

static bel_status *read_result(const char *path, found *out)
{
    char *text = NULL;
    size_t size = 0;
    bel_json *json = NULL;
    bel_status *status = bel_file_read(path, &text, &size);
    if (status == NULL) status = bel_json_parse(text, size, path, &json);
    if (status == NULL) {
        const bel_json_value *root = bel_json_root(json);
        bel_result *result = &out->result;
        *result = (bel_result){.size = sizeof *result, .loss = NAN, .batch_mean_loss = NAN};
        (void)bel_json_i64(root, "global_step", &result->global_step);
        (void)bel_json_i64(root, "order", &out->order);
        result->evaluation_step = result->global_step;
        (void)bel_json_f64(root, "loss", &result->loss);
        (void)bel_json_f64(root, "batch_mean_loss", &result->batch_mean_loss);
        (void)bel_json_i64(root, "examples", &result->examples);
        metrics_read read = {bel_json_member(root, "metrics"), result};
        if (read.object != NULL) status = bel_json_each(read.object, take_metric, &read);
    }
    out->read = status == NULL;
    bel_json_destroy(json);
    bel_free(text);
    return status;
}

static int compare_found(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

// Lists the exports of a folder, the newest last; free with bel_free. An unreadable result is a
// warning.
static bel_status *list_exports(const char *folder, found **out_exports, size_t *out_count)
{
    char **names = NULL;
    size_t count = 0, used = 0;
    if (bel_file_exists(folder)) BEL_TRY(bel_dir_list(folder, &names, &count));
    found *exports = bel_xcalloc(count + 1, sizeof *exports);
    for (size_t i = 0; i < count; i++) {
        bool digits = strspn(names[i], "0123456789") == strlen(names[i]);
        found *f = &exports[used];
        if (!digits || !bel_parse_i64(names[i], strlen(names[i]), &f->step)) continue;
        char *path = bel_strf("%s/%s/%s", folder, names[i], result_file);
        bel_status *status = read_result(path, f);
        if (status != NULL) bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
        bel_status_destroy(status);
        bel_free(path);
        used++;
    }
    bel_dir_names_free(names, count);
    if (used > 0) qsort(exports, used, sizeof *exports, compare_found);
    *out_exports = exports;
    *out_count = used;
    return NULL;
}

// --- Comparison ---------------------------------------------------------------------------------

static bool is_better(const bel_exporter *exporter, const bel_result *best, const bel_result *now)
{
    if (exporter->is_better != NULL) return exporter->is_better(exporter->user, best, now);
    const char *metric = metric_of(exporter);
    return bel_goal_is_better(exporter->goal, bel_goal_value(now, metric),
                              bel_goal_value(best, metric));
}

// Whether the result is better than the newest export's, or there is no export to compare with.
static bool is_best(const char *folder, const bel_exporter *exporter, const bel_result *result)
{
    found *exports;
    size_t count;
    bel_status *status = list_exports(folder, &exports, &count);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "exporter %s: %s", exporter->name, bel_status_message(status));
        bel_status_destroy(status);
        return false;
    }
    const found *newest = count > 0 ? &exports[count - 1] : NULL;
    bool best = newest == NULL || !newest->read || is_better(exporter, &newest->result, result);
    bel_free(exports);
    return best;
}

unsigned bel_exporters_choose(const bel_exporters *exporters, const bel_result *result, bool over)
{
    unsigned chosen = 0;
    for (int e = 0; e < exporters->count; e++) {
        const bel_exporter *exporter = &exporters->items[e];
        if ((exporter->kind == BEL_EXPORT_FINAL) != over) continue;
        char *folder = folder_of(exporters, e);
        bool keeps = exporter->kind != BEL_EXPORT_BEST || is_best(folder, exporter, result);
        if (keeps) chosen |= 1U << e;
        bel_free(folder);
    }
    return chosen;
}

// --- Exporting -----------------------------------------------------------------------------------

// Writes the model as files for other programs, beside the checkpoint. For a model without an ONNX
// form it warns once.
static void write_model(bel_exporters *exporters, const char *checkpoint, const char *folder)
{
    if (exporters->lacks_model) return;
    bel_status *status = bel_export_files(exporters->estimator, checkpoint, NULL, folder);
    if (status == NULL) return;
    bel_code code = bel_status_code(status);
    exporters->lacks_model = code == BEL_UNIMPLEMENTED || code == BEL_INVALID_ARGUMENT;
    bel_log_write(BEL_LOG_WARN, "an exporter keeps only the checkpoint, without model.onnx: %s",
                  bel_status_message(status));
    bel_status_destroy(status);
}

static bel_status *exporters_fill(bel_exporters *exporters, const char *checkpoint,
                                  const bel_result *result, int64_t order, const char *folder)
{
    BEL_TRY(bel_dir_remove(folder)); // leftover of a killed run
    BEL_TRY(bel_ckpt_share_folder(checkpoint, folder));
    BEL_TRY(bel_export_share_source(exporters->estimator, folder));
    write_model(exporters, checkpoint, folder);
    bel_str text = {0};
    write_result(result, order, &text);
    char *path = bel_path_join(folder, result_file);
    bel_status *status = bel_file_write_atomic(path, text.text, text.length);
    bel_free(path);
    bel_str_deinit(&text);
    return status;
}

// Removes the oldest exports, except the last `keep`. One that cannot be removed stays.
static void exporters_retain(const char *folder, const found *exports, size_t count, size_t keep)
{
    for (size_t i = 0; i + keep < count; i++) {
        char *old = bel_strf("%s/%lld", folder, (long long)exports[i].step);
        bel_status *status = bel_dir_remove(old);
        if (status != NULL) {
            bel_log_write(BEL_LOG_WARN, "an old export stays: %s", bel_status_message(status));
            bel_status_destroy(status);
        }
        bel_free(old);
    }
}

// Exports; replaces an export of the same step, since a training that went back makes that step
// again.
static bel_status *export_to(bel_exporters *exporters, int e, const char *folder,
                             const bel_result *result)
{
    found *exports;
    size_t count;
    BEL_TRY(list_exports(folder, &exports, &count));
    int64_t order = count > 0 ? exports[count - 1].order + 1 : 1;
    bel_free(exports);
    long long step = (long long)result->global_step;
    char *checkpoint = bel_ckpt_find_folder(exporters->estimator->config.model_dir, step);
    char *temporary = bel_strf("%s/.%lld", folder, step);
    char *path = bel_strf("%s/%lld", folder, step);
    bel_status *status = exporters_fill(exporters, checkpoint, result, order, temporary);
    if (status == NULL) status = bel_dir_remove(path);
    if (status == NULL) status = bel_file_rename(temporary, path);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "exporter %s: step %lld is kept in %s",
                      exporters->items[e].name, step, path);
        status = list_exports(folder, &exports, &count);
        if (status == NULL) {
            exporters_retain(folder, exports, count, (size_t)kept(&exporters->items[e]));
            bel_free(exports);
        }
    }
    bel_free(path);
    bel_free(temporary);
    bel_free(checkpoint);
    return status;
}

void bel_exporters_keep(bel_exporters *exporters, unsigned chosen, const bel_result *result)
{
    for (int e = 0; e < exporters->count; e++) {
        if ((chosen >> e & 1U) == 0) continue;
        char *folder = folder_of(exporters, e);
        bel_status *status = export_to(exporters, e, folder, result);
        bel_free(folder);
        if (status == NULL) continue;
        bel_log_write(BEL_LOG_WARN, "exporter %s: step %lld is not kept: %s",
                      exporters->items[e].name, (long long)result->global_step,
                      bel_status_message(status));
        bel_status_destroy(status);
    }
}
