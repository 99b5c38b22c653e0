// The parameter client over lanes.
#include "ps/client/client.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

struct bel_client {
    bel_client_config config;
    int64_t *published; // by shard: the newest version seen
    uint32_t decision;  // shard 0's, of its newest version
};

bel_client *bel_client_create(const bel_client_config *config)
{
    bel_client *client = bel_xcalloc(1, sizeof *client);
    client->config = *config;
    client->published = bel_xcalloc((size_t)config->layout->shard_count, sizeof(int64_t));
    for (int k = 0; k < config->layout->shard_count; k++)
        client->published[k] = -1;
    return client;
}

void bel_client_destroy(bel_client *client)
{
    if (client == NULL) return;
    bel_free(client->published);
    bel_free(client);
}

static void take_version(bel_client *client, int shard, const bel_frame *frame)
{
    bool ours = frame->kind == BEL_FRAME_VERSION &&
                frame->generation == client->config.generation &&
                frame->incarnation == client->config.incarnation;
    if (!ours || frame->step <= client->published[shard]) return; // foreign, late or repeated
    client->published[shard] = frame->step;
    if (shard == 0) client->decision = frame->decision;
}

// Takes what has arrived; true when all shards stand at `version`.
static bool drain(bel_client *client, int64_t version)
{
    bool all = true;
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        bel_frame frame;
        while (client->published[k] < version && bel_lane_receive(client->config.lanes[k], &frame))
            take_version(client, k, &frame);
        all = all && client->published[k] >= version;
    }
    return all;
}

static bel_status *missing(const bel_client *client, int64_t version, bel_code code,
                           const char *why)
{
    bel_str names = {0};
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        if (client->published[k] < version) {
            bel_str_printf(&names, "%s%d", names.length > 0 ? ", " : "", k);
        }
    }
    bel_status *status =
        BEL_ERR(code, "worker %d waits for version %lld of shard %s: %s", client->config.worker,
                (long long)version, names.text != NULL ? names.text : "none", why);
    bel_str_deinit(&names);
    return status;
}

static bel_status *check_lanes(const bel_client *client, int64_t version)
{
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        if (client->published[k] < version && bel_lane_is_cut(client->config.lanes[k])) {
            return missing(client, version, BEL_UNAVAILABLE, "the lane is cut");
        }
    }
    return NULL;
}

bel_status *bel_client_wait(bel_client *client, int64_t version, uint32_t *out_decision)
{
    enum { NAP_NS = 1000000 }; // how long a wait lasts before cancellation is asked again
    const bel_client_config *config = &client->config;
    int64_t stall_ns = (int64_t)(config->stall_timeout_secs * 1e9);
    int64_t deadline = bel_clock_ns() + stall_ns;
    while (!drain(client, version)) {
        if (config->cancelled != NULL && config->cancelled(config->cancelled_context)) {
            return missing(client, version, BEL_CANCELLED, "training is ending");
        }
        if (config->help != NULL && config->help(config->help_context)) {
            deadline = bel_clock_ns() + stall_ns; // the shards make progress
            continue;
        }
        BEL_TRY(check_lanes(client, version));
        int64_t now = bel_clock_ns();
        if (now >= deadline) {
            return missing(client, version, BEL_DEADLINE_EXCEEDED,
                           "no progress for the stall "
                           "timeout");
        }
        bel_doorbell_wait(config->bell, now + NAP_NS);
    }
    *out_decision = client->decision;
    return NULL;
}

static bel_frame frame_of(const bel_client *client, int64_t step, uint32_t decision, int node)
{
    return (bel_frame){.generation = client->config.generation,
                       .incarnation = client->config.incarnation,
                       .sender = client->config.worker,
                       .step = step,
                       .decision = decision,
                       .node = node};
}

bel_status *bel_client_report(bel_client *client, int64_t step, uint32_t decision, int chunk,
                              int node, const float *data)
{
    const bel_chunk *part = &client->config.layout->chunks[chunk];
    bel_frame frame = frame_of(client, step, decision, node);
    frame.kind = BEL_FRAME_REPORT;
    frame.chunk = chunk;
    frame.payload = data;
    frame.payload_bytes = (size_t)part->count * sizeof(float);
    BEL_TRY_CTX(bel_lane_send(client->config.lanes[part->shard], &frame),
                "worker %d, report to shard %d", client->config.worker, part->shard);
    return NULL;
}

bel_status *bel_client_tally(bel_client *client, int64_t step, uint32_t decision, int node,
                             const double *tally, int width)
{
    bel_frame frame = frame_of(client, step, decision, node);
    frame.kind = BEL_FRAME_TALLY;
    frame.payload = tally;
    frame.payload_bytes = (size_t)width * sizeof(double);
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        BEL_TRY_CTX(bel_lane_send(client->config.lanes[k], &frame), "worker %d, tally to shard %d",
                    client->config.worker, k);
    }
    return NULL;
}
