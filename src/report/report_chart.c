// Charts: choose round ticks, map points to pixels, thin them out, draw. Coordinates are in the
// units of the SVG's viewBox, which a browser scales to the width of the page. Points that share a
// column of pixels become one, so the size of the page does not grow with the length of the run;
// the shade keeps their extremes.
//
// No series can break the page. Values that are not finite, or too large for finite differences,
// are gaps, and axes never have a length of 0. Numbers are printed through base/number.h, the same
// in every locale.
#include "report/report_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"

enum {
    WIDTH = 560,
    HEIGHT = 300,
    PLOT_LEFT = 62,
    PLOT_RIGHT = 492, // the last values are right of it
    PLOT_TOP = 12,
    PLOT_BOTTOM = 264,
    LABEL_GAP = 14, // between the labels of two last values
    MAX_LABELS = 12,
};

// Values beyond this are gaps, like infinities: their differences would overflow.
static const double max_magnitude = 1e150;

static bool drawable(double value)
{
    return isfinite(value) && fabs(value) <= max_magnitude;
}

// --- Text ---------------------------------------------------------------------------------------

void bel_report_text(bel_str *out, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        switch (*text) {
        case '&': bel_str_puts(out, "&amp;"); break;
        case '<': bel_str_puts(out, "&lt;"); break;
        case '>': bel_str_puts(out, "&gt;"); break;
        case '"': bel_str_puts(out, "&quot;"); break;
        case '\'': bel_str_puts(out, "&#39;"); break;
        default:
            // HTML forbids control characters
            bel_str_append(out, (unsigned char)*text < 0x20 ? " " : text, 1);
        }
    }
}

// Appends a printed number, with commas between groups of three digits before the point.
static void put_grouped(bel_str *out, const char *printed)
{
    if (*printed == '-') {
        bel_str_puts(out, "\u2212"); // a minus is as wide as a digit, a hyphen is not
        printed++;
    }
    size_t digits = strspn(printed, "0123456789");
    for (size_t i = 0; i < digits; i++) {
        if (i > 0 && (digits - i) % 3 == 0) bel_str_puts(out, ",");
        bel_str_append(out, printed + i, 1);
    }
    bel_str_puts(out, printed + digits);
}

void bel_report_integer(bel_str *out, int64_t number)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%lld", (long long)number);
    put_grouped(out, text);
}

void bel_report_fixed(bel_str *out, double value, int decimals)
{
    char text[400]; // the largest double has 309 digits
    bel_snprintf(text, sizeof text, "%.*f", decimals, value);
    if (strspn(text, "-0.") == strlen(text) && text[0] == '-') { // "-0" becomes "0"
        memmove(text, text + 1, strlen(text));
    }
    put_grouped(out, text);
}

void bel_report_value(bel_str *out, double value)
{
    double magnitude = fabs(value);
    char text[32];
    if (!isfinite(value)) {
        bel_str_puts(out, "not finite");
    } else if (value == 0) {
        bel_str_puts(out, "0");
    } else if (magnitude < 1e-4 || magnitude >= 1e9) {
        bel_snprintf(text, sizeof text, "%.3g", value);
        put_grouped(out, text);
    } else {
        int decimals = 3 - (int)floor(log10(magnitude));
        bel_report_fixed(out, value, decimals < 0 ? 0 : decimals);
    }
}

// --- Axes ---------------------------------------------------------------------------------------

// Ticks at low, low + step … high; the axis shows exactly this range.
typedef struct axis {
    double low, high, step;
} axis;

// The least round number (1, 2 or 5 times a power of ten) that is at least `least`.
static double round_step(double least)
{
    double power = pow(10.0, floor(log10(least)));
    double lead = least / power;
    if (lead <= 1.0) return power;
    if (lead <= 2.0) return 2.0 * power;
    return lead <= 5.0 ? 5.0 * power : 10.0 * power;
}

// A value axis around [low, high] with about five intervals and ends at ticks.
static axis value_axis(double low, double high)
{
    double size = fmax(fabs(low), fabs(high));
    if (high - low <= size * 1e-9 || high - low < 1e-150) { // a single value, or nearly
        double half = size < 1e-140 ? 1.0 : size * 0.1;
        low -= half;
        high += half;
    }
    double step = round_step((high - low) / 5.0);
    return (axis){floor(low / step) * step, ceil(high / step) * step, step};
}

// A step axis over exactly [low, high], or a little more around a single step; ticks are integers.
static axis step_axis(double low, double high)
{
    double least = fmax(1.0, fmax(fabs(low), fabs(high)) * 1e-12); // well above rounding
    if (high - low < least) {
        low -= least;
        high += least;
    }
    return (axis){low, high, fmax(1.0, round_step((high - low) / 6.0))};
}

