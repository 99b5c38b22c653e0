// The plan as a page: curves over the numbers of workers, the table, and the assumptions. It has
// the form of a training's report.html (report/report.h).
#include "base/alloc.h"
#include "base/number.h"
#include "plan/plan.h"
#include "report/report.h"

enum { CHARTS = 4, LONGEST = 64 };

// A curve over the numbers of workers.
typedef double value_of(const bel_plan_report *report, const bel_plan_row *row);

static double rate(const bel_plan_report *report, const bel_plan_row *row)
{
    (void)report;
    return bel_plan_rate(row);
}

static double linear_rate(const bel_plan_report *report, const bel_plan_row *row)
{
    double speed_up = bel_plan_speed_up(report, row);
    return speed_up > 0 ? bel_plan_rate(row) / speed_up * row->workers : 0;
}

static double step_ms(const bel_plan_report *report, const bel_plan_row *row)
{
    (void)report;
    return row->cost.step_ns * 1e-6;
}

static double epoch_secs(const bel_plan_report *report, const bel_plan_row *row)
{
    (void)report;
    return row->outlook.epoch_secs;
}

static double epoch_money(const bel_plan_report *report, const bel_plan_row *row)
{
    (void)report;
    return row->outlook.epoch_money;
}

static const struct {
    const char *title, *unit;
    value_of *value, *other; // other: a second curve, the linear one
} charts[CHARTS] = {{"Examples a second", NULL, rate, linear_rate},
                    {"Step", "ms", step_ms, NULL},
                    {"Epoch", "s", epoch_secs, NULL},
                    {"Cost of an epoch", NULL, epoch_money, NULL}};

// Memory of the page while it is written.
typedef struct page {
    const bel_plan_report *report;
    int64_t *workers;
    double *values; // two curves of each chart
    bel_report_series series[2 * CHARTS];
    bel_report_chart charts[CHARTS];
    int chart_count;
    char (*texts)[LONGEST];
    const char **cells;
    int cell_count;
    bel_report_table tables[1 + BEL_PLAN_MOST_ASSUMPTIONS];
} page;

static bel_report_series draw(page *p, int index, const char *name, value_of *value)
{
    size_t rows = (size_t)p->report->row_count;
    double *values = p->values + (size_t)index * rows;
    for (size_t i = 0; i < rows; i++)
        values[i] = value(p->report, &p->report->rows[i]);
    return (bel_report_series){
        .name = name, .steps = p->workers, .values = values, .point_count = rows};
}

// A price or an epoch that is unknown has no curve.
static void draw_charts(page *p)
{
    const bel_plan_row *first = &p->report->rows[0];
    for (int c = 0; c < CHARTS; c++) {
        if (charts[c].value(p->report, first) <= 0) continue;
        bel_report_series *series = &p->series[2 * c];
        series[0] = draw(p, 2 * c, "planned", charts[c].value);
        if (charts[c].other != NULL) series[1] = draw(p, 2 * c + 1, "linear", charts[c].other);
        p->charts[p->chart_count++] =
            (bel_report_chart){.title = charts[c].title,
                               .unit = charts[c].unit,
                               .axis = "workers",
                               .series = series,
                               .series_count = charts[c].other != NULL ? 2 : 1};
    }
}

static void add_cell(page *p, const char *text)
{
    char *cell = p->texts[p->cell_count];
    bel_snprintf(cell, LONGEST, "%s", text);
    p->cells[p->cell_count++] = cell;
}

static void add_number(page *p, double number)
{
    char text[LONGEST];
    bel_snprintf(text, sizeof text, "%.4g", number);
    add_cell(p, text);
}

static const char *const columns[] = {"workers",           "examples/s",   "speed-up",
                                      "step, ms",          "epoch, s",     "cost of an epoch",
                                      "killed process, s", "lost host, s", "the longest part"};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void fill_table(page *p)
{
    for (int i = 0; i < p->report->row_count; i++) {
        const bel_plan_row *row = &p->report->rows[i];
        const double numbers[] = {row->workers,
                                  bel_plan_rate(row),
                                  bel_plan_speed_up(p->report, row),
                                  row->cost.step_ns * 1e-6,
                                  row->outlook.epoch_secs,
                                  row->outlook.epoch_money,
                                  row->outlook.process_back_secs,
                                  row->outlook.host_back_secs};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            bool known = numbers[k] > 0;
            if (known) add_number(p, numbers[k]);
            if (!known) add_cell(p, "–");
        }
        add_cell(p, bel_cost_part_text(row->cost.bottleneck));
    }
    p->tables[0] = (bel_report_table){.title = "Numbers of workers",
                                      .columns = columns,
                                      .column_count = COLUMNS,
                                      .cells = p->cells,
                                      .row_count = p->report->row_count};
    for (int i = 0; i < p->report->assumption_count; i++)
        p->tables[1 + i] = (bel_report_table){.title = i == 0 ? "Assumed" : NULL,
                                              .sentence = p->report->assumptions[i]};
}

bel_status *bel_plan_report_page(const bel_plan_report *report, const char *path)
{
    size_t rows = (size_t)report->row_count, cells = rows * COLUMNS;
    page p = {.report = report,
              .workers = bel_xcalloc(rows, sizeof *p.workers),
              .values = bel_xcalloc(2 * CHARTS * rows, sizeof *p.values),
              .texts = bel_xcalloc(cells, sizeof *p.texts),
              .cells = bel_xcalloc(cells, sizeof *p.cells)};
    for (size_t i = 0; i < rows; i++)
        p.workers[i] = report->rows[i].workers;
    draw_charts(&p);
    fill_table(&p);
    bel_str about = {0};
    bel_str_printf(&about, "%lld parameters on %d parameter server%s; processors: %s",
                   (long long)report->parameters, report->shards, report->shards == 1 ? "" : "s",
                   report->processor);
    const bel_report whole = {.title = "Plan of a training",
                              .about = about.text,
                              .charts = p.charts,
                              .chart_count = p.chart_count,
                              .tables = p.tables,
                              .table_count = 1 + report->assumption_count};
    bel_status *status = bel_report_write(&whole, path);
    bel_str_deinit(&about);
    bel_free(p.workers);
    bel_free(p.values);
    bel_free(p.texts);
    bel_free(p.cells);
    return status;
}
