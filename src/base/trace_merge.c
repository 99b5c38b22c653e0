// Merge of part files to a Chrome trace: the spans, the names of tracks, and the flows. Flows are
// not recorded: worker, chunk and time match a report with the pass that included it. All spans are
// in memory and sorted once, so each is found by bisection. A damaged part is skipped with a
// warning. So is an inconsistent span, of a process that was killed while it wrote it. Parts are
// removed only after the output is complete.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trace_part.h"

static const char *const role_names[BEL_TRACE_ROLE_COUNT] = {"master", "worker", "shard",
                                                             "evaluator", "server"};

static const struct {
    const char *name, *part;
    bel_trace_row row;
} span_names[BEL_TRACE_SPAN_COUNT] = {
#define X(id, name, part, row) {name, part, BEL_TRACE_OF_##row},
    BEL_TRACE_SPANS(X)
#undef X
};

typedef struct span { // an event and its row
    bel_trace_event e;
    int row;
} span;

typedef struct trace {
    span *spans;
    size_t count, capacity;
    int row_count; // number of rows in the parts so far
    bel_file_writer *out;
    bel_str line;
    bool begun;
    int64_t flow_count;
} trace;

// --- Writing -------------------------------------------------------------------------------------

static void begin_line(trace *t)
{
    t->line.length = 0;
    bel_str_puts(&t->line, t->begun ? ",\n" : "[\n");
    t->begun = true;
}

static void end_line(trace *t)
{
    bel_file_writer_write(t->out, t->line.text, t->line.length);
}

// Returns the separate track of a device: its number and one more, or 0.
static int track_device(const bel_trace_event *e)
{
    return span_names[e->span].row == BEL_TRACE_OF_THREAD ? 0 : e->device;
}

// Returns the track, above 0: a role and its index, followed by each device that works for it,
// shown as a process.
static long long track_of(const bel_trace_event *e)
{
    enum { MOST = (INT16_MAX + 1) * (BEL_TRACE_MOST_CARDS + 1) };
    return (long long)e->role * MOST + (long long)e->index * (BEL_TRACE_MOST_CARDS + 1) +
           track_device(e) + 1;
}

// Writes microseconds, with the nanoseconds after the point.
static void put_time(bel_str *out, const char *name, int64_t ns)
{
    bel_str_printf(out, ",\"%s\":%lld.%03d", name, (long long)(ns / 1000), (int)(ns % 1000));
}

static void put_place(trace *t, const span *s)
{
    bel_str_printf(&t->line, ",\"pid\":%lld,\"tid\":%d", track_of(&s->e), s->row);
}

// Writes metadata of the track and row of `where`.
static void put_meta(trace *t, const char *name, const span *where, const char *arguments)
{
    begin_line(t);
    bel_str_printf(&t->line, "{\"ph\":\"M\",\"name\":\"%s\"", name);
    put_place(t, where);
    bel_str_printf(&t->line, ",\"args\":{%s}}", arguments);
    end_line(t);
}

static void put_span(trace *t, const span *s)
{
    const bel_trace_event *e = &s->e;
    begin_line(t);
    bel_str_printf(&t->line, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\"", role_names[e->role],
                   span_names[e->span].name);
    put_place(t, s);
    put_time(&t->line, "ts", e->begun_ns);
    put_time(&t->line, "dur", e->ended_ns - e->begun_ns);
    bel_str_printf(&t->line, ",\"args\":{\"step\":%lld", (long long)e->step);
    if (span_names[e->span].part[0] != '\0') {
        bel_str_printf(&t->line, ",\"%s\":%d", span_names[e->span].part, (int)e->part);
    }
    if (e->device > 0) bel_str_printf(&t->line, ",\"device\":\"cuda:%d\"", e->device - 1);
    bel_str_puts(&t->line, "}}");
    end_line(t);
}

// Writes one end of a flow, which belongs to the span of that row that is open at `ns`.
static void put_flow(trace *t, const char *phase, const span *s, int64_t ns)
{
    begin_line(t);
    bel_str_printf(&t->line,
                   "{\"ph\":\"%s\",\"bp\":\"e\",\"cat\":\"step\",\"name\":\"step\","
                   "\"id\":%lld",
                   phase, (long long)t->flow_count);
    put_place(t, s);
    put_time(&t->line, "ts", ns);
    bel_str_puts(&t->line, "}");
    end_line(t);
}

