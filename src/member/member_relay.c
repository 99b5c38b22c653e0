// Relays of a member (ps/relay/relay.h): created with its worker for each generation, from the top
// level down, as each connects to the one above. The worker reads its values in the lowest one's
// space. They share the memory of the process's buffers: the worker's, or the region that other
// workers of the host map, if the lowest one takes their reports.
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
    if (!m->worker.here || m->task->ps_count == 0 || bel_member_is_on_one_host(m)) return false;
    if (bel_trainable_why_no_relays(t) != NULL) return false;
    return estimator->config.elastic_rescale || estimator->replica_count > bel_trainable_fan_in(t);
}

bel_status *bel_member_relays_take_rule(member *m, const Bel__Setup *setup)
{
    member_relays *relays = &m->relays;
    const bel_fan_in_rule rule = {
        .fan_in = setup->fan_in, .hosts = setup->hosts, .host_count = (int)setup->n_hosts};
    bool relayed = rule.fan_in != 0 || rule.host_count > 0;
    bool fits = setup->n_hosts <= (size_t)m->assignment->worker_count &&
                bel_fan_in_is_rule(m->assignment, &rule);
    if (!fits || (relayed && bel_member_is_on_one_host(m)))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: fan_in or hosts");
    relays->tree = bel_fan_in_create(m->assignment, &rule);
    relays->fan_in = rule.fan_in;
    relays->host_count = rule.host_count;
    relays->hosts = bel_xcalloc(setup->n_hosts + 1, sizeof *relays->hosts);
    for (size_t h = 0; h < setup->n_hosts; h++)
        relays->hosts[h] = setup->hosts[h];
    return NULL;
}

void bel_member_relays_forget(member *m)
{
    bel_fan_in_destroy(m->relays.tree);
    bel_free(m->relays.hosts);
    m->relays.tree = NULL;
    m->relays.hosts = NULL;
    m->relays.fan_in = m->relays.host_count = 0;
}

// The addresses upward of a reporter in this process: the parent's or the shards'.
static char *const *addresses_of(const Bel__Setup *setup, const bel_fan_in_place *place)
{
    return place->worker >= 0 ? &setup->parent : setup->shards;
}

static bel_status *make_relay(member *m, const Bel__Setup *setup, int level, bel_relay **out_relay)
{
    const member_relays *relays = &m->relays;
    const bel_layout *layout = m->worker.trainable.layout;
    const bel_fan_in_place place = bel_fan_in_place_of(relays->tree, m->task->index, level);
    float *buffers[2] = {m->worker.space->buffers[0], m->worker.space->buffers[1]};
    if (m->shm.parameters != NULL) {
        char *memory = bel_shm_region_memory(m->shm.parameters);
        for (size_t b = 0; b < 2; b++)
            buffers[b] = (float *)(void *)(memory + b * bel_space_bytes(layout));
    }
    const bel_relay_config config = {.worker = m->task->index,
                                     .level = level,
                                     .tree = relays->tree,
                                     .layout = layout,
                                     .joined = relays->joined,
                                     .stats = m->worker.trainable.stats,
                                     .rounding = m->settings.rounding,
                                     .generation = m->generation,
                                     .incarnations = setup->incarnations,
                                     .step = setup->step,
                                     .endpoint = m->endpoint,
                                     .above = *out_relay,
                                     .addresses = addresses_of(setup, &place),
                                     .buffers = buffers,
                                     .hub = m->shm.hub,
                                     .region = m->shm.parameters,
                                     .stall_timeout_secs =
                                         bel_trainable_patience_secs(&m->worker.trainable)};
    BEL_TRY_CTX(bel_relay_create(&config, out_relay), "relay of worker %d", m->task->index);
    bel_log_write(BEL_LOG_DEBUG, "this process adds the reports of its %s, level %d",
                  bel_fan_in_is_host(relays->tree, level) ? "host" : "group", level);
    return NULL;
}

bel_status *bel_member_relays_make(member *m, const Bel__Setup *setup)
{
    member_relays *relays = &m->relays;
    const bel_layout *layout = m->worker.trainable.layout;
    int levels[BEL_FAN_IN_LEVELS];
    int worker = m->task->index;
    m->worker.lane_layout = layout;
    if (bel_fan_in_levels(relays->tree) == 0) return NULL;
    if (relays->joined == NULL) relays->joined = bel_layout_join(layout);
    relays->place = bel_fan_in_place_of(relays->tree, worker, 0);
    relays->siblings = bel_fan_in_beside(relays->tree, &relays->place);
    if (relays->place.worker >= 0) m->worker.lane_layout = relays->joined;
    relays->count = bel_fan_in_relays(relays->tree, worker, levels);
    int top = relays->count > 0 ? levels[relays->count - 1] : 0; // the reporter that leaves
    bel_fan_in_place up = bel_fan_in_place_of(relays->tree, worker, top);
    bool to_host = bel_fan_in_is_host(relays->tree, up.level);
    if (up.worker >= 0 && setup->parent[0] == '\0' && !to_host)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: no address of worker %d's relay",
                       up.worker);
    bool in_host = bel_fan_in_is_host(relays->tree, relays->place.level);
    if (in_host && m->shm.hub == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed setup: hosts, but this worker shares no memory");
    if (in_host && relays->count > 0) BEL_TRY(bel_member_make_relay_values(m));
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

void bel_member_relays_find(member *m, const bel_lane_hello *hello, bool shm, bel_lane **out_lane)
{
    member_relays *relays = &m->relays;
    pthread_mutex_lock(&relays->mutex);
    for (int i = 0; i < relays->found; i++)
        bel_relay_find(relays->list[i], hello, shm, out_lane);
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
    relays->place = (bel_fan_in_place){.worker = -1};
    relays->count = 0;
}
