// Recomputation on a growing list of steps. Each round finds the peak and repeats, after it, the
// values that are cheapest to compute for the memory that they take there. A round repeats one
// chain of steps, or in a long program several independent ones, to save rounds. The list has
// indices and is no graph, because every round inserts steps and redirects readers; only the best
// list becomes a graph. Sizes and costs are estimates that decide only which steps are repeated,
// never their results: a copy is the same node on the same operands. Random steps are never
// repeated. Time and threads must not affect the choice, or hosts would choose differently. Rounds
// end at three times the original number of steps.
#include "passes/recompute.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "passes/rewrite.h"

typedef struct step {
    const bel_node *node;
    bool again;                                                 // a copy of an earlier step
    int inputs[BEL_OP_MAX_INPUTS], outputs[BEL_OP_MAX_OUTPUTS]; // values of the list
} step;

typedef struct item {
    const bel_value *value; // the value that it is
    size_t bytes;           // 0: outside, as leaves and external outputs are
    bool wanted;            // an output
} item;

typedef struct list {
    step *steps;
    item *items;
    int step_count, item_count;
    size_t step_capacity, item_capacity;
} list;

// Lives of the items of a list, by item. The root of an alias is the item whose memory it uses.
typedef struct lives {
    int *root;
    int *made, *end; // steps that make it and read it last
    int *back;       // first step after the peak that reads an item idle at it; or -1
    size_t *memory;  // by step: alive while it runs
    int peak;        // the step with the largest memory
} lives;

static int flags_of(const step *s)
{
    return bel_op_get(s->node->op)->flags;
}

static bool is_alias(const step *s)
{
    return (flags_of(s) & BEL_OP_ALIAS) != 0;
}

static size_t bytes_of(const bel_value *value)
{
    return bel_tensor_bytes(&(bel_tensor){.dtype = value->spec.dtype, .shape = value->spec.shape});
}

// --- The list ------------------------------------------------------------------------------------

static int add_item(list *l, const bel_value *value, size_t bytes)
{
    l->items = bel_xgrow(l->items, &l->item_capacity, (size_t)l->item_count + 1, sizeof *l->items);
    l->items[l->item_count] = (item){.value = value, .bytes = bytes};
    return l->item_count++;
}

static void add_step(list *l, const step *made)
{
    l->steps = bel_xgrow(l->steps, &l->step_capacity, (size_t)l->step_count + 1, sizeof *l->steps);
    l->steps[l->step_count++] = *made;
}

// The first items are the values of the graph, by id.
static list list_of(const bel_graph *graph, bel_value *const *outputs, const bool *external,
                    int output_count)
{
    list l = {.steps = NULL};
    bool *needed = bel_xcalloc(graph->node_count, sizeof *needed);
    bel_graph_mark(graph, outputs, output_count, needed);
    for (size_t v = 0; v < graph->value_count; v++) {
        const bel_value *value = graph->values[v];
        bool leaf = (bel_op_get(value->node->op)->flags & BEL_OP_LEAF) != 0;
        add_item(&l, value, leaf ? 0 : bytes_of(value));
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        step s = {.node = node};
        for (int i = 0; i < node->input_count; i++)
            s.inputs[i] = node->inputs[i]->id;
        for (int i = 0; i < node->output_count; i++)
            s.outputs[i] = node->outputs[i]->id;
        if (needed[n]) add_step(&l, &s);
    }
    for (int i = 0; i < output_count; i++) {
        item *root = &l.items[bel_alias_root(outputs[i])->id];
        root->wanted = true;
        if (external[i]) root->bytes = 0;
    }
    bel_free(needed);
    return l;
}

static void free_list(list *l)
{
    bel_free(l->steps);
    bel_free(l->items);
}

// --- Lives ---------------------------------------------------------------------------------------

static void free_lives(lives *v)
{
    bel_free(v->root);
    bel_free(v->made);
    bel_free(v->end);
    bel_free(v->back);
    bel_free(v->memory);
}

// True for a step that reads the elements of its input, not only its shape.
static bool reads(const step *s, int input)
{
    return !is_alias(s) && bel_op_reads(s->node->op, input);
}

