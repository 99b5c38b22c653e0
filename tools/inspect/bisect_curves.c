// Curves of two trainings. Event files often have more steps than there are checkpoints, so a loss
// that differs narrows down the step at which the trainings part.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "inspect/bisect.h"
#include "report/history.h"

// Speeds differ from run to run.
static bool is_of_speed(const char *tag)
{
    return strcmp(tag, "examples_per_second") == 0 || strcmp(tag, "global_step/sec") == 0;
}

static bool same_value(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

// Compares the points at the steps that both curves have, up to the first that differs. A curve
// that differs earlier than the one in `out` replaces it.
static void compare_curve(const bel_report_series *a, const bel_report_series *b,
                          bel_curve_difference *out)
{
    int64_t equal_step = -1;
    for (size_t i = 0, k = 0; i < a->point_count && k < b->point_count;) {
        if (a->steps[i] != b->steps[k]) {
            a->steps[i] < b->steps[k] ? i++ : k++;
            continue;
        }
        int64_t step = a->steps[i];
        out->points++;
        if (!same_value(a->values[i], b->values[k])) {
            if (out->tag != NULL && out->step <= step) return;
            bel_free(out->tag);
            out->tag = bel_xstrdup(a->name);
            out->step = step;
            out->equal_step = equal_step;
            out->a = a->values[i];
            out->b = b->values[k];
            return;
        }
        equal_step = step;
        i++, k++;
    }
}

bel_status *bel_bisect_curves(const char *model_dir_a, const char *model_dir_b,
                              bel_curve_difference *out)
{
    bel_history *a = NULL, *b = NULL;
    *out = (bel_curve_difference){.step = -1, .equal_step = -1};
    bel_status *status = bel_history_read_folder(model_dir_a, "", &a);
    if (status == NULL) status = bel_history_read_folder(model_dir_b, "", &b);
    for (size_t i = 0; status == NULL; i++) {
        const bel_report_series *series = bel_history_at(a, "", i);
        if (series == NULL) break;
        const bel_report_series *other = bel_history_find(b, "", series->name);
        if (other != NULL && !is_of_speed(series->name)) compare_curve(series, other, out);
    }
    bel_history_destroy(a);
    bel_history_destroy(b);
    return status;
}
