// Executor: runs a program on a GPU.
//
// All work of a run is queued at once, on three streams. `work` has copies in and kernels, and
// `out` copies of reports out. A third one has the inputs of the next run, if they are known
// (bel_cuda_ahead). After the last kernel that writes a report, `out` waits for an event of `work`,
// copies the report, and records another event. The running thread waits for these events in order
// and publishes, so reports leave while later kernels still run. Small consecutive reports are
// copied together. At the end `work` copies results (the loss, a data error), and the thread waits
// for it.
//
// The kernels between two such points are a *segment*. Its arguments never change: memory of an
// instance does not move, and values that differ from run to run are in GPU memory
// (bel_cuda_state). So from its second run on a segment is a CUDA graph that one call replays. In a
// program that is bound on the GPU no report leaves, and reports do not end segments. Binding other
// memory changes its arguments, so each binding has separate graphs.
//
// Memory that streams read or write belongs to them until they have finished. So a run never
// returns, not even with an error, before all streams have finished, or before the GPU has been
// silent for so long that it counts as lost. In that case the process is about to end.
//
// While a trace is recorded, marks between the parts of a run give the times of the GPU's work
// (marks.h).
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "cuda/graph_executor.h"
#include "ops/collective.h"

// --- Copies in -----------------------------------------------------------------------------------

// Keys are made on the CPU, by hashes of the seed; a job has one seed.
static void make_keys(bel_cuda_executor *x, uint64_t seed)
{
    const bel_program *program = x->instance->program;
    if (x->keyed && x->seed == seed) return;
    for (int c = 0; c < program->call_count; c++) {
        const bel_cuda_call *made = bel_cuda_launches(&program->calls[c].call);
        if (made == NULL || made->random == NULL) continue;
        x->keys[c] = bel_rng_key_make(seed, made->random, program->calls[c].call.random_id);
    }
    x->seed = seed;
    x->keyed = true;
}

bel_status *bel_cuda_send_state(bel_cuda_executor *x)
{
    const bel_run_context *context = x->instance->context;
    make_keys(x, context->seed);
    bel_cuda_state state = {.seed = context->seed,
                            .step = context->step,
                            .replica = context->replica,
                            .round = context->round,
                            .place = bel_run_place(context)};
    memcpy(x->staged.memory, &state, sizeof state);
    return bel_cuda_status(x->api->copy_in(bel_cuda_address(x->state.address), x->staged.memory,
                                           x->state_bytes, x->work),
                           "copy to the GPU");
}

// Copies a buffer to the GPU. Data that was copied ahead comes from there. The run that copied it
// had finished reading the old data, so waiting for its copies is safe.
static bel_status *cuda_executor_send(bel_cuda_executor *x, int buffer, const void *data)
{
    const bel_program_buffer *its = &x->instance->program->buffers[buffer];
    uint64_t to = bel_cuda_address(x->instance->addresses[buffer]);
    if (its->size_bytes == 0 || data == NULL) return NULL;
    if (its->kind == BEL_LOCATION_INPUT && x->ahead.brought[buffer] == data) {
        uint64_t from = bel_cuda_address(x->ahead.memory.address) + x->ahead.places[buffer];
        BEL_TRY(
            bel_cuda_status(x->api->stream_wait(x->work, x->ahead.there, 0), "wait for an event"));
        return bel_cuda_status(x->api->copy_within(to, from, its->size_bytes, x->work),
                               "copy on the GPU");
    }
    return bel_cuda_status(x->api->copy_in(to, data, its->size_bytes, x->work), "copy to the GPU");
}

bel_status *bel_cuda_send_all(bel_cuda_executor *x, bool fresh)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    for (int b = 0; b < program->buffer_count; b++) {
        const bel_program_buffer *its = &program->buffers[b];
        if (fresh) x->ahead.brought[b] = NULL; // another run used the memory
        bool used = its->first >= 0 || its->last == INT32_MAX;
        bool due = its->kind == BEL_LOCATION_INPUT || its->kind == BEL_LOCATION_VARIABLE;
        if (its->kind == BEL_LOCATION_VARIABLE && program->fixed_variables)
            due = fresh || !instance->settled;
        if (bel_program_binds(program, b)) due = false;
        if (used && due) BEL_TRY(cuda_executor_send(x, b, instance->bound[b]));
        if (used && fresh && its->kind == BEL_LOCATION_CONSTANT)
            BEL_TRY(cuda_executor_send(x, b, its->constant));
        x->ahead.brought[b] = NULL;
    }
    return NULL;
}

