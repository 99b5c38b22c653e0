// Dependencies between calls by the buffers that they use, and their transitive closure. A call
// waits for the last writer of each input (a data edge, over which a failure propagates). It also
// waits for the readers and the writer of the memory that it overwrites (an order edge). Every
// stage reads and writes its workspace, which keeps the stages of an operation in order. Two
// buffers may share memory only if every call that uses the one has surely finished before the
// first call that uses the other: by edges and streams, for any timing. The closure is a row of
// bits for each call, so its memory grows with the square of the calls.
#include "runtime/flow.h"

#include "base/alloc.h"
#include "runtime/cost.h"

enum { WORD = 64 };

// --- Edges ---------------------------------------------------------------------------------------

typedef struct reader {
    int call, next;
} reader;

// History of each buffer while edges are found.
typedef struct finder {
    bel_dag *dag;
    size_t edge_capacity;
    int call;
    int *edge_from;     // by call: the last edge from it, plus one; 0: none
    int *writers;       // by buffer: its last writer; -1: none
    int *first_readers; // by buffer: its readers since then, in `readers`; -1: none
    reader *readers;
    int reader_count;
} finder;

// Adds an edge from `from` to the current call. A repeated edge is stored once, as data if either
// is. The edges of a call are neighbors, so those of the current one are the last in the list.
static void add_edge(finder *f, int from, bool data)
{
    if (from < 0 || from == f->call) return;
    bel_dag *dag = f->dag;
    int *end = &dag->first_edges[f->call + 1], last = f->edge_from[from] - 1;
    if (last >= dag->first_edges[f->call]) {
        dag->edges[last].data = dag->edges[last].data || data;
        return;
    }
    dag->edges = bel_xgrow(dag->edges, &f->edge_capacity, (size_t)*end + 1, sizeof *dag->edges);
    dag->edges[(*end)++] = (bel_dag_edge){from, data};
    f->edge_from[from] = *end;
}

// The call reads the buffer: it waits for the last writer, and the next writer for it.
static void read_buffer(finder *f, int buffer)
{
    add_edge(f, f->writers[buffer], true);
    f->readers[f->reader_count] = (reader){f->call, f->first_readers[buffer]};
    f->first_readers[buffer] = f->reader_count++;
}

// The call writes the buffer: it waits for the last writer and all readers since, and starts a new
// history.
static void write_buffer(finder *f, int buffer)
{
    add_edge(f, f->writers[buffer], false);
    for (int r = f->first_readers[buffer]; r >= 0; r = f->readers[r].next)
        add_edge(f, f->readers[r].call, false);
    f->first_readers[buffer] = -1;
    f->writers[buffer] = f->call;
}

// Walks the calls in the program's order, in which each value is written before it is read.
static void find_edges(bel_dag *dag, const bel_program *program)
{
    size_t calls = (size_t)program->call_count, buffers = (size_t)program->buffer_count;
    finder f = {.dag = dag,
                .edge_from = bel_xcalloc(calls, sizeof *f.edge_from),
                .writers = bel_xcalloc(buffers, sizeof *f.writers),
                .first_readers = bel_xcalloc(buffers, sizeof *f.first_readers),
                .readers = bel_xcalloc(calls * (BEL_OP_MAX_INPUTS + 1), sizeof *f.readers)};
    for (size_t b = 0; b < buffers; b++)
        f.writers[b] = f.first_readers[b] = -1;
    for (f.call = 0; f.call < program->call_count; f.call++) {
        const bel_program_call *call = &program->calls[f.call];
        dag->first_edges[f.call + 1] = dag->first_edges[f.call];
        for (int i = 0; i < call->call.input_count; i++)
            read_buffer(&f, call->input_buffers[i]);
        if (call->workspace >= 0) { // reads the data of an earlier stage
            read_buffer(&f, call->workspace);
            write_buffer(&f, call->workspace);
        }
        for (int i = 0; i < call->call.output_count; i++)
            write_buffer(&f, call->output_buffers[i]);
    }
    bel_free(f.edge_from);
    bel_free(f.writers);
    bel_free(f.first_readers);
    bel_free(f.readers);
}

