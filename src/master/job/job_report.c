// report.html of a run, while it runs and at its end: the curves come from the event files
// (report/history.h), the rest from the job. It never ends a job: a failure to write is logged
// once as a warning, and training continues.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/columns.h"
#include "master/job/job_tables.h"
#include "report/history.h"

// Formats a rate with its meaningful digits.
static char *count_text(double value)
{
    return bel_strf(value < 1000 ? "%.1f" : "%.0f", value);
}

static int add_tile(bel_report_tile *tiles, int count, const char *label, char *owned_value)
{
    tiles[count] = (bel_report_tile){label, owned_value};
    return count + 1;
}

// Adds the best of all evaluations, including those of earlier runs or a separate evaluator.
static int add_best(const bel_job *job, const bel_history *history, bel_report_tile *tiles,
                    int count)
{
    const char *folder = job->evals.count > 0 ? job->evals.items[0].folder : "eval";
    const bel_report_series *losses = bel_history_find(history, folder, "loss");
    int64_t best = bel_history_best(losses);
    if (best < 0) return count;
    return add_tile(
        tiles, count, "best evaluation",
        bel_strf("%.4g at step %lld", losses->values[best], (long long)losses->steps[best]));
}

static int make_tiles(const bel_job *job, const bel_history *history, bel_report_tile *tiles)
{
    const bel_result *result = &job->result;
    char text[32];
    int count = 0;
    for (int m = 0; m < result->metric_count && m < 2; m++) {
        count = add_tile(tiles, count, result->metrics[m].name,
                         bel_strf("%.4g", result->metrics[m].value));
    }
    if (result->examples > 0) {
        count = add_tile(tiles, count, "evaluation loss", bel_strf("%.4g", result->loss));
    }
    count = add_best(job, history, tiles, count);
    count = add_tile(tiles, count, "steps", bel_strf("%lld", (long long)job->steps.saved));
    if (job->totals.seconds > 0) {
        count = add_tile(tiles, count, "examples/s", count_text(result->examples_per_second));
        count = add_tile(tiles, count, "training time",
                         bel_xstrdup(bel_seconds_text(job->totals.seconds, text)));
    }
    return add_tile(tiles, count, "digest", bel_strf("%.8s…", result->digest));
}

static int make_parts(const bel_job *job, bel_report_part *parts)
{
    bel_board_split split;
    int count = 0;
    if (!bel_board_split_step(bel_reporter_board(job->reporter), &split)) return 0;
    parts[count++] = (bel_report_part){"input", split.input, "waiting for batches"};
    parts[count++] = (bel_report_part){"compute", split.compute, "forward and backward pass"};
    parts[count++] = (bel_report_part){"push", split.push, "summing gradients, handing them in"};
    if (split.shards_known) {
        parts[count++] = (bel_report_part){"apply", split.apply,
                                           "from the last report of a step to its version"};
        parts[count++] =
            (bel_report_part){"pull", split.pull, "until reports, versions and rows have come"};
        parts[count++] = (bel_report_part){"wait", split.wait, "for reports of other workers"};
    } else {
        parts[count++] = (bel_report_part){"apply, pull and wait", split.wait,
                                           "from the last report to the next version"};
    }
    parts[count++] = (bel_report_part){"other", split.other, "hooks, and all other work"};
    return count;
}

// Whether a setting is read. Parameters that no function of the model reads determine nothing,
// except those of the data.
static bool is_read(const bel_job *job, const char *setting)
{
    static const char begin[] = "param.";
    static const char *const of_data[] = {"feature_scale", "id_columns",      "id_list_columns",
                                          "id_list_most",  "id_list_weights", "length_column"};
    const bel_estimator *e = job->estimator;
    if (strncmp(setting, begin, sizeof begin - 1) != 0) return true;
    const char *name = setting + sizeof begin - 1;
    bool table = bel_input_table(job->trainable.input) != NULL, read = strcmp(name, "model") == 0;
    for (size_t i = 0; i < sizeof of_data / sizeof of_data[0] && !table; i++)
        read = read || strcmp(name, of_data[i]) == 0;
    for (int i = 0; i < e->param_count && !read; i++)
        read = strcmp(e->params[i].name, name) == 0 &&
               atomic_load(&e->params_read[i]) == BEL_PARAM_READ;
    return read;
}

// Lists the settings; names and values are borrowed. Free with bel_free.
static bel_report_setting *list_settings(const bel_job *job, const bel_settings *settings,
                                         int *out_count)
{
    bel_report_setting *list = bel_xcalloc((size_t)settings->count, sizeof *list);
    *out_count = 0;
    for (int i = 0; i < settings->count; i++)
        if (is_read(job, settings->names[i]))
            list[(*out_count)++] = (bel_report_setting){settings->names[i], settings->values[i]};
    return list;
}