// Whether there is room for the next run's inputs. Each program of a tower may need some, so it may
// be only a small part of the free memory.
static bool has_room_ahead(bel_cuda_executor *x)
{
    enum { PART_AHEAD = 256 };
    bel_device *device = &x->device->device;
    bel_cuda_ahead *ahead = &x->ahead;
    bel_device_use use;
    size_t limit = atomic_load(&device->memory_limit);
    if (ahead->memory.address != NULL || ahead->refused) return !ahead->refused;
    ahead->refused = true;
    if (!device->ops->look(device, &use)) return false;
    if (limit > 0 && limit < use.taken + use.free)
        use.free = limit > use.taken ? limit - use.taken : 0;
    if (ahead->bytes > use.free / PART_AHEAD) return false;
    bel_status *status = device->ops->allocate(device, ahead->bytes, "inputs", &ahead->memory);
    ahead->refused = status != NULL;
    bel_status_ignore(status); // they are copied at the start of their run
    return !ahead->refused;
}

// Copies the announced inputs, after this run has read the previous ones.
static bel_status *bring_ahead(bel_cuda_executor *x)
{
    const bel_instance *instance = x->instance;
    bel_cuda_ahead *ahead = &x->ahead;
    for (int b = 0; b < instance->program->buffer_count; b++) {
        const bel_program_buffer *its = &instance->program->buffers[b];
        const void *data = instance->announced[b];
        instance->announced[b] = NULL;
        if (data == NULL || its->size_bytes == 0 || !has_room_ahead(x)) continue;
        if (!ahead->queued) {
            ahead->queued = true;
            BEL_TRY(bel_cuda_status(x->api->stream_wait(ahead->stream, ahead->taken, 0),
                                    "wait for an event"));
        }
        uint64_t to = bel_cuda_address(ahead->memory.address) + ahead->places[b];
        BEL_TRY(bel_cuda_status(x->api->copy_in(to, data, its->size_bytes, ahead->stream),
                                "copy to the GPU"));
        ahead->brought[b] = data;
    }
    if (!ahead->queued) return NULL;
    return bel_cuda_status(x->api->event_record(ahead->there, ahead->stream), "record an event");
}

// --- Kernels -------------------------------------------------------------------------------------

static bel_status *cuda_executor_launch(const bel_cuda_executor *x,
                                        const bel_cuda_bound_launch *bound)
{
    const bel_cuda_launch *its = bound->launch;
    bel_cuda_operands *operands = &x->operands[bound->call];
    if (its->library != NULL) return its->library(x->device, x->work, operands, its->params);
    union {
        const void *read;
        void *argument;
    } params = {.read = its->params};
    void *arguments[2] = {operands, params.argument};
    return bel_cuda_status(x->api->launch(its->function, its->blocks, 1, 1, its->threads, 1, 1, 0,
                                          x->work, arguments, NULL),
                           "launch a kernel");
}

bel_status *bel_cuda_launch_calls(bel_cuda_executor *x, int first, int end)
{
    for (int l = x->first_launches[first]; l < x->first_launches[end]; l++) {
        const bel_cuda_bound_launch *bound = &x->launches[l];
        BEL_TRY_CTX(cuda_executor_launch(x, bound), "%s",
                    x->instance->program->calls[bound->call].name);
    }
    return NULL;
}

// Captures the launches of a segment as a graph. Capturing ends in every case. Until then cuDNN's
// handle, which the towers of a GPU share, keeps this stream: work of another stream that the
// library orders after this one would become part of the graph.
static bel_status *capture(bel_cuda_executor *x, int s)
{
    void *graph = NULL;
    pthread_mutex_lock(&x->device->libraries_mutex);
    bel_status *status = bel_cuda_status(
        x->api->capture_begin(x->work, BEL_CUDA_CAPTURE_THREAD_LOCAL), "begin a graph");
    bool begun = status == NULL;
    if (begun) status = bel_cuda_launch_calls(x, x->segments[s].first, x->segments[s].end);
    bel_status *ended =
        begun ? bel_cuda_status(x->api->capture_end(x->work, &graph), "end a graph") : NULL;
    pthread_mutex_unlock(&x->device->libraries_mutex);
    if (status != NULL) bel_status_ignore(ended); // the first error is the cause
    if (status == NULL) status = ended;
    if (status == NULL) {
        status = bel_cuda_status(x->api->graph_instantiate(&x->bound->graphs[s], graph, 0),
                                 "make a graph ready");
    }
    if (graph != NULL) x->api->graph_destroy(graph);
    return status;
}

