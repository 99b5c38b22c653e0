// A chart of the report as inline SVG, and the text helpers that the rest of the page shares.
#ifndef BELFRY_ESTIMATOR_REPORT_CHART_H
#define BELFRY_ESTIMATOR_REPORT_CHART_H

#include "report/report.h"

typedef struct bel_str bel_str; // base/str.h

// Colors are CSS classes c0 … c7 of the page; further series start again at c0.
enum { BEL_REPORT_COLORS = 8 };

// Escapes text for HTML content and attributes. NULL writes nothing.
void bel_report_text(bel_str *out, const char *text);

// "12,345" and "1,234.5": digits in groups of three.
void bel_report_integer(bel_str *out, int64_t number);
void bel_report_fixed(bel_str *out, double value, int decimals);

// Four significant digits: "0.01234", "1,235,000", "1.2e-07", "not finite".
void bel_report_value(bel_str *out, double value);

// report_evaluation.c: confusion matrices and receiver operating characteristics.
void bel_report_evaluations_write(bel_str *out, const bel_report *report);

// Appends a <figure> with title, legend and curves.
void bel_report_chart_write(bel_str *out, const bel_report_chart *chart);

#endif
