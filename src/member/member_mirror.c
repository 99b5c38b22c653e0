// The mirror in a process with a shard, if parameter servers have copies: that of another shard, as
// the setup says (ps/server/mirror.c has its rules).
//
// The mirror runs on the engine's thread and its team, beside the shard. It begins as the shard
// does: with the checkpoint, or with the state that it has. A process that has come back without
// states gets them first, its shard's from the shard's mirror and its mirror's from the mirrored
// shard. No step is made meanwhile, since no worker has all of the first version.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "member/member_inner.h"
#include "ps/layout/lane_frames.h"
#include "wire/role.h"

void bel_member_read_points(bel_control *control, member_points *points)
{
    if (control == NULL) return;
    if (points->list == NULL) points->list = bel_xcalloc(BEL_KEPT_POINTS, sizeof *points->list);
    points->count = bel_control_newest_points(control, points->list, BEL_KEPT_POINTS);
}

// --- The mirror's life ---------------------------------------------------------------------------

static int shards_of(const member_shard *s)
{
    return s->layout->shard_count;
}

static bool keeps_averages(const member *m)
{
    return m->optimizers->main.moving_average_decay > 0;
}

static bel_status *check_mirrors(const member *m, int distance)
{
    const member_shard *s = &m->shard;
    const char *why_not = bel_kept_why_not(s->layout, &m->settings);
    if (why_not == NULL && shards_of(s) < 2) why_not = "there is one shard";
    if (why_not == NULL && (distance < 0 || distance >= shards_of(s)))
        why_not = "their distance is that of no shard";
    if (why_not == NULL && m->worker.here) why_not = "the workers hold the shards";
    if (why_not == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: mirrors, but %s", why_not);
}

bel_status *bel_member_mirror_make(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    member_shard_mirror *mirror = &s->mirror;
    mirror->there = setup->mirrors != 0;
    if (!mirror->there) return NULL;
    BEL_TRY(check_mirrors(m, setup->mirrors));
    mirror->of = (s->index + shards_of(s) - setup->mirrors) % shards_of(s);
    mirror->own = (s->index + setup->mirrors) % shards_of(s);
    mirror->assignment = bel_assignment_create(&s->assignment->replica_count, 1);
    BEL_TRY(bel_space_create(s->layout, 2, &mirror->space));
    if (keeps_averages(m))
        BEL_TRY(bel_space_array(s->layout, "moving averages of a mirror", &mirror->averages));
    const bel_shard_config config = {.layout = s->layout,
                                     .shard = mirror->of,
                                     .assignment = mirror->assignment,
                                     .mirrors = true,
                                     .space = mirror->space,
                                     .snapshot_averages = mirror->averages,
                                     .settings = m->settings,
                                     .worker_lanes = &mirror->in,
                                     .report_room = SIZE_MAX};
    BEL_TRY(bel_shard_create(&config, &mirror->shard));
    return bel_shard_reserve(mirror->shard, 0);
}

void bel_member_mirror_free(member *m)
{
    member_shard_mirror *mirror = &m->shard.mirror;
    if (!mirror->there) return;
    bel_shard_destroy(mirror->shard);
    bel_space_destroy(mirror->space);
    if (mirror->averages != NULL) bel_space_free_array(m->shard.layout, mirror->averages);
    bel_assignment_destroy(mirror->assignment);
    bel_free(mirror->points.list);
    mirror->points = (member_points){0};
    mirror->shard = NULL;
    mirror->space = NULL;
    mirror->averages = NULL;
    mirror->assignment = NULL;
    mirror->there = false;
}

// --- A generation --------------------------------------------------------------------------------

static bool is_among(int shard, const int32_t *shards, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (shards[i] == shard) return true;
    return false;
}

// For one shard: with the state that it has, or with one that will come.
static bel_status *hold_on(bel_shard *shard, const Bel__Setup *setup, bool expects)
{
    int64_t step = setup->schedule->first_step;
    if (!expects) return bel_shard_continue(shard, step);
    bel_shard_expect_state(shard, step);
    return NULL;
}

bel_status *bel_member_mirror_begin(member *m, const Bel__Setup *setup,
                                    bel_status *(*load)(member *m, const Bel__Setup *setup,
                                                        bel_shard *shard))
{
    member_shard *s = &m->shard;
    member_shard_mirror *mirror = &s->mirror;
    const int32_t *stateless = setup->stateless, *mirrorless = setup->mirrorless;
    bool held = setup->held && mirror->there;
    bool expects = held && is_among(s->index, stateless, setup->n_stateless);
    bool expects_mirror = held && is_among(mirror->of, mirrorless, setup->n_mirrorless);
    mirror->gives_state = held && is_among(mirror->of, stateless, setup->n_stateless);
    mirror->gives_mirror = held && is_among(s->index, mirrorless, setup->n_mirrorless);
    atomic_store(&mirror->has_state, !expects);
    atomic_store(&mirror->has_mirror, mirror->there && !expects_mirror);
    BEL_TRY(setup->held ? hold_on(s->shard, setup, expects) : load(m, setup, s->shard));
    if (!mirror->there) return NULL;
    bel_shard_restart(mirror->shard, m->generation);
    return setup->held ? hold_on(mirror->shard, setup, expects_mirror)
                       : load(m, setup, mirror->shard);
}

// Points are recorded as shard 0 does, and nothing else: it decides on nothing.
static bel_control *make_control(member *m, const Bel__Setup *setup)
{
    member_shard_mirror *mirror = &m->shard.mirror;
    const Bel__Schedule *schedule = setup->schedule;
    const bel_control_config config = {.shard_count = 1,
                                       .first_step = schedule->first_step,
                                       .last_step = schedule->last_step,
                                       .series_steps = schedule->series_steps,
                                       .stats = m->settings.stats,
                                       .worker_count = 1,
                                       .continues = setup->held};
    bel_control *control = bel_control_create(&config);
    if (setup->held) bel_control_add_points(control, mirror->points.list, mirror->points.count);
    return control;
}

void bel_member_mirror_make_lanes(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    member_shard_mirror *mirror = &s->mirror;
    if (!mirror->there) return;
    int arrays = bel_optimizers_kept(m->optimizers);
    mirror->in_peer = (bel_shard_peer){mirror->shard, 0, 0};
    mirror->out_peer = (bel_shard_peer){s->shard, -1, s->index};
    bel_stream_lane_config config = {.capacity =
                                         bel_lane_frames_of_mirror(s->layout, mirror->of, arrays),
                                     .bell = s->bell,
                                     .place = bel_shard_place_mirrored,
                                     .place_context = &mirror->in_peer};
    int64_t step;
    bel_lane *in = bel_stream_lane_create(m->endpoint, &config);
    (void)bel_shard_admit(mirror->shard, 0, 0, in, &step); // it is mirror->in from now on
    const bel_lane_hello hello = {
        .kind = BEL_HELLO_MIRROR, .index = s->index, .generation = m->generation};
    config.capacity = bel_lane_frames_of_mirror(s->layout, s->index, arrays);
    config.joined = 1u << BEL_FRAME_REPORT; // the step statistics follow
    config.place_context = &mirror->out_peer;
    mirror->out = bel_stream_lane_connect(m->endpoint, setup->shards[mirror->own], &hello, &config);
    if (mirror->of == 0) mirror->control = make_control(m, setup);
}

void bel_member_mirror_stop(member *m)
{
    member_shard_mirror *mirror = &m->shard.mirror;
    bel_lane *ends[] = {mirror->in, mirror->out};
    bel_lane_close_all(ends, 2);
    mirror->in = mirror->out = NULL;
    bel_member_read_points(mirror->control, &mirror->points);
    bel_control_destroy(mirror->control);
    mirror->control = NULL;
}

bel_status *bel_member_mirror_check(member *m)
{
    member_shard_mirror *mirror = &m->shard.mirror;
    if (!mirror->there) return NULL;
    BEL_TRY_CTX(bel_shard_check(mirror->shard), "mirror of shard %d", mirror->of);
    BEL_TRY_CTX(bel_lane_fault(mirror->in), "mirror of shard %d", mirror->of);
    BEL_TRY_CTX(bel_lane_fault(mirror->out), "shard %d, lane of its mirror", m->shard.index);
    return NULL;
}

// --- On the engine's thread ----------------------------------------------------------------------

// Records the point of the step, as read: the ring keeps it until it is overwritten.
static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    const member_shard_mirror *mirror = context;
    bel_control_point point;
    if (mirror->control == NULL) return 0;
    (void)bel_control_decide(mirror->control, version, stats, left);
    while (bel_control_take_points(mirror->control, &point, 1) > 0) {
    }
    return 0;
}