// The first run launches one by one: a program that runs once is not worth a graph.
bel_status *bel_cuda_run_segment(bel_cuda_executor *x, int s)
{
    const bel_cuda_segment *its = &x->segments[s];
    bel_cuda_binding *bound = x->bound;
    int launches = x->first_launches[its->end] - x->first_launches[its->first];
    if (launches <= 1 || !bound->ran[s]) {
        bound->ran[s] = true;
        return bel_cuda_launch_calls(x, its->first, its->end);
    }
    if (bound->graphs[s] == NULL) BEL_TRY(capture(x, s));
    return bel_cuda_status(x->api->graph_launch(bound->graphs[s], x->work), "launch a graph");
}

// --- Copies out ----------------------------------------------------------------------------------

// Copies the reports whose last writer is in the segment, on `out`, after the segment.
static bel_status *fetch_reports(bel_cuda_executor *x, int s, int next, int end)
{
    const bel_instance *instance = x->instance;
    if (next == end || instance->program->on_device) return NULL;
    x->reports = true;
    BEL_TRY(bel_cuda_status(x->api->event_record(x->ready[s], x->work), "record an event"));
    BEL_TRY(bel_cuda_status(x->api->stream_wait(x->out, x->ready[s], 0), "wait for an event"));
    BEL_TRY(bel_cuda_mark(&x->marks, x->out, BEL_CUDA_BEGINS, 0));
    for (int p = next; p < end; p++) {
        int output = instance->publications[p].output;
        const bel_program_result *result = &instance->program->outputs[output];
        size_t bytes = bel_tensor_bytes(&result->tensor);
        if (bytes == 0 || instance->bound_outputs[output] == NULL) continue;
        BEL_TRY(bel_cuda_status(
            x->api->copy_out(instance->bound_outputs[output],
                             bel_cuda_address(instance->addresses[result->buffer]), bytes, x->out),
            "copy from the GPU"));
    }
    BEL_TRY(bel_cuda_mark(&x->marks, x->out, BEL_TRACE_COPY_REPORTS, s));
    return bel_cuda_status(x->api->event_record(x->gone[s], x->out), "record an event");
}

// Copies the outputs of a program bound on the GPU that no kernel writes in place: an output that
// is a leaf, or that equals another one.
static bel_status *copy_outputs(bel_cuda_executor *x)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    for (int o = 0; o < program->output_count && program->on_device; o++) {
        const bel_program_result *result = &program->outputs[o];
        const bel_program_buffer *buffer = &program->buffers[result->buffer];
        bool there = buffer->kind == BEL_LOCATION_OUTPUT && buffer->index == o;
        size_t bytes = bel_tensor_bytes(&result->tensor);
        if (!result->external || there || bytes == 0 || instance->bound_outputs[o] == NULL)
            continue;
        BEL_TRY(bel_cuda_status(
            x->api->copy_within(bel_cuda_address(instance->bound_outputs[o]),
                                bel_cuda_address(instance->addresses[result->buffer]), bytes,
                                x->work),
            "copy an output"));
    }
    return NULL;
}

bel_status *bel_cuda_fetch(bel_cuda_executor *x, size_t place, const void *from, size_t bytes)
{
    if (bytes == 0) return NULL;
    return bel_cuda_status(
        x->api->copy_out(x->staged.memory + place, bel_cuda_address(from), bytes, x->work),
        "copy from the GPU");
}

static bel_status *fetch_results(bel_cuda_executor *x, int end)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    BEL_TRY(bel_cuda_fetch(x, 0, x->state.address, sizeof(bel_cuda_state)));
    for (int e = 0; e < program->exchange_count; e++) {
        const bel_program_exchange *its = &program->exchanges[e];
        for (int c = its->first_call; its->first_group == end && c < its->end_call; c++)
            BEL_TRY(bel_cuda_fetch(x, x->staged.exchanged_in[c], instance->calls[c].inputs[0].data,
                                   bel_tensor_bytes(&instance->calls[c].inputs[0])));
    }
    if (end == program->group_count) BEL_TRY(copy_outputs(x));
    for (int o = 0; end == program->group_count && o < program->output_count; o++) {
        const bel_program_result *result = &program->outputs[o];
        if (result->external) continue;
        BEL_TRY(bel_cuda_fetch(x, x->staged.results[o], instance->addresses[result->buffer],
                               bel_tensor_bytes(&result->tensor)));
    }
    return bel_cuda_mark(&x->marks, x->work, BEL_TRACE_COPY_RESULTS, 0);
}