// Finds for each item its maker, the last reader of its memory, and its root. An alias comes after
// its input, so the root of that is known. Outputs live until after the last step.
static void find_ends(const list *l, lives *v)
{
    for (int i = 0; i < l->item_count; i++) {
        v->root[i] = i;
        v->made[i] = v->end[i] = v->back[i] = -1;
    }
    for (int s = 0; s < l->step_count; s++) {
        const step *at = &l->steps[s];
        for (int i = 0; i < at->node->output_count; i++) {
            v->made[at->outputs[i]] = v->end[at->outputs[i]] = s;
            if (is_alias(at)) v->root[at->outputs[i]] = v->root[at->inputs[0]];
        }
        for (int i = 0; i < at->node->input_count; i++)
            if (reads(at, i)) v->end[v->root[at->inputs[i]]] = s;
    }
    for (int i = 0; i < l->item_count; i++)
        if (l->items[i].wanted) v->end[v->root[i]] = l->step_count;
}

// A result that overwrites an input takes over its memory while the step runs.
static void end_overwritten(const list *l, lives *v)
{
    for (int s = 0; s < l->step_count; s++) {
        const step *at = &l->steps[s];
        for (int o = 0; o < at->node->output_count; o++) {
            int over = bel_op_overwrites(at->node->op, &at->node->attrs, o);
            if (over < 0) continue;
            int input = v->root[at->inputs[over]];
            size_t bytes = l->items[at->outputs[o]].bytes;
            if (v->end[input] == s && bytes == l->items[input].bytes) v->end[input] = s - 1;
        }
    }
}

// Goes backwards from the end to the peak, so that the first reader after the peak remains. An item
// is not idle if the step of the peak reads it, if no step reads it any more, or if it lives until
// the end.
static void find_idle(const list *l, lives *v)
{
    for (int s = l->step_count - 1; s >= v->peak; s--) {
        const step *at = &l->steps[s];
        for (int i = 0; i < at->node->input_count; i++)
            if (reads(at, i)) v->back[v->root[at->inputs[i]]] = s > v->peak ? s : -1;
    }
    for (int i = 0; i < l->item_count; i++)
        if (v->made[i] >= v->peak || v->end[i] == l->step_count) v->back[i] = -1;
}

// Memory by step is a running sum: at first `memory` has the bytes that start at each step, less
// those that ended before it.
static lives find_lives(const list *l)
{
    size_t items = (size_t)l->item_count, steps = (size_t)l->step_count;
    lives v = {.root = bel_xcalloc(items, sizeof(int)),
               .made = bel_xcalloc(items, sizeof(int)),
               .end = bel_xcalloc(items, sizeof(int)),
               .back = bel_xcalloc(items, sizeof(int)),
               .memory = bel_xcalloc(steps + 1, sizeof(size_t))};
    find_ends(l, &v);
    end_overwritten(l, &v);
    for (int i = 0; i < l->item_count; i++) {
        if (v.root[i] != i || v.made[i] < 0 || v.end[i] < v.made[i]) continue;
        v.memory[v.made[i]] += l->items[i].bytes; // the change at a step; unsigned sums wrap around
        if (v.end[i] < l->step_count) v.memory[v.end[i] + 1] -= l->items[i].bytes;
    }
    for (int s = 1; s < l->step_count; s++) {
        v.memory[s] += v.memory[s - 1];
        if (v.memory[s] > v.memory[v.peak]) v.peak = s;
    }
    find_idle(l, &v);
    return v;
}

// --- Repeated steps ------------------------------------------------------------------------------

// Approximate nanoseconds: only proportions matter.
static double cost_of(const bel_node *node)
{
    const double moved = 0.02, multiply_add = 0.03;
    double bytes = 0, work = 0;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        const bel_value *value =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        bytes += (double)bytes_of(value);
    }
    const bel_shape *x = &node->inputs[0]->spec.shape, *y = &node->outputs[0]->spec.shape;
    const bel_shape *w = node->input_count > 1 ? &node->inputs[1]->spec.shape : NULL;
    switch (node->op) {
    case BEL_OP_MATMUL:
    case BEL_OP_GEMM:
        work = (double)bel_shape_elements(x) * (double)(y->rank > 0 ? y->dims[y->rank - 1] : 1);
        break;
    case BEL_OP_CONV:
    case BEL_OP_CONV_TRANSPOSE:
        work = (double)bel_shape_elements(y) * (double)bel_shape_elements(w) / (double)w->dims[0];
        break;
    case BEL_OP_GRU:
    case BEL_OP_LSTM: work = (double)bel_shape_elements(x) * (double)(w->dims[1] + 1) * 2; break;
    case BEL_OP_ATTENTION: work = (double)bel_shape_elements(x) * (double)w->dims[2] * 2; break;
    default: break;
    }
    return 100 + bytes * moved + work * multiply_add;
}

