// Details as tables of numbers in an event file. Their tags begin with "belfry/", which no metric's
// should do. A file may hold anything: counts must be finite and at least 0, shares from 0 to 1,
// since the page draws them unchecked.
#include "report/details.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"

#define CONFUSION "belfry/confusion"
#define ROC "belfry/roc/" // before the metric's name

void bel_details_deinit(bel_details *details)
{
    bel_free(details->confusion);
    *details = (bel_details){.classes = 0};
}

// Writes the details. A curve has three rows: false positive rate, true positive rate, and
// precision.
void bel_details_write(const bel_details *details, bel_event_file *events)
{
    double now = bel_clock_wall();
    if (details->classes > 0) {
        bel_event_file_numbers(events, now, details->step, CONFUSION, details->confusion,
                               details->classes, details->classes);
    }
    for (int i = 0; i < details->roc_count; i++) {
        const bel_roc *roc = &details->rocs[i];
        double rows[3 * BEL_ROC_POINTS];
        char tag[sizeof ROC + sizeof roc->name];
        size_t count = (size_t)roc->count;
        memcpy(rows, roc->no, count * sizeof *rows);
        memcpy(rows + count, roc->yes, count * sizeof *rows);
        memcpy(rows + 2 * count, roc->precision, count * sizeof *rows);
        bel_snprintf(tag, sizeof tag, ROC "%s", roc->name);
        bel_event_file_numbers(events, now, details->step, tag, rows, 3, roc->count);
    }
}

static bool all_within(const bel_event *event, double most)
{
    for (int i = 0; i < event->rows * event->columns; i++)
        if (!(event->numbers[i] >= 0 && event->numbers[i] <= most)) return false;
    return true;
}

static void take_confusion(bel_details *details, const bel_event *event)
{
    static const double most = 9007199254740992.0; // 2^53: largest exact integers
    int classes = event->columns;
    if (event->rows != classes || classes > BEL_MOST_CONFUSED || !all_within(event, most)) return;
    size_t bytes = (size_t)classes * (size_t)classes * sizeof(double);
    details->confusion = bel_xrealloc(details->confusion, bytes);
    memcpy(details->confusion, event->numbers, bytes);
    details->classes = classes;
}

// Adds a curve, or replaces the one of the same name.
static void take_roc(bel_details *details, const bel_event *event, const char *name)
{
    bool fits = event->rows == 3 && event->columns <= BEL_ROC_POINTS && all_within(event, 1);
    int at = 0;
    while (at < details->roc_count && strcmp(details->rocs[at].name, name) != 0)
        at++;
    if (!fits || at == BEL_MOST_ROCS || strlen(name) >= sizeof details->rocs[0].name) return;
    if (at == details->roc_count) details->roc_count++;
    bel_roc *roc = &details->rocs[at];
    size_t bytes = (size_t)event->columns * sizeof(double);
    *roc = (bel_roc){.count = event->columns};
    bel_snprintf(roc->name, sizeof roc->name, "%s", name);
    memcpy(roc->no, event->numbers, bytes);
    memcpy(roc->yes, event->numbers + event->columns, bytes);
    memcpy(roc->precision, event->numbers + 2 * event->columns, bytes);
}

void bel_details_take(bel_details *details, const bel_event *event)
{
    if (event->starts && event->step <= details->step) bel_details_deinit(details);
    if (event->numbers == NULL || event->step < details->step) return;
    bool confusion = strcmp(event->tag, CONFUSION) == 0;
    bool roc = strncmp(event->tag, ROC, strlen(ROC)) == 0;
    if (!confusion && !roc) return;
    if (event->step > details->step) bel_details_deinit(details); // an earlier evaluation's
    details->step = event->step;
    if (confusion) take_confusion(details, event);
    if (roc) take_roc(details, event, event->tag + strlen(ROC));
}