// Covers all drawable values of all series; 0 to 1 without any.
static axis chart_value_axis(const bel_report_chart *chart)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < chart->series_count; i++) {
        for (size_t j = 0; j < chart->series[i].point_count; j++) {
            double value = chart->series[i].values[j];
            if (!drawable(value)) continue;
            low = fmin(low, value);
            high = fmax(high, value);
        }
    }
    return low > high ? value_axis(0, 1) : value_axis(low, high);
}

// Covers the steps of all series.
static axis chart_step_axis(const bel_report_chart *chart)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < chart->series_count; i++) {
        for (size_t j = 0; j < chart->series[i].point_count; j++) {
            double step = (double)chart->series[i].steps[j];
            low = fmin(low, step);
            high = fmax(high, step);
        }
    }
    return low > high ? step_axis(0, 1) : step_axis(low, high);
}

// Common data of the functions that draw parts of a chart.
typedef struct chart_frame {
    axis x, y;
} chart_frame;

static double x_of(const chart_frame *frame, double step)
{
    return PLOT_LEFT +
           (step - frame->x.low) / (frame->x.high - frame->x.low) * (PLOT_RIGHT - PLOT_LEFT);
}

static double y_of(const chart_frame *frame, double value)
{
    return PLOT_BOTTOM -
           (value - frame->y.low) / (frame->y.high - frame->y.low) * (PLOT_BOTTOM - PLOT_TOP);
}

// Writes a tick's value with the decimals that the distance between ticks needs.
static void put_tick(bel_str *out, double value, double step)
{
    if (step < 1e-5 || fabs(value) >= 1e9) {
        char text[32];
        bel_snprintf(text, sizeof text, "%.4g", fabs(value) < step * 1e-6 ? 0.0 : value);
        put_grouped(out, text);
        return;
    }
    int decimals = (int)ceil(-log10(step) - 1e-9);
    bel_report_fixed(out, value, decimals < 0 ? 0 : decimals);
}

static const char *axis_of(const bel_report_chart *chart)
{
    return chart->axis != NULL ? chart->axis : "step";
}

// Draws value ticks with lines across the plot, step ticks with marks below it.
static void put_axes(bel_str *out, const chart_frame *frame, const bel_report_chart *chart)
{
    int intervals = (int)lround((frame->y.high - frame->y.low) / frame->y.step);
    for (int i = 0; i <= intervals; i++) {
        double value = frame->y.low + i * frame->y.step;
        double y = y_of(frame, value);
        bel_str_printf(out, "<path class=\"%s\" d=\"M%d %.1fH%d\"/>", i == 0 ? "base" : "grid",
                       PLOT_LEFT, y, PLOT_RIGHT);
        bel_str_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", PLOT_LEFT - 8, y + 4);
        put_tick(out, value, frame->y.step);
        bel_str_puts(out, "</text>\n");
    }
    double first = ceil(frame->x.low / frame->x.step) * frame->x.step;
    for (double step = first; step <= frame->x.high; step += frame->x.step) {
        double x = x_of(frame, step);
        bel_str_printf(out, "<path class=\"base\" d=\"M%.1f %dv4\"/>", x, PLOT_BOTTOM);
        bel_str_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
                       PLOT_BOTTOM + 18);
        bel_report_fixed(out, step, 0);
        bel_str_puts(out, "</text>\n");
    }
    bel_str_printf(out, "<text x=\"0\" y=\"%d\">", PLOT_BOTTOM + 18);
    bel_report_text(out, axis_of(chart));
    bel_str_puts(out, "</text>\n");
}

// --- Curves -------------------------------------------------------------------------------------

// Points of a series in one column of pixels.
typedef struct pixel_column {
    double x;
    double mean, low, high;
    int64_t step;     // the middle one
    bool follows_gap; // begins a new stretch after a gap
} pixel_column;

typedef struct column_list {
    pixel_column *columns;
    size_t count, capacity;
    bool dense; // a column has several points
} column_list;

// Adds the points [begin, end) of a series; without a drawable value they are a gap.
static void add_column(column_list *list, const chart_frame *frame, const bel_report_series *series,
                       size_t begin, size_t end, bool *gap)
{
    double sum = 0, step_sum = 0;
    double low = HUGE_VAL, high = -HUGE_VAL;
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        double value = series->values[i];
        if (!drawable(value)) continue;
        sum += value;
        step_sum += (double)series->steps[i];
        low = fmin(low, value);
        high = fmax(high, value);
        count++;
    }
    if (count == 0) {
        *gap = true;
        return;
    }
    double step = step_sum / (double)count;
    list->columns =
        bel_xgrow(list->columns, &list->capacity, list->count + 1, sizeof *list->columns);
    list->columns[list->count++] = (pixel_column){
        .x = x_of(frame, step),
        .mean = sum / (double)count,
        .low = low,
        .high = high,
        .step = series->steps[begin + (end - begin) / 2],
        .follows_gap = *gap,
    };
    list->dense = list->dense || count > 1;
    *gap = false;
}

