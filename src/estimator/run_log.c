// Curves are kept in memory with at most MAX_POINTS points each: when a curve is full, every second
// point is dropped and from then on only every second step is kept.
#include "estimator/run_log.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "estimator/event_file.h"

enum { MAX_POINTS = 8192, MAX_FOLDERS = 16 };

typedef struct curve {
    char *chart; // title of its chart
    char *name;
    int64_t *steps;
    double *values;
    size_t count, stride, skipped;
} curve;

typedef struct folder {
    char *name;
    bel_event_file *events;
} folder;

struct bel_run_log {
    char *model_dir;
    int64_t first_step;
    bel_event_file *events;
    folder folders[MAX_FOLDERS];
    int folder_count;
    curve *curves;
    size_t curve_count, curve_capacity;
};

bel_status *bel_run_log_open(const char *model_dir, int64_t first_step, bel_run_log **out_log)
{
    bel_run_log *log = bel_xcalloc(1, sizeof *log);
    log->model_dir = bel_xstrdup(model_dir);
    log->first_step = first_step;
    bel_status *status = bel_event_file_open(model_dir, &log->events);
    if (status != NULL) {
        bel_status_ignore(bel_run_log_close(log)); // nothing was written
        return status;
    }
    bel_event_file_session_start(log->events, first_step);
    *out_log = log;
    return NULL;
}

void bel_run_log_go_back(bel_run_log *log, int64_t step)
{
    bel_event_file_session_start(log->events, step + 1);
    for (int i = 0; i < log->folder_count; i++)
        bel_event_file_session_start(log->folders[i].events, step + 1);
    for (size_t i = 0; i < log->curve_count; i++) {
        curve *c = &log->curves[i];
        while (c->count > 0 && c->steps[c->count - 1] > step)
            c->count--;
    }
}

static curve *find_curve(bel_run_log *log, const char *chart, const char *name)
{
    for (size_t i = 0; i < log->curve_count; i++) {
        curve *c = &log->curves[i];
        if (strcmp(c->chart, chart) == 0 && strcmp(c->name, name) == 0) return c;
    }
    log->curves =
        bel_xgrow(log->curves, &log->curve_capacity, log->curve_count + 1, sizeof *log->curves);
    curve *c = &log->curves[log->curve_count++];
    *c = (curve){.chart = bel_xstrdup(chart),
                 .name = bel_xstrdup(name),
                 .steps = bel_xcalloc(MAX_POINTS, sizeof *c->steps),
                 .values = bel_xcalloc(MAX_POINTS, sizeof *c->values),
                 .stride = 1};
    return c;
}

static void add_point(bel_run_log *log, const char *chart, const char *name, int64_t step,
                      double value)
{
    curve *c = find_curve(log, chart, name);
    if (++c->skipped < c->stride) return;
    c->skipped = 0;
    if (c->count == MAX_POINTS) {
        for (size_t i = 0; i < MAX_POINTS / 2; i++) {
            c->steps[i] = c->steps[2 * i];
            c->values[i] = c->values[2 * i];
        }
        c->count = MAX_POINTS / 2;
        c->stride *= 2;
    }
    c->steps[c->count] = step;
    c->values[c->count++] = value;
}

void bel_run_log_step(bel_run_log *log, int64_t step, double loss, double examples_per_second,
                      double learning_rate)
{
    double now = bel_clock_wall();
    bel_event_file_scalar(log->events, now, step, "loss", (float)loss);
    bel_event_file_scalar(log->events, now, step, "learning_rate", (float)learning_rate);
    add_point(log, "loss", "train", step, loss);
    if (examples_per_second <= 0) return;
    bel_event_file_scalar(log->events, now, step, "examples_per_second",
                          (float)examples_per_second);
    add_point(log, "throughput", "examples/s", step, examples_per_second);
}

static bel_status *folder_events(bel_run_log *log, const char *name, bel_event_file **out_events)
{
    for (int i = 0; i < log->folder_count; i++) {
        if (strcmp(log->folders[i].name, name) != 0) continue;
        *out_events = log->folders[i].events;
        return NULL;
    }
    if (log->folder_count == MAX_FOLDERS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "more than %d evaluations", MAX_FOLDERS);
    }
    char *path = bel_path_join(log->model_dir, name);
    folder *f = &log->folders[log->folder_count];
    bel_status *status = bel_event_file_open(path, &f->events);
    bel_free(path);
    if (status != NULL) return status;
    f->name = bel_xstrdup(name);
    log->folder_count++;
    bel_event_file_session_start(f->events, log->first_step + 1);
    *out_events = f->events;
    return NULL;
}

bel_status *bel_run_log_evaluation(bel_run_log *log, const char *name, const bel_result *result)
{
    bel_event_file *events = NULL;
    double now = bel_clock_wall();
    int64_t step = result->global_step;
    BEL_TRY(folder_events(log, name, &events));
    bel_event_file_scalar(events, now, step, "loss", (float)result->loss);
    add_point(log, "loss", name, step, result->loss);
    for (int m = 0; m < result->metric_count; m++) {
        const char *metric = result->metrics[m].name;
        bel_event_file_scalar(events, now, step, metric, (float)result->metrics[m].value);
        add_point(log, metric, name, step, result->metrics[m].value);
    }
    return bel_event_file_flush(events);
}

// Gathers the curves of one chart title.
static bel_report_chart chart_of(const bel_run_log *log, const char *title,
                                 bel_report_series *series)
{
    bel_report_chart chart = {.title = title, .series = series};
    for (size_t i = 0; i < log->curve_count; i++) {
        const curve *c = &log->curves[i];
        if (strcmp(c->chart, title) != 0) continue;
        series[chart.series_count++] = (bel_report_series){c->name, c->steps, c->values, c->count};
    }
    return chart;
}

bel_status *bel_run_log_report(bel_run_log *log, const bel_report *frame)
{
    bel_report report = *frame;
    bel_report_chart *charts = bel_xcalloc(log->curve_count, sizeof *charts);
    bel_report_series *series = bel_xcalloc(log->curve_count, sizeof *series);
    int chart_count = 0;
    size_t used = 0;
    for (size_t i = 0; i < log->curve_count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || strcmp(log->curves[k].chart, log->curves[i].chart) == 0;
        if (seen) continue;
        charts[chart_count] = chart_of(log, log->curves[i].chart, series + used);
        used += (size_t)charts[chart_count++].series_count;
    }
    report.charts = charts;
    report.chart_count = chart_count;
    char *path = bel_path_join(log->model_dir, "report.html");
    bel_status *status = bel_report_write(&report, path);
    bel_free(path);
    bel_free(charts);
    bel_free(series);
    return status;
}

bel_status *bel_run_log_flush(bel_run_log *log)
{
    return bel_event_file_flush(log->events);
}

bel_status *bel_run_log_close(bel_run_log *log)
{
    if (log == NULL) return NULL;
    bel_status *first = bel_event_file_close(log->events);
    for (int i = 0; i < log->folder_count; i++) {
        bel_status *status = bel_event_file_close(log->folders[i].events);
        if (first == NULL) {
            first = status;
        } else {
            bel_status_ignore(status); // the first error is reported
        }
        bel_free(log->folders[i].name);
    }
    for (size_t i = 0; i < log->curve_count; i++) {
        bel_free(log->curves[i].chart);
        bel_free(log->curves[i].name);
        bel_free(log->curves[i].steps);
        bel_free(log->curves[i].values);
    }
    bel_free(log->curves);
    bel_free(log->model_dir);
    bel_free(log);
    return first;
}
