// Confusion matrices as tables whose cells are shaded by the share of their row, and receiver
// operating characteristics and precision over recall as curves in a square. Both are from the
// newest evaluation in the event files of its folder, whichever process wrote it. Shades use
// opacity, so that they work in light and dark mode.
#include "base/str.h"
#include "report/report_chart.h"

static void put_cell(bel_str *out, double count, double all, bool right)
{
    double share = all > 0 ? count / all : 0;
    bel_str_puts(out, count > 0 ? "<td>" : "<td class=\"none\">");
    if (count > 0) {
        bel_str_printf(out, "<i class=\"c%d\" style=\"opacity:%.3f\"></i>", right ? 0 : 1,
                       0.08 + 0.5 * share);
    }
    bel_str_puts(out, "<span>");
    bel_report_integer(out, (int64_t)count);
    bel_str_puts(out, "</span></td>");
}

enum { FEW = 4, NARROW = 10 }; // classes: larger cells; half of the page

static void put_class(bel_str *out, const bel_report *report, int classes, int number)
{
    bel_str_puts(out, "<th>");
    if (report->classes != NULL && report->class_count == classes) {
        bel_report_text(out, report->classes[number]);
    } else {
        bel_str_printf(out, "%d", number);
    }
    bel_str_puts(out, "</th>");
}

static void put_matrix(bel_str *out, const bel_report *report,
                       const bel_report_evaluation *evaluation)
{
    const bel_details *d = evaluation->details;
    bel_str_puts(out, "<figure class=\"matrix");
    if (d->classes <= FEW) bel_str_puts(out, " few");
    if (d->classes > NARROW) bel_str_puts(out, " whole");
    bel_str_puts(out, "\">\n<figcaption><h3>Confusion matrix, ");
    bel_report_text(out, evaluation->name);
    bel_str_puts(out, "</h3><small>rows: labels, columns: predictions; step ");
    bel_report_integer(out, d->step);
    bel_str_puts(out, "</small></figcaption>\n<table>\n<tr><th></th>");
    for (int c = 0; c < d->classes; c++)
        put_class(out, report, d->classes, c);
    bel_str_puts(out, "<th>recall</th></tr>\n");
    for (int r = 0; r < d->classes; r++) {
        const double *row = d->confusion + (size_t)r * (size_t)d->classes;
        double all = 0;
        for (int c = 0; c < d->classes; c++)
            all += row[c];
        bel_str_puts(out, "<tr>");
        put_class(out, report, d->classes, r);
        for (int c = 0; c < d->classes; c++)
            put_cell(out, row[c], all, r == c);
        bel_str_puts(out, "<td><span>");
        bel_report_fixed(out, all > 0 ? 100 * row[r] / all : 0, 1);
        bel_str_puts(out, " %</span></td></tr>\n");
    }
    bel_str_puts(out, "</table>\n</figure>\n");
}

// A square of SIDE with room for the axes' numbers.
enum { SIDE = 300, LEFT = 40, TOP = 10, BOTTOM = 34 };

// A curve of `count` points from 0 to 1 on both axes. `chance`: adds the line of random guessing.
typedef struct curve {
    const char *title, *axes; // "ROC of ", "true over false positive rate"
    const double *x, *y;
    int count;
    bool chance;
} curve;

static void put_grid(bel_str *out)
{
    for (int i = 0; i <= 4; i++) {
        int x = LEFT + SIDE * i / 4, y = TOP + SIDE * i / 4;
        bel_str_printf(out, "<path class=\"grid\" d=\"M%d %dV%dM%d %dH%d\"/>", x, TOP, TOP + SIDE,
                       LEFT, y, LEFT + SIDE);
        bel_str_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.2f</text>", x,
                       TOP + SIDE + 18, i / 4.0);
        bel_str_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.2f</text>\n", LEFT - 6,
                       y + 4, 1 - i / 4.0);
    }
}

static void put_curve(bel_str *out, const curve *c, const char *metric, const char *evaluation,
                      int64_t step)
{
    bel_str_printf(out, "<figure class=\"roc\">\n<figcaption><h3>%s", c->title);
    bel_report_text(out, metric);
    bel_str_puts(out, ", ");
    bel_report_text(out, evaluation);
    bel_str_printf(out, "</h3><small>%s; step ", c->axes);
    bel_report_integer(out, step);
    bel_str_puts(out, "</small></figcaption>\n");
    bel_str_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s", LEFT + SIDE + 20,
                   TOP + SIDE + BOTTOM, c->title);
    bel_report_text(out, metric);
    bel_str_puts(out, "\">\n");
    put_grid(out);
    if (c->chance)
        bel_str_printf(out, "<path class=\"half\" d=\"M%d %dL%d %d\"/>\n", LEFT, TOP + SIDE,
                       LEFT + SIDE, TOP);
    bel_str_puts(out, "<path class=\"line c0\" d=\"");
    for (int i = 0; i < c->count; i++)
        bel_str_printf(out, "%s%.1f %.1f", i == 0 ? "M" : "L", LEFT + SIDE * c->x[i],
                       TOP + SIDE * (1 - c->y[i]));
    bel_str_puts(out, "\"/>\n</svg>\n</figure>\n");
}

static void put_curves(bel_str *out, const char *evaluation, int64_t step, const bel_roc *roc)
{
    const curve both[] = {
        {"ROC of ", "true over false positive rate", roc->no, roc->yes, roc->count, true},
        {"Precision and recall of ", "precision over recall", roc->yes, roc->precision, roc->count,
         false}};
    for (int i = 0; i < 2; i++)
        put_curve(out, &both[i], roc->name, evaluation, step);
}

void bel_report_evaluations_write(bel_str *out, const bel_report *report)
{
    bool begun = false;
    for (int i = 0; i < report->evaluation_count; i++) {
        const bel_report_evaluation *evaluation = &report->evaluations[i];
        const bel_details *d = evaluation->details;
        if (d->classes == 0 && d->roc_count == 0) continue;
        if (!begun)
            bel_str_puts(out, "<h2>The last evaluation</h2>\n<div class=\"charts even\">\n");
        begun = true;
        if (d->classes > 0) put_matrix(out, report, evaluation);
        for (int k = 0; k < d->roc_count; k++)
            put_curves(out, evaluation->name, d->step, &d->rocs[k]);
    }
    if (begun) bel_str_puts(out, "</div>\n");
}