// --- Reading -------------------------------------------------------------------------------------

static bool is_sound(const bel_trace_event *e)
{
    return e->role < BEL_TRACE_ROLE_COUNT && e->span < BEL_TRACE_SPAN_COUNT && e->index >= 0 &&
           e->device <= BEL_TRACE_MOST_CARDS && e->begun_ns > 0 && e->ended_ns >= e->begun_ns;
}

// Returns the row: for devices their tower's, two for each; otherwise the thread's.
static int row_of(const trace *t, const bel_trace_event *e)
{
    bel_trace_row kind = span_names[e->span].row;
    return kind == BEL_TRACE_OF_THREAD ? t->row_count
                                       : 1 + 2 * e->tower + (kind == BEL_TRACE_OF_COPIES);
}

// Reads the last BEL_TRACE_RING spans of a thread to a separate row (except those of devices), on
// the trace's clock (`lead_ns`). Overwritten spans are counted in dropped_events.
static void take_ring(trace *t, const bel_trace_ring *ring, int64_t lead_ns, const char *name)
{
    uint64_t written = atomic_load(&ring->written);
    uint64_t first = written > BEL_TRACE_RING ? written - BEL_TRACE_RING : 0;
    t->row_count++;
    size_t before = t->count;
    for (uint64_t n = first; n < written; n++) {
        bel_trace_event e = ring->events[n % BEL_TRACE_RING];
        if (!is_sound(&e)) continue; // its process was killed while it wrote it
        e.begun_ns += lead_ns;
        e.ended_ns += lead_ns;
        t->spans = bel_xgrow(t->spans, &t->capacity, t->count + 1, sizeof *t->spans);
        t->spans[t->count++] = (span){e, row_of(t, &e)};
    }
    if (t->count == before) return;
    bel_str arguments = {0};
    bel_str_printf(&arguments, "\"name\":\"%s, thread %d\"", name, t->row_count);
    bool named[BEL_TRACE_ROLE_COUNT] = {false}; // a row's name applies in one track only
    size_t own = before;                        // first span of the thread's row
    for (size_t i = before; i < t->count; i++) {
        const bel_trace_event *e = &t->spans[i].e;
        bool *done = &named[e->role], of_thread = span_names[e->span].row == BEL_TRACE_OF_THREAD;
        bool own_is = span_names[t->spans[own].e.span].row == BEL_TRACE_OF_THREAD;
        if (of_thread && !own_is) own = i;
        if (!*done && of_thread) put_meta(t, "thread_name", &t->spans[i], arguments.text);
        *done = *done || of_thread;
    }
    arguments.length = 0;
    bel_str_printf(&arguments, "\"count\":%llu", (unsigned long long)first);
    if (first > 0) put_meta(t, "dropped_events", &t->spans[own], arguments.text);
    bel_str_deinit(&arguments);
}

// Reads a part: a page with the header, then rings; an incomplete ring at the end is skipped.
static bel_status *take_part(trace *t, const char *path, const char *name)
{
    char *bytes;
    size_t size;
    BEL_TRY(bel_file_read(path, &bytes, &size));
    const bel_trace_header *header = (const void *)bytes;
    bool good = size >= BEL_TRACE_PAGE && header->magic == BEL_TRACE_MAGIC &&
                header->event_bytes == sizeof(bel_trace_event) &&
                header->ring_events == BEL_TRACE_RING;
    if (!good) {
        bel_free(bytes);
        return BEL_ERR(BEL_DATA_LOSS, "%s is no part of a trace of this program", path);
    }
    size_t before = t->count;
    for (size_t at = BEL_TRACE_PAGE; at + sizeof(bel_trace_ring) <= size;
         at += sizeof(bel_trace_ring)) {
        take_ring(t, (const void *)(bytes + at), atomic_load(&header->lead_ns), name);
    }
    int64_t lost = atomic_load(&header->lost);
    bel_free(bytes);
    if (lost == 0 || t->count == before) return NULL;
    bel_str arguments = {0};
    bel_str_printf(&arguments, "\"count\":%lld", (long long)lost);
    put_meta(t, "dropped_events", &t->spans[before], arguments.text);
    bel_str_deinit(&arguments);
    return NULL;
}

