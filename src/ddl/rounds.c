// All-reduce by shares (reduce-scatter and all-gather in shared memory). A round has as many bytes
// of the tensors as fit into a rank's slot. Each member of a group adds one share of the round's
// lines. Its values for that share are read in place, so tensor data goes through the slots at most
// once. Sums are stored in a slot, from which the others copy them. While one round's shares are
// added, the next one is packed:
//
//   pack(k), arrive at k    the others may read this rank's slot
//   await all at k
//   add own share of k; with several groups: add their members' sums
//   done with k
//   pack(k + 1), arrive at k + 1
//   await all done with k
//   copy the other shares of k
//
// Small sums are done at once: every rank packs all its values, waits for all, and adds everything
// itself, so one wait is enough.
//
// Tensors that all ranks have mapped (bel_ddl_alloc) go through the same rounds without packing:
// their place in the slots stays empty.
//
// Slots are reused three rounds later. pack(k + 3) follows the wait for all at k + 2; a rank that
// has arrived there has copied its shares of k.
#include "ddl/rounds.h"

#include "ddl/between.h"

enum { AT_ONCE_BYTES = 8 << 10 }; // all members' bytes: at most this much is added by all

// --- Addresses -----------------------------------------------------------------------------------

// Returns the beginning of a member's share of `used` bytes; it is the end of the previous one.
static size_t share_begin(const bel_ddl_call *c, size_t used, int member)
{
    size_t lines = used / BEL_DDL_LINE;
    return lines * (size_t)member / (size_t)c->members * BEL_DDL_LINE;
}

static char *slot_of(const bel_ddl_call *c, const bel_ddl_round *r, int member)
{
    return bel_ddl_region_slot(c->region, member, r->number);
}

// Returns a member's piece in memory that all have mapped.
static char *part_of(const bel_ddl_call *c, const bel_ddl_piece *p, int member)
{
    return p->data + ((ptrdiff_t)member - c->member) * (ptrdiff_t)p->memory->stride;
}

// Returns a member's values of the piece, to read.
static char *values_of(const bel_ddl_call *c, const bel_ddl_round *r, const bel_ddl_piece *p,
                       int member)
{
    if (member == c->member) return p->data;
    return p->memory != NULL ? part_of(c, p, member) : slot_of(c, r, member) + p->place;
}

// Returns the place of the sums of a member's share: its tensor if all have mapped it, otherwise
// the slot of the next member, over that member's packed values. So a cache line moves between two
// processors and back with content both ways, and a packing rank has its lines in its cache.
static char *sums_of(const bel_ddl_call *c, const bel_ddl_round *r, const bel_ddl_piece *p,
                     int member)
{
    if (c->region == NULL) return p->data;
    if (p->memory != NULL) return part_of(c, p, member);
    return slot_of(c, r, (member + 1) % c->members) + p->place;
}

static bool is_among_groups(const bel_ddl_call *c)
{
    return c->members < c->ddl->place.size;
}

static void rounds_tell(const bel_ddl_call *c, bel_ddl_count count, const bel_ddl_round *r)
{
    if (c->region != NULL) bel_ddl_region_tell(c->region, count, r->number);
}

static bel_status *rounds_await(const bel_ddl_call *c, bel_ddl_count count, const bel_ddl_round *r)
{
    bool behind = count == BEL_DDL_DONE && is_among_groups(c);
    double late_secs = behind ? bel_ddl_between_late_secs(c) : 0;
    if (c->region == NULL) return NULL;
    return bel_ddl_region_await(c->region, count, r->number, c->name, late_secs);
}

// --- The parts of a round ------------------------------------------------------------------------

// Packs [from, to) of the round.
static void rounds_pack(const bel_ddl_call *c, const bel_ddl_round *r, size_t from, size_t to)
{
    if (c->region == NULL) return;
    char *slot = slot_of(c, r, c->member);
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);)
        if (p.memory == NULL) memcpy(slot + p.place, p.data, p.bytes);
}

static void give_all(const bel_ddl_call *c, const bel_ddl_round *r)
{
    rounds_pack(c, r, 0, r->used);
}

// Packs the parts that other members add.
static void give_others(const bel_ddl_call *c, const bel_ddl_round *r)
{
    rounds_pack(c, r, 0, share_begin(c, r->used, c->member));
    rounds_pack(c, r, share_begin(c, r->used, c->member + 1), r->used);
}

// Collects the members' values of a piece; `packed`: this one's are also read from its slot.
static void gather_values(const bel_ddl_call *c, const bel_ddl_round *r, const bel_ddl_piece *p,
                          bool packed, const void *out[BEL_DDL_MAX_RANKS])
{
    for (int i = 0; i < c->members; i++)
        out[i] = packed && c->region != NULL ? slot_of(c, r, i) + p->place : values_of(c, r, p, i);
}

