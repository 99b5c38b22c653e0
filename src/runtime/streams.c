// Stream packing. Tasks are the start, the nodes and the end. Each task except the start has one
// leader, so tasks form a tree. Walking back over the tasks, streams grow from the leaves. Lists
// are chained by indices into arrays of known sizes, and merged streams are followed by merged_into
// with path compression, so packing a large program stays cheap. All ties are broken by the order
// of nodes and costs are integers: the same program has the same streams on every host. Streams
// decide when and where a call runs, never its result.
#include "runtime/streams.h"

#include "base/alloc.h"

typedef struct task {
    int64_t cost, path; // path: cost of the costliest path from the start, this task included
    int first_follower, last_follower, next_follower; // tasks it leads, in order
    int first_reader;                                 // in readers
    int stream;
} task;

// A task that reads a value of a task that is not its leader.
typedef struct reader {
    int task, next;
} reader;

// A stream under construction.
typedef struct draft {
    int64_t cost;
    int merged_into; // -1: not merged
    bool has_end;
    bool in_pool;
    int first_link, last_link;
} draft;

// One end of a reader: the task at the other end.
typedef struct link {
    int task, next;
} link;

typedef struct packer {
    const bel_dag *dag;
    const bel_stream_options *options;
    int64_t threshold;
    bool automatic;
    task *tasks; // node n is task n + 1
    int task_count;
    reader *readers;
    int reader_count;
    link *links;
    int link_count;
    draft *drafts;
    int draft_count;
    int *pool; // streams that follow a task
    int pool_count;
} packer;

// --- Forward: leaders ----------------------------------------------------------------------------

// Appends `follower` to the tasks that `leader` leads, and sets its path.
static void lead(packer *p, int leader, int follower)
{
    task *from = &p->tasks[leader], *to = &p->tasks[follower];
    to->path = to->cost + from->path;
    if (from->first_follower < 0) {
        from->first_follower = follower;
    } else {
        p->tasks[from->last_follower].next_follower = follower;
    }
    from->last_follower = follower;
}

static void add_reader(packer *p, int from, int to)
{
    p->readers[p->reader_count] = (reader){to, p->tasks[from].first_reader};
    p->tasks[from].first_reader = p->reader_count++;
}

// The leader of a node is the task with the costliest path among those it waits for; the first of
// equal ones. The node becomes a reader of its other inputs, which may bring streams together.
static void find_leader(packer *p, int node)
{
    const bel_dag *dag = p->dag;
    int leader = 0;
    int64_t path = 0;
    for (int e = dag->first_edges[node]; e < dag->first_edges[node + 1]; e++) {
        int from = dag->edges[e].from + 1;
        if (p->tasks[from].path <= path) continue;
        path = p->tasks[from].path;
        leader = from;
    }
    lead(p, leader, node + 1);
    for (int e = dag->first_edges[node]; e < dag->first_edges[node + 1]; e++) {
        int from = dag->edges[e].from + 1;
        if (dag->edges[e].data && from != leader) add_reader(p, from, node + 1);
    }
}

// The end waits for all nodes that no other node waits for.
static void find_leader_of_end(packer *p)
{
    int end = p->task_count - 1, leader = 0;
    bool *awaited = bel_xcalloc((size_t)p->task_count, sizeof *awaited);
    for (int e = 0; e < p->dag->first_edges[p->dag->node_count]; e++)
        awaited[p->dag->edges[e].from + 1] = true;
    for (int t = 1; t < end; t++)
        if (!awaited[t] && p->tasks[t].path > p->tasks[leader].path) leader = t;
    lead(p, leader, end);
    for (int t = 1; t < end; t++)
        if (!awaited[t] && t != leader) add_reader(p, t, end);
    bel_free(awaited);
}

// Gives tasks leaders and paths, in order. The start and the end cost 1, which keeps paths above 0.
static void go_forward(packer *p)
{
    int64_t longest = 1;
    for (int t = 0; t < p->task_count; t++) {
        bool node = t > 0 && t < p->task_count - 1;
        p->tasks[t] = (task){.cost = node ? p->dag->costs[t - 1] : 1,
                             .first_follower = -1,
                             .last_follower = -1,
                             .next_follower = -1,
                             .first_reader = -1,
                             .stream = -1};
    }
    p->tasks[0].path = 1;
    for (int n = 0; n < p->dag->node_count; n++)
        find_leader(p, n);
    find_leader_of_end(p);
    for (int t = 0; t < p->task_count; t++)
        longest = p->tasks[t].path > longest ? p->tasks[t].path : longest;
    p->automatic = p->options->threshold <= 0;
    p->threshold = p->automatic ? longest : p->options->threshold;
}

