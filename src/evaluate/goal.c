// Directions of metrics by their names: one table for early stopping, exporters and the best
// checkpoint, so that they cannot differ. It has the names in Belfry's models, those of the
// functions that make metrics (belfry/model.h), and other libraries' names for them. A name that is
// absent has no direction, and the user must set it.
#include "evaluate/goal.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "model/spec.h"

typedef struct known_metric {
    const char *name;
    bel_goal goal;
} known_metric;

static const known_metric known[] = {
    {"loss", BEL_GOAL_MIN},
    {"log_loss", BEL_GOAL_MIN},
    {"error", BEL_GOAL_MIN},
    {"error_rate", BEL_GOAL_MIN},
    {"perplexity", BEL_GOAL_MIN},
    {"mean_squared_error", BEL_GOAL_MIN},
    {"root_mean_squared_error", BEL_GOAL_MIN},
    {"mean_absolute_error", BEL_GOAL_MIN},
    {"mse", BEL_GOAL_MIN},
    {"rmse", BEL_GOAL_MIN},
    {"mae", BEL_GOAL_MIN},
    {"accuracy", BEL_GOAL_MAX},
    {"auc", BEL_GOAL_MAX},
    {"precision", BEL_GOAL_MAX},
    {"recall", BEL_GOAL_MAX},
    {"f1", BEL_GOAL_MAX},
    {"r2", BEL_GOAL_MAX},
    {"top_k", BEL_GOAL_MAX},
};

bel_goal bel_goal_of(const char *metric)
{
    static const char top[] = "top_";
    size_t skip = sizeof top - 1;
    if (strncmp(metric, top, skip) == 0) { // e.g. top_5
        size_t digits = strspn(metric + skip, "0123456789");
        if (digits > 0 && metric[skip + digits] == '\0') return BEL_GOAL_MAX;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, metric) == 0) return known[i].goal;
    return BEL_GOAL_AUTO;
}

bel_status *bel_goal_resolve(bel_goal wanted, const char *metric, const char *user,
                             bel_goal *out_goal)
{
    if ((unsigned)wanted > BEL_GOAL_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: there is no such goal, %d", user, (int)wanted);
    }
    bel_goal goal = wanted != BEL_GOAL_AUTO ? wanted : bel_goal_of(metric);
    if (goal == BEL_GOAL_AUTO) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: which of two values of \"%s\" is better does not follow from its name; "
                       "hint: --best_goal min or --best_goal max, in a program the field goal",
                       user, metric);
    }
    *out_goal = goal;
    return NULL;
}

bool bel_goal_is_better(bel_goal goal, double value, double best)
{
    if (isnan(best)) return !isnan(value);
    return goal == BEL_GOAL_MAX ? value > best : value < best;
}

bel_status *bel_goal_check_metric(const bel_estimator_spec *spec, const char *metric,
                                  const char *user, const char *evaluation)
{
    bool found = strcmp(metric, "loss") == 0;
    for (int m = 0; m < spec->metric_count; m++)
        found = found || strcmp(spec->metrics[m].name, metric) == 0;
    if (found) return NULL;
    bel_str names = {0};
    for (int m = 0; m < spec->metric_count; m++)
        bel_str_printf(&names, ", %s", spec->metrics[m].name);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s: %s has no metric \"%s\"; it has loss%s",
                                 user, evaluation, metric, names.length > 0 ? names.text : "");
    bel_str_deinit(&names);
    return status;
}

double bel_goal_value(const bel_result *result, const char *metric)
{
    if (strcmp(metric, "loss") == 0) return result->loss;
    for (int m = 0; m < result->metric_count; m++)
        if (strcmp(result->metrics[m].name, metric) == 0) return result->metrics[m].value;
    return NAN;
}