// Adds the group's values of [from, to) into the share that goes to other groups.
static void add_group(const bel_ddl_call *c, const bel_ddl_round *r, size_t from, size_t to,
                      bool packed)
{
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);) {
        const void *values[BEL_DDL_MAX_RANKS];
        char *out = c->ddl->share + (p.place - from);
        gather_values(c, r, &p, packed, values);
        if (c->members == 1) {
            memcpy(out, values[0], p.bytes);
        } else {
            bel_ddl_add(p.dtype, values, c->members, p.bytes, 1, out, NULL, c->ddl->scratch);
        }
    }
}

// Copies the share, complete after the exchange with other groups, to this rank's tensors and to
// the place that its group reads.
static void put_share(const bel_ddl_call *c, const bel_ddl_round *r, size_t from, size_t to,
                      bool for_group)
{
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);) {
        const char *sums = c->ddl->share + (p.place - from);
        memcpy(p.data, sums, p.bytes);
        char *also = for_group ? sums_of(c, r, &p, c->member) : p.data;
        if (also != p.data) memcpy(also, sums, p.bytes);
    }
}

static bel_status *add_between(bel_ddl_call *c, const bel_ddl_round *r, size_t from, size_t to,
                               bool at_once)
{
    add_group(c, r, from, to, at_once);
    BEL_TRY(bel_ddl_between_sum(c, r, from, to, c->ddl->share));
    put_share(c, r, from, to, !at_once);
    return NULL;
}

// Adds this rank's share; its values come from its tensors, where the sums are also written.
static bel_status *add_share(bel_ddl_call *c, const bel_ddl_round *r)
{
    size_t from = share_begin(c, r->used, c->member), to = share_begin(c, r->used, c->member + 1);
    if (is_among_groups(c)) return add_between(c, r, from, to, false);
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);) {
        const void *values[BEL_DDL_MAX_RANKS];
        gather_values(c, r, &p, false, values);
        char *sums = sums_of(c, r, &p, c->member);
        bel_ddl_add(p.dtype, values, c->members, p.bytes, c->divisor, p.data,
                    sums == p.data ? NULL : sums, c->ddl->scratch);
    }
    return NULL;
}

// Adds the whole round from the slots, which no rank writes meanwhile.
static bel_status *add_everything(bel_ddl_call *c, const bel_ddl_round *r)
{
    if (is_among_groups(c)) return add_between(c, r, 0, r->used, true);
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, 0, r->used);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);) {
        const void *values[BEL_DDL_MAX_RANKS];
        gather_values(c, r, &p, true, values);
        bel_ddl_add(p.dtype, values, c->members, p.bytes, c->divisor, p.data, NULL,
                    c->ddl->scratch);
    }
    return NULL;
}

static void take_share(const bel_ddl_call *c, const bel_ddl_round *r, int member)
{
    size_t from = share_begin(c, r->used, member), to = share_begin(c, r->used, member + 1);
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, from, to);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);)
        memcpy(p.data, sums_of(c, r, &p, member), p.bytes);
}

static void take_others(const bel_ddl_call *c, const bel_ddl_round *r)
{
    for (int i = 1; i < c->members; i++)
        take_share(c, r, (c->member + i) % c->members);
}

// --- Calls ---------------------------------------------------------------------------------------

// Compares the calls, after all members have arrived at the call's first round.
static bel_status *compare_calls(const bel_ddl_call *c)
{
    int first = c->ddl->group.first;
    uint64_t parity = c->said.number & 1;
    if (c->region == NULL) return NULL;
    const bel_ddl_said *said = &bel_ddl_region_line(c->region, 0)->calls[parity];
    for (int i = 1; i < c->members; i++) {
        const bel_ddl_said *other = &bel_ddl_region_line(c->region, i)->calls[parity];
        BEL_TRY(bel_ddl_said_compare(first, said, first + i, other));
    }
    return NULL;
}

// Begins a call with a round at which all members arrive, after they have packed its values; NULL:
// no values.
static bel_status *begin_rounds(const bel_ddl_call *c,
                                void (*give)(const bel_ddl_call *, const bel_ddl_round *),
                                bel_ddl_round *now, bel_ddl_cursor *next)
{
    if (c->region != NULL)
        bel_ddl_region_line(c->region, c->member)->calls[c->said.number & 1] = c->said;
    *next = bel_ddl_round_begin(c, (bel_ddl_cursor){0}, now);
    if (give != NULL) give(c, now);
    rounds_tell(c, BEL_DDL_ARRIVED, now);
    BEL_TRY(rounds_await(c, BEL_DDL_ARRIVED, now));
    return compare_calls(c);
}