// Copies the results of the exchange before the starting part, from the other replicas.
static bel_status *send_exchanged(bel_cuda_executor *x, int part)
{
    const bel_program *program = x->instance->program;
    if (part == 0) return NULL;
    const bel_program_exchange *its = &program->exchanges[part - 1];
    for (int c = its->first_call; c < its->end_call; c++) {
        const bel_tensor *output = &x->instance->calls[c].outputs[0];
        size_t bytes = bel_tensor_bytes(output);
        if (bytes == 0) continue;
        BEL_TRY(bel_cuda_status(x->api->copy_in(bel_cuda_address(output->data),
                                                x->staged.memory + x->staged.exchanged_out[c],
                                                bytes, x->work),
                                "copy to the GPU"));
    }
    return NULL;
}

// --- Waiting -------------------------------------------------------------------------------------

// Polls the driver without pause at first, which notices a short run's end soonest. Then it naps
// between polls for a sixteenth of the time waited, which leaves the core to shards and the input.
static bel_status *await_event(const bel_cuda_device *device, void *event, const char *action)
{
    enum { AT_ONCE_NS = 200000, MOST_NAP_NS = 250000 };
    int64_t patience = bel_device_patience(&device->device), begun = bel_clock_ns();
    for (;;) {
        int error = device->api->event_query(event);
        if (error != BEL_CUDA_NOT_READY) return bel_cuda_status(error, action);
        if (bel_device_is_lost(&device->device)) return bel_cuda_lost(device);
        int64_t waited = bel_clock_ns() - begun;
        if (waited > patience)
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "the GPU has not done its work within %g s",
                           (double)patience * 1e-9);
        int64_t nap = waited / 16 < MOST_NAP_NS ? waited / 16 : MOST_NAP_NS;
        if (waited > AT_ONCE_NS) (void)nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
    }
}

// A failure to queue is an error. If the GPU does not finish the work, or fails, its context is
// lost.
bel_status *bel_cuda_await_stream(bel_cuda_device *device, void *stream, void *event,
                                  const char *action)
{
    bel_status *status = bel_cuda_status(device->api->event_record(event, stream), action);
    if (status == NULL) status = await_event(device, event, action);
    if (status != NULL) bel_cuda_lose(device, status);
    return status;
}

// A hanging GPU is waited for once: a job must replace this process before it counts as stalled
// itself.
bel_status *bel_cuda_finish(bel_cuda_executor *x, bel_status *status)
{
    void *const streams[] = {x->work, x->out, x->ahead.stream};
    const bool queued[] = {true, x->reports, x->ahead.queued};
    static const char *const actions[] = {"run a program", "copy from the GPU", "copy to the GPU"};
    x->reports = x->ahead.queued = false;
    if (bel_status_code(status) == BEL_DEADLINE_EXCEEDED) bel_cuda_lose(x->device, status);
    for (int i = 0; i < 3 && !bel_device_is_lost(&x->device->device); i++) {
        if (!queued[i]) continue;
        bel_status *finished = bel_cuda_await_stream(x->device, streams[i], x->done[i], actions[i]);
        if (status != NULL) bel_status_ignore(finished); // the first error is the cause
        if (status == NULL) status = finished;
    }
    return status;
}

// --- Running -------------------------------------------------------------------------------------

// Queued segments of a run, and the first publication among them.
typedef struct queued {
    int first_segment, end_segment;
    int next; // publication
} queued;

// Index of the first publication whose call is not before `end`.
static int publications_before(const bel_instance *instance, int next, int end)
{
    while (next < instance->publication_count && instance->publications[next].call < end)
        next++;
    return next;
}

static bel_status *queue_all(bel_cuda_executor *x, int end, const queued *q, int part)
{
    const bel_program *program = x->instance->program;
    int end_call = bel_program_calls_before(program, end), next = q->next;
    BEL_TRY(send_exchanged(x, part));
    BEL_TRY(bel_cuda_mark(&x->marks, x->work, BEL_TRACE_COPY_IN, 0));
    for (int s = q->first_segment; s < q->end_segment; s++) {
        BEL_TRY(bel_cuda_run_segment(x, s));
        BEL_TRY(bel_cuda_mark(&x->marks, x->work, BEL_TRACE_KERNELS, s));
        int until = publications_before(
            x->instance, next, x->segments[s].end < end_call ? x->segments[s].end : end_call);
        BEL_TRY(fetch_reports(x, s, next, until));
        next = until;
    }
    return fetch_results(x, end);
}

