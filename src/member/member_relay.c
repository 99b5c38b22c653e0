// Relays of a member (ps/relay/relay.h): created with its worker for each generation, from the top
// level down, as each connects to the one above. The worker reads its values in the lowest one's
// space. They share the memory of the process's buffers.
//
// A relay whose parent is gone reports nothing: the job begins again, or is over, or the master
// ends it, as for a worker whose shard is gone.
#include "base/alloc.h"
#include "base/log.h"
#include "member/member_inner.h"
#include "wire/role.h"

bool bel_member_may_relay(const member *m)
{
    const bel_trainable *t = &m->worker.trainable;
    const bel_estimator *estimator = m->estimator;
    if (!m->worker.here || m->task->ps_count == 0 || m->shm.hub != NULL) return false;
    if (bel_trainable_why_no_relays(t) != NULL) return false;
    return estimator->config.elastic_rescale || estimator->replica_count > bel_trainable_fan_in(t);
}

// The addresses upward of a reporter in this process: the parent's or the shards'.
static char *const *addresses_of(const Bel__Setup *setup, const bel_fan_in_place *place)
{
    return place->worker >= 0 ? &setup->parent : setup->shards;
}

static bel_status *make_relay(member *m, const Bel__Setup *setup, int level, bel_relay **out_relay)
{
    const member_relays *relays = &m->relays;
    const bel_fan_in_place place =
        bel_fan_in_place_of(m->assignment, relays->fan_in, m->task->index, level);
    const bel_relay_config config = {.worker = m->task->index,
                                     .level = level,
                                     .assignment = m->assignment,
                                     .fan_in = relays->fan_in,
                                     .layout = m->worker.trainable.layout,
                                     .joined = relays->joined,
                                     .stats = m->worker.trainable.stats,
                                     .generation = m->generation,
                                     .incarnations = setup->incarnations,
                                     .step = setup->step,
                                     .endpoint = m->endpoint,
                                     .above = *out_relay,
                                     .addresses = addresses_of(setup, &place),
                                     .buffers = m->worker.space->buffers,
                                     .stall_timeout_secs = m->estimator->config.stall_timeout};
    BEL_TRY_CTX(bel_relay_create(&config, out_relay), "relay of worker %d", m->task->index);
    bel_log_write(BEL_LOG_DEBUG, "this process adds the reports of its group, level %d", level);
    return NULL;
}

bel_status *bel_member_relays_make(member *m, const Bel__Setup *setup)
{
    member_relays *relays = &m->relays;
    const bel_layout *layout = m->worker.trainable.layout;
    int levels[BEL_FAN_IN_LEVELS];
    int worker = m->task->index;
    m->worker.lane_layout = layout;
    relays->fan_in = setup->fan_in;
    if (bel_fan_in_levels(m->assignment, relays->fan_in) == 0) return NULL;
    if (relays->joined == NULL) relays->joined = bel_layout_join(layout);
    relays->place = bel_fan_in_place_of(m->assignment, relays->fan_in, worker, 0);
    bool relayed = relays->place.worker >= 0;
    relays->siblings = relayed ? bel_fan_in_members(m->assignment, relays->fan_in,
                                                    relays->place.worker, relays->place.level)
                               : bel_fan_in_top(m->assignment, relays->fan_in);
    if (relayed) m->worker.lane_layout = relays->joined;
    relays->count = bel_fan_in_relays(m->assignment, relays->fan_in, worker, levels);
    int top = relays->count > 0 ? levels[relays->count - 1] : 0; // the reporter that leaves
    bel_fan_in_place up = bel_fan_in_place_of(m->assignment, relays->fan_in, worker, top);
    if (up.worker >= 0 && setup->parent[0] == '\0')
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: no address of worker %d's relay",
                       up.worker);
    bel_relay *relay = NULL;
    for (int i = relays->count - 1; i >= 0; i--) {
        bel_status *status = make_relay(m, setup, levels[i], &relay);
        if (status != NULL) return status;
        relays->list[i] = relay;
    }
    return NULL;
}

// From here on reporters find them.
bel_status *bel_member_relays_run(member *m)
{
    member_relays *relays = &m->relays;
    for (int i = relays->count - 1; i >= 0; i--)
        BEL_TRY(bel_relay_start(relays->list[i]));
    pthread_mutex_lock(&relays->mutex);
    relays->found = relays->count;
    pthread_mutex_unlock(&relays->mutex);
    return NULL;
}

void bel_member_relays_find(member *m, const bel_lane_hello *hello, bel_lane **out_lane)
{
    member_relays *relays = &m->relays;
    pthread_mutex_lock(&relays->mutex);
    for (int i = 0; i < relays->found; i++)
        bel_relay_find(relays->list[i], hello, out_lane);
    pthread_mutex_unlock(&relays->mutex);
}

bel_status *bel_member_relays_check(const member *m)
{
    for (int i = 0; i < m->relays.found; i++) {
        bel_status *status = bel_relay_check(m->relays.list[i]);
        if (status != NULL && bel_status_code(status) != BEL_UNAVAILABLE) return status;
        bel_status_ignore(status); // the master knows whether a new generation follows, or the end
    }
    return NULL;
}

void bel_member_relays_stop(member *m)
{
    member_relays *relays = &m->relays;
    if (relays->count == 0) return;
    pthread_mutex_lock(&relays->mutex);
    relays->found = 0;
    pthread_mutex_unlock(&relays->mutex);
    bel_endpoint_settle(m->endpoint);
    for (int i = 0; i < relays->count; i++)
        if (relays->list[i] != NULL) bel_relay_stop(relays->list[i]);
}

void bel_member_relays_free(member *m)
{
    member_relays *relays = &m->relays;
    for (int i = 0; i < relays->count; i++) {
        bel_relay_destroy(relays->list[i]);
        relays->list[i] = NULL;
    }
    bel_reporters_deinit(&relays->siblings);
    relays->count = 0;
}