// Groups points by column of pixels. They are neighbors, as steps ascend.
static column_list gather_columns(const chart_frame *frame, const bel_report_series *series)
{
    column_list list = {0};
    bool gap = true;
    for (size_t begin = 0; begin < series->point_count;) {
        long pixel = lround(x_of(frame, (double)series->steps[begin]));
        size_t end = begin + 1;
        while (end < series->point_count &&
               lround(x_of(frame, (double)series->steps[end])) == pixel)
            end++;
        add_column(&list, frame, series, begin, end, &gap);
        begin = end;
    }
    return list;
}

// One past the last column of the gapless stretch that begins at `begin`.
static size_t stretch_end(const column_list *list, size_t begin)
{
    size_t end = begin + 1;
    while (end < list->count && !list->columns[end].follows_gap)
        end++;
    return end;
}

// Draws the shade from the lowest to the highest point of each column: along the top, back along
// the bottom.
static void put_band(bel_str *out, const chart_frame *frame, const column_list *list, int color)
{
    bel_str_printf(out, "<path class=\"band c%d\" d=\"", color);
    for (size_t begin = 0; begin < list->count;) {
        size_t end = stretch_end(list, begin);
        for (size_t i = begin; i < end; i++) {
            bel_str_printf(out, "%c%.1f %.1f", i == begin ? 'M' : 'L', list->columns[i].x,
                           y_of(frame, list->columns[i].high));
        }
        for (size_t i = end; i-- > begin;) {
            bel_str_printf(out, "L%.1f %.1f", list->columns[i].x,
                           y_of(frame, list->columns[i].low));
        }
        bel_str_puts(out, "Z");
        begin = end;
    }
    bel_str_puts(out, "\"/>\n");
}

// Draws the curve, with its points as data for the read-out: "step,value step,value …".
static void put_line(bel_str *out, const chart_frame *frame, const column_list *list,
                     const char *name, int color)
{
    bel_str_printf(out, "<path class=\"line c%d\" data-name=\"", color);
    bel_report_text(out, name);
    bel_str_puts(out, "\" d=\"");
    for (size_t begin = 0; begin < list->count;) {
        size_t end = stretch_end(list, begin);
        for (size_t i = begin; i < end; i++) {
            bel_str_printf(out, "%c%.1f %.1f", i == begin ? 'M' : 'L', list->columns[i].x,
                           y_of(frame, list->columns[i].mean));
        }
        if (end - begin == 1) bel_str_puts(out, "h0"); // its round cap makes it a dot
        begin = end;
    }
    bel_str_puts(out, "\" data-points=\"");
    for (size_t i = 0; i < list->count; i++) {
        bel_str_printf(out, "%s%lld,%.5g", i > 0 ? " " : "", (long long)list->columns[i].step,
                       list->columns[i].mean);
    }
    bel_str_puts(out, "\"/>\n");
}

// Draws a mark for each point if they are few, and for a point without a line.
static void put_marks(bel_str *out, const chart_frame *frame, const column_list *list, int color)
{
    enum { FEW = 24 };
    for (size_t begin = 0; begin < list->count;) {
        size_t end = stretch_end(list, begin);
        for (size_t i = begin; i < end && (end - begin == 1 || list->count <= FEW); i++) {
            bel_str_printf(out, "<circle class=\"mark c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n",
                           color, list->columns[i].x, y_of(frame, list->columns[i].mean));
        }
        begin = end;
    }
}

// Draws all shades below all lines.
static void put_curves(bel_str *out, const chart_frame *frame, const bel_report_chart *chart)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < chart->series_count; i++) {
            column_list list = gather_columns(frame, &chart->series[i]);
            int color = i % BEL_REPORT_COLORS;
            if (pass == 0 && list.dense) put_band(out, frame, &list, color);
            if (pass == 1) put_line(out, frame, &list, chart->series[i].name, color);
            if (pass == 1) put_marks(out, frame, &list, color);
            bel_free(list.columns);
        }
    }
}

// --- Last values --------------------------------------------------------------------------------

typedef struct last_label {
    double x, y; // coordinates of the point
    double text_y;
    double value;
    int color;
} last_label;

static int compare_labels(const void *a, const void *b)
{
    const last_label *left = a, *right = b;
    if (left->y != right->y) return left->y < right->y ? -1 : 1;
    return (left->color > right->color) - (left->color < right->color);
}

// Index of the last drawable value, or point_count.
static size_t last_drawable(const bel_report_series *series)
{
    for (size_t i = series->point_count; i-- > 0;) {
        if (drawable(series->values[i])) return i;
    }
    return series->point_count;
}

