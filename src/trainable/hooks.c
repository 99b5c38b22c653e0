// Hooks are a program's functions that Belfry calls. An error that one returns is wrapped with the
// hook's name. Structs passed to it live only during the call. A hook is copied by the size that it
// was compiled with, so later fields of an older program's hook are zero.
#include "trainable/hooks.h"

#include <string.h>

#include "base/number.h"
#include "base/sized.h"

const struct bel_estimator *bel_hook_estimator(const bel_hook_context *context)
{
    return context->estimator;
}

void bel_hook_summary_text(const bel_hook_context *context, const char *name, const char *text)
{
    if (context->log != NULL) bel_run_log_text(context->log, context->step, name, text);
}

void bel_hook_request_stop(bel_hook_context *context)
{
    if (context->stop != NULL) *context->stop = true;
}

// The name becomes a file name.
static bool is_plain_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return name[0] != '\0' && name[strspn(name, plain)] == '\0';
}

static bel_status *check_state(const bel_hooks *hooks)
{
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        bool alone = true;
        for (int k = 0; k < hooks->count; k++)
            alone = alone && (k == i || strcmp(hooks->items[k].name, hook->name) != 0);
        if (hook->state_bytes == 0 || (hook->state != NULL && alone && is_plain_name(hook->name)))
            continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "hook %s: one with a state needs memory for it, and a name of letters, "
                       "digits, _ and - that no other has",
                       hook->name);
    }
    return NULL;
}

bel_status *bel_hooks_init(bel_hooks *hooks, const bel_train_spec *spec)
{
    *hooks = (bel_hooks){0};
    if (spec->hook_count < 0 || spec->hook_count > BEL_MAX_HOOKS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there can be from 0 to %d hooks, got %d",
                       BEL_MAX_HOOKS, spec->hook_count);
    }
    for (int i = 0; i < spec->hook_count; i++) {
        const bel_hook *from = spec->hooks[i];
        bel_hook *to = &hooks->items[hooks->count++];
        BEL_TRY_CTX(bel_sized_take(to, sizeof *to, from, "bel_hook"), "hook %d", i);
        if (to->name != NULL && to->every_steps >= 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "hook %d: %s", i,
                       to->name == NULL ? "it needs a name" : "every_steps must be at least 0");
    }
    return check_state(hooks);
}

static int64_t period_of(const bel_hook *hook)
{
    return hook->every_steps > 0 ? hook->every_steps : 1;
}

int64_t bel_hooks_period(const bel_hooks *hooks)
{
    int64_t period = 0;
    for (int i = 0; i < hooks->count; i++) {
        if (hooks->items[i].after_step == NULL) continue;
        period = bel_common_divisor(period_of(&hooks->items[i]), period);
    }
    return period;
}

bool bel_hooks_for_workers(const bel_hooks *hooks)
{
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->worker_before_step != NULL || hook->worker_after_step != NULL) return true;
    }
    return false;
}

static bel_status *named(const bel_hook *hook, const char *function, bel_status *status)
{
    if (status == NULL) return NULL;
    return bel_status_wrap(status, __FILE__, __LINE__, "hook %s, %s", hook->name, function);
}

// Calls one function of each hook that has it: CALL_EACH(begin, step) calls begin(user, context,
// step).
#define CALL_EACH(function, ...)                                                                   \
    for (int i = 0; i < hooks->count; i++) {                                                       \
        const bel_hook *hook = &hooks->items[i];                                                   \
        if (hook->function == NULL) continue;                                                      \
        BEL_TRY(named(hook, #function, hook->function(hook->user, context, __VA_ARGS__)));         \
    }                                                                                              \
    return NULL

bel_status *bel_hooks_begin(const bel_hooks *hooks, bel_hook_context *context, int64_t step)
{
    CALL_EACH(begin, step);
}

bel_status *bel_hooks_after_step(const bel_hooks *hooks, bel_hook_context *context,
                                 const bel_step_report *step)
{
    for (int i = 0; i < hooks->count; i++) {
        const bel_hook *hook = &hooks->items[i];
        if (hook->after_step == NULL || step->step % period_of(hook) != 0) continue;
        BEL_TRY(named(hook, "after_step", hook->after_step(hook->user, context, step)));
    }
    return NULL;
}

bel_status *bel_hooks_after_save(const bel_hooks *hooks, bel_hook_context *context, int64_t step,
                                 const char *folder)
{
    CALL_EACH(after_save, step, folder);
}

bel_status *bel_hooks_after_evaluation(const bel_hooks *hooks, bel_hook_context *context,
                                       const char *name, const bel_result *result)
{
    CALL_EACH(after_evaluation, name, result);
}

bel_status *bel_hooks_end(const bel_hooks *hooks, bel_hook_context *context,
                          const bel_result *result)
{
    CALL_EACH(end, result);
}

bel_status *bel_hooks_before_worker(const bel_hooks *hooks, bel_hook_context *context, int64_t step)
{
    CALL_EACH(worker_before_step, step);
}

bel_status *bel_hooks_after_worker(const bel_hooks *hooks, bel_hook_context *context,
                                   const bel_step_report *step)
{
    CALL_EACH(worker_after_step, step);
}