// If others have read this rank's tensors, they must finish before this rank writes there again.
static bel_status *end_rounds(const bel_ddl_call *c)
{
    if (!c->direct) return NULL;
    bel_ddl_round last = {.number = ++c->ddl->rounds};
    rounds_tell(c, BEL_DDL_ARRIVED, &last);
    return rounds_await(c, BEL_DDL_ARRIVED, &last);
}

static bel_status *sum_at_once(bel_ddl_call *c)
{
    bel_ddl_round now;
    bel_ddl_cursor next;
    BEL_TRY(begin_rounds(c, give_all, &now, &next));
    for (;;) {
        BEL_TRY(add_everything(c, &now));
        if (bel_ddl_call_is_at_end(c, next)) return NULL;
        next = bel_ddl_round_begin(c, next, &now);
        give_all(c, &now);
        rounds_tell(c, BEL_DDL_ARRIVED, &now);
        BEL_TRY(rounds_await(c, BEL_DDL_ARRIVED, &now));
    }
}

static bel_status *sum_by_shares(bel_ddl_call *c)
{
    bel_ddl_round now, following;
    bel_ddl_cursor next;
    BEL_TRY(begin_rounds(c, give_others, &now, &next));
    for (;;) {
        BEL_TRY(add_share(c, &now));
        rounds_tell(c, BEL_DDL_DONE, &now);
        bool more = !bel_ddl_call_is_at_end(c, next);
        if (more) {
            next = bel_ddl_round_begin(c, next, &following);
            give_others(c, &following);
            rounds_tell(c, BEL_DDL_ARRIVED, &following);
        }
        BEL_TRY(rounds_await(c, BEL_DDL_DONE, &now));
        take_others(c, &now);
        if (!more) return end_rounds(c);
        now = following;
        BEL_TRY(rounds_await(c, BEL_DDL_ARRIVED, &now));
    }
}

bel_status *bel_ddl_rounds_sum(bel_ddl_call *c)
{
    size_t bytes = bel_ddl_call_bytes(c);
    bool at_once = c->mode.letter == 'o' || bytes <= AT_ONCE_BYTES / (size_t)c->members;
    c->direct = !at_once && c->region != NULL && c->ddl->memory_count > 0;
    return at_once ? sum_at_once(c) : sum_by_shares(c);
}

bel_status *bel_ddl_rounds_meet(bel_ddl_call *c)
{
    bel_ddl_round now;
    bel_ddl_cursor next;
    BEL_TRY(begin_rounds(c, NULL, &now, &next));
    return bel_ddl_between_meet(c);
}

// True for the member of this group that gets the root's values first.
static bool is_first_of_group(const bel_ddl_call *c)
{
    return c->member == c->root % c->members;
}

// Receives the root's values of a round in this group, and packs them for the other members.
static bel_status *bring(bel_ddl_call *c, const bel_ddl_round *r)
{
    if (is_among_groups(c)) {
        if (c->ddl->place.rank == c->root) {
            bel_ddl_walk walk = bel_ddl_walk_begin(c, r, 0, r->used);
            for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);)
                memcpy(c->ddl->share + p.place, p.data, p.bytes);
        }
        BEL_TRY(bel_ddl_between_spread(c, c->ddl->share, r->used));
        if (c->ddl->place.rank != c->root) put_share(c, r, 0, r->used, false);
    }
    give_all(c, r);
    return NULL;
}

static void take_all(const bel_ddl_call *c, const bel_ddl_round *r)
{
    bel_ddl_walk walk = bel_ddl_walk_begin(c, r, 0, r->used);
    for (bel_ddl_piece p; bel_ddl_walk_next(&walk, &p);)
        memcpy(p.data, values_of(c, r, &p, c->root % c->members), p.bytes);
}

bel_status *bel_ddl_rounds_spread(bel_ddl_call *c)
{
    bool first = is_first_of_group(c);
    bel_ddl_cursor next = {0};
    c->direct = c->region != NULL && c->ddl->memory_count > 0;
    BEL_TRY(bel_ddl_rounds_meet(c));
    while (!bel_ddl_call_is_at_end(c, next)) {
        bel_ddl_round now;
        next = bel_ddl_round_begin(c, next, &now);
        if (first) BEL_TRY(bring(c, &now));
        rounds_tell(c, BEL_DDL_ARRIVED, &now);
        BEL_TRY(rounds_await(c, BEL_DDL_ARRIVED, &now));
        if (!first) take_all(c, &now);
    }
    return end_rounds(c);
}
