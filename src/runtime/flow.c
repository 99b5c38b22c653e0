// Dependences between calls by the buffers that they touch, and their closure. A call waits for
// the last writer of what it reads (an edge of data, over which a failure spreads) and for the
// readers and the writer of what it writes over (order alone). A workspace is read and written
// by every stage, which keeps the stages of an operation in their order. Two buffers may share
// memory only where every call that touches the one has surely ended before the first that
// touches the other: by edges and streams, for any timing. That closure is a row of bits for
// each call, so its memory grows with the square of the calls.
#include "runtime/flow.h"

#include "base/alloc.h"
#include "runtime/cost.h"

enum { WORD = 64 };

// --- Who waits for whom --------------------------------------------------------------------------

typedef struct reader {
    int call, next;
} reader;

// While edges are found: what has happened to each buffer so far.
typedef struct finder {
    bel_dag *dag;
    size_t edge_capacity;
    int call;
    int *writers;       // by buffer: the last one, -1: none
    int *first_readers; // by buffer: since then, in `readers`; -1: none
    reader *readers;
    int reader_count;
} finder;

// The present call waits for `from`; twice the same is one edge, of data if one of them is. Edges
// of a call are neighbours, so those of the present one are the last in the list.
static void add_edge(finder *f, int from, bool data)
{
    if (from < 0 || from == f->call) return;
    bel_dag *dag = f->dag;
    int *end = &dag->first_edges[f->call + 1];
    for (int e = dag->first_edges[f->call]; e < *end; e++) {
        if (dag->edges[e].from != from) continue;
        dag->edges[e].data = dag->edges[e].data || data;
        return;
    }
    dag->edges = bel_xgrow(dag->edges, &f->edge_capacity, (size_t)*end + 1, sizeof *dag->edges);
    dag->edges[(*end)++] = (bel_dag_edge){from, data};
}

// Waits for the last writer of the buffer, and is remembered for the next one.
static void read_buffer(finder *f, int buffer)
{
    add_edge(f, f->writers[buffer], true);
    f->readers[f->reader_count] = (reader){f->call, f->first_readers[buffer]};
    f->first_readers[buffer] = f->reader_count++;
}

// Waits for the buffer to be written and read by those before, and begins its history anew.
static void write_buffer(finder *f, int buffer)
{
    add_edge(f, f->writers[buffer], false);
    for (int r = f->first_readers[buffer]; r >= 0; r = f->readers[r].next)
        add_edge(f, f->readers[r].call, false);
    f->first_readers[buffer] = -1;
    f->writers[buffer] = f->call;
}

// Walks the calls in the order of the program, in which each value is written before it is read.
static void find_edges(bel_dag *dag, const bel_program *program)
{
    size_t calls = (size_t)program->call_count, buffers = (size_t)program->buffer_count;
    finder f = {.dag = dag,
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
        if (call->workspace >= 0) { // what an earlier stage left there is read
            read_buffer(&f, call->workspace);
            write_buffer(&f, call->workspace);
        }
        for (int i = 0; i < call->call.output_count; i++)
            write_buffer(&f, call->output_buffers[i]);
    }
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

// Sets of calls, a row of bits each.
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
static void put(const call_sets *sets, int set, int call)
{
    sets->bits[(size_t)set * sets->words + (size_t)(call / WORD)] |= (uint64_t)1 << call % WORD;
}

// `call` ends before `set` begins, and so do all that end before `call`.
static void put_with_those_before(const call_sets *before, int set, int call)
{
    for (size_t w = 0; w < before->words; w++)
        before->bits[(size_t)set * before->words + w] |=
            before->bits[(size_t)call * before->words + w];
    put(before, set, call);
}

// By call: those that have surely ended when it begins.
static call_sets find_those_before(const bel_flow *flow)
{
    const bel_dag *dag = &flow->dag;
    call_sets before = make_sets((size_t)dag->node_count, dag->node_count);
    int *previous = bel_xcalloc((size_t)flow->streams.count, sizeof *previous); // 0: none, else + 1
    for (int c = 0; c < dag->node_count; c++) {
        int *in_stream = &previous[flow->streams.stream_of[c]];
        if (*in_stream > 0) put_with_those_before(&before, c, *in_stream - 1);
        *in_stream = c + 1;
        for (int e = dag->first_edges[c]; e < dag->first_edges[c + 1]; e++)
            put_with_those_before(&before, c, dag->edges[e].from);
    }
    bel_free(previous);
    return before;
}

static bool is_subset(const uint64_t *part, const uint64_t *whole, size_t words)
{
    for (size_t w = 0; w < words; w++)
        if ((part[w] & ~whole[w]) != 0) return false;
    return true;
}

// Place -1: the buffer is not one of those asked about.
static void touch(const call_sets *touched, int *firsts, int place, int call)
{
    if (place < 0) return;
    put(touched, place, call);
    if (firsts[place] < 0) firsts[place] = call;
}

// By place in `buffers`: the calls that touch it, and the first of them, before which the others
// never run.
static call_sets find_touched(const bel_program *program, const int *buffers, int count,
                              int *out_firsts)
{
    call_sets touched = make_sets((size_t)count, program->call_count);
    int *places = bel_xcalloc((size_t)program->buffer_count, sizeof *places);
    for (int b = 0; b < program->buffer_count; b++)
        places[b] = -1;
    for (int i = 0; i < count; i++) {
        places[buffers[i]] = i;
        out_firsts[i] = -1;
    }
    for (int c = 0; c < program->call_count; c++) {
        const bel_program_call *call = &program->calls[c];
        for (int i = 0; i < call->call.input_count; i++)
            touch(&touched, out_firsts, places[call->input_buffers[i]], c);
        for (int i = 0; i < call->call.output_count; i++)
            touch(&touched, out_firsts, places[call->output_buffers[i]], c);
        if (call->workspace >= 0) touch(&touched, out_firsts, places[call->workspace], c);
    }
    bel_free(places);
    return touched;
}

typedef struct lives {
    const bel_program *program;
    const int *buffers;
    int *firsts;
    call_sets touched, before;
} lives;

// True when nobody needs buffer `a` any more as the first call that touches `b` begins.
static bool is_left_before(const lives *l, int a, int b)
{
    bool kept = l->program->buffers[l->buffers[a]].last == INT32_MAX; // read after the run
    if (kept || l->firsts[b] < 0) return !kept;
    size_t words = l->before.words;
    return is_subset(l->touched.bits + (size_t)a * words,
                     l->before.bits + (size_t)l->firsts[b] * words, words);
}

void bel_flow_together(const bel_flow *flow, const bel_program *program, const int *buffers,
                       int count, bool *out_together)
{
    lives l = {.program = program,
               .buffers = buffers,
               .firsts = bel_xcalloc((size_t)count, sizeof *l.firsts),
               .before = find_those_before(flow)};
    l.touched = find_touched(program, buffers, count, l.firsts);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            out_together[(size_t)i * (size_t)count + (size_t)k] =
                !is_left_before(&l, i, k) && !is_left_before(&l, k, i);
    bel_free(l.firsts);
    bel_free(l.touched.bits);
    bel_free(l.before.bits);
}
