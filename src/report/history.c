// Curves from event files. Each curve has its steps and values as two arrays, sorted by step while
// they are read: points nearly always come at the end, so insertion is cheap. The files of a folder
// must be read in the order of their names: a START voids earlier files' values of its step and
// later ones.
//
// The page borrows the curves' arrays: a history must live until the report is written. A file that
// cannot be read costs only the report: the caller logs a warning.
#include "report/history.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "report/event_file.h"

typedef struct curve {
    char *tag;
    int64_t *steps;
    double *values;
    size_t count, step_capacity, value_capacity;
    bel_report_series series; // borrows the above, set after reading
} curve;

typedef struct folder {
    char *name; // "": the model folder itself
    curve *curves;
    size_t count, capacity;
    bel_details details; // details of its newest evaluation
} folder;

struct bel_history {
    folder *folders; // training first, then evaluations by name
    size_t count, capacity;
};

// --- Events --------------------------------------------------------------------------------------

static curve *find_curve(folder *f, const char *tag)
{
    for (size_t i = 0; i < f->count; i++) {
        curve *c = &f->curves[i];
        if (strcmp(c->tag, tag) == 0) return c;
    }
    f->curves = bel_xgrow(f->curves, &f->capacity, f->count + 1, sizeof *f->curves);
    curve *c = &f->curves[f->count++];
    *c = (curve){.tag = bel_xstrdup(tag)};
    return c;
}

// Inserts a point. Steps ascend, unless an older checkpoint is evaluated; the later value of a step
// counts.
static void add_point(curve *c, int64_t step, double value)
{
    size_t place = c->count;
    while (place > 0 && c->steps[place - 1] > step)
        place--;
    if (place > 0 && c->steps[place - 1] == step) {
        c->values[place - 1] = value;
        return;
    }
    c->steps = bel_xgrow(c->steps, &c->step_capacity, c->count + 1, sizeof *c->steps);
    c->values = bel_xgrow(c->values, &c->value_capacity, c->count + 1, sizeof *c->values);
    memmove(c->steps + place + 1, c->steps + place, (c->count - place) * sizeof *c->steps);
    memmove(c->values + place + 1, c->values + place, (c->count - place) * sizeof *c->values);
    c->steps[place] = step;
    c->values[place] = value;
    c->count++;
}

// A START removes points of its step and later ones from all curves of the folder.
static void take_event(void *context, const bel_event *event)
{
    folder *f = context;
    if (event->starts) {
        for (size_t i = 0; i < f->count; i++) {
            curve *c = &f->curves[i];
            while (c->count > 0 && c->steps[c->count - 1] >= event->step)
                c->count--;
        }
    }
    bel_details_take(&f->details, event);
    if (event->tag == NULL || event->numbers != NULL) return;
    add_point(find_curve(f, event->tag), event->step, (double)event->value);
}

// --- Folders -------------------------------------------------------------------------------------

static bel_status *read_file(const char *dir, const char *name, folder *f)
{
    char *path = bel_path_join(dir, name), *data = NULL;
    size_t size = 0;
    bel_status *status = bel_file_read(path, &data, &size);
    bel_free(path);
    if (status == NULL) bel_event_file_parse(data, size, take_event, f);
    bel_free(data);
    return status;
}

// Reads the folder's files by name, and so by time. Its curves are final afterwards.
static bel_status *read_folder(bel_history *history, const char *dir, const char *name)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(dir, &names, &count));
    history->folders = bel_xgrow(history->folders, &history->capacity, history->count + 1,
                                 sizeof *history->folders);
    folder *f = &history->folders[history->count++];
    *f = (folder){.name = bel_xstrdup(name)};
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++)
        if (strncmp(names[i], BEL_EVENT_FILE_PREFIX, strlen(BEL_EVENT_FILE_PREFIX)) == 0)
            status = read_file(dir, names[i], f);
    bel_dir_names_free(names, count);
    for (size_t i = 0; i < f->count; i++) {
        curve *c = &f->curves[i];
        c->series = (bel_report_series){c->tag, c->steps, c->values, c->count};
    }
    return status;
}

static bool is_evaluation(const char *name)
{
    return strcmp(name, "eval") == 0 || strncmp(name, "eval_", 5) == 0;
}