// --- Flows ---------------------------------------------------------------------------------------

// Orders by kind; reports by worker, part and begin; waits by worker and end; others stay in order.
static int trace_merge_compare(const void *a, const void *b)
{
    const span *x = a, *y = b;
    bool ends = x->e.span == BEL_TRACE_WAIT;
    int64_t p[4] = {x->e.span, x->e.index, x->e.part, ends ? x->e.ended_ns : x->e.begun_ns};
    int64_t q[4] = {y->e.span, y->e.index, y->e.part, ends ? y->e.ended_ns : y->e.begun_ns};
    for (int i = 0; i < 4; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

// Returns the first of all spans that is not before the key.
static size_t lower_bound(const trace *t, const span *sought)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace_merge_compare(&t->spans[middle], sought) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Returns the kind of a worker's report for this kind of pass.
static uint8_t report_for(const span *pass)
{
    return pass->e.span == BEL_TRACE_TABLE ? BEL_TRACE_REPORT_ROWS : BEL_TRACE_REPORT;
}

// Returns the worker's newest report on the chunk or table when the pass began; if all workers
// count, the report of its step.
static const span *find_report(const trace *t, const span *pass, int worker)
{
    span sought = {.e = {.span = report_for(pass),
                         .index = (int16_t)worker,
                         .part = pass->e.part,
                         .begun_ns = pass->e.begun_ns + 1},
                   .row = -1};
    size_t next = lower_bound(t, &sought);
    if (next == 0) return NULL;
    const span *found = &t->spans[next - 1];
    bool its_own = found->e.span == report_for(pass) && found->e.index == worker &&
                   found->e.part == pass->e.part;
    bool of_step = pass->e.workers != BEL_TRACE_EVERYBODY || found->e.step == pass->e.step;
    return its_own && of_step ? found : NULL;
}

// Returns the worker's first wait that ended after the pass with a later version.
static const span *find_wait(const trace *t, const span *pass, int worker)
{
    span sought = {
        .e = {.span = BEL_TRACE_WAIT, .index = (int16_t)worker, .ended_ns = pass->e.ended_ns},
        .row = -1};
    for (size_t i = lower_bound(t, &sought); i < t->count; i++) {
        const span *s = &t->spans[i];
        if (s->e.span != BEL_TRACE_WAIT || s->e.index != worker) return NULL;
        if (s->e.step > pass->e.step) return s;
    }
    return NULL;
}

// Joins the report to the pass that summed it, and to the wait that its version ended.
static void trace_join(trace *t, const span *pass, int worker)
{
    const span *report = find_report(t, pass, worker);
    if (report == NULL) return;
    const span *wait = find_wait(t, pass, worker);
    t->flow_count++;
    put_flow(t, "s", report, report->e.begun_ns);
    put_flow(t, wait != NULL ? "t" : "f", pass, pass->e.begun_ns);
    if (wait == NULL) return;
    int64_t last = wait->e.ended_ns - 1; // still inside the span
    put_flow(t, "f", wait, last > wait->e.begun_ns ? last : wait->e.begun_ns);
}

// Counts workers by their reports; those whose bit is set in `workers` took part in the pass.
static void write_flows(trace *t)
{
    int worker_count = 0;
    for (size_t i = 0; i < t->count; i++) {
        bool more = t->spans[i].e.span == BEL_TRACE_REPORT && t->spans[i].e.index >= worker_count;
        if (more) worker_count = t->spans[i].e.index + 1;
    }
    for (size_t i = 0; i < t->count; i++) {
        const span *s = &t->spans[i];
        bool sums = s->e.span == BEL_TRACE_PASS || s->e.span == BEL_TRACE_SUM ||
                    s->e.span == BEL_TRACE_TABLE;
        if (!sums) continue;
        for (int w = 0; w < worker_count; w++) {
            bool counts =
                s->e.workers == BEL_TRACE_EVERYBODY || (w < 64 && (s->e.workers >> w & 1) != 0);
            if (counts) trace_join(t, s, w);
        }
    }
}

// --- Merge --------------------------------------------------------------------------------------

static int compare_tracks(const void *a, const void *b)
{
    const span *x = *(const span *const *)a, *y = *(const span *const *)b;
    long long p = track_of(&x->e), q = track_of(&y->e);
    if (p != q) return p < q ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

// Writes the track's name and vertical position.
static void write_track(trace *t, const bel_trace_event *e)
{
    const span at = {.e = *e};
    bel_str arguments = {0};
    bel_str_printf(&arguments, "\"name\":\"%s %d", role_names[e->role], e->index);
    if (track_device(e) > 0) bel_str_printf(&arguments, " on cuda:%d", track_device(e) - 1);
    bel_str_puts(&arguments, "\"");
    put_meta(t, "process_name", &at, arguments.text);
    arguments.length = 0;
    bel_str_printf(&arguments, "\"sort_index\":%lld", track_of(e));
    put_meta(t, "process_sort_index", &at, arguments.text);
    bel_str_deinit(&arguments);
}

static void name_device_row(trace *t, const span *s)
{
    bel_str arguments = {0};
    bool copies = span_names[s->e.span].row == BEL_TRACE_OF_COPIES;
    bel_str_printf(&arguments, "\"name\":\"tower %d, %s\"", s->e.tower,
                   copies ? "copies of reports" : "copies in and kernels");
    put_meta(t, "thread_name", s, arguments.text);
    bel_str_deinit(&arguments);
}

// Writes the tracks, and the rows of devices; those of threads have names already.
static void write_tracks(trace *t)
{
    const span **spans = bel_xcalloc(t->count + 1, sizeof *spans);
    for (size_t i = 0; i < t->count; i++)
        spans[i] = &t->spans[i];
    qsort(spans, t->count, sizeof *spans, compare_tracks);
    for (size_t i = 0; i < t->count; i++) {
        const span *s = spans[i], *before = i > 0 ? spans[i - 1] : NULL;
        bool new_track = before == NULL || track_of(&s->e) != track_of(&before->e);
        if (new_track) write_track(t, &s->e);
        bool new_row = new_track || s->row != before->row;
        if (new_row && track_device(&s->e) > 0) name_device_row(t, s);
    }
    bel_free(spans);
}

static bool is_part(const char *name)
{
    static const char suffix[] = BEL_TRACE_SUFFIX;
    size_t length = strlen(name), rest = sizeof suffix - 1;
    return length > rest && strcmp(name + length - rest, suffix) == 0;
}

// Calls `each` with every part of the folder.
static bel_status *visit_parts(const char *folder, void (*each)(void *, const char *, const char *),
                               void *context)
{
    char **names;
    size_t count;
    if (!bel_file_exists(folder)) return NULL;
    BEL_TRY(bel_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        char *path = bel_path_join(folder, names[i]);
        if (is_part(names[i])) each(context, path, names[i]);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return NULL;
}

static void read_part(void *context, const char *path, const char *name)
{
    static const char suffix[] = BEL_TRACE_SUFFIX;
    char *process = bel_xstrndup(name, strlen(name) - (sizeof suffix - 1));
    bel_status *status = take_part(context, path, process);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "left out of the trace: %s", bel_status_message(status));
    }
    bel_status_ignore(status); // logged
    bel_free(process);
}

static void remove_part(void *context, const char *path, const char *name)
{
    (void)context, (void)name;
    (void)unlink(path); // a remaining one is overwritten or removed by the next job
}

bel_status *bel_trace_clear(const char *folder)
{
    return visit_parts(folder, remove_part, NULL);
}

static bel_status *write_trace(trace *t, const char *folder)
{
    bel_status *status = visit_parts(folder, read_part, t);
    write_tracks(t);
    if (t->count > 0) qsort(t->spans, t->count, sizeof *t->spans, trace_merge_compare);
    for (size_t i = 0; i < t->count; i++)
        put_span(t, &t->spans[i]);
    write_flows(t);
    bel_file_writer_write(t->out, t->begun ? "\n]\n" : "[]\n", 3);
    if (status == NULL) return bel_file_writer_finish(t->out, NULL, NULL);
    bel_file_writer_abandon(t->out);
    return status;
}

bel_status *bel_trace_merge(const char *folder, const char *path)
{
    trace t = {0};
    bel_status *status = bel_file_writer_open_beside(path, &t.out);
    if (status == NULL) status = write_trace(&t, folder);
    if (status == NULL) status = bel_trace_clear(folder);
    bel_free(t.spans);
    bel_str_deinit(&t.line);
    return status;
}