// --- Backward: streams ---------------------------------------------------------------------------

// The stream into which a task's first stream was merged, with path compression.
static int stream_of(packer *p, int t)
{
    int stream = p->tasks[t].stream;
    while (p->drafts[stream].merged_into >= 0)
        stream = p->drafts[stream].merged_into;
    return p->tasks[t].stream = stream;
}

// Merges `from` into `into`, and appends its links.
static void packer_merge(packer *p, int from, int into)
{
    draft *source = &p->drafts[from], *target = &p->drafts[into];
    target->cost += source->cost;
    target->has_end = target->has_end || source->has_end;
    source->merged_into = into;
    if (source->first_link < 0) return;
    if (target->first_link < 0) {
        target->first_link = source->first_link;
    } else {
        p->links[target->last_link].next = source->first_link;
    }
    target->last_link = source->last_link;
}

// Appends a link to a stream, so that links are visited in order of creation.
static void add_link(packer *p, int stream, int other)
{
    draft *d = &p->drafts[stream];
    p->links[p->link_count] = (link){other, -1};
    if (d->first_link < 0) {
        d->first_link = p->link_count;
    } else {
        p->links[d->last_link].next = p->link_count;
    }
    d->last_link = p->link_count++;
}

static int new_draft(packer *p)
{
    p->drafts[p->draft_count] = (draft){.merged_into = -1, .first_link = -1, .last_link = -1};
    return p->draft_count++;
}

// Puts task `t` into a stream. Tasks are walked from the end, so the readers of a value have
// streams when its task gets one. A link is in the list of both streams.
static void packer_join(packer *p, int t, int stream)
{
    p->tasks[t].stream = stream;
    p->drafts[stream].cost += p->tasks[t].cost;
    if (t == p->task_count - 1) p->drafts[stream].has_end = true;
    for (int r = p->tasks[t].first_reader; r >= 0; r = p->readers[r].next) {
        int other = stream_of(p, p->readers[r].task);
        if (other == stream) continue;
        add_link(p, stream, p->readers[r].task);
        add_link(p, other, t);
    }
}

// Removes a link from a stream's list. `last`: the link kept before it; -1: none.
static void drop_link(packer *p, int stream, int last, int dropped)
{
    draft *d = &p->drafts[stream];
    if (last < 0) {
        d->first_link = p->links[dropped].next;
    } else {
        p->links[last].next = p->links[dropped].next;
    }
    if (d->last_link == dropped) d->last_link = last;
}

// Merges cheap streams that share a link with this one into it. A link from the stream to itself is
// permanent, and is dropped: a long stream is walked at many tasks.
static void merge_linked(packer *p, int stream, int64_t before)
{
    for (int l = p->drafts[stream].first_link, last = -1; l >= 0; l = p->links[l].next) {
        int other = stream_of(p, p->links[l].task);
        if (other == stream) {
            drop_link(p, stream, last, l);
            continue;
        }
        last = l;
        if (!p->drafts[other].in_pool || p->drafts[other].cost >= p->threshold) continue;
        packer_merge(p, other, stream);
        if (before + p->drafts[stream].cost >= p->threshold) break;
    }
}

// Merges cheap streams of the pool into the first one of the pool that shares a link with them.
// `before`: the path up to the task that they follow, if paths count.
static void merge_dependent(packer *p, int64_t before)
{
    for (int i = 0; i < p->pool_count; i++)
        if (p->drafts[p->pool[i]].merged_into < 0) merge_linked(p, p->pool[i], before);
    int kept = 0;
    for (int i = 0; i < p->pool_count; i++)
        if (p->drafts[p->pool[i]].merged_into < 0) p->pool[kept++] = p->pool[i];
    p->pool_count = kept;
}

// Merges cheap streams of the pool one after another, each until it is just worth passing to a
// thread. Returns the last one that grew so; -1: none did.
static int merge_cheap(packer *p, int64_t before)
{
    int growing = -1, kept = 0;
    for (int i = 0; i < p->pool_count; i++) {
        int stream = p->pool[i];
        int64_t cost = p->drafts[stream].cost;
        bool full = true; // the growing stream has reached the threshold, or would with this one
        if (growing >= 0) {
            int64_t grown = p->drafts[growing].cost;
            full = (p->automatic ? before + grown + cost : grown) >= p->threshold;
        }
        bool cheap = (p->automatic ? before : 0) + cost < p->threshold;
        if (cheap && !full) {
            packer_merge(p, stream, growing);
            continue;
        }
        if (cheap) growing = stream;
        p->pool[kept++] = stream;
    }
    p->pool_count = kept;
    return growing;
}