// Takes the state of this process's shard, with the points that the master may not have.
static void take_state(member_shard *s)
{
    int count;
    if (!bel_shard_take_state(s->shard, s->mirror.out)) return;
    const bel_control_point *points = bel_shard_taken_points(s->shard, &count);
    if (s->control != NULL) bel_control_add_points(s->control, points, count);
    atomic_store(&s->mirror.has_state, true);
    bel_log_write(BEL_LOG_DEBUG, "shard %d has its state, from its mirror", s->index);
}

static void take_mirror(member_shard *s)
{
    int count;
    if (!bel_shard_take_state(s->mirror.shard, s->mirror.in)) return;
    const bel_control_point *points = bel_shard_taken_points(s->mirror.shard, &count);
    if (s->mirror.control != NULL) bel_control_add_points(s->mirror.control, points, count);
    atomic_store(&s->mirror.has_mirror, true);
    bel_log_write(BEL_LOG_DEBUG, "the mirror of shard %d is complete", s->mirror.of);
}

// With the points of shard 0, or of its mirror: the control has those of earlier generations.
static void send_state(bel_shard *shard, bel_lane *lane, bel_control *control,
                       member_points *points)
{
    bel_member_read_points(control, points);
    bel_shard_send_state(shard, lane, points->list, points->count);
}

bool bel_member_mirror_enter(member *m)
{
    enum { NAP_NS = 50000000 };
    member_shard *s = &m->shard;
    member_shard_mirror *mirror = &s->mirror;
    if (!mirror->there) return true;
    if (mirror->gives_state)
        send_state(mirror->shard, mirror->in, mirror->control, &mirror->points);
    if (mirror->gives_mirror) send_state(s->shard, mirror->out, s->control, &s->points);
    while (!atomic_load(&mirror->has_state) || !atomic_load(&mirror->has_mirror)) {
        if (atomic_load(&s->engine.stop)) return false;
        bel_fault_point("shard_takes_state");
        if (!atomic_load(&mirror->has_state)) take_state(s);
        if (!atomic_load(&mirror->has_mirror)) take_mirror(s);
        (void)bel_doorbell_wait(s->bell, bel_clock_ns() + NAP_NS);
    }
    const bel_shard_events events = {.context = mirror, .decide = decide};
    bel_shard_start(mirror->shard, &events);
    return true;
}

bool bel_member_mirror_work(member *m)
{
    return m->shard.mirror.there &&
           bel_shard_work_together(m->shard.mirror.shard, m->shard.engine.team);
}
