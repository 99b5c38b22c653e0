// The master's address: it listens before the model is built, so that members may call meanwhile.
// The file job.token in the model folder tells members of this run from those of another, and shows
// a later master that this one was killed; only the master that wrote it removes it.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_host.h"
#include "base/str.h"
#include "launch/cluster/cluster_file.h"
#include "launch/folder/scale.h"
#include "master/backend/remote_inner.h"

static bel_status *refuse_lane(void *context, const char *path, bel_stream *stream,
                               bel_stream_events *out_events)
{
    (void)context, (void)stream, (void)out_events;
    return BEL_ERR(BEL_UNIMPLEMENTED, "the master has no %s", path);
}

int bel_remote_seats_of(const bel_task *task, const bel_estimator *estimator)
{
    if (task->ps_count == 0) return task->worker_count; // workers hold the shards
    return estimator->config.elastic_rescale ? BEL_CLUSTER_MOST : estimator->replica_count;
}

bel_status *bel_remote_listen(const bel_task *task, const bel_estimator *estimator,
                              bel_members **out_members, bool *out_replaces)
{
    const bel_run_config *config = &estimator->config;
    char *path = bel_path_join(config->model_dir, BEL_TOKEN_FILE);
    char *token = bel_strf("%016llx%016llx", (unsigned long long)bel_clock_ns(),
                           (unsigned long long)(bel_clock_wall() * 1e6));
    bool left_behind = bel_file_exists(path); // leftover of a killed master
    *out_replaces = task->foreign ? left_behind : task->incarnation > 0;
    bel_status *status = bel_file_write_atomic(path, token, strlen(token));
    bel_free(path);
    if (status == NULL) {
        const bel_members_config members = {
            .endpoint = {.listen_address = task->listen_address,
                         .secret = task->secret,
                         .silence_secs = task->silence_timeout_secs,
                         .tls_ca = task->tls_ca,
                         .tls_certificate = task->tls_certificate,
                         .tls_key = task->tls_key,
                         .accept = refuse_lane},
            .counts = {[BEL_ROLE_WORKER] = bel_remote_seats_of(task, estimator),
                       [BEL_ROLE_PS] = task->ps_count,
                       [BEL_ROLE_EVALUATOR] = task->evaluator_count},
            .wanted_workers = task->worker_count,
            .min_workers = task->min_workers,
            .token = token,
            .may_be_blind = !bel_linux_address_is_loopback(task->master_address),
            .folder_patience_secs = BEL_TOKEN_PATIENCE_SECS,
            .join_timeout_secs = task->join_timeout_secs,
            .silence_timeout_secs = task->silence_timeout_secs,
            .recovers = task->recovers};
        status = bel_members_create(&members, out_members);
    }
    bel_free(token);
    return status;
}

void bel_remote_unlisten(const bel_run_config *config, const bel_task *task,
                         const bel_members *members)
{
    char *path = bel_path_join(config->model_dir, BEL_TOKEN_FILE), *token = NULL;
    size_t bytes;
    bel_status_ignore(bel_file_read(path, &token, &bytes)); // then it is not this master's
    if (token != NULL && strcmp(token, bel_members_token(members)) == 0) {
        (void)remove(path); // a leftover is harmless: the next job replaces it
        if (task->supervisor == 0) bel_scale_remove(config->model_dir); // else it does
    }
    bel_free(token);
    bel_free(path);
}