bel_flow *bel_flow_create(const bel_program *program, int thread_count)
{
    bel_flow *flow = bel_xcalloc(1, sizeof *flow);
    size_t count = (size_t)program->call_count;
    flow->dag = (bel_dag){.node_count = program->call_count,
                          .costs = bel_xcalloc(count, sizeof *flow->dag.costs),
                          .first_edges = bel_xcalloc(count + 1, sizeof *flow->dag.first_edges)};
    flow->part_counts = bel_xcalloc(count, sizeof *flow->part_counts);
    for (size_t c = 0; c < count; c++) {
        const bel_kernel_call *call = &program->calls[c].call;
        flow->dag.costs[c] = bel_cost_ns(call);
        bool shared = thread_count > 1 && flow->dag.costs[c] >= BEL_COST_HAND_OVER_NS;
        flow->part_counts[c] = shared ? call->tile_count : 1;
    }
    find_edges(&flow->dag, program);
    const bel_stream_options options = {
        .thread_count = thread_count, .threshold = BEL_COST_HAND_OVER_NS, .merge_dependent = true};
    bel_streams_pack(&flow->dag, &options, &flow->streams);
    return flow;
}

void bel_flow_destroy(bel_flow *flow)
{
    if (flow == NULL) return;
    bel_dag_deinit(&flow->dag);
    bel_streams_deinit(&flow->streams);
    bel_free(flow->part_counts);
    bel_free(flow);
}

// --- Memory --------------------------------------------------------------------------------------

// Sets of calls, one row of bits each.
typedef struct call_sets {
    size_t words;
    uint64_t *bits;
} call_sets;

static call_sets make_sets(size_t count, int calls)
{
    size_t words = ((size_t)calls + WORD - 1) / WORD;
    return (call_sets){words, bel_xcalloc(count * words, sizeof(uint64_t))};
}

// Call c is bit c % 64 of word c / 64 of its row.
static void call_sets_put(const call_sets *sets, int set, int call)
{
    sets->bits[(size_t)set * sets->words + (size_t)(call / WORD)] |= (uint64_t)1 << call % WORD;
}

static bool call_sets_has(const call_sets *sets, int set, int call)
{
    uint64_t word = sets->bits[(size_t)set * sets->words + (size_t)(call / WORD)];
    return (word >> call % WORD & 1) != 0;
}

// Adds `call`, and all calls that finish before it, to set `set`.
static void put_with_those_before(const call_sets *before, int set, int call)
{
    size_t words = (size_t)(call / WORD) + 1;
    for (size_t w = 0; w < words; w++)
        before->bits[(size_t)set * before->words + w] |=
            before->bits[(size_t)call * before->words + w];
    call_sets_put(before, set, call);
}

// By call: the calls that have surely finished when it starts.
static call_sets find_those_before(const bel_flow *flow)
{
    const bel_dag *dag = &flow->dag;
    call_sets before = make_sets((size_t)dag->node_count, dag->node_count);
    int *previous = bel_xcalloc((size_t)flow->streams.count, sizeof *previous); // 0: none, else + 1
    for (int c = 0; c < dag->node_count; c++) {
        int *in_stream = &previous[flow->streams.stream_of[c]];
        if (*in_stream > 0) put_with_those_before(&before, c, *in_stream - 1);
        *in_stream = c + 1;
        for (int e = dag->first_edges[c]; e < dag->first_edges[c + 1]; e++) {
            int from = dag->edges[e].from;
            if (!call_sets_has(&before, c, from)) put_with_those_before(&before, c, from);
        }
    }
    bel_free(previous);
    return before;
}

// Calls that use a buffer.
typedef struct life {
    int first, last;      // in the order of the program; -1: none
    int toucher, touches; // its first entry in `touchers`, and its number of entries
    bool kept;            // read after the run
} life;

struct bel_flow_lives {
    life *items;
    // Calls that use each buffer, buffer after buffer, except calls that surely finish before
    // another of the same buffer starts.
    int *touchers;
    call_sets before; // empty if there is one stream
};

// Callback for each use of a buffer by a call; an operand used twice counts twice.
typedef void touch_fn(bel_flow_lives *lives, int place, int call);

