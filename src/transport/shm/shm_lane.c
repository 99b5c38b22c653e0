// Frames go into this end's ring. Frames of the peer's ring are copied out, checked and put into a
// queue, from which the receiver takes them (with injected faults). The lane's mutex guards its
// numbers; ring.h has the state shared by the two processes.
//
//   received  taken ≤ read ≤ the peer's sent   taken frames; frames copied out of the peer's ring
//   sent      acknowledged ≤ sent              this end's frames; `taken` of the peer acknowledges
#include "transport/shm/shm_lane.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"
#include "base/str.h"
#include "transport/doorbell.h"
#include "transport/queue.h"
#include "transport/shm/ring.h"
#include "transport/shm/shm_inner.h"

enum { REASON_TEXT = 320 };

// A small payload stays in its copy until `capacity` more frames have been taken; up to as many
// again are read ahead.
enum { COPIES_PER_SLOT = 2 };

typedef struct peer {
    bel_shm_region *ring_region, *region; // `region` may be NULL
    const bel_shm_ring *ring;             // NULL: no peer yet
    uint32_t slots;
    int event; // -1: no thread waits there
} peer;

typedef struct shm_lane {
    bel_lane lane; // first: a bel_lane * is a shm_lane *
    bel_shm_hub *hub;
    bel_shm_link link;
    bel_shm_lane_config config;
    bel_shm_region *ring_region;
    bel_shm_ring *ring;
    bel_frame_queue *in;
    uint8_t *copies; // received small payloads
    size_t copies_bytes;
    _Atomic uint64_t signals;
    pthread_mutex_t mutex; // guards what follows
    peer peer;
    uint64_t sent, acknowledged, read;
    char cut_reason[REASON_TEXT];
    bool is_faulty; // cut because of the other end's data
} shm_lane;

// --- Cuts ----------------------------------------------------------------------------------------

static bool is_cut_locked(const shm_lane *lane)
{
    return lane->cut_reason[0] != '\0';
}

// Cuts the lane for good; the first reason stays. Closing the queue rings the bell.
static void cut_locked(shm_lane *lane, const char *reason)
{
    if (is_cut_locked(lane)) return;
    bel_snprintf(lane->cut_reason, sizeof lane->cut_reason, "%s", reason);
    bel_frame_queue_close(lane->in, false);
}

// --- Reading the peer's ring ---------------------------------------------------------------------

// Copies a slot before checking it: the peer may change it at any time.
static bel_status *read_slot_locked(shm_lane *lane, bel_frame *out_frame)
{
    const bel_shm_slot *shared = &lane->peer.ring->slots[lane->read % lane->peer.slots];
    bel_shm_slot slot;
    memcpy(&slot, shared, offsetof(bel_shm_slot, small));
    BEL_TRY(bel_shm_slot_read(&slot, lane->read + 1, lane->peer.region, out_frame));
    if (slot.place != BEL_SHM_PLACE_SLOT) return NULL;
    uint64_t index = lane->read % (COPIES_PER_SLOT * lane->config.capacity);
    uint8_t *copy = lane->copies + index * BEL_SHM_SMALL_BYTES;
    memcpy(copy, shared->small, out_frame->payload_bytes);
    out_frame->payload = copy;
    return NULL;
}

// Moves all frames that the peer has sent into the queue. The acquire pairs with the release of the
// peer's `sent`: slots up to it are written. The peer may have at most as many frames out as its
// ring has slots, minus those read ahead here and not taken. So the queue, which is no smaller,
// always has room.
static bel_status *read_frames_locked(shm_lane *lane)
{
    if (lane->peer.ring == NULL || is_cut_locked(lane)) return NULL;
    uint64_t sent = atomic_load_explicit(&lane->peer.ring->sent, memory_order_acquire);
    uint64_t untaken = lane->read - bel_frame_queue_taken(lane->in);
    if (sent - lane->read > lane->peer.slots - untaken) { // also if it has decreased
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed ring: it says that %llu frames were sent",
                       (unsigned long long)sent);
    }
    while (lane->read != sent) {
        bel_frame frame;
        BEL_TRY(read_slot_locked(lane, &frame));
        lane->read++;
        BEL_CHECK(bel_frame_queue_put(lane->in, &frame, false) == BEL_PUT_DONE);
    }
    return NULL;
}

