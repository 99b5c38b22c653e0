// Several optimizers at once. Settings over all variables (the bound of the global gradient norm,
// moving averages, the averaging of table rows) belong to the main one. Parts hold a copy, so that
// a variable's optimizer has all its settings.
#include "optim/optimizers.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "optim/multiplier.h"
#include "optim/rule.h"

static bool optimizers_matches(const bel_optimizer_part *part, const char *name)
{
    return fnmatch(part->variables, name, FNM_NOESCAPE) == 0;
}

// Checks that a part repeats the main one's shared settings, and copies them.
static bel_status *optimizer_share(const bel_optimizer *main, bel_optimizer_part *part)
{
    bel_optimizer *own = &part->optimizer;
    bool differs =
        (own->clip_global_norm != 0 && own->clip_global_norm != main->clip_global_norm) ||
        (own->moving_average_decay != 0 &&
         own->moving_average_decay != main->moving_average_decay) ||
        (own->moving_average_ramp && !main->moving_average_ramp) ||
        (own->mean_by_contributors && !main->mean_by_contributors) ||
        (own->clip_each_replica && !main->clip_each_replica);
    if (differs) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "optimizer of \"%s\": clip_global_norm, clip_each_replica, moving averages and the "
            "mean of rows are the main optimizer's",
            part->variables);
    }
    own->clip_global_norm = main->clip_global_norm;
    own->moving_average_decay = main->moving_average_decay;
    own->moving_average_ramp = main->moving_average_ramp;
    own->mean_by_contributors = main->mean_by_contributors;
    own->clip_each_replica = main->clip_each_replica;
    return NULL;
}

bel_status *bel_optimizers_add(bel_optimizers *optimizers, const char *variables,
                               const bel_optimizer *optimizer)
{
    size_t length = strlen(variables);
    if (optimizers->part_count == BEL_MAX_OPTIMIZER_PARTS || length == 0 ||
        length >= BEL_PATTERN_BYTES) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: expected up to %d with patterns of variables, each of 1 to %d "
                       "bytes, got \"%s\"",
                       BEL_MAX_OPTIMIZER_PARTS, BEL_PATTERN_BYTES - 1, variables);
    }
    bel_optimizer_part *part = &optimizers->parts[optimizers->part_count++];
    *part = (bel_optimizer_part){.optimizer = *optimizer};
    memcpy(part->variables, variables, length + 1);
    return NULL;
}

bel_status *bel_optimizers_check(bel_optimizers *optimizers)
{
    BEL_TRY(bel_optimizer_check(&optimizers->main));
    for (int i = 0; i < optimizers->part_count; i++) {
        bel_optimizer_part *part = &optimizers->parts[i];
        BEL_TRY(optimizer_share(&optimizers->main, part));
        BEL_TRY_CTX(bel_optimizer_check(&part->optimizer), "variables \"%s\"", part->variables);
    }
    return NULL;
}

// Checks that each factor matches a variable that its optimizer trains, since it has an effect only
// there.
static bel_status *check_factors(const bel_optimizers *optimizers, const bel_optimizer *optimizer,
                                 const char *const *names, size_t count)
{
    BEL_TRY(bel_multipliers_check_names(optimizer, names, count));
    const char **own = bel_xcalloc(count, sizeof *own), *what = NULL;
    size_t own_count = 0;
    for (size_t n = 0; n < count; n++)
        if (bel_optimizers_find(optimizers, names[n]) == optimizer) own[own_count++] = names[n];
    const char *idle = bel_multipliers_find_idle(optimizer, own, own_count, &what);
    bel_free(own);
    if (idle == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "optimizer: %s: \"%s\" matches nothing but what another optimizer trains, which "
                   "has separate factors",
                   what, idle);
}