static void each_touch(const bel_program *program, const int *places, bel_flow_lives *lives,
                       touch_fn *visit)
{
    for (int c = 0; c < program->call_count; c++) {
        const bel_program_call *call = &program->calls[c];
        for (int i = 0; i < call->call.input_count; i++)
            if (places[call->input_buffers[i]] >= 0)
                visit(lives, places[call->input_buffers[i]], c);
        for (int i = 0; i < call->call.output_count; i++)
            if (places[call->output_buffers[i]] >= 0)
                visit(lives, places[call->output_buffers[i]], c);
        if (call->workspace >= 0 && places[call->workspace] >= 0)
            visit(lives, places[call->workspace], c);
    }
}

static void count_touch(bel_flow_lives *lives, int place, int call)
{
    life *l = &lives->items[place];
    if (l->first < 0) l->first = call;
    l->last = call;
    l->touches++;
}

static void list_touch(bel_flow_lives *lives, int place, int call)
{
    life *l = &lives->items[place];
    lives->touchers[l->toucher + l->touches++] = call;
}

// Removes the calls, from the last one back, that a call which stays waits for.
static void leave_out_early(bel_flow_lives *lives, life *l)
{
    int *calls = lives->touchers + l->toucher, kept = 0;
    for (int i = l->touches; i-- > 0;) {
        bool awaited = false;
        for (int k = 0; k < kept && !awaited; k++) {
            int later = calls[l->touches - 1 - k];
            awaited = later == calls[i] || call_sets_has(&lives->before, later, calls[i]);
        }
        if (!awaited) calls[l->touches - 1 - kept++] = calls[i];
    }
    l->toucher += l->touches - kept;
    l->touches = kept;
}

static void find_touchers(const bel_program *program, const int *places, int count,
                          bel_flow_lives *lives)
{
    int all = 0;
    each_touch(program, places, lives, count_touch);
    for (int i = 0; i < count; i++) {
        lives->items[i].toucher = all;
        all += lives->items[i].touches;
        lives->items[i].touches = 0;
    }
    lives->touchers = bel_xcalloc((size_t)all, sizeof *lives->touchers);
    each_touch(program, places, lives, list_touch);
    if (lives->before.bits == NULL) return;
    for (int i = 0; i < count; i++)
        leave_out_early(lives, &lives->items[i]);
}

bel_flow_lives *bel_flow_lives_create(const bel_flow *flow, const bel_program *program,
                                      const int *buffers, int count)
{
    bel_flow_lives *lives = bel_xcalloc(1, sizeof *lives);
    int *places = bel_xcalloc((size_t)program->buffer_count, sizeof *places);
    lives->items = bel_xcalloc((size_t)count, sizeof *lives->items);
    for (int b = 0; b < program->buffer_count; b++)
        places[b] = -1;
    for (int i = 0; i < count; i++) {
        bool kept = program->buffers[buffers[i]].last == INT32_MAX;
        lives->items[i] = (life){.first = -1, .last = -1, .kept = kept};
        places[buffers[i]] = i;
    }
    if (flow->streams.count > 1) lives->before = find_those_before(flow);
    find_touchers(program, places, count, lives);
    bel_free(places);
    return lives;
}

void bel_flow_lives_destroy(bel_flow_lives *lives)
{
    if (lives == NULL) return;
    bel_free(lives->items);
    bel_free(lives->touchers);
    bel_free(lives->before.bits);
    bel_free(lives);
}

// True when buffer `a` is no longer needed once the first call that uses `b` starts.
static bool is_left_before(const bel_flow_lives *lives, const life *a, const life *b)
{
    if (a->kept) return false;
    if (a->first < 0 || b->first < 0) return true;
    if (a->last >= b->first) return false;
    if (lives->before.bits == NULL) return true;
    for (int i = 0; i < a->touches; i++)
        if (!call_sets_has(&lives->before, b->first, lives->touchers[a->toucher + i])) return false;
    return true;
}

bool bel_flow_together(const bel_flow_lives *lives, int a, int b)
{
    const life *p = &lives->items[a], *q = &lives->items[b];
    return !is_left_before(lives, p, q) && !is_left_before(lives, q, p);
}

void bel_flow_life(const bel_flow_lives *lives, int buffer, int *out_first, int *out_last)
{
    const life *l = &lives->items[buffer];
    *out_first = l->first;
    *out_last = l->kept ? INT32_MAX : l->last;
}
