// What a new run begins with: values of initializers, then those of a warm start, then what the
// program's function makes of them. The master fills them into one array, which becomes ckpt-0; all
// shards, wherever they are, begin by loading that. So a warm start needs no part in any protocol,
// and its bits do not depend on the deal.
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "master/job.h"
#include "ps/layout/space.h"

static bool is_pattern(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && name[length - 1] == '*';
}

// The checkpoint's name of a variable; free it.
static char *name_there(const bel_warm_start *warm, const char *name)
{
    for (int i = warm->name_count - 1; i >= 0; i--) {
        const bel_rename *rename = &warm->names[i];
        size_t from = strlen(rename->from), to = strlen(rename->to);
        bool pattern = is_pattern(rename->to); // check_spec: both are, or neither
        if (!pattern && strcmp(rename->to, name) == 0) return bel_xstrdup(rename->from);
        if (pattern && strncmp(rename->to, name, to - 1) == 0) {
            return bel_strf("%.*s%s", (int)from - 1, rename->from, name + to - 1);
        }
    }
    return bel_xstrdup(name);
}

static bool is_wanted(const bel_warm_start *warm, const char *name)
{
    for (int i = 0; i < warm->variable_count; i++)
        if (fnmatch(warm->variables[i], name, FNM_NOESCAPE) == 0) return true;
    return warm->variables == NULL || warm->variable_count == 0;
}

// The tensor of another shape, or none.
static bel_status *not_there(const bel_ckpt_reader *reader, const char *here, const char *there)
{
    enum { MOST = 4096 };
    const char *names[MOST];
    int count = bel_ckpt_tensor_count(reader);
    if (count > MOST) count = MOST;
    for (int i = 0; i < count; i++) {
        bel_dtype dtype;
        bel_shape shape;
        bel_ckpt_tensor(reader, i, &names[i], &dtype, &shape);
    }
    int nearest = bel_nearest_name(there, names, (size_t)count);
    return BEL_ERR(BEL_NOT_FOUND,
                   "warm start: %s has no variable \"%s\" for \"%s\"%s%s%s; hint: name those that "
                   "begin warm, or what they are called there",
                   bel_ckpt_folder(reader), there, here, nearest >= 0 ? "; did you mean \"" : "",
                   nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "\"?" : "");
}

static bel_status *read_variable(const bel_warm_start *warm, const bel_ckpt_reader *reader,
                                 const bel_layout_variable *variable, float *values)
{
    char *there = name_there(warm, variable->name);
    bel_status *status = NULL;
    if (bel_ckpt_find(reader, there) < 0) {
        status = not_there(reader, variable->name, there);
    } else if (warm->averages) {
        status = bel_ckpt_read_average(reader, there, BEL_DTYPE_F32, &variable->shape, 0,
                                       variable->elements, values);
    } else {
        status = bel_ckpt_read(reader, there, BEL_DTYPE_F32, &variable->shape, 0,
                               variable->elements, values);
    }
    bel_free(there);
    BEL_TRY_CTX(status, "warm start of \"%s\"", variable->name);
    return NULL;
}

// A pattern that matches nothing, or a name that no variable has, is a mistake of spelling; so is a
// pattern for one name.
static bel_status *check_spec(const bel_warm_start *warm, const bel_layout *layout)
{
    for (int i = 0; i < warm->variable_count; i++) {
        bool found = false;
        for (int v = 0; v < layout->variable_count && !found; v++)
            found = fnmatch(warm->variables[i], layout->variables[v].name, FNM_NOESCAPE) == 0;
        if (found) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "warm start: \"%s\" matches no variable of the model",
                       warm->variables[i]);
    }
    for (int i = 0; i < warm->name_count; i++) {
        const char *from = warm->names[i].from, *to = warm->names[i].to;
        size_t length = strlen(to);
        bool pattern = is_pattern(to), found = false;
        if (pattern != is_pattern(from)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "warm start: \"%s\" is to be read from \"%s\": both must end with a *, "
                           "or neither",
                           to, from);
        }
        for (int v = 0; v < layout->variable_count && !found; v++) {
            const char *name = layout->variables[v].name;
            found = pattern ? strncmp(name, to, length - 1) == 0 : strcmp(name, to) == 0;
        }
        if (found) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "warm start: \"%s\" is to be read from \"%s\", but the model has no such "
                       "variable",
                       to, from);
    }
    return NULL;
}

// FTRL makes a variable anew from its slots in each step, and they begin at nothing.
static bel_status *check_rule(const bel_job *job, const bel_layout_variable *variable)
{
    const bel_optimizers *optimizers = &job->trainable.built->optimizers;
    bool ftrl = bel_optimizers_find(optimizers, variable->name)->kind == BEL_OPTIMIZER_FTRL;
    if (!ftrl || variable->kind != BEL_VARIABLE_TRAINABLE) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "warm start: ftrl would replace the values of \"%s\" in its first step; leave "
                   "the variable out, or train it by another optimizer",
                   variable->name);
}

static bel_status *warm_up(const bel_job *job, float *values)
{
    const bel_warm_start *warm = &job->spec->warm_start;
    const bel_layout *layout = job->trainable.layout;
    bel_ckpt_reader *reader;
    int count = 0;
    BEL_TRY(check_spec(warm, layout));
    BEL_TRY_CTX(bel_ckpt_open_any(warm->checkpoint, &reader), "warm start");
    bel_status *status = NULL;
    for (int v = 0; v < layout->variable_count && status == NULL; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (!is_wanted(warm, variable->name)) continue;
        status = check_rule(job, variable);
        if (status != NULL) break;
        status = read_variable(warm, reader, variable, values + variable->offset);
        count++;
    }
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "warm start: %d of %d variables from %s%s", count,
                      layout->variable_count, bel_ckpt_folder(reader),
                      layout->table_count > 0 ? "; rows of tables begin anew" : "");
    }
    bel_ckpt_close(reader);
    return status;
}

static bel_status *call_function(const bel_job *job, float *values)
{
    const bel_layout *layout = job->trainable.layout;
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        float *own = values + variable->offset;
        BEL_TRY_CTX(job->spec->init_fn(job->spec->init_user, job->estimator, variable->name,
                                       &variable->shape, own),
                    "initial values of \"%s\"", variable->name);
        for (int64_t i = 0; i < variable->elements; i++) {
            if (isfinite(own[i])) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "initial values of \"%s\": element %lld is not finite", variable->name,
                           (long long)i);
        }
    }
    return NULL;
}

bel_status *bel_job_initialize(const bel_job *job, float *values)
{
    BEL_TRY(bel_space_initialize(job->trainable.layout, job->estimator->config.seed, values));
    if (job->spec->warm_start.checkpoint != NULL) BEL_TRY(warm_up(job, values));
    return job->spec->init_fn != NULL ? call_function(job, values) : NULL;
}
