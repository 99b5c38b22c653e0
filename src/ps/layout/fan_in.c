// Groups follow from positions: group u of level l begins at position u · fan_in^l. So each process
// finds its place from the assignment and fan_in, and no message describes the tree. All functions
// here must treat a group with one member alike, or two processes disagree.
#include "ps/layout/fan_in.h"

#include "base/alloc.h"

// Workers that play, by position.
typedef struct players {
    const bel_assignment *assignment;
    int *workers;
    int count;
    int fan_in;
} players;

static players players_of(const bel_assignment *assignment, int fan_in)
{
    players p = {.assignment = assignment, .fan_in = fan_in};
    p.workers = bel_xcalloc((size_t)assignment->worker_count, sizeof *p.workers);
    for (int w = 0; w < assignment->worker_count; w++)
        if (bel_assignment_replicas(assignment, w) > 0) p.workers[p.count++] = w;
    return p;
}

static int position_of(const players *p, int worker)
{
    int at = 0;
    while (at < p->count && p->workers[at] != worker)
        at++;
    return at;
}

// Number of workers in a complete group.
static int64_t size_of(const players *p, int level)
{
    int64_t size = 1;
    for (int l = 0; l < level; l++)
        size *= p->fan_in;
    return size;
}

static int levels_of(const players *p)
{
    int levels = 0;
    for (int64_t groups = p->count; p->fan_in > 0 && groups > p->fan_in; levels++)
        groups = (groups + p->fan_in - 1) / p->fan_in;
    return levels;
}

// True if the group of that level that begins at the position has several members.
static bool has_relay(const players *p, int level, int64_t begin)
{
    return begin % size_of(p, level) == 0 && begin + size_of(p, level - 1) < p->count;
}

int bel_fan_in_levels(const bel_assignment *assignment, int fan_in)
{
    players p = players_of(assignment, fan_in);
    int levels = levels_of(&p);
    bel_free(p.workers);
    return levels;
}

// Makes reporters of the groups of a level that begin at positions [begin, end).
static bel_reporters gather(const players *p, int level, int64_t begin, int64_t end)
{
    int64_t size = size_of(p, level);
    bel_reporters reporters = {0};
    if (end > p->count) end = p->count;
    size_t most = (size_t)((end - begin + size - 1) / size);
    int *replicas = bel_xcalloc(most + 1, sizeof *replicas);
    const int *first = p->assignment->first_replica;
    reporters.workers = bel_xcalloc(most + 1, sizeof *reporters.workers);
    for (int64_t at = begin; at < end; at += size, reporters.count++) {
        int64_t next = at + size < p->count ? at + size : p->count;
        int last = p->workers[next - 1];
        reporters.workers[reporters.count] = p->workers[at];
        replicas[reporters.count] = first[last + 1] - first[p->workers[at]];
    }
    reporters.assignment = bel_assignment_create_part(
        replicas, reporters.count, first[p->workers[begin]], p->assignment->replica_count);
    bel_free(replicas);
    return reporters;
}

// Without relays the numbers of workers stay, also of those without replicas.
static bel_reporters every_worker(const bel_assignment *assignment)
{
    size_t count = (size_t)assignment->worker_count;
    bel_reporters reporters = {.count = assignment->worker_count};
    int *replicas = bel_xcalloc(count, sizeof *replicas);
    reporters.workers = bel_xcalloc(count, sizeof *reporters.workers);
    for (int w = 0; w < assignment->worker_count; w++) {
        reporters.workers[w] = w;
        replicas[w] = bel_assignment_replicas(assignment, w);
    }
    reporters.assignment = bel_assignment_create(replicas, assignment->worker_count);
    bel_free(replicas);
    return reporters;
}

bel_reporters bel_fan_in_top(const bel_assignment *assignment, int fan_in)
{
    players p = players_of(assignment, fan_in);
    int levels = levels_of(&p);
    bel_reporters reporters =
        levels == 0 ? every_worker(assignment) : gather(&p, levels, 0, p.count);
    bel_free(p.workers);
    return reporters;
}

int bel_fan_in_relays(const bel_assignment *assignment, int fan_in, int worker, int *out_levels)
{
    players p = players_of(assignment, fan_in);
    int at = position_of(&p, worker), levels = levels_of(&p), count = 0;
    for (int l = 1; l <= levels && at % size_of(&p, l) == 0; l++)
        if (has_relay(&p, l, at)) out_levels[count++] = l;
    bel_free(p.workers);
    return count;
}

bel_reporters bel_fan_in_members(const bel_assignment *assignment, int fan_in, int worker,
                                 int level)
{
    players p = players_of(assignment, fan_in);
    int at = position_of(&p, worker);
    bel_reporters reporters = gather(&p, level - 1, at, at + size_of(&p, level));
    bel_free(p.workers);
    return reporters;
}

bel_fan_in_place bel_fan_in_place_of(const bel_assignment *assignment, int fan_in, int worker,
                                     int level)
{
    players p = players_of(assignment, fan_in);
    int64_t at = position_of(&p, worker);
    int levels = levels_of(&p);
    bel_fan_in_place place = {.worker = -1};
    place.index = levels == 0 ? worker : (int)(at / size_of(&p, levels));
    for (int l = level + 1; l <= levels; l++) {
        int64_t begin = at / size_of(&p, l) * size_of(&p, l);
        if (!has_relay(&p, l, begin)) continue;
        place = (bel_fan_in_place){.level = l,
                                   .worker = p.workers[begin],
                                   .index = (int)((at - begin) / size_of(&p, l - 1))};
        break;
    }
    bel_free(p.workers);
    return place;
}

// A reporter's ids are contiguous.
int bel_reporters_find(const bel_reporters *reporters, int worker)
{
    int found = -1;
    for (int i = 0; i < reporters->count && reporters->workers[i] <= worker; i++)
        found = i;
    return found;
}

void bel_reporters_deinit(bel_reporters *reporters)
{
    bel_assignment_destroy(reporters->assignment);
    bel_free(reporters->workers);
    *reporters = (bel_reporters){0};
}
