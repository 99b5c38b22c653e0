// report.html: a summary page of a run. It is one file without scripts to fetch, fonts to load or
// links to follow: curves, where the time of a step went, the settings. It can be mailed, and
// opened in ten years.
//
//     const bel_report_series loss[] = {{"train", steps, train_loss, 1000},
//                                       {"eval", eval_steps, eval_loss, 10}};
//     const bel_report_chart charts[] = {{"Loss", "cross-entropy", loss, 2, NULL}};
//     const bel_report report = {.title = "mnist", .charts = charts, .chart_count = 1};
//     BEL_TRY(bel_report_write(&report, "model_dir/report.html"));
//
// Everything is borrowed during the call. Texts may hold any characters: they are escaped. A part
// whose count is 0 is omitted.
#ifndef BELFRY_ESTIMATOR_REPORT_H
#define BELFRY_ESTIMATOR_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "report/details.h"

// A curve. Steps are ascending. Values that are not finite are gaps, and are counted in the legend.
// If several points share a column of pixels, the curve is their mean, and a shade from the lowest
// to the highest keeps every spike visible.
typedef struct bel_report_series {
    const char *name;
    const int64_t *steps;
    const double *values;
    size_t point_count;
} bel_report_series;

// Series that share their axes, e.g. the loss in training and in evaluation.
typedef struct bel_report_chart {
    const char *title;
    const char *unit; // unit of the values; NULL or "": no unit
    const bel_report_series *series;
    int series_count;
    const char *axis; // name of the steps; NULL: "step"
} bel_report_chart;

// A part of the mean step: input, compute, push … Parts are drawn as one bar in this order.
typedef struct bel_report_part {
    const char *name;
    double ms_per_step;
    const char *what; // description of the time; NULL: the name suffices
} bel_report_part;

// A large number at the top of the page, as text: {"final accuracy", "98.31 %"}.
typedef struct bel_report_tile {
    const char *label;
    const char *value;
} bel_report_tile;

typedef struct bel_report_setting {
    const char *name;
    const char *value;
} bel_report_setting;

// Facts in rows. The first column names a row, the others are numbers.
typedef struct bel_report_table {
    const char *title;    // NULL: it belongs to the previous one
    const char *sentence; // above it; NULL: no sentence
    const char *const *columns;
    int column_count;         // 0: only the sentence
    const char *const *cells; // row after row
    int row_count;
} bel_report_table;

// Matrix and curves of an evaluation (details.h).
typedef struct bel_report_evaluation {
    const char *name;
    const bel_details *details;
} bel_report_evaluation;

typedef struct bel_report {
    const char *title;
    const char *about;    // one line below the title: data and label; NULL: no line
    const char *subtitle; // one more; NULL: no line
    const bel_report_tile *tiles;
    int tile_count;
    const bel_report_chart *charts;
    int chart_count;
    const bel_report_evaluation *evaluations;
    int evaluation_count;
    const char *const *classes; // class names for matrices of this size; NULL: numbers
    int class_count;
    const bel_report_part *parts;
    int part_count;
    const bel_report_table *tables;
    int table_count;
    const bel_report_setting *settings; // settings that determine the result
    int setting_count;
    const bel_report_setting *other_settings;
    int other_setting_count;
} bel_report;

// Writes the page atomically. The same report gives the same bytes. Errors: those of files.
bel_status *bel_report_write(const bel_report *report, const char *path) BEL_MUST_USE;

#endif
