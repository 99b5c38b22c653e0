// Algorithms along a dimension of d ranks, for the bytes [from, to) of a round:
//
//   at once   (all-to-all) Each rank sends all its bytes to all others, and each adds everything:
//             one message delay. For few bytes, and for two ranks, where the other ways move the
//             same number of bytes.
//   by parts  (reduce-scatter, all-gather) The bytes are cut into d parts of whole lines. Rank i
//             receives the others' part i and adds it. Then the later dimensions follow, only for
//             that part. Finally each rank sends its part to all others.
//   as a ring (ring all-reduce) In each of d - 1 steps a rank sends a part to the next rank,
//             receives another from the previous rank and adds it. The complete parts then go
//             around in the same way.
//
// All but the ring add along the tree over ranks: ranks along a dimension are sibling nodes. The
// last addition also divides.
#include "ddl/between.h"

enum { AT_ONCE_BYTES = 64 << 10 }; // received by a rank from all others

typedef struct stage {
    bel_ddl_call *call;
    const bel_ddl_round *round;
    int dim, own, count; // own: this rank's coordinate; count: ranks along dim
    size_t from, to;     // within the round
    char *share;         // the bytes starting at `from`
    double divisor;
    int late_secs; // later waits of a round end later
} stage;

static int rank_at(const stage *s, int i)
{
    return bel_ddl_mode_neighbor(&s->call->mode, s->dim, s->call->ddl->place.rank, i);
}

static bool is_last(const bel_ddl_mode *mode, int dim)
{
    for (int d = dim + 1; d < BEL_DDL_DIMS; d++)
        if (mode->dims[d] > 1) return false;
    return true;
}

static stage begin_stage(bel_ddl_call *call, int dim)
{
    const bel_ddl_mode *mode = &call->mode;
    return (stage){.call = call,
                   .dim = dim,
                   .own = bel_ddl_mode_coordinate(mode, dim, call->ddl->place.rank),
                   .count = mode->dims[dim],
                   .divisor = is_last(mode, dim) ? call->divisor : 1,
                   .late_secs = dim};
}

// Returns the beginning of part i, which is the end of part i - 1.
static size_t stage_part(const stage *s, int i)
{
    size_t lines = (s->to - s->from) / BEL_DDL_LINE;
    return s->from + lines * (size_t)i / (size_t)s->count * BEL_DDL_LINE;
}

static size_t part_bytes(const stage *s, int i)
{
    return stage_part(s, i + 1) - stage_part(s, i);
}

// Ranks compare their calls in their first exchange along the dimension.
static bel_status *stage_exchange(const stage *s, const bel_ddl_transfer *transfers, int count)
{
    bel_ddl_call *c = s->call;
    bool first = !c->told[s->dim];
    c->told[s->dim] = true;
    return bel_ddl_net_exchange(c->ddl->net, transfers, count, first ? &c->said : NULL, c->name,
                                s->late_secs);
}

// Initializes transfers with all others of the dimension, still empty.
static int all_others(const stage *s, bel_ddl_transfer out[BEL_DDL_MAX_RANKS])
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        if (i != s->own) out[count++] = (bel_ddl_transfer){.rank = rank_at(s, i)};
    return count;
}

// Returns the coordinate of the i-th other rank.
static int stage_other(const stage *s, int i)
{
    return i < s->own ? i : i + 1;
}

// Adds arrays of the bytes [from, to) of the round into the first one, divided.
static void stage_add(const stage *s, size_t from, size_t to, const char *const *arrays, int count)
{
    bel_ddl_walk walk = bel_ddl_walk_begin(s->call, s->round, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);) {
        const void *values[BEL_DDL_MAX_RANKS];
        for (int i = 0; i < count; i++)
            values[i] = arrays[i] + (p.place - from);
        bel_ddl_add(p.dtype, values, count, p.bytes, s->divisor, s->share + (p.place - s->from),
                    NULL, s->call->ddl->scratch);
    }
}