// Lists the names of the label's classes. *out_count: 0 without names. Free with bel_free.
static const char **list_classes(const bel_job *job, int *out_count)
{
    const bel_columns *table = bel_input_table(job->trainable.input);
    *out_count = table != NULL ? bel_columns_class_count(table) : 0;
    const char **classes = bel_xcalloc((size_t)*out_count + 1, sizeof *classes);
    for (int c = 0; c < *out_count; c++)
        classes[c] = bel_columns_class(table, c);
    return classes;
}

// Formats e.g. "train.csv, 333 examples; label "species", 3 classes". Free with bel_free.
static char *about_data(const bel_job *job)
{
    const bel_input *input = job->trainable.input;
    const bel_columns *table = bel_input_table(input);
    const bel_column_names *names = bel_input_names(input);
    const char *file = bel_input_file(input);
    const char *label = table != NULL   ? bel_columns_label(table)
                        : names != NULL ? names->label
                                        : NULL;
    bel_str text = {0};
    bel_str_printf(&text, "%s%s%lld examples", file != NULL ? file : "", file != NULL ? ", " : "",
                   (long long)bel_input_epoch_records(input));
    if (label != NULL) bel_str_printf(&text, "; label \"%s\"", label);
    int classes = table != NULL ? bel_columns_class_count(table) : 0;
    bool number = table != NULL && bel_columns_label_kind(table) == BEL_LABEL_NUMBER;
    if (classes > 0) bel_str_printf(&text, ", %d classes", classes);
    if (number) bel_str_puts(&text, ", a number");
    return text.text;
}

// Writes the report. Tiles own their values, which are freed here; everything else is borrowed.
static bel_status *write_report(bel_job *job, bool over, const bel_history *history)
{
    enum { MAX_TILES = 16 };
    bel_report_tile tiles[MAX_TILES];
    bel_report_part parts[8];
    const bel_run_config *config = &job->estimator->config;
    bel_settings others = {0};
    bel_settings_gather_others(&others, job->estimator);
    int setting_count, other_count, class_count;
    bel_report_setting *settings = list_settings(job, &job->trainable.settings, &setting_count);
    bel_report_setting *other_settings = list_settings(job, &others, &other_count);
    const char **classes = list_classes(job, &class_count);
    char *about = about_data(job);
    char *subtitle =
        bel_strf("%lld parameters, %d worker%s, %d replica%s, %d shard%s, %s %s",
                 (long long)job->trainable.layout->parameters, config->num_workers,
                 config->num_workers == 1 ? "" : "s", job->estimator->replica_count,
                 job->estimator->replica_count == 1 ? "" : "s", job->trainable.layout->shard_count,
                 job->trainable.layout->shard_count == 1 ? "" : "s",
                 over ? "digest" : "running; digest so far", job->result.digest);
    bel_report report = {.title = config->model_dir,
                         .about = about,
                         .subtitle = subtitle,
                         .classes = classes,
                         .class_count = class_count,
                         .tiles = tiles,
                         .tile_count = make_tiles(job, history, tiles),
                         .parts = parts,
                         .part_count = make_parts(job, parts),
                         .settings = settings,
                         .setting_count = setting_count,
                         .other_settings = other_settings,
                         .other_setting_count = other_count};
    bel_job_tables tables;
    bel_job_tables_make(job, over, &tables);
    report.tables = tables.tables;
    report.table_count = tables.count;
    char *path = bel_path_join(config->model_dir, "report.html");
    bel_status *status = bel_history_report(history, &report, path);
    bel_free(path);
    for (int i = 0; i < report.tile_count; i++) {
        union {
            const char *read;
            char *owned;
        } text = {.read = tiles[i].value};
        bel_free(text.owned);
    }
    bel_job_tables_deinit(&tables);
    bel_free(settings);
    bel_free(other_settings);
    bel_free(classes);
    bel_free(about);
    bel_settings_deinit(&others);
    bel_free(subtitle);
    return status;
}

void bel_job_report(bel_job *job, bool over)
{
    if (!job->estimator->config.report) return;
    int64_t begun = bel_clock_ns();
    bel_history *history = NULL;
    bel_run_log_flush(job->log);
    bel_status *status = bel_history_read(job->estimator->config.model_dir, &history);
    if (status == NULL) status = write_report(job, over, history);
    if (status != NULL && !job->report.told) {
        bel_log_write(BEL_LOG_WARN, "no report is written: %s", bel_status_message(status));
        job->report.told = true; // the next call tries again
    }
    bel_status_destroy(status);
    bel_history_destroy(history);
    job->report.written_ns = bel_clock_ns();
    job->report.cost_ns = job->report.written_ns - begun;
}