// The stream of the pool with the end, or else the costliest.
static int best_of_pool(const packer *p)
{
    int best = p->pool[0];
    for (int i = 0; i < p->pool_count; i++) {
        const draft *d = &p->drafts[p->pool[i]];
        if (d->has_end) return p->pool[i];
        if (d->cost > p->drafts[best].cost) best = p->pool[i];
    }
    return best;
}

// Merges cheap streams that follow a task, and puts the task before the best of them. A leaf starts
// a new stream.
static void packer_place(packer *p, int t)
{
    p->pool_count = 0;
    for (int f = p->tasks[t].first_follower; f >= 0; f = p->tasks[f].next_follower) {
        int stream = stream_of(p, f);
        p->drafts[stream].in_pool = true;
        p->pool[p->pool_count++] = stream;
    }
    if (p->pool_count == 0) {
        packer_join(p, t, new_draft(p));
        return;
    }
    int64_t before = p->automatic ? p->tasks[t].path : 0;
    if (p->options->merge_dependent && p->pool_count > 1) merge_dependent(p, before);
    for (int i = 0; i < p->pool_count; i++)
        p->drafts[p->pool[i]].in_pool = false;
    int grown = merge_cheap(p, before), best = best_of_pool(p);
    packer_join(p, t, best);
    bool left_over = grown >= 0 && grown != best && p->drafts[grown].cost < p->threshold;
    if (left_over && !p->automatic) packer_merge(p, grown, best);
}

// --- The result ----------------------------------------------------------------------------------

// Numbers streams: the one of the start, then by their first nodes.
static void packer_finish(packer *p, bel_streams *out)
{
    int nodes = p->dag->node_count;
    *out = (bel_streams){.items = bel_xcalloc((size_t)p->draft_count, sizeof *out->items),
                         .nodes = bel_xcalloc((size_t)nodes, sizeof *out->nodes),
                         .stream_of = bel_xcalloc((size_t)nodes, sizeof *out->stream_of)};
    int *number = p->pool; // by draft
    for (int d = 0; d < p->draft_count; d++)
        number[d] = -1;
    for (int t = 0; t < p->task_count - 1; t++) {
        int draft_of = stream_of(p, t);
        if (number[draft_of] < 0) {
            number[draft_of] = out->count;
            out->items[out->count++].cost = p->drafts[draft_of].cost;
        }
        if (t == 0) continue;
        out->stream_of[t - 1] = number[draft_of];
        out->items[number[draft_of]].count++;
    }
    for (int s = 1; s < out->count; s++)
        out->items[s].first = out->items[s - 1].first + out->items[s - 1].count;
    for (int s = 0; s < out->count; s++)
        out->items[s].count = 0;
    for (int n = 0; n < nodes; n++) {
        bel_stream *stream = &out->items[out->stream_of[n]];
        out->nodes[stream->first + stream->count++] = n;
    }
}

void bel_streams_pack(const bel_dag *dag, const bel_stream_options *options,
                      bel_streams *out_streams)
{
    size_t count = (size_t)dag->node_count + 2;
    size_t edges = (size_t)dag->first_edges[dag->node_count] + count;
    packer p = {.dag = dag,
                .options = options,
                .tasks = bel_xcalloc(count, sizeof *p.tasks),
                .task_count = (int)count,
                .readers = bel_xcalloc(edges, sizeof *p.readers),
                .links = bel_xcalloc(2 * edges, sizeof *p.links),
                .drafts = bel_xcalloc(count, sizeof *p.drafts),
                .pool = bel_xcalloc(count, sizeof *p.pool)};
    go_forward(&p);
    int all = options->thread_count <= 1 ? new_draft(&p) : -1;
    for (int t = p.task_count; t-- > 0;) {
        if (all >= 0) {
            packer_join(&p, t, all);
        } else {
            packer_place(&p, t);
        }
    }
    packer_finish(&p, out_streams);
    bel_free(p.tasks);
    bel_free(p.readers);
    bel_free(p.links);
    bel_free(p.drafts);
    bel_free(p.pool);
}

void bel_streams_deinit(bel_streams *streams)
{
    bel_free(streams->items);
    bel_free(streams->nodes);
    bel_free(streams->stream_of);
}

void bel_dag_deinit(bel_dag *dag)
{
    bel_free(dag->costs);
    bel_free(dag->first_edges);
    bel_free(dag->edges);
}