static bel_status *sum_at_once(const stage *s)
{
    size_t bytes = s->to - s->from;
    bel_ddl_transfer transfers[BEL_DDL_MAX_RANKS];
    const char *arrays[BEL_DDL_MAX_RANKS];
    int count = all_others(s, transfers);
    arrays[s->own] = s->share;
    for (int i = 0; i < count; i++) {
        char *in = s->call->ddl->parts + (size_t)i * bytes;
        transfers[i].out = s->share;
        transfers[i].in = in;
        transfers[i].out_bytes = transfers[i].in_bytes = bytes;
        arrays[stage_other(s, i)] = in;
    }
    BEL_TRY(stage_exchange(s, transfers, count));
    stage_add(s, s->from, s->to, arrays, s->count);
    return NULL;
}

static bel_status *stage_scatter(const stage *s)
{
    size_t begin = stage_part(s, s->own), bytes = part_bytes(s, s->own);
    bel_ddl_transfer transfers[BEL_DDL_MAX_RANKS];
    const char *arrays[BEL_DDL_MAX_RANKS];
    int count = all_others(s, transfers);
    arrays[s->own] = s->share + (begin - s->from);
    for (int i = 0; i < count; i++) {
        int to = stage_other(s, i);
        char *in = s->call->ddl->parts + (size_t)i * bytes;
        transfers[i].out = s->share + (stage_part(s, to) - s->from);
        transfers[i].out_bytes = part_bytes(s, to);
        transfers[i].in = in;
        transfers[i].in_bytes = bytes;
        arrays[to] = in;
    }
    BEL_TRY(stage_exchange(s, transfers, count));
    stage_add(s, begin, begin + bytes, arrays, s->count);
    return NULL;
}

static bel_status *stage_gather(const stage *s)
{
    stage late = *s;
    late.late_secs = 2 * BEL_DDL_DIMS - s->dim;
    bel_ddl_transfer transfers[BEL_DDL_MAX_RANKS];
    int count = all_others(s, transfers);
    for (int i = 0; i < count; i++) {
        int from = stage_other(s, i);
        transfers[i].out = s->share + (stage_part(s, s->own) - s->from);
        transfers[i].out_bytes = part_bytes(s, s->own);
        transfers[i].in = s->share + (stage_part(s, from) - s->from);
        transfers[i].in_bytes = part_bytes(s, from);
    }
    return stage_exchange(&late, transfers, count);
}

// Sends part `out` to the next rank, and receives part `in` from the previous one.
static bel_status *stage_turn(const stage *s, int out, int in, char *to)
{
    int next = (s->own + 1) % s->count, before = (s->own + s->count - 1) % s->count;
    const bel_ddl_transfer transfers[2] = {
        {.rank = rank_at(s, next),
         .out = s->share + (stage_part(s, out) - s->from),
         .out_bytes = part_bytes(s, out)},
        {.rank = rank_at(s, before), .in = to, .in_bytes = part_bytes(s, in)}};
    return stage_exchange(s, transfers, 2);
}

static int around(const stage *s, int i)
{
    return (i % s->count + s->count) % s->count;
}

// At the end part own + 1 is complete here. Needs more than two ranks: with two, `turn` would name
// one rank twice.
static bel_status *ring_scatter(const stage *s)
{
    double divisor = s->divisor;
    for (int step = 0; step < s->count - 1; step++) {
        int out = around(s, s->own - step), in = around(s, s->own - step - 1);
        stage now = *s;
        now.late_secs += step;
        BEL_TRY(stage_turn(&now, out, in, s->call->ddl->parts));
        size_t begin = stage_part(s, in);
        const char *arrays[2] = {s->call->ddl->parts, s->share + (begin - s->from)};
        stage adds = *s;
        adds.divisor = step == s->count - 2 ? divisor : 1;
        stage_add(&adds, begin, begin + part_bytes(s, in), arrays, 2);
    }
    return NULL;
}

static bel_status *ring_gather(const stage *s)
{
    for (int step = 0; step < s->count - 1; step++) {
        int out = around(s, s->own + 1 - step), in = around(s, s->own - step);
        stage now = *s;
        now.late_secs += s->count + step;
        BEL_TRY(stage_turn(&now, out, in, s->share + (stage_part(s, in) - s->from)));
    }
    return NULL;
}

