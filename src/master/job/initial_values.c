// Initial values of a new run: from initializers, or from the model function (of an ONNX file);
// then those of a warm start, then the changes by the program's function. The master fills them
// into one array, and rows of tables, which only a warm start has, into shards of this process.
// The result becomes ckpt-0, and all shards, in any process, start by loading it. So a warm start
// needs no part in any protocol, and its bits do not depend on the assignment.
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/table.h"
#include "master/backend/embedded.h"
#include "master/job/job.h"
#include "master/job/warm_file.h"
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

enum { MOST_NAMES = 4096 }; // candidates for the nearest name

// Lists names of the checkpoint's tensors, or of its model's tables; at most MOST_NAMES.
static int list_names(const bel_ckpt_reader *reader, bool tables, const char **out_names)
{
    int all = tables ? bel_ckpt_table_count(reader) : bel_ckpt_tensor_count(reader), count = 0;
    for (int i = 0; i < all && count < MOST_NAMES; i++) {
        bel_dtype dtype;
        bel_shape shape;
        int64_t rows;
        if (tables) {
            out_names[count] = bel_ckpt_table_at(reader, i, &rows).name;
        } else {
            bel_ckpt_tensor(reader, i, &out_names[count], &dtype, &shape);
        }
        count += !tables || bel_ckpt_is_model_table(reader, out_names[count]);
    }
    return count;
}

static bel_status *not_there(const bel_ckpt_reader *reader, bool table, const char *here,
                             const char *there)
{
    const char *names[MOST_NAMES];
    int count = list_names(reader, table, names);
    int nearest = bel_nearest_name(there, names, (size_t)count);
    return BEL_ERR(BEL_NOT_FOUND,
                   "%s has no %s \"%s\" for \"%s\"%s%s%s; hint: name those that begin "
                   "warm, or what they are called there",
                   bel_ckpt_folder(reader), table ? "table" : "variable", there, here,
                   nearest >= 0 ? "; did you mean \"" : "", nearest >= 0 ? names[nearest] : "",
                   nearest >= 0 ? "\"?" : "");
}

static bel_status *read_variable(const bel_warm_start *warm, const bel_ckpt_reader *reader,
                                 const bel_layout_variable *variable, float *values)
{
    char *there = name_there(warm, variable->name);
    bel_status *status = NULL;
    if (bel_ckpt_find(reader, there) < 0) {
        status = not_there(reader, false, variable->name, there);
    } else if (variable->own_elements > 0) {
        status = bel_ckpt_read_replicas(reader, there, variable->kind, &variable->shape, 0,
                                        variable->elements, values);
    } else if (warm->averages) {
        status = bel_ckpt_read_average(reader, there, BEL_DTYPE_F32, &variable->shape, 0,
                                       variable->elements, values);
    } else {
        status = bel_ckpt_read(reader, there, BEL_DTYPE_F32, &variable->shape, 0,
                               variable->elements, values);
    }
    bel_free(there);
    BEL_TRY_CTX(status, "\"%s\"", variable->name);
    return NULL;
}

// Reads a table's rows. A row that the checkpoint lacks starts as usual.
static bel_status *read_table(const bel_job *job, const bel_ckpt_reader *reader, int index)
{
    const char *here = job->trainable.layout->tables[index].name;
    char *there = name_there(&job->spec->warm_start, here);
    bel_status *status = bel_embedded_warm_up_rows(job->backend, index, reader, there);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // reported in terms of variables
        status = not_there(reader, true, here, there);
    }
    bel_free(there);
    BEL_TRY_CTX(status, "\"%s\"", here);
    return NULL;
}

// Variables come first, then tables.
static const char *name_at(const bel_layout *layout, int index)
{
    int variables = bel_layout_model_variables(layout);
    bool table = index >= variables;
    return table ? layout->tables[index - variables].name : layout->variables[index].name;
}

// Refuses spelling mistakes: a pattern that matches nothing, a name that no variable has, or a
// pattern for one name.
static bel_status *check_spec(const bel_warm_start *warm, const bel_layout *layout)
{
    int count = bel_layout_model_variables(layout) + layout->table_count;
    for (int i = 0; i < warm->variable_count; i++) {
        bool found = false;
        for (int v = 0; v < count && !found; v++)
            found = fnmatch(warm->variables[i], name_at(layout, v), FNM_NOESCAPE) == 0;
        if (found) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\" matches no variable of the model",
                       warm->variables[i]);
    }
    for (int i = 0; i < warm->name_count; i++) {
        const char *from = warm->names[i].from, *to = warm->names[i].to;
        size_t length = strlen(to);
        bool pattern = is_pattern(to), found = false;
        if (pattern != is_pattern(from)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "\"%s\" is to be read from \"%s\": both must end with a *, "
                           "or neither",
                           to, from);
        }
        for (int v = 0; v < count && !found; v++) {
            const char *name = name_at(layout, v);
            found = pattern ? strncmp(name, to, length - 1) == 0 : strcmp(name, to) == 0;
        }
        if (found) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "\"%s\" is to be read from \"%s\", but the model has no such "
                       "variable",
                       to, from);
    }
    return NULL;
}