enum { CHAIN = 32, SMALL = 16 };

// A step whose results are idle at the peak, and the steps before it that must be repeated as well
// because their results are gone by then. Values that are small beside the results are kept
// instead.
typedef struct chain {
    int steps[CHAIN], count;
    int64_t gain; // bytes at the peak
    double cost;
} chain;

static bool can_repeat(const step *s)
{
    return !s->again && (flags_of(s) & (BEL_OP_LEAF | BEL_OP_ALIAS | BEL_OP_RANDOM)) == 0;
}

static bool has_step(const chain *c, int wanted)
{
    for (int i = 0; i < c->count; i++)
        if (c->steps[i] == wanted) return true;
    return false;
}

// Adds step `s` and the steps that it needs.
static void add_to_chain(const list *l, const lives *v, int s, chain *c)
{
    const step *at = &l->steps[s];
    c->steps[c->count++] = s;
    c->cost += cost_of(at->node);
    for (int i = 0; i < at->node->input_count; i++) {
        int root = v->root[at->inputs[i]], made = v->made[root];
        if (!reads(at, i) || v->end[root] >= v->peak || has_step(c, made)) continue;
        int64_t bytes = (int64_t)l->items[root].bytes;
        bool again = bytes * SMALL > c->gain && c->count < CHAIN && can_repeat(&l->steps[made]);
        if (again) {
            add_to_chain(l, v, made, c);
        } else {
            c->gain -= bytes;
        }
    }
}

// Gain: the idle bytes of its results, less those of inputs that must be kept for it.
static chain chain_of(const list *l, const lives *v, int s)
{
    const step *at = &l->steps[s];
    chain c = {.count = 0};
    for (int i = 0; can_repeat(at) && i < at->node->output_count; i++)
        if (v->back[at->outputs[i]] >= 0) c.gain += (int64_t)l->items[at->outputs[i]].bytes;
    if (c.gain > 0) add_to_chain(l, v, s, &c);
    return c;
}

// Steps of a program for each further chain in a round.
enum { STEPS_A_CHAIN = 512 };

// First step of a chain, with the chain's gain and cost.
typedef struct candidate {
    int step;
    int64_t gain;
    double cost;
} candidate;

// By gain per cost; equal ones in their order.
static int better_first(const void *a, const void *b)
{
    const candidate *p = a, *q = b;
    double left = (double)p->gain * q->cost, right = (double)q->gain * p->cost;
    if (left != right) return left > right ? -1 : 1;
    return (p->step > q->step) - (p->step < q->step);
}

// The chains of a round. They share no step, and no chain reads a result of another. So repeating
// one leaves the weights of the others valid.
typedef struct choice {
    chain *chains;
    int count;
    int *chain_of; // by step: its chain, plus one; 0: none
    bool *read;    // by item: a chain reads it
} choice;

static bool is_apart(const list *l, const lives *v, const choice *chosen, const chain *c)
{
    for (int k = 0; k < c->count; k++) {
        const step *at = &l->steps[c->steps[k]];
        if (chosen->chain_of[c->steps[k]] > 0) return false;
        for (int i = 0; i < at->node->input_count; i++) {
            int made = v->made[v->root[at->inputs[i]]];
            if (made >= 0 && chosen->chain_of[made] > 0) return false;
        }
        for (int i = 0; i < at->node->output_count; i++)
            if (chosen->read[at->outputs[i]]) return false;
    }
    return true;
}

static void add_chain(const list *l, const lives *v, const chain *c, choice *chosen)
{
    chosen->chains[chosen->count++] = *c;
    for (int k = 0; k < c->count; k++) {
        const step *at = &l->steps[c->steps[k]];
        chosen->chain_of[c->steps[k]] = chosen->count;
        for (int i = 0; i < at->node->input_count; i++)
            chosen->read[v->root[at->inputs[i]]] = true;
    }
}