// Returns false if the peer's ring is malformed: then the lane is cut.
static bool take_in_locked(shm_lane *lane)
{
    bel_status *status = read_frames_locked(lane);
    if (status == NULL) return true;
    cut_locked(lane, bel_status_message(status));
    lane->is_faulty = true;
    bel_status_ignore(status); // it is the reason of the cut
    return false;
}

// Holds the lock over reading and taking, so `taken` never decreases. Its release tells the peer
// that those slots may be overwritten.
static bool shm_receive(bel_lane *base, bel_frame *out_frame)
{
    shm_lane *lane = (shm_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bool sound = take_in_locked(lane);
    bool got = bel_frame_queue_take(lane->in, out_frame);
    if (got && lane->ring != NULL) {
        atomic_store_explicit(&lane->ring->taken, bel_frame_queue_taken(lane->in),
                              memory_order_release);
    }
    pthread_mutex_unlock(&lane->mutex);
    if (!sound) bel_shm_hub_drop(lane->hub, &lane->link);
    return got;
}

static bel_frame_queue *shm_incoming(const bel_lane *base)
{
    return ((const shm_lane *)base)->in;
}

static bel_status *shm_fault(bel_lane *base)
{
    shm_lane *lane = (shm_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bel_status *status = lane->is_faulty ? BEL_ERR(BEL_INTERNAL, "%s", lane->cut_reason) : NULL;
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

// --- Sending -------------------------------------------------------------------------------------

// Returns the event of a peer that sleeps, or -1. Call it after counting the ring.
static int event_to_signal_locked(const shm_lane *lane)
{
    bool asleep = lane->peer.ring != NULL && atomic_load(&lane->peer.ring->asleep) != 0;
    return asleep ? lane->peer.event : -1;
}

// Called outside the lock, as it is a system call. The count is for tests: relaxed is enough.
static void signal_peer(shm_lane *lane, int event)
{
    if (event < 0) return;
    bel_linux_event_signal(event);
    atomic_fetch_add_explicit(&lane->signals, 1, memory_order_relaxed);
}

// Reads how far the peer has read. The acquire pairs with the peer's release of `taken`: its reads
// of a slot happened before that slot is overwritten.
static bel_status *check_room_locked(shm_lane *lane)
{
    if (lane->peer.ring != NULL) {
        uint64_t taken = atomic_load_explicit(&lane->peer.ring->taken, memory_order_acquire);
        if (taken < lane->acknowledged || taken > lane->sent) {
            cut_locked(lane, "malformed ring: its end says that more was taken than was sent");
            lane->is_faulty = true;
        } else {
            lane->acknowledged = taken;
        }
    }
    if (is_cut_locked(lane)) return bel_lane_cut_error(lane->cut_reason);
    if (lane->sent - lane->acknowledged >= lane->config.capacity) return bel_lane_full_error();
    return NULL;
}

// The release of `sent` makes the slot readable. `rings` and the following load of `asleep` are
// sequentially consistent: the handshake of doorbell.h.
static bel_status *send_locked(shm_lane *lane, const bel_frame *frame, int *out_event)
{
    BEL_TRY(check_room_locked(lane));
    bel_shm_slot *slot = &lane->ring->slots[lane->sent % lane->config.capacity];
    BEL_TRY(bel_shm_slot_write(frame, lane->sent + 1, lane->config.region, slot));
    lane->sent++;
    atomic_store_explicit(&lane->ring->sent, lane->sent, memory_order_release);
    if ((lane->config.quiet >> frame->kind & 1u) != 0) return NULL;
    atomic_fetch_add(&lane->ring->rings, 1);
    *out_event = event_to_signal_locked(lane);
    return NULL;
}

// Notifies the hub of a cut, and signals the peer, outside the lane's lock.
static bel_status *shm_send(bel_lane *base, const bel_frame *frame)
{
    shm_lane *lane = (shm_lane *)base;
    int event = -1;
    pthread_mutex_lock(&lane->mutex);
    bool was_cut = is_cut_locked(lane);
    bel_status *status = send_locked(lane, frame, &event);
    bool cut_now = !was_cut && is_cut_locked(lane);
    pthread_mutex_unlock(&lane->mutex);
    if (cut_now) bel_shm_hub_drop(lane->hub, &lane->link);
    signal_peer(lane, event);
    return status;
}

// --- Introduction, for the hub -------------------------------------------------------------------

void bel_shm_lane_describe(bel_lane *base, bel_shm_message *message, int *descriptors, int *count)
{
    const shm_lane *lane = (const shm_lane *)base;
    const bel_shm_lane_config *config = &lane->config;
    int event = config->bell != NULL ? bel_doorbell_event(config->bell) : -1;
    message->slots = (uint32_t)config->capacity;
    message->holds = (event >= 0 ? BEL_SHM_HOLDS_EVENT : 0u) |
                     (config->region != NULL ? BEL_SHM_HOLDS_REGION : 0u);
    *count = 0;
    descriptors[(*count)++] = bel_shm_region_descriptor(lane->ring_region);
    if (event >= 0) descriptors[(*count)++] = event;
    if (config->region != NULL) {
        descriptors[(*count)++] = bel_shm_region_descriptor(config->region);
    }
}

// Takes the next descriptor of an introduction.
static int next_descriptor(bel_shm_talk *talk)
{
    int descriptor = talk->descriptors[0];
    talk->descriptor_count--;
    for (int i = 0; i < talk->descriptor_count; i++)
        talk->descriptors[i] = talk->descriptors[i + 1];
    return descriptor;
}

static void close_peer(peer *p)
{
    bel_shm_region_destroy(p->ring_region);
    bel_shm_region_destroy(p->region);
    if (p->event >= 0) close(p->event);
}

// Takes descriptors in their order (ring, event, region). On failure out_peer has those opened so
// far, which the caller closes; the rest stay in the talk.
static bel_status *open_peer(const bel_shm_lane_config *config, bel_shm_talk *talk, peer *out_peer)
{
    const bel_shm_message *message = &talk->message;
    bool has_event = (message->holds & BEL_SHM_HOLDS_EVENT) != 0;
    bool has_region = (message->holds & BEL_SHM_HOLDS_REGION) != 0;
    if (talk->descriptor_count != 1 + has_event + has_region) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d descriptors came, expected %d",
                       talk->descriptor_count, 1 + has_event + has_region);
    }
    if (message->slots == 0 || message->slots > config->capacity) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a ring of %u frames, expected up to %zu",
                       (unsigned)message->slots, config->capacity);
    }
    if (!has_region && config->peer_bytes > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "no region, expected one of %zu bytes or more",
                       config->peer_bytes);
    }
    size_t ring_bytes = bel_shm_ring_bytes(message->slots);
    out_peer->slots = message->slots;
    BEL_TRY(bel_shm_region_open(next_descriptor(talk), ring_bytes, &out_peer->ring_region));
    out_peer->ring = bel_shm_region_memory(out_peer->ring_region);
    if (has_event) {
        out_peer->event = next_descriptor(talk);
        if (!bel_linux_event_is(out_peer->event)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "the bell's descriptor is no eventfd");
        }
    }
    if (!has_region) return NULL;
    return bel_shm_region_open(next_descriptor(talk), config->peer_bytes, &out_peer->region);
}

