// The program as a list of steps that grows: at each round the peak is found, and the values that
// are cheapest to make again for what they take there are made again behind it: one chain of steps,
// or of a long program several that have nothing to do with each other, so that there are not as
// many rounds as values. It is a list of indices and no graph, because steps are inserted and
// readers redirected in every round; only the best list becomes a graph. Sizes and costs are
// estimates and decide merely what is repeated, never what a step computes: a copy is the same node
// on the same operands. Random steps are never repeated. Nothing here may look at time or threads,
// or else hosts would choose differently. Rounds end at three times as many steps as there were.
#include "passes/recompute.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "passes/rewrite.h"

typedef struct step {
    const bel_node *node;
    bool again;                                                 // a copy of a step that came before
    int inputs[BEL_OP_MAX_INPUTS], outputs[BEL_OP_MAX_OUTPUTS]; // values of the list
} step;

typedef struct item {
    const bel_value *value; // what it stands for
    size_t bytes;           // 0: outside, as leaves and external outputs are
    bool wanted;            // an output
} item;

typedef struct list {
    step *steps;
    item *items;
    int step_count, item_count;
    size_t step_capacity, item_capacity;
} list;

// Where the items of a list live, by item. An alias has a root, the item in whose memory it lies.
typedef struct lives {
    int *root;
    int *made, *end; // steps that make it and read it last
    int *back;       // of what lies idle at the peak: the first step behind it that reads it; or -1
    size_t *memory;  // by step: alive while it runs
    int peak;        // the step with the most
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

// True for a step that looks at the elements of its input, not at its shape alone.
static bool reads(const step *s, int input)
{
    return !is_alias(s) && bel_op_reads(s->node->op, input);
}

// Who makes an item, who reads its memory last, and in whose memory it lies. An alias comes behind
// what it views, so the root of its input is known. Outputs live until behind the last step.
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

// A result that lies over the first input takes that one's memory while the step runs.
static void end_overwritten(const list *l, lives *v)
{
    for (int s = 0; s < l->step_count; s++) {
        const step *at = &l->steps[s];
        if ((flags_of(at) & BEL_OP_INPLACE) == 0) continue;
        int input = v->root[at->inputs[0]];
        size_t bytes = l->items[at->outputs[0]].bytes;
        if (v->end[input] == s && bytes == l->items[input].bytes) v->end[input] = s - 1;
    }
}

// Backwards from the end to the peak, so that the first reader behind the peak is what stays; what
// the step of the peak reads itself, or what nobody reads any more or until the end, is not idle.
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

// Memory by step is a running sum: `memory` first holds what each step adds and what ended before
// it.
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
        v.memory[v.made[i]] += l->items[i].bytes; // what changes at a step; sums wrap around
        if (v.end[i] < l->step_count) v.memory[v.end[i] + 1] -= l->items[i].bytes;
    }
    for (int s = 1; s < l->step_count; s++) {
        v.memory[s] += v.memory[s - 1];
        if (v.memory[s] > v.memory[v.peak]) v.peak = s;
    }
    find_idle(l, &v);
    return v;
}

// --- What is made again --------------------------------------------------------------------------

// Roughly in nanoseconds: only proportions matter.
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

// A step whose results lie idle at the peak, with those before it that must be run again as well
// because what they made is gone by then. What is small beside the results is rather kept.
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

// Adds step `s` and what it needs.
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

// Gain: the bytes of its results that lie idle, less those of inputs that would have to be kept for
// it.
static chain chain_of(const list *l, const lives *v, int s)
{
    const step *at = &l->steps[s];
    chain c = {.count = 0};
    for (int i = 0; can_repeat(at) && i < at->node->output_count; i++)
        if (v->back[at->outputs[i]] >= 0) c.gain += (int64_t)l->items[at->outputs[i]].bytes;
    if (c.gain > 0) add_to_chain(l, v, s, &c);
    return c;
}

// More than one chain of a round in programs of this many steps.
enum { STEPS_A_CHAIN = 512 };

// A step that heads a chain, and what that is worth.
typedef struct candidate {
    int step;
    int64_t gain;
    double cost;
} candidate;

// By gain for cost; equal ones in their order.
static int better_first(const void *a, const void *b)
{
    const candidate *p = a, *q = b;
    double left = (double)p->gain * q->cost, right = (double)q->gain * p->cost;
    if (left != right) return left > right ? -1 : 1;
    return (p->step > q->step) - (p->step < q->step);
}

// What is chosen in a round: chains that share no step, of which none reads what another one makes.
// So whichever is made again, the others stay what they were when they were weighed.
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

// The chains that gain most for their cost, until enough is gained or there are `most`; none: none
// gains.
static choice choose(const list *l, const lives *v, size_t enough, int most)
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

// The first step that reads what lies idle of a chain.
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

// Steps to be run again, in their order, each in the list of the reader before which that is.
typedef struct schedule {
    int *first, *last; // by reader: steps, plus one; 0: none
    int *next;         // by step
    int *before;       // by item: the reader of the chain that makes it again, plus one; 0: none
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

// Chains, and the aliases of what they make, up to their readers.
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

// Adds a step whose inputs are the copies of what has been made again so far; `again` says by item
// of the old list what its copy is, -1: there is none.
static void add_reading(list *to, const step *from, const int *again)
{
    step made = *from;
    for (int i = 0; i < made.node->input_count; i++)
        if (again[made.inputs[i]] >= 0) made.inputs[i] = again[made.inputs[i]];
    add_step(to, &made);
}

// The same for a step that is run again: it makes copies.
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

// The list in which chains are run again, each before the first step that reads what lies idle of
// it. Who reads that from there on reads the copies.
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

// Copies get a name of their own, which enters nothing: random steps are never copied.
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

// Items are numbered like the values of the old graph first, so out->values serves both.
static void build(const list *l, const bel_graph *from, bel_recomputed *out)
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
    enum { MOST = 3 }; // times as many steps as there were
    list now = list_of(graph, outputs, external, output_count), best = {.steps = NULL};
    int limit = MOST * now.step_count, most = 1 + now.step_count / STEPS_A_CHAIN;
    *out = (bel_recomputed){.peak_bytes = SIZE_MAX};
    for (bool goes_on = true; goes_on;) {
        lives v = find_lives(&now);
        size_t peak = v.memory[v.peak];
        list next = {.steps = NULL};
        goes_on = false;
        if (peak > target_bytes) {
            choice chosen = choose(&now, &v, peak - target_bytes, most);
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
    build(&best, graph, out);
    free_list(&best);
}

void bel_recomputed_deinit(bel_recomputed *recomputed)
{
    bel_graph_destroy(recomputed->graph);
    bel_free(recomputed->values);
    bel_free(recomputed->originals);
    *recomputed = (bel_recomputed){.graph = NULL};
}