// Chooses the chains with the highest gain per cost, until the gain is enough or there are `most`.
// None: no chain gains.
static choice list_choose(const list *l, const lives *v, size_t enough, int most)
{
    choice chosen = {.chains = bel_xcalloc((size_t)most, sizeof *chosen.chains),
                     .chain_of = bel_xcalloc((size_t)l->step_count, sizeof(int)),
                     .read = bel_xcalloc((size_t)l->item_count, sizeof(bool))};
    candidate *all = bel_xcalloc((size_t)v->peak, sizeof *all);
    size_t count = 0, gained = 0;
    for (int s = 0; s < v->peak; s++) {
        chain c = chain_of(l, v, s);
        if (c.count > 0 && c.gain > 0) all[count++] = (candidate){s, c.gain, c.cost};
    }
    if (count > 0) qsort(all, count, sizeof *all, better_first);
    for (size_t i = 0; i < count && gained < enough && chosen.count < most; i++) {
        chain c = chain_of(l, v, all[i].step);
        if (!is_apart(l, v, &chosen, &c)) continue;
        add_chain(l, v, &c, &chosen);
        gained += (size_t)c.gain;
    }
    bel_free(all);
    return chosen;
}

static void free_choice(choice *chosen)
{
    bel_free(chosen->chains);
    bel_free(chosen->chain_of);
    bel_free(chosen->read);
}

// The first step that reads the idle results of a chain.
static int reader_of(const list *l, const lives *v, const chain *c)
{
    const step *maker = &l->steps[c->steps[0]];
    int reader = l->step_count;
    for (int i = 0; i < maker->node->output_count; i++) {
        int back = v->back[maker->outputs[i]];
        if (back >= 0 && back < reader) reader = back;
    }
    return reader;
}

// Steps to be repeated, in order, each in the list of the reader that it comes before.
typedef struct schedule {
    int *first, *last; // by reader: steps, plus one; 0: none
    int *next;         // by step
    int *before;       // by item: the reader of the chain that repeats it, plus one; 0: none
} schedule;

static void put_step(schedule *plan, const step *at, int s, int reader)
{
    if (plan->first[reader] == 0) {
        plan->first[reader] = s + 1;
    } else {
        plan->next[plan->last[reader] - 1] = s + 1;
    }
    plan->last[reader] = s + 1;
    for (int i = 0; i < at->node->output_count; i++)
        plan->before[at->outputs[i]] = reader + 1;
}

// Chains, and the aliases of their results, up to their readers.
static schedule make_schedule(const list *l, const lives *v, const choice *chosen)
{
    size_t steps = (size_t)l->step_count;
    schedule plan = {.first = bel_xcalloc(steps + 1, sizeof(int)),
                     .last = bel_xcalloc(steps + 1, sizeof(int)),
                     .next = bel_xcalloc(steps, sizeof(int)),
                     .before = bel_xcalloc((size_t)l->item_count, sizeof(int))};
    for (int s = 0; s < l->step_count; s++) {
        const step *at = &l->steps[s];
        int reader = -1;
        if (chosen->chain_of[s] > 0) {
            reader = reader_of(l, v, &chosen->chains[chosen->chain_of[s] - 1]);
        } else if (is_alias(at)) {
            reader = plan.before[at->inputs[0]] - 1;
        }
        if (reader > s) put_step(&plan, at, s, reader);
    }
    return plan;
}

// Adds a step that reads the copies made so far. `again`: by item of the old list, its copy; -1:
// none.
static void add_reading(list *to, const step *from, const int *again)
{
    step made = *from;
    for (int i = 0; i < made.node->input_count; i++)
        if (again[made.inputs[i]] >= 0) made.inputs[i] = again[made.inputs[i]];
    add_step(to, &made);
}

// The same for a repeated step: it makes copies.
static void add_again(list *to, const step *from, int *again)
{
    add_reading(to, from, again);
    step *made = &to->steps[to->step_count - 1];
    made->again = true;
    for (int i = 0; i < made->node->output_count; i++) {
        const bel_value *value = to->items[made->outputs[i]].value;
        again[made->outputs[i]] = add_item(to, value, bytes_of(value));
        made->outputs[i] = again[made->outputs[i]];
    }
}

