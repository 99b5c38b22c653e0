// Parameters of a model function: names and texts, as the user gave them.
//
// Each reading is noted, because a parameter that nothing reads is likely misspelled: training
// warns of it (master/job/begin.c). Towers read from several threads, so the notes are atomic.
// Texts of bel_estimator_tell are found after the user's.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "estimator/estimator_inner.h"

const char *bel_estimator_param(const bel_estimator *estimator, const char *name,
                                const char *otherwise)
{
    for (int i = 0; i < estimator->param_count; i++) {
        if (strcmp(estimator->params[i].name, name) != 0) continue;
        atomic_store_explicit(&estimator->params_read[i], BEL_PARAM_READ, memory_order_relaxed);
        return estimator->params[i].value;
    }
    for (int i = 0; i < estimator->told_count; i++) {
        bel_told *told = &estimator->told[i];
        if (strcmp(told->name, name) != 0) continue;
        atomic_store_explicit(&told->read, true, memory_order_relaxed);
        return told->value[0] != '\0' ? told->value : otherwise;
    }
    return otherwise;
}

void bel_estimator_tell(bel_estimator *estimator, const char *name, const char *value,
                        bool expected)
{
    estimator->told = bel_xgrow(estimator->told, &estimator->told_capacity,
                                (size_t)estimator->told_count + 1, sizeof *estimator->told);
    bel_told *told = &estimator->told[estimator->told_count++];
    told->name = bel_xstrdup(name);
    told->value = bel_xstrdup(value);
    told->expected = expected;
    atomic_init(&told->read, false);
}

void bel_estimator_param_is_read(const bel_estimator *estimator, const char *name)
{
    for (int i = 0; i < estimator->param_count; i++) {
        int unread = BEL_PARAM_UNREAD;
        if (strcmp(estimator->params[i].name, name) == 0)
            (void)atomic_compare_exchange_strong(&estimator->params_read[i], &unread,
                                                 BEL_PARAM_READ_BY_OTHERS);
    }
}

static bel_status *bad_param(const char *name, const char *expected, const char *text)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "parameter %s must be %s, got \"%s\"", name, expected,
                   text);
}

bel_status *bel_estimator_param_number(const bel_estimator *estimator, const char *name,
                                       double otherwise, double *out_value)
{
    const char *text = bel_estimator_param(estimator, name, NULL);
    double value = otherwise;
    if (text != NULL && !bel_parse_f64(text, strlen(text), &value)) {
        return bad_param(name, "a number", text);
    }
    *out_value = value;
    return NULL;
}

bel_status *bel_estimator_param_int(const bel_estimator *estimator, const char *name,
                                    int64_t otherwise, int64_t *out_value)
{
    const char *text = bel_estimator_param(estimator, name, NULL);
    int64_t value = otherwise;
    if (text != NULL && !bel_parse_i64(text, strlen(text), &value)) {
        return bad_param(name, "an integer", text);
    }
    *out_value = value;
    return NULL;
}

bel_status *bel_estimator_param_bool(const bel_estimator *estimator, const char *name,
                                     bool otherwise, bool *out_value)
{
    const char *text = bel_estimator_param(estimator, name, NULL);
    bool value = otherwise;
    if (text != NULL) {
        value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        bool no = strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
        if (!value && !no) return bad_param(name, "true or false", text);
    }
    *out_value = value;
    return NULL;
}