// Reads training's folder first, then those of evaluations, by name. A plain file with such a name
// is not Belfry's.
static bel_status *read_all(bel_history *history, const char *model_dir)
{
    char **names;
    size_t count;
    BEL_TRY(read_folder(history, model_dir, ""));
    BEL_TRY(bel_dir_list(model_dir, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        if (!is_evaluation(names[i])) continue;
        char *path = bel_path_join(model_dir, names[i]);
        if (bel_dir_exists(path)) status = read_folder(history, path, names[i]);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return status;
}

bel_status *bel_history_read(const char *model_dir, bel_history **out_history)
{
    bel_history *history = bel_xcalloc(1, sizeof *history);
    bel_status *status = read_all(history, model_dir);
    if (status != NULL) {
        bel_history_destroy(history);
        return status;
    }
    *out_history = history;
    return NULL;
}

bel_status *bel_history_read_folder(const char *model_dir, const char *name,
                                    bel_history **out_history)
{
    bel_history *history = bel_xcalloc(1, sizeof *history);
    char *path = bel_path_join(model_dir, name);
    bel_status *status = bel_dir_exists(path) ? read_folder(history, path, name) : NULL;
    bel_free(path);
    if (status != NULL) {
        bel_history_destroy(history);
        return status;
    }
    *out_history = history;
    return NULL;
}

void bel_history_destroy(bel_history *history)
{
    if (history == NULL) return;
    for (size_t i = 0; i < history->count; i++) {
        folder *f = &history->folders[i];
        for (size_t k = 0; k < f->count; k++) {
            bel_free(f->curves[k].tag);
            bel_free(f->curves[k].steps);
            bel_free(f->curves[k].values);
        }
        bel_free(f->curves);
        bel_free(f->name);
        bel_details_deinit(&f->details);
    }
    bel_free(history->folders);
    bel_free(history);
}

const bel_report_series *bel_history_find(const bel_history *history, const char *name,
                                          const char *tag)
{
    for (size_t i = 0; i < history->count; i++) {
        const folder *f = &history->folders[i];
        if (strcmp(f->name, name) != 0) continue;
        for (size_t k = 0; k < f->count; k++)
            if (strcmp(f->curves[k].tag, tag) == 0) return &f->curves[k].series;
    }
    return NULL;
}

const bel_report_series *bel_history_at(const bel_history *history, const char *name, size_t index)
{
    for (size_t i = 0; i < history->count; i++) {
        const folder *f = &history->folders[i];
        if (strcmp(f->name, name) == 0) return index < f->count ? &f->curves[index].series : NULL;
    }
    return NULL;
}

int64_t bel_history_best(const bel_report_series *series)
{
    int64_t best = -1;
    for (size_t i = 0; series != NULL && i < series->point_count; i++) {
        bool better = best < 0 || series->values[i] < series->values[best];
        if (isfinite(series->values[i]) && better) best = (int64_t)i;
    }
    return best;
}

// --- The report ----------------------------------------------------------------------------------

// The charts of a page, each with its list of curves.
typedef struct page {
    bel_report_chart *charts;
    bel_report_series **series; // by chart
    size_t count, chart_capacity, series_capacity;
} page;

// Adds a curve. Curves of the same title share a chart: an evaluation's loss is beside training's.
static void add_series(page *p, const char *title, const char *name, const curve *c)
{
    if (c->count == 0) return;
    size_t at = 0;
    while (at < p->count && strcmp(p->charts[at].title, title) != 0)
        at++;
    if (at == p->count) {
        p->charts = bel_xgrow(p->charts, &p->chart_capacity, at + 1, sizeof *p->charts);
        p->series = bel_xgrow(p->series, &p->series_capacity, at + 1, sizeof *p->series);
        p->charts[at] = (bel_report_chart){.title = title};
        p->series[at] = NULL;
        p->count++;
    }
    bel_report_chart *chart = &p->charts[at];
    size_t count = (size_t)chart->series_count++;
    p->series[at] = bel_xrealloc(p->series[at], (count + 1) * sizeof **p->series);
    p->series[at][count] = c->series;
    p->series[at][count].name = name;
    chart->series = p->series[at];
}

bel_status *bel_history_report(const bel_history *history, const bel_report *frame,
                               const char *path)
{
    page p = {0};
    for (size_t i = 0; i < history->count; i++) {
        const folder *f = &history->folders[i];
        for (size_t k = 0; k < f->count; k++) {
            const curve *c = &f->curves[k];
            bool training = f->name[0] == '\0';
            if (!training) add_series(&p, c->tag, f->name, c);
            if (training && strcmp(c->tag, "loss") == 0) add_series(&p, "loss", "train", c);
            if (training && strcmp(c->tag, "examples_per_second") == 0) {
                add_series(&p, "throughput", "examples/s", c);
            }
        }
    }
    bel_report report = *frame;
    bel_report_evaluation *evaluations = bel_xcalloc(history->count, sizeof *evaluations);
    for (size_t i = 0; i < history->count; i++)
        evaluations[i] =
            (bel_report_evaluation){history->folders[i].name, &history->folders[i].details};
    report.evaluations = evaluations;
    report.evaluation_count = (int)history->count;
    report.charts = p.charts;
    report.chart_count = (int)p.count;
    bel_status *status = bel_report_write(&report, path);
    for (size_t i = 0; i < p.count; i++)
        bel_free(p.series[i]);
    bel_free(p.series);
    bel_free(p.charts);
    bel_free(evaluations);
    return status;
}