// Refuses FTRL: it computes a variable, or a row, anew from its slots in each step, and they start
// at zero.
static bel_status *check_rule(const bel_job *job, const char *name)
{
    const bel_built *built = job->trainable.built;
    bool replaces = false;
    for (int f = 0; f < built->function_count; f++) {
        bool names = bel_step_function_names(built->functions[f].variables, name);
        const bel_optimizer *own = bel_optimizers_find(&built->optimizers[f], name);
        replaces = replaces || (names && own->kind == BEL_OPTIMIZER_FTRL);
    }
    if (!replaces) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "ftrl would replace the values of \"%s\" in its first step; leave "
                   "the variable out, or train it by another optimizer",
                   name);
}

// Reads the wanted variables of a file of another program, which has no tables.
static bel_status *read_file(const bel_job *job, const bel_warm_file *file, float *values)
{
    const bel_warm_start *warm = &job->spec->warm_start;
    const bel_layout *layout = job->trainable.layout;
    int variables = 0;
    for (int v = 0; v < bel_layout_model_variables(layout); v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (!is_wanted(warm, variable->name)) continue;
        if (variable->own_elements > 0 || warm->averages) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "\"%s\": %s has neither values of replicas nor averages", variable->name,
                           file->file.path);
        }
        if (variable->kind == BEL_VARIABLE_TRAINABLE) BEL_TRY(check_rule(job, variable->name));
        char *there = name_there(warm, variable->name);
        bel_status *status =
            bel_warm_file_read(file, there, &variable->shape, values + variable->offset);
        bel_free(there);
        BEL_TRY_CTX(status, "\"%s\"", variable->name);
        variables++;
    }
    bel_log_write(BEL_LOG_INFO, "warm start: %d of %d variables from %s, which has %d tensors",
                  variables, bel_layout_model_variables(layout), file->file.path, file->list.count);
    return NULL;
}

static bel_status *read_all(const bel_job *job, const bel_ckpt_reader *reader, float *values)
{
    const bel_warm_start *warm = &job->spec->warm_start;
    const bel_layout *layout = job->trainable.layout;
    int variables = 0, tables = 0;
    for (int v = 0; v < bel_layout_model_variables(layout); v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (!is_wanted(warm, variable->name)) continue;
        if (variable->kind == BEL_VARIABLE_TRAINABLE) BEL_TRY(check_rule(job, variable->name));
        BEL_TRY(read_variable(warm, reader, variable, values + variable->offset));
        variables++;
    }
    for (int t = 0; t < layout->table_count; t++) {
        if (!is_wanted(warm, layout->tables[t].name)) continue;
        BEL_TRY(check_rule(job, layout->tables[t].name));
        BEL_TRY(read_table(job, reader, t));
        tables++;
    }
    bel_str line = {0};
    bel_str_printf(&line, "warm start: %d of %d variables", variables,
                   bel_layout_model_variables(layout));
    if (layout->table_count > 0)
        bel_str_printf(&line, " and %d of %d tables", tables, layout->table_count);
    bel_log_write(BEL_LOG_INFO, "%s from %s", line.text, bel_ckpt_folder(reader));
    bel_str_deinit(&line);
    return NULL;
}

static bel_status *warm_up(const bel_job *job, float *values)
{
    const bel_warm_start *warm = &job->spec->warm_start;
    bel_ckpt_reader *reader;
    BEL_TRY(check_spec(warm, job->trainable.layout));
    if (bel_is_warm_file(warm->checkpoint)) {
        bel_warm_file file;
        bel_status *read = bel_warm_file_open(warm->checkpoint, &file);
        if (read == NULL) read = read_file(job, &file, values);
        bel_warm_file_close(&file);
        return read;
    }
    BEL_TRY(bel_ckpt_open_any(warm->checkpoint, &reader));
    bel_status *status = read_all(job, reader, values);
    bel_ckpt_close(reader);
    return status;
}

static bel_status *call_function(const bel_job *job, float *values)
{
    const bel_layout *layout = job->trainable.layout;
    for (int v = 0; v < bel_layout_model_variables(layout); v++) {
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

// Copies the elements of variables that the model function has set.
static void take_elements(const bel_job *job, float *values)
{
    const bel_graph *graph = job->trainable.built->graph;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const float *elements = graph->variables[v].elements;
        if (elements == NULL) continue;
        const bel_layout_variable *variable =
            &job->trainable.layout->variables[job->trainable.variables[v]];
        memcpy(values + variable->offset, elements, (size_t)variable->elements * sizeof *values);
    }
}

bel_status *bel_job_initialize(const bel_job *job, float *values)
{
    BEL_TRY(bel_space_initialize(job->trainable.layout, job->estimator->config.seed, values));
    take_elements(job, values);
    if (job->spec->warm_start.checkpoint != NULL) BEL_TRY_CTX(warm_up(job, values), "warm start");
    return job->spec->init_fn != NULL ? call_function(job, values) : NULL;
}