bel_status *bel_optimizers_check_names(const bel_optimizers *optimizers, const char *const *names,
                                       size_t count)
{
    BEL_TRY(check_factors(optimizers, &optimizers->main, names, count));
    for (int i = 0; i < optimizers->part_count; i++) {
        const bel_optimizer_part *part = &optimizers->parts[i];
        bool found = false;
        for (size_t n = 0; n < count && !found; n++)
            found = optimizers_matches(part, names[n]);
        if (!found) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: \"%s\" matches no trainable variable",
                           part->variables);
        }
        BEL_TRY_CTX(check_factors(optimizers, &part->optimizer, names, count), "variables \"%s\"",
                    part->variables);
    }
    return NULL;
}

const bel_optimizer *bel_optimizers_find(const bel_optimizers *optimizers, const char *name)
{
    for (int i = optimizers->part_count - 1; i >= 0; i--)
        if (optimizers_matches(&optimizers->parts[i], name)) return &optimizers->parts[i].optimizer;
    return &optimizers->main;
}

int bel_optimizers_kept(const bel_optimizers *optimizers)
{
    int most = bel_rule_kept(&optimizers->main);
    for (int i = 0; i < optimizers->part_count; i++) {
        int kept = bel_rule_kept(&optimizers->parts[i].optimizer);
        most = kept > most ? kept : most;
    }
    return most;
}

static void optimizer_scale(bel_optimizer *optimizer, double factor)
{
    optimizer->learning_rate *= factor;
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES; i++)
        optimizer->schedule.rates[i] *= factor;
}

void bel_optimizers_scale(bel_optimizers *optimizers, double factor)
{
    optimizer_scale(&optimizers->main, factor);
    for (int i = 0; i < optimizers->part_count; i++)
        optimizer_scale(&optimizers->parts[i].optimizer, factor);
}

void bel_optimizers_set_scale(bel_optimizers *optimizers, double scale)
{
    optimizers->main.schedule.scale = scale;
    for (int i = 0; i < optimizers->part_count; i++)
        optimizers->parts[i].optimizer.schedule.scale = scale;
}

bool bel_optimizers_have_scale(const bel_optimizers *optimizers)
{
    bool have = optimizers->main.schedule.scale > 0;
    for (int i = 0; i < optimizers->part_count; i++)
        have = have || optimizers->parts[i].optimizer.schedule.scale > 0;
    return have;
}

// --- Texts ---------------------------------------------------------------------------------------

void bel_optimizers_list(const bel_optimizers *optimizers, bel_setting_take *take, void *context)
{
    bel_optimizer_list(&optimizers->main, take, context);
    for (int i = 0; i < optimizers->part_count; i++) {
        take(context, BEL_PART_SETTING, optimizers->parts[i].variables);
        bel_optimizer_list(&optimizers->parts[i].optimizer, take, context);
    }
}

bel_status *bel_optimizers_set(bel_optimizers *optimizers, const char *name, const char *text)
{
    int count = optimizers->part_count;
    if (strcmp(name, BEL_PART_SETTING) != 0) {
        bel_optimizer *last =
            count > 0 ? &optimizers->parts[count - 1].optimizer : &optimizers->main;
        return bel_optimizer_set(last, name, text);
    }
    const bel_optimizer plain = bel_optimizer_default();
    return bel_optimizers_add(optimizers, text, &plain);
}

typedef struct describer {
    bel_setting_take *take;
    void *context;
    const char *variables;
} describer;

static void optimizers_describe(void *context, const char *name, const char *text)
{
    const describer *d = context;
    char *whole = bel_strf("%s: %s", d->variables, name);
    d->take(d->context, whole, text);
    bel_free(whole);
}

void bel_optimizers_describe(const bel_optimizers *optimizers, bel_setting_take *take,
                             void *context)
{
    bel_optimizer_describe(&optimizers->main, take, context);
    for (int i = 0; i < optimizers->part_count; i++) {
        describer d = {take, context, optimizers->parts[i].variables};
        bel_optimizer_describe(&optimizers->parts[i].optimizer, optimizers_describe, &d);
    }
}
