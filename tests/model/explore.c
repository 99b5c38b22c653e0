// Breadth-first search with a hash set. States are numbered in the order of discovery. Each stores
// its parent and its index among the parent's successors, so a trace is made by walking back and
// repeating the moves.
#include "model/explore.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

typedef struct seen_state {
    uint64_t hash;
    uint32_t parent;
    uint16_t ordinal; // among the parent's successors
    bool live;        // an end can be reached
} seen_state;

typedef struct level {
    unsigned char *states;
    size_t count, capacity;
} level;

struct bel_explorer {
    const bel_explore_model *model;
    seen_state *seen;
    size_t count, capacity;
    uint32_t *table; // number + 1 of a state, by hash; 0: free
    size_t table_size;
    uint32_t *edges; // successors of all states, in the order of the states
    size_t edge_count, edge_capacity;
    size_t *first_edges; // by state
    size_t first_capacity;
    level now, next;
    uint32_t parent;
    uint16_t ordinal;
    // While a trace is made:
    bool replays;
    unsigned char *replayed;
    bel_explore_label label;
    uint16_t wanted;
};

// --- The set -------------------------------------------------------------------------------------

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 29);
}

static uint64_t hash_of(const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) + size, word;
    size_t at = 0;
    for (; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        hash = mix(hash ^ word) + UINT64_C(0x2545f4914f6cdd1d);
    }
    word = 0;
    memcpy(&word, bytes + at, size - at);
    return mix(mix(hash ^ word) * UINT64_C(0x9fb21c651e98df25));
}

static void insert(bel_explorer *e, uint64_t hash, uint32_t entry)
{
    size_t slot = (size_t)hash & (e->table_size - 1);
    while (e->table[slot] != 0)
        slot = (slot + 1) & (e->table_size - 1);
    e->table[slot] = entry;
}

static void grow_table(bel_explorer *e)
{
    if ((e->count + 1) * 2 < e->table_size) return;
    bel_free(e->table);
    e->table_size = e->table_size > 0 ? 2 * e->table_size : 1024;
    e->table = bel_xcalloc(e->table_size, sizeof *e->table);
    for (size_t i = 0; i < e->count; i++)
        insert(e, e->seen[i].hash, (uint32_t)i + 1);
}

// Returns the number of a state. A new state joins the next level.
static uint32_t number_of(bel_explorer *e, const void *state)
{
    size_t size = e->model->state_bytes;
    uint64_t hash = hash_of(state, size);
    grow_table(e);
    size_t slot = (size_t)hash & (e->table_size - 1);
    for (; e->table[slot] != 0; slot = (slot + 1) & (e->table_size - 1))
        if (e->seen[e->table[slot] - 1].hash == hash) return e->table[slot] - 1;
    e->seen = bel_xgrow(e->seen, &e->capacity, e->count + 1, sizeof *e->seen);
    e->seen[e->count] = (seen_state){.hash = hash, .parent = e->parent, .ordinal = e->ordinal};
    e->table[slot] = (uint32_t)e->count + 1;
    e->next.states =
        bel_xgrow(e->next.states, &e->next.capacity, e->next.count + 1, e->model->state_bytes);
    memcpy(e->next.states + e->next.count++ * size, state, size);
    return (uint32_t)e->count++;
}

void bel_explore_emit(bel_explorer *e, const void *state, bel_explore_label label)
{
    if (e->replays) {
        if (e->ordinal++ != e->wanted) return;
        memcpy(e->replayed, state, e->model->state_bytes);
        e->label = label;
        return;
    }
    uint32_t number = number_of(e, state);
    e->edges = bel_xgrow(e->edges, &e->edge_capacity, e->edge_count + 1, sizeof *e->edges);
    e->edges[e->edge_count++] = number;
    e->ordinal++;
}

// --- Traces --------------------------------------------------------------------------------------

static int depth_of(const bel_explorer *e, uint32_t number)
{
    int depth = 0;
    for (; number != 0; number = e->seen[number].parent)
        depth++;
    return depth;
}