// Publishes in the order of queueing.
static bel_status *publish_all(bel_cuda_executor *x, const queued *q, int end_call,
                               const bel_instance_run_args *args)
{
    int next = q->next;
    if (x->instance->program->on_device) return NULL; // published at the end
    for (int s = q->first_segment; s < q->end_segment; s++) {
        int end = x->segments[s].end < end_call ? x->segments[s].end : end_call;
        if (publications_before(x->instance, next, end) == next) continue;
        BEL_TRY(await_event(x->device, x->gone[s], "wait for a report"));
        bel_instance_publish(x->instance, args, end, &next);
    }
    return NULL;
}

void bel_cuda_take_error(const bel_cuda_executor *x)
{
    bel_cuda_state state;
    bel_run_context *context = x->instance->context;
    memcpy(&state, x->staged.memory, sizeof state);
    if (state.error == 0) return;
    context->bad_value = state.bad_value;
    context->bad_low = state.bad_low;
    context->bad_limit = state.bad_limit;
    atomic_store(&context->error, state.error);
}

// Publishes outputs that are leaves, whose data is in the process's memory. They come first among
// the publications.
static int hand_over_leaves(bel_cuda_executor *x, const bel_instance_run_args *args)
{
    const bel_instance *instance = x->instance;
    const bel_program *program = instance->program;
    int next = 0, end = publications_before(instance, 0, 0);
    for (int p = 0; p < end; p++) {
        int output = instance->publications[p].output, buffer = program->outputs[output].buffer;
        const bel_program_buffer *its = &program->buffers[buffer];
        const void *from =
            its->kind == BEL_LOCATION_CONSTANT ? its->constant : instance->bound[buffer];
        if (instance->bound_outputs[output] != NULL && from != NULL)
            memcpy(instance->bound_outputs[output], from, its->size_bytes);
    }
    bel_instance_publish(instance, args, 0, &next);
    return end;
}

bel_status *bel_cuda_run(bel_instance *instance, int first, int end, int next, bel_team *team,
                         const bel_instance_run_args *args)
{
    bel_cuda_executor *x = instance->on_device;
    const bel_program *program = instance->program;
    (void)team;
    BEL_TRY(bel_cuda_enter(x->device));
    bel_status *status = bel_cuda_marks_begin(&x->marks, x->work);
    if (instance->rebound) bel_cuda_follow_binding(x);
    instance->rebound = false;
    if (args->part == 0) {
        if (!program->on_device) next = hand_over_leaves(x, args);
        bool fresh = instance->memory->user != instance;
        if (fresh) first = 0; // the results of the prologue are gone
        if (status == NULL) status = bel_cuda_send_state(x);
        if (status == NULL) status = bel_cuda_send_all(x, fresh);
        if (status == NULL)
            status =
                bel_cuda_status(x->api->event_record(x->ahead.taken, x->work), "record an event");
        instance->memory->user = status == NULL ? instance : NULL;
    }
    queued q = {.next = next};
    int first_call = bel_program_calls_before(program, first),
        end_call = bel_program_calls_before(program, end);
    while (q.first_segment < x->segment_count && x->segments[q.first_segment].first < first_call)
        q.first_segment++;
    q.end_segment = q.first_segment;
    while (q.end_segment < x->segment_count && x->segments[q.end_segment].end <= end_call)
        q.end_segment++;
    if (status == NULL) status = queue_all(x, end, &q, args->part);
    if (status == NULL && args->part == 0) status = bring_ahead(x);
    if (status == NULL) status = publish_all(x, &q, end_call, args);
    status = bel_cuda_finish(x, status);
    if (status != NULL) {
        instance->memory->user = NULL;
        return bel_status_wrap(status, __FILE__, __LINE__, "%s", x->device->device.name);
    }
    if (program->on_device) bel_instance_publish(instance, args, end_call, &next);
    bel_cuda_take_error(x);
    bel_cuda_marks_end(&x->marks, instance->context, x->device->device.number);
    return NULL;
}
