// The tree is a list of groups for each level, by the position at which a group begins. Positions
// count the workers that play. Groups of level 0 are single workers, and each group of a level
// begins where one of the level below begins. So each process finds its place from the assignment
// and the rule, and no message describes the tree. All functions here must treat a group with one
// member alike, or two processes disagree.
#include "ps/layout/fan_in.h"

#include "base/alloc.h"

struct bel_fan_in {
    const bel_assignment *assignment;
    int *workers;                       // by position
    int count;                          // number of positions
    int *begins[BEL_FAN_IN_LEVELS + 1]; // by level and group: its position; then `count`
    int group_counts[BEL_FAN_IN_LEVELS + 1];
    int levels;
    bool hosts; // level 1 has hosts
};

static int players_of(const bel_assignment *assignment)
{
    int count = 0;
    for (int w = 0; w < assignment->worker_count; w++)
        count += bel_assignment_replicas(assignment, w) > 0;
    return count;
}

bool bel_fan_in_is_rule(const bel_assignment *assignment, const bel_fan_in_rule *rule)
{
    int64_t players = 0;
    int most = 0;
    if (rule->fan_in < 0 || rule->fan_in == 1 || rule->fan_in > BEL_FAN_IN_MOST) return false;
    if (rule->host_count == 0) return true;
    for (int h = 0; h < rule->host_count; h++) {
        if (rule->hosts[h] < 1) return false;
        players += rule->hosts[h];
        most = rule->hosts[h] > most ? rule->hosts[h] : most;
    }
    return most > 1 && players == players_of(assignment);
}

// --- The tree ------------------------------------------------------------------------------------

static int *new_level(bel_fan_in *tree, int level, int groups)
{
    int *begins = bel_xcalloc((size_t)groups + 1, sizeof *begins);
    begins[groups] = tree->count;
    tree->begins[level] = begins;
    tree->group_counts[level] = groups;
    tree->levels = level;
    return begins;
}

static void add_hosts(bel_fan_in *tree, const bel_fan_in_rule *rule)
{
    int *begins = new_level(tree, 1, rule->host_count);
    for (int h = 0, at = 0; h < rule->host_count; at += rule->hosts[h++])
        begins[h] = at;
    tree->hosts = true;
}

// Each level has at least a group less than the one below, and from level 2 on at most half as
// many: BEL_FAN_IN_LEVELS are enough for 1,024 workers.
static void add_levels(bel_fan_in *tree, int fan_in)
{
    while (fan_in > 0 && tree->group_counts[tree->levels] > fan_in) {
        int below = tree->levels, groups = (tree->group_counts[below] + fan_in - 1) / fan_in;
        int *begins = new_level(tree, below + 1, groups);
        for (int g = 0; g < groups; g++)
            begins[g] = tree->begins[below][g * fan_in];
    }
}

bel_fan_in *bel_fan_in_create(const bel_assignment *assignment, const bel_fan_in_rule *rule)
{
    bel_fan_in *tree = bel_xcalloc(1, sizeof *tree);
    tree->assignment = assignment;
    tree->count = players_of(assignment);
    tree->workers = bel_xcalloc((size_t)tree->count + 1, sizeof *tree->workers);
    int *begins = new_level(tree, 0, tree->count);
    for (int w = 0, at = 0; w < assignment->worker_count; w++) {
        if (bel_assignment_replicas(assignment, w) == 0) continue;
        begins[at] = at;
        tree->workers[at++] = w;
    }
    if (rule->host_count > 0) add_hosts(tree, rule);
    add_levels(tree, rule->fan_in);
    return tree;
}

void bel_fan_in_destroy(bel_fan_in *tree)
{
    if (tree == NULL) return;
    for (int l = 0; l <= tree->levels; l++)
        bel_free(tree->begins[l]);
    bel_free(tree->workers);
    bel_free(tree);
}

int bel_fan_in_levels(const bel_fan_in *tree)
{
    return tree->levels;
}

bool bel_fan_in_is_host(const bel_fan_in *tree, int level)
{
    return tree->hosts && level == 1;
}

// --- Places --------------------------------------------------------------------------------------

static int position_of(const bel_fan_in *tree, int worker)
{
    int at = 0;
    while (at < tree->count && tree->workers[at] != worker)
        at++;
    return at;
}

// The group of that level that a position is in.
static int group_of(const bel_fan_in *tree, int level, int at)
{
    int group = 0;
    while (tree->begins[level][group + 1] <= at)
        group++;
    return group;
}

static bool begins_at(const bel_fan_in *tree, int level, int at)
{
    return at < tree->count && tree->begins[level][group_of(tree, level, at)] == at;
}

// Members of a group of level 1 or above: groups of the level below.
static int member_count(const bel_fan_in *tree, int level, int group)
{
    const int *begins = tree->begins[level] + group;
    int count = 0;
    for (int g = group_of(tree, level - 1, begins[0]);
         g < tree->group_counts[level - 1] && tree->begins[level - 1][g] < begins[1]; g++)
        count++;
    return count;
}

// Makes reporters of `count` groups of a level, from `first` on.
static bel_reporters gather(const bel_fan_in *tree, int level, int first, int count)
{
    const int *begins = tree->begins[level] + first;
    const int *ids = tree->assignment->first_replica;
    int *replicas = bel_xcalloc((size_t)count + 1, sizeof *replicas);
    bel_reporters reporters = {.count = count};
    reporters.workers = bel_xcalloc((size_t)count + 1, sizeof *reporters.workers);
    for (int i = 0; i < count; i++) {
        int last = tree->workers[begins[i + 1] - 1];
        reporters.workers[i] = tree->workers[begins[i]];
        replicas[i] = ids[last + 1] - ids[reporters.workers[i]];
    }
    reporters.assignment = bel_assignment_create_part(replicas, count, ids[reporters.workers[0]],
                                                      tree->assignment->replica_count);
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

bel_reporters bel_fan_in_top(const bel_fan_in *tree)
{
    if (tree->levels == 0) return every_worker(tree->assignment);
    return gather(tree, tree->levels, 0, tree->group_counts[tree->levels]);
}

int bel_fan_in_relays(const bel_fan_in *tree, int worker, int *out_levels)
{
    int at = position_of(tree, worker), count = 0;
    for (int l = 1; l <= tree->levels && begins_at(tree, l, at); l++)
        if (member_count(tree, l, group_of(tree, l, at)) > 1) out_levels[count++] = l;
    return count;
}

bel_reporters bel_fan_in_members(const bel_fan_in *tree, int worker, int level)
{
    int at = position_of(tree, worker);
    return gather(tree, level - 1, group_of(tree, level - 1, at),
                  member_count(tree, level, group_of(tree, level, at)));
}

bel_fan_in_place bel_fan_in_place_of(const bel_fan_in *tree, int worker, int level)
{
    int at = position_of(tree, worker);
    for (int l = level + 1; l <= tree->levels; l++) {
        int group = group_of(tree, l, at), begin = tree->begins[l][group];
        if (member_count(tree, l, group) < 2) continue;
        return (bel_fan_in_place){.level = l,
                                  .worker = tree->workers[begin],
                                  .index =
                                      group_of(tree, l - 1, at) - group_of(tree, l - 1, begin)};
    }
    return (bel_fan_in_place){
        .worker = -1, .index = tree->levels == 0 ? worker : group_of(tree, tree->levels, at)};
}

bel_reporters bel_fan_in_beside(const bel_fan_in *tree, const bel_fan_in_place *place)
{
    return place->worker < 0 ? bel_fan_in_top(tree)
                             : bel_fan_in_members(tree, place->worker, place->level);
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
