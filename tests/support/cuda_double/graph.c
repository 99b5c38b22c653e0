// Captures and graphs. While a stream is captured its operations become nodes, which follow the
// nodes that streams and events name. No operation runs. A launch queues every node as a separate
// operation, so the order within a graph is checked like any other. Nodes of one captured stream
// follow each other, so a stream of the capture is a lane of the graph (order.c).
//
// Broken captures, and their causes, follow CUDA's reference: the call fails, and so does the end
// of the capture. Captures are few and are never freed, as events keep pointers to them.
#include "double.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    work what;
    uint32_t lane;
    node_set behind;
} node;

typedef struct nodes {
    node *at;
    uint32_t count;
    unsigned *lanes; // numbers of the captured streams
    uint32_t lane_count;
} nodes;

struct capture {
    bool open, broken;
    int mode;
    pthread_t thread;
    stream *origin; // streams[0]
    stream **streams;
    nodes has;
    capture *next;
};

typedef struct graph {
    object head;
    nodes has;
} graph;

typedef struct graph_exec {
    object head;
    nodes has;
    lane *lanes;
    vector clock; // last launch's
    task *last;
} graph_exec;

static capture *captures;

// --- Sets and lists ------------------------------------------------------------------------------

static void set_add(node_set *s, const node_set *more)
{
    for (uint32_t i = 0; i < more->count; i++) {
        bool has = false;
        for (uint32_t k = 0; k < s->count && !has; k++)
            has = s->at[k] == more->at[i];
        if (has) continue;
        s->at = grow(s->at, (s->count + 1) * sizeof *s->at);
        s->at[s->count++] = more->at[i];
    }
}

static void set_clear(node_set *s)
{
    free(s->at);
    *s = (node_set){NULL, 0};
}

static void nodes_free(nodes *n)
{
    for (uint32_t i = 0; i < n->count; i++) {
        work_free(&n->at[i].what);
        set_clear(&n->at[i].behind);
    }
    free(n->at);
    free(n->lanes);
    *n = (nodes){NULL, 0, NULL, 0};
}

static void nodes_copy(nodes *to, const nodes *from)
{
    *to = *from;
    to->at = grow(NULL, from->count * sizeof *to->at);
    to->lanes = grow(NULL, from->lane_count * sizeof *to->lanes);
    memcpy(to->lanes, from->lanes, from->lane_count * sizeof *to->lanes);
    for (uint32_t i = 0; i < from->count; i++) {
        to->at[i] = (node){.lane = from->at[i].lane};
        work_copy(&to->at[i].what, &from->at[i].what);
        set_add(&to->at[i].behind, &from->at[i].behind);
    }
}

// --- Captures ------------------------------------------------------------------------------------

static void join(capture *c, stream *s)
{
    uint32_t index = c->has.lane_count++;
    c->streams = grow(c->streams, (index + 1) * sizeof(stream *));
    c->has.lanes = grow(c->has.lanes, (index + 1) * sizeof *c->has.lanes);
    c->streams[index] = s;
    c->has.lanes[index] = s->head.number;
    s->in = c;
    s->capture_lane = index;
}

void capture_break(capture *c)
{
    c->broken = true;
}

void capture_leave(stream *s)
{
    capture *c = s->in;
    c->streams[s->capture_lane] = NULL;
    if (c->origin == s) { // no call can end it any more
        c->open = false;
        for (uint32_t i = 0; i < c->has.lane_count; i++)
            if (c->streams[i] != NULL) c->streams[i]->in = NULL;
        nodes_free(&c->has);
    }
    c->broken = true;
    s->in = NULL;
    set_clear(&s->ends);
}

bool capture_forbids(void)
{
    bool found = false;
    for (capture *c = captures; c != NULL; c = c->next) {
        bool own = c->mode == CAPTURE_THREAD && pthread_equal(c->thread, pthread_self());
        if (!c->open || (c->mode != CAPTURE_GLOBAL && !own)) continue;
        c->broken = found = true;
    }
    return found;
}

int capture_add(stream *s, work *w)
{
    capture *c = s->in;
    if (c->broken) {
        work_free(w);
        return ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    uint32_t index = c->has.count++;
    c->has.at = grow(c->has.at, c->has.count * sizeof *c->has.at);
    c->has.at[index] = (node){*w, s->capture_lane, s->ends};
    s->ends = (node_set){NULL, 0};
    set_add(&s->ends, &(node_set){&index, 1});
    return SUCCESS;
}

void capture_record(stream *s, event *e)
{
    e->in = s->in;
    set_add(&e->ends, &s->ends);
}

int capture_wait(stream *s, event *e)
{
    if (e->in == NULL) {
        capture_break(s->in);
        return ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!e->in->open) {
        if (s->in != NULL) capture_break(s->in);
        return ERROR_CAPTURED_EVENT;
    }
    if (s->in == NULL) join(e->in, s);
    if (s->in != e->in) {
        capture_break(s->in);
        capture_break(e->in);
        return ERROR_STREAM_CAPTURE_MERGE;
    }
    if (s->in->broken) return ERROR_STREAM_CAPTURE_INVALIDATED;
    set_add(&s->ends, &e->ends);
    return SUCCESS;
}

API(cuStreamBeginCapture_v2, (void *handle, int mode))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    if (mode < 0 || mode > 2) return leave(ERROR_INVALID_VALUE);
    if (s->in != NULL) return leave(ERROR_ILLEGAL_STATE);
    capture *c = grow(NULL, sizeof *c);
    *c = (capture){
        .open = true, .mode = mode, .thread = pthread_self(), .origin = s, .next = captures};
    captures = c;
    join(c, s);
    return leave(SUCCESS);
}