// A peer as the doorbell needs it: its count of rings, and this end's word that shows a sleeper.
static bel_doorbell_remote remote_of(const shm_lane *lane)
{
    return (bel_doorbell_remote){.rings = &lane->peer.ring->rings, .asleep = &lane->ring->asleep};
}

bel_status *bel_shm_lane_attach(bel_lane *base, bel_shm_talk *talk)
{
    shm_lane *lane = (shm_lane *)base;
    peer found = {.event = -1};
    bel_status *status = open_peer(&lane->config, talk, &found);
    if (status != NULL) {
        close_peer(&found);
        return status;
    }
    pthread_mutex_lock(&lane->mutex);
    lane->peer = found;
    // Frames sent before the introduction could not signal the peer.
    bool has_rung = atomic_load(&lane->ring->rings) != 0;
    int event = has_rung ? event_to_signal_locked(lane) : -1;
    pthread_mutex_unlock(&lane->mutex);
    bel_doorbell_remote remote = remote_of(lane);
    if (lane->config.bell != NULL) bel_doorbell_add(lane->config.bell, &remote);
    signal_peer(lane, event);
    return NULL;
}

void bel_shm_lane_cut(bel_lane *base, const char *reason)
{
    shm_lane *lane = (shm_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    (void)take_in_locked(lane); // earlier frames are still valid
    cut_locked(lane, reason);
    pthread_mutex_unlock(&lane->mutex);
}

// --- The lane ------------------------------------------------------------------------------------

// Frames sent before the introduction need it to reach the peer, so this lingers. After the hub has
// released the link, no other thread uses the lane.
static void shm_close(bel_lane *base)
{
    shm_lane *lane = (shm_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bool linger = lane->sent > 0 && !is_cut_locked(lane);
    pthread_mutex_unlock(&lane->mutex);
    bel_shm_hub_remove(lane->hub, &lane->link, linger);
    if (lane->peer.ring != NULL && lane->config.bell != NULL) {
        bel_doorbell_remote remote = remote_of(lane);
        bel_doorbell_remove(lane->config.bell, &remote);
    }
    close_peer(&lane->peer);
    bel_shm_region_destroy(lane->ring_region);
    bel_frame_queue_destroy(lane->in);
    bel_pages_destroy(lane->copies, lane->copies_bytes);
    pthread_mutex_destroy(&lane->mutex);
    bel_free(lane->link.address);
    bel_free(lane);
}

static const bel_lane_ops shm_ops = {
    .shares_memory = true,
    .maps_memory = true,
    .send = shm_send,
    .receive = shm_receive,
    .incoming = shm_incoming,
    .fault = shm_fault,
    .close = shm_close,
};

// Allocates this end's ring and the copies of small payloads; without them the lane is cut from the
// start.
static bel_status *make_memory(shm_lane *lane)
{
    size_t capacity = lane->config.capacity;
    if (capacity > BEL_SHM_MOST_SLOTS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a lane of %zu frames, the limit is %d", capacity,
                       BEL_SHM_MOST_SLOTS);
    }
    void *copies = NULL;
    BEL_TRY(bel_shm_region_create("belfry-ring", bel_shm_ring_bytes(capacity), &lane->ring_region));
    lane->ring = bel_shm_region_memory(lane->ring_region);
    size_t bytes = COPIES_PER_SLOT * capacity * BEL_SHM_SMALL_BYTES;
    BEL_TRY(bel_pages_create(bytes, false, "small frames of a lane", &copies));
    lane->copies = copies;
    lane->copies_bytes = bytes;
    return NULL;
}

// Opens either end: with a path and a hello it is the opening one.
static bel_lane *open_lane(bel_shm_hub *hub, const char *path, const bel_lane_hello *hello,
                           const bel_shm_lane_config *config)
{
    BEL_CHECK(config->capacity > 0);
    shm_lane *lane = bel_xcalloc(1, sizeof *lane);
    lane->lane.ops = &shm_ops;
    lane->hub = hub;
    lane->config = *config;
    lane->peer.event = -1;
    lane->in = bel_frame_queue_create(config->capacity, config->bell);
    pthread_mutex_init(&lane->mutex, NULL);
    lane->link = (bel_shm_link){.lane = &lane->lane, .talk.socket = -1};
    if (path != NULL) lane->link.address = bel_strf("unix:%s", path);
    if (hello != NULL) lane->link.hello = *hello;
    lane->link.patience_ns = (int64_t)(config->patience_secs * 1e9);
    bel_status *status = make_memory(lane);
    if (status != NULL) {
        cut_locked(lane, bel_status_message(status));
        lane->link.over = true;
    }
    bel_status_ignore(status); // it is the reason of the cut
    bel_shm_hub_add(hub, &lane->link);
    return &lane->lane;
}

bel_lane *bel_shm_lane_create(bel_shm_hub *hub, const bel_shm_lane_config *config)
{
    return open_lane(hub, NULL, NULL, config);
}

bel_lane *bel_shm_lane_connect(bel_shm_hub *hub, const char *path, const bel_lane_hello *hello,
                               const bel_shm_lane_config *config)
{
    return open_lane(hub, path, hello, config);
}

const bel_shm_region *bel_shm_lane_peer(bel_lane *base)
{
    shm_lane *lane = (shm_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    const bel_shm_region *region = lane->peer.region;
    pthread_mutex_unlock(&lane->mutex);
    return region;
}

bool bel_shm_lane_is_unheard(bel_lane *base)
{
    return atomic_load(&((shm_lane *)base)->link.unheard);
}

uint64_t bel_shm_lane_rings(bel_lane *base)
{
    shm_lane *lane = (shm_lane *)base;
    return atomic_load_explicit(&lane->signals, memory_order_relaxed);
}