static bel_status *stage_meet(const stage *s)
{
    bel_ddl_transfer transfers[BEL_DDL_MAX_RANKS];
    return stage_exchange(s, transfers, all_others(s, transfers));
}

static bool goes_at_once(const stage *s)
{
    size_t all = (s->to - s->from) * (size_t)(s->count - 1);
    return s->call->mode.letter == 'o' || s->count == 2 || all <= AT_ONCE_BYTES;
}

static bel_status *sum_from(bel_ddl_call *call, const bel_ddl_round *round, int dim, size_t from,
                            size_t to, char *share)
{
    while (dim < BEL_DDL_DIMS && call->mode.dims[dim] == 1)
        dim++;
    if (dim == BEL_DDL_DIMS) return NULL;
    stage s = begin_stage(call, dim);
    s.round = round;
    s.from = from;
    s.to = to;
    s.share = share;
    if (from == to && call->told[dim]) return sum_from(call, round, dim + 1, from, to, share);
    if (goes_at_once(&s)) {
        BEL_TRY(sum_at_once(&s));
        return sum_from(call, round, dim + 1, from, to, share);
    }
    bool ring = call->mode.letter == 'r';
    // An exchange with neighbors would not detect another missing rank.
    if (ring && !call->told[dim]) BEL_TRY(stage_meet(&s));
    BEL_TRY(ring ? ring_scatter(&s) : stage_scatter(&s));
    int own = ring ? around(&s, s.own + 1) : s.own;
    size_t begin = stage_part(&s, own);
    BEL_TRY(
        sum_from(call, round, dim + 1, begin, begin + part_bytes(&s, own), share + (begin - from)));
    return ring ? ring_gather(&s) : stage_gather(&s);
}

bel_status *bel_ddl_between_sum(bel_ddl_call *call, const bel_ddl_round *round, size_t from,
                                size_t to, char *share)
{
    return sum_from(call, round, BEL_DDL_NEAR, from, to, share);
}

int bel_ddl_between_late_secs(const bel_ddl_call *call)
{
    int late_secs = 2 * BEL_DDL_DIMS;
    for (int dim = BEL_DDL_NEAR; dim < BEL_DDL_DIMS && call->mode.letter == 'r'; dim++)
        late_secs += 2 * call->mode.dims[dim];
    return late_secs;
}

bel_status *bel_ddl_between_meet(bel_ddl_call *call)
{
    for (int dim = BEL_DDL_NEAR; dim < BEL_DDL_DIMS; dim++) {
        stage s = begin_stage(call, dim);
        if (s.count > 1 && !call->told[dim]) BEL_TRY(stage_meet(&s));
    }
    return NULL;
}

// Broadcasts from the root along the last dimension, then from each rank that has it along the
// previous dimension, and so on.
bel_status *bel_ddl_between_spread(bel_ddl_call *call, char *share, size_t bytes)
{
    for (int dim = BEL_DDL_DIMS - 1; dim >= BEL_DDL_NEAR; dim--) {
        stage s = begin_stage(call, dim);
        bool among = true;
        for (int d = BEL_DDL_NEAR; d < dim; d++)
            among = among && bel_ddl_mode_coordinate(&call->mode, d, call->ddl->place.rank) ==
                                 bel_ddl_mode_coordinate(&call->mode, d, call->root);
        int root = bel_ddl_mode_coordinate(&call->mode, dim, call->root);
        if (!among || s.count == 1) continue;
        bel_ddl_transfer transfers[BEL_DDL_MAX_RANKS];
        int count = all_others(&s, transfers);
        for (int i = 0; i < count; i++) {
            transfers[i].out = share;
            transfers[i].out_bytes = bytes;
        }
        if (s.own != root) {
            transfers[0] =
                (bel_ddl_transfer){.rank = rank_at(&s, root), .in = share, .in_bytes = bytes};
            count = 1;
        }
        BEL_TRY(stage_exchange(&s, transfers, count));
    }
    return NULL;
}