// Separates labels: moves them down from the top, then back up from the lower edge.
static void spread_labels(last_label *labels, int count)
{
    for (int i = 0; i < count; i++) {
        labels[i].text_y = fmax(labels[i].y, PLOT_TOP);
        if (i > 0) labels[i].text_y = fmax(labels[i].text_y, labels[i - 1].text_y + LABEL_GAP);
    }
    double lowest = PLOT_BOTTOM;
    for (int i = count - 1; i >= 0; i--) {
        labels[i].text_y = fmin(labels[i].text_y, lowest);
        lowest = labels[i].text_y - LABEL_GAP;
    }
}

// Writes the last value of each curve beside its end, without overlaps.
static void put_last_values(bel_str *out, const chart_frame *frame, const bel_report_chart *chart)
{
    last_label labels[MAX_LABELS];
    int count = 0;
    for (int i = 0; i < chart->series_count && count < MAX_LABELS; i++) {
        const bel_report_series *series = &chart->series[i];
        size_t last = last_drawable(series);
        if (last == series->point_count) continue;
        double value = series->values[last];
        labels[count++] = (last_label){
            .x = x_of(frame, (double)series->steps[last]),
            .y = y_of(frame, value),
            .value = value,
            .color = i % BEL_REPORT_COLORS,
        };
    }
    qsort(labels, (size_t)count, sizeof labels[0], compare_labels);
    spread_labels(labels, count);
    for (int i = 0; i < count; i++) {
        bel_str_printf(out, "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>",
                       labels[i].color, labels[i].x, labels[i].y);
        bel_str_printf(out, "<text class=\"last c%d\" x=\"%d\" y=\"%.1f\">", labels[i].color,
                       PLOT_RIGHT + 10, labels[i].text_y + 4);
        bel_report_value(out, labels[i].value);
        bel_str_puts(out, "</text>\n");
    }
}

// --- The figure ---------------------------------------------------------------------------------

static void put_legend(bel_str *out, const bel_report_chart *chart)
{
    bel_str_puts(out, "<ul class=\"legend\">");
    for (int i = 0; i < chart->series_count; i++) {
        const bel_report_series *series = &chart->series[i];
        int64_t gaps = 0;
        for (size_t j = 0; j < series->point_count; j++)
            gaps += !drawable(series->values[j]);
        bel_str_printf(out, "<li><i class=\"c%d\"></i>", i % BEL_REPORT_COLORS);
        bel_report_text(out, series->name);
        if (gaps > 0) {
            bel_str_puts(out, " <small>");
            bel_report_integer(out, gaps);
            bel_str_puts(out, " not finite</small>");
        }
        bel_str_puts(out, "</li>");
    }
    bel_str_puts(out, "</ul>\n");
}

void bel_report_chart_write(bel_str *out, const bel_report_chart *chart)
{
    const chart_frame frame = {chart_step_axis(chart), chart_value_axis(chart)};
    bool any = false;
    for (int i = 0; i < chart->series_count; i++)
        any = any || last_drawable(&chart->series[i]) < chart->series[i].point_count;

    bel_str_puts(out, "<figure>\n<figcaption><h3>");
    bel_report_text(out, chart->title);
    if (chart->unit != NULL && chart->unit[0] != '\0') {
        bel_str_puts(out, " <small>");
        bel_report_text(out, chart->unit);
        bel_str_puts(out, "</small>");
    }
    bel_str_puts(out, "</h3>");
    put_legend(out, chart);
    bel_str_puts(out, "</figcaption>\n");
    bel_str_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    bel_report_text(out, chart->title);
    bel_str_printf(out,
                   "\" data-plot=\"%d %d %d %d\" data-x=\"%.17g %.17g\" data-y=\"%.17g %.17g\" "
                   "data-axis=\"",
                   PLOT_LEFT, PLOT_TOP, PLOT_RIGHT, PLOT_BOTTOM, frame.x.low, frame.x.high,
                   frame.y.low, frame.y.high);
    bel_report_text(out, axis_of(chart));
    bel_str_puts(out, "\">\n");
    if (any) {
        put_axes(out, &frame, chart);
        put_curves(out, &frame, chart);
        put_last_values(out, &frame, chart);
    } else {
        bel_str_printf(out, "<path class=\"base\" d=\"M%d %dH%d\"/>", PLOT_LEFT, PLOT_BOTTOM,
                       PLOT_RIGHT);
        bel_str_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">no values</text>\n",
                       (PLOT_LEFT + PLOT_RIGHT) / 2, (PLOT_TOP + PLOT_BOTTOM) / 2);
    }
    bel_str_puts(out, "</svg>\n</figure>\n");
}