// Whether the capture's origin stream is ordered after every node at the end.
static bool is_joined(const capture *c)
{
    uint32_t count = c->has.count, marked = 0;
    bool *needed = grow(NULL, count * sizeof *needed);
    memset(needed, 0, count * sizeof *needed);
    for (uint32_t i = 0; i < c->origin->ends.count; i++)
        needed[c->origin->ends.at[i]] = true;
    for (uint32_t i = count; i-- > 0;) {
        const node_set *behind = &c->has.at[i].behind;
        if (!needed[i]) continue;
        marked++;
        for (uint32_t k = 0; k < behind->count; k++)
            needed[behind->at[k]] = true;
    }
    free(needed);
    return marked == count;
}

API(cuStreamEndCapture, (void *handle, void **out_graph))
{
    enum { RELAXED = 2 };
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    stream *s = object_of(handle, STREAM, d, __func__);
    capture *c = s->in;
    if (c == NULL) return leave(ERROR_ILLEGAL_STATE);
    if (c->origin != s) {
        capture_break(c);
        return leave(ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    if (c->mode != RELAXED && !pthread_equal(c->thread, pthread_self()))
        return leave(ERROR_STREAM_CAPTURE_WRONG_THREAD);
    if (c->broken)
        error = ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(c))
        error = ERROR_STREAM_CAPTURE_UNJOINED;
    c->open = false;
    for (uint32_t i = 0; i < c->has.lane_count; i++) {
        if (c->streams[i] == NULL) continue;
        c->streams[i]->in = NULL;
        set_clear(&c->streams[i]->ends);
    }
    *out_graph = NULL;
    if (error != SUCCESS) {
        nodes_free(&c->has);
        return leave(error);
    }
    graph *g = object_create(GRAPH, sizeof *g, d);
    g->has = c->has;
    c->has = (nodes){NULL, 0, NULL, 0};
    *out_graph = g;
    return leave(SUCCESS);
}

// --- Graphs --------------------------------------------------------------------------------------

API(cuGraphInstantiateWithFlags, (void **out_exec, void *handle, unsigned long long flags))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    const graph *g = object_of(handle, GRAPH, d, __func__);
    if (flags != 0) return leave(ERROR_INVALID_VALUE);
    graph_exec *x = object_create(GRAPH_EXEC, sizeof *x, d);
    nodes_copy(&x->has, &g->has);
    x->lanes = grow(NULL, g->has.lane_count * sizeof *x->lanes);
    for (uint32_t i = 0; i < g->has.lane_count; i++)
        lane_begin(&x->lanes[i], g->has.lanes[i]);
    *out_exec = x;
    return leave(SUCCESS);
}

// Queues the nodes. Tasks and clocks stand for their predecessors in other lanes.
static void queue_nodes(graph_exec *x)
{
    uint32_t count = x->has.count;
    task **tasks = grow(NULL, count * sizeof(task *));
    vector *clocks = grow(NULL, count * sizeof *clocks);
    for (uint32_t i = 0; i < count; i++) {
        const node *n = &x->has.at[i];
        lane *l = &x->lanes[n->lane];
        for (uint32_t k = 0; k < n->behind.count; k++) {
            uint32_t other = n->behind.at[k];
            if (x->has.at[other].lane != n->lane) lane_wait(l, &clocks[other], tasks[other]);
        }
        work w;
        work_copy(&w, &n->what);
        lane_append(l, &w);
        tasks[i] = task_keep(l->last);
        clocks[i] = (vector){NULL, 0};
        vector_join(&clocks[i], &l->clock);
    }
    for (uint32_t i = 0; i < count; i++) {
        task_drop(tasks[i]);
        vector_free(&clocks[i]);
    }
    free(tasks);
    free(clocks);
}

// Runs after the stream's queued operations and after the graph's earlier launches.
API(cuGraphLaunch, (void *handle, void *stream_handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    graph_exec *x = object_of(handle, GRAPH_EXEC, d, __func__);
    stream *s = object_of(stream_handle, STREAM, d, __func__);
    if (s->in != NULL) die("cuGraphLaunch: graphs in graphs are not supported");
    lane_wait(&s->queue, &x->clock, x->last);
    for (uint32_t i = 0; i < x->has.lane_count; i++)
        lane_wait(&x->lanes[i], &s->queue.clock, s->queue.last);
    queue_nodes(x);
    for (uint32_t i = 0; i < x->has.lane_count; i++)
        lane_wait(&s->queue, &x->lanes[i].clock, x->lanes[i].last);
    task_drop(x->last);
    x->last = task_keep(s->queue.last);
    vector_join(&x->clock, &s->queue.clock);
    return leave(SUCCESS);
}

API(cuGraphExecDestroy, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    graph_exec *x = object_of(handle, GRAPH_EXEC, d, __func__);
    for (uint32_t i = 0; i < x->has.lane_count; i++)
        lane_end(&x->lanes[i]);
    free(x->lanes);
    nodes_free(&x->has);
    vector_free(&x->clock);
    task_drop(x->last);
    object_kill(&x->head);
    return leave(SUCCESS);
}

API(cuGraphDestroy, (void *handle))
{
    device *d;
    int error = enter(&d);
    if (error != SUCCESS) return leave(error);
    graph *g = object_of(handle, GRAPH, d, __func__);
    nodes_free(&g->has);
    object_kill(&g->head);
    return leave(SUCCESS);
}
