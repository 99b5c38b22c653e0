// A task from the environment and back.
#include "launch/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

const char *bel_role_name(bel_role role)
{
    static const char *const names[] = {"master", "worker", "ps", "evaluator"};
    return names[role];
}

const char *bel_task_name(bel_role role, int index, char text[32])
{
    snprintf(text, 32, role == BEL_ROLE_MASTER ? "%s" : "%s %d", bel_role_name(role), index);
    return text;
}

static int64_t number(const bel_json_value *o, const char *name)
{
    int64_t v = 0;
    bel_json_i64(o, name, &v);
    return v;
}
static char *text(const bel_json_value *o, const char *name)
{
    const char *v = "";
    bel_json_string(o, name, &v);
    return bel_xstrdup(v);
}

bel_status *bel_task_parse(const char *belfry_task, const char *tf_config, const char *secret,
                           bel_task **out_task)
{
    (void)tf_config;
    *out_task = NULL;
    if (belfry_task == NULL) return NULL;
    bel_json *json;
    BEL_TRY(bel_json_parse(belfry_task, strlen(belfry_task), "BELFRY_TASK", &json));
    const bel_json_value *o = bel_json_root(json);
    bel_task *t = bel_xcalloc(1, sizeof *t);
    t->job = text(o, "job");
    char *role = text(o, "role");
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        if (strcmp(role, bel_role_name((bel_role)r)) == 0) t->role = (bel_role)r;
    bel_free(role);
    t->index = (int)number(o, "index");
    t->incarnation = (uint32_t)number(o, "incarnation");
    t->worker_count = (int)number(o, "worker_count");
    t->ps_count = (int)number(o, "parameter_server_count");
    t->evaluator_count = (int)number(o, "evaluator_count");
    t->master_address = text(o, "master");
    t->listen_address = text(o, "listen");
    t->secret = bel_xstrdup(secret != NULL ? secret : "");
    t->thread_count = (int)number(o, "threads");
    t->master_trains = number(o, "mt") != 0;
    t->join_timeout_secs = 60;
    t->silence_timeout_secs = 10;
    t->supervisor = number(o, "supervisor");
    bel_json_destroy(json);
    *out_task = t;
    return NULL;
}

bel_status *bel_task_from_environment(bel_task **out_task)
{
    return bel_task_parse(getenv("BELFRY_TASK"), getenv("TF_CONFIG"), getenv("BELFRY_SECRET"),
                          out_task);
}

void bel_task_destroy(bel_task *task)
{
    if (task == NULL) return;
    bel_free(task->job);
    bel_free(task->master_address);
    bel_free(task->listen_address);
    bel_free(task->secret);
    bel_free(task);
}