static void print_trace(bel_explorer *e, uint32_t number, const char *found, FILE *out)
{
    if (out == NULL) return;
    int depth = depth_of(e, number);
    uint16_t *ordinals = bel_xcalloc((size_t)depth + 1, sizeof *ordinals);
    for (int i = depth; i > 0; i--, number = e->seen[number].parent)
        ordinals[i] = e->seen[number].ordinal;
    unsigned char *state = bel_xmalloc(e->model->state_bytes);
    e->replayed = bel_xmalloc(e->model->state_bytes);
    e->replays = true;
    e->model->begin(e->model->config, state);
    for (int i = 1; i <= depth; i++) {
        e->ordinal = 0;
        e->wanted = ordinals[i];
        e->model->expand(e->model->config, state, e);
        memcpy(state, e->replayed, e->model->state_bytes);
        fprintf(out, "%4d  %s %d %s", i, e->label.actor, e->label.index, e->label.what);
        if (e->label.number >= 0) fprintf(out, " %d", e->label.number);
        fprintf(out, "\n");
    }
    fprintf(out, "      %s\n", found);
    e->replays = false;
    bel_free(ordinals);
    bel_free(state);
    bel_free(e->replayed);
}

// --- The search ----------------------------------------------------------------------------------

// Checks one state and its successors. Returns NULL if there is no error.
static const char *look_at(bel_explorer *e, uint32_t number, const void *state,
                           bel_explore_result *result)
{
    const bel_explore_model *model = e->model;
    e->first_edges =
        bel_xgrow(e->first_edges, &e->first_capacity, (size_t)number + 2, sizeof *e->first_edges);
    e->first_edges[number] = e->first_edges[number + 1] = e->edge_count;
    const char *broken = model->broken(model->config, state);
    if (broken != NULL) return broken;
    e->parent = number;
    e->ordinal = 0;
    model->expand(model->config, state, e);
    e->first_edges[number + 1] = e->edge_count;
    if (model->is_end(model->config, state)) {
        e->seen[number].live = true;
        result->ends++;
    } else if (e->ordinal == 0) {
        return "nothing can happen any more, and it is not the end";
    }
    return NULL;
}

// Returns the first state from which no end can be reached, or the count of all states.
static size_t find_dead(bel_explorer *e)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = e->count; i-- > 0;) {
            if (e->seen[i].live) continue;
            bool live = false;
            for (size_t k = e->first_edges[i]; k < e->first_edges[i + 1] && !live; k++)
                live = e->seen[e->edges[k]].live;
            e->seen[i].live = live;
            changed = changed || live;
        }
    }
    for (size_t i = 0; i < e->count; i++)
        if (!e->seen[i].live) return i;
    return e->count;
}

static const char *search(bel_explorer *e, int64_t state_limit, uint32_t *out_number,
                          bel_explore_result *result)
{
    size_t size = e->model->state_bytes, before = 0;
    while (e->next.count > 0) {
        level done = e->now;
        e->now = e->next;
        e->next = (level){done.states, 0, done.capacity};
        for (size_t i = 0; i < e->now.count; i++) {
            *out_number = (uint32_t)(before + i);
            const char *found = look_at(e, *out_number, e->now.states + i * size, result);
            if (found != NULL) return found;
            if ((int64_t)e->count > state_limit) return "there are more states than expected";
        }
        before += e->now.count;
        result->depth++;
    }
    size_t dead = find_dead(e);
    *out_number = (uint32_t)dead;
    return dead < e->count ? "no end can be reached from here" : NULL;
}

bel_explore_result bel_explore(const bel_explore_model *model, int64_t state_limit, FILE *trace)
{
    bel_explorer e = {.model = model};
    bel_explore_result result = {0};
    int64_t begun = bel_clock_ns();
    unsigned char *first = bel_xcalloc(1, model->state_bytes);
    model->begin(model->config, first);
    (void)number_of(&e, first);
    bel_free(first);
    uint32_t number = 0;
    result.found = search(&e, state_limit, &number, &result);
    if (result.found != NULL) {
        result.depth = depth_of(&e, number);
        print_trace(&e, number, result.found, trace);
    }
    result.states = (int64_t)e.count;
    result.steps = (int64_t)e.edge_count;
    result.seconds = (double)(bel_clock_ns() - begun) * 1e-9;
    bel_free(e.seen);
    bel_free(e.table);
    bel_free(e.edges);
    bel_free(e.first_edges);
    bel_free(e.now.states);
    bel_free(e.next.states);
    return result;
}