// Makes the list in which each chain is repeated before the first step that reads its idle results.
// Readers from there on read the copies.
static list make_again(const list *l, const lives *v, const choice *chosen)
{
    size_t items = (size_t)l->item_count;
    list to = {.item_count = l->item_count};
    schedule plan = make_schedule(l, v, chosen);
    int *again = bel_xcalloc(items, sizeof *again);
    memset(again, 0xff, items * sizeof *again); // -1
    to.items = bel_xgrow(NULL, &to.item_capacity, items, sizeof *to.items);
    memcpy(to.items, l->items, items * sizeof *to.items);
    for (int s = 0; s < l->step_count; s++) {
        for (int n = plan.first[s]; n > 0; n = plan.next[n - 1])
            add_again(&to, &l->steps[n - 1], again);
        add_reading(&to, &l->steps[s], again);
    }
    bel_free(again);
    bel_free(plan.first);
    bel_free(plan.last);
    bel_free(plan.next);
    bel_free(plan.before);
    return to;
}

// --- The new graph -------------------------------------------------------------------------------

// Copies get new names, which affect no bits: random steps are never copied.
static void build_step(const step *s, int number, bel_recomputed *out, size_t *capacity)
{
    bel_graph *to = out->graph;
    bel_value **made = out->values;
    bel_value *inputs[BEL_OP_MAX_INPUTS], *outputs[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < s->node->input_count; i++)
        inputs[i] = made[s->inputs[i]];
    char *name = s->again ? bel_strf("%s/again_%d", s->node->name, number) : NULL;
    bel_copy_node(s->node, name != NULL ? name : s->node->name, inputs, to, outputs);
    bel_free(name);
    out->originals = bel_xgrow(out->originals, capacity, to->value_count, sizeof *out->originals);
    for (int i = 0; i < s->node->output_count; i++) {
        made[s->outputs[i]] = outputs[i];
        out->originals[outputs[i]->id] = s->node->outputs[i]->id;
    }
}

// The first items have the numbers of the old graph's values, so out->values serves both.
static void list_build(const list *l, const bel_graph *from, bel_recomputed *out)
{
    bel_shape *shapes = bel_xcalloc(from->input_count, sizeof *shapes);
    for (size_t i = 0; i < from->input_count; i++)
        shapes[i] = from->inputs[i].value->spec.shape;
    out->graph = bel_graph_create();
    out->values = bel_xcalloc((size_t)l->item_count, sizeof(bel_value *));
    bel_copy_leaves(from, shapes, out->graph, out->values);
    bel_free(shapes);
    size_t capacity = 0;
    out->originals =
        bel_xgrow(out->originals, &capacity, out->graph->value_count, sizeof *out->originals);
    for (size_t v = 0; v < from->value_count; v++)
        if (out->values[v] != NULL) out->originals[out->values[v]->id] = (int)v; // leaves
    for (int s = 0; s < l->step_count; s++) {
        const step *at = &l->steps[s];
        bool there = at->node->op == BEL_OP_INPUT || at->node->op == BEL_OP_VARIABLE;
        if (!there) build_step(at, s, out, &capacity);
        if (at->again && !is_alias(at)) out->count++;
    }
}

void bel_recompute(const bel_graph *graph, bel_value *const *outputs, const bool *external,
                   int output_count, size_t target_bytes, bel_recomputed *out)
{
    enum { MOST = 3 }; // times the original number of steps
    list now = list_of(graph, outputs, external, output_count), best = {.steps = NULL};
    int limit = MOST * now.step_count, most = 1 + now.step_count / STEPS_A_CHAIN;
    *out = (bel_recomputed){.peak_bytes = SIZE_MAX};
    for (bool goes_on = true; goes_on;) {
        lives v = find_lives(&now);
        size_t peak = v.memory[v.peak];
        list next = {.steps = NULL};
        goes_on = false;
        if (peak > target_bytes) {
            choice chosen = list_choose(&now, &v, peak - target_bytes, most);
            if (chosen.count > 0) next = make_again(&now, &v, &chosen);
            goes_on = chosen.count > 0 && next.step_count < limit;
            free_choice(&chosen);
        }
        free_lives(&v);
        list *worse = peak < out->peak_bytes ? &best : &now;
        free_list(worse);
        if (worse == &best) {
            best = now;
            out->peak_bytes = peak;
        }
        now = next;
    }
    free_list(&now);
    list_build(&best, graph, out);
    free_list(&best);
}

void bel_recomputed_deinit(bel_recomputed *recomputed)
{
    bel_graph_destroy(recomputed->graph);
    bel_free(recomputed->values);
    bel_free(recomputed->originals);
    *recomputed = (bel_recomputed){.graph = NULL};
}
