// Workers that help with an evaluation: their batches and results. A worker has one range of
// batches at a time, and is free after the last of them, or when it is another process. A worker
// that reports that it cannot help (it has no access to the checkpoint, or its input differs) is
// not asked again. A worker in the master's process is not asked, as the master's towers use its
// processors.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "master/backend/remote_inner.h"

typedef struct help_seat {
    uint32_t incarnation;
    int64_t last; // last of its batches; -1: none
    bool refused;
} help_seat;

// A received result, until it is taken.
typedef struct come {
    int64_t batch, examples;
    int64_t *elements;
    float *values;
    int output_count;
} come;

struct bel_remote_help {
    remote *r;
    bel_evaluation_helpers helpers;
    help_seat *seats; // by worker
    bool open;
    int evaluation;
    char *checkpoint;
    int64_t step;
    uint64_t input;
    come *queue;
    size_t count, taken, capacity;
    int64_t batches; // received in this evaluation
};

static void free_come(come *c)
{
    bel_free(c->elements);
    bel_free(c->values);
}

static void clear_queue(bel_remote_help *h)
{
    for (size_t i = h->taken > 0 ? h->taken - 1 : 0; i < h->count; i++)
        free_come(&h->queue[i]); // the last taken one was still in use
    h->count = h->taken = 0;
}

static void remote_help_send(bel_remote_help *h, int worker, int64_t first, int64_t count)
{
    remote *r = h->r;
    Bel__Evaluate evaluate;
    bel__evaluate__init(&evaluate);
    evaluate.evaluation = h->evaluation;
    evaluate.checkpoint = h->checkpoint;
    evaluate.step = h->step;
    evaluate.first = first;
    evaluate.count = count;
    evaluate.input = h->input;
    bel_members_send(r->config.members, bel_remote_worker(r, worker), r->backend.generation,
                     &evaluate.base);
}

// Whether a worker at that seat can be asked.
static bool is_here(const bel_remote_help *h, int worker)
{
    const remote *r = h->r;
    if (worker == 0 && r->config.task->master_trains) return false;
    const bel_member_view *m = bel_members_get(r->config.members, bel_remote_worker(r, worker));
    return m->here && !m->vacant && !m->blind && m->generation == r->backend.generation;
}

static bool remote_help_give(void *context, int64_t first, int64_t count)
{
    bel_remote_help *h = context;
    remote *r = h->r;
    for (int w = 0; w < r->seats; w++) {
        help_seat *seat = &h->seats[w];
        if (seat->refused || !is_here(h, w)) continue;
        uint32_t incarnation =
            bel_members_get(r->config.members, bel_remote_worker(r, w))->incarnation;
        if (seat->last >= 0 && seat->incarnation == incarnation) continue;
        seat->incarnation = incarnation;
        seat->last = first + count - 1;
        remote_help_send(h, w, first, count);
        return true;
    }
    return false;
}

static bool remote_help_take(void *context, bel_batch_sums *out_sums)
{
    bel_remote_help *h = context;
    if (h->taken > 0) free_come(&h->queue[h->taken - 1]);
    if (h->taken == h->count) {
        h->taken = h->count = 0;
        return false;
    }
    const come *c = &h->queue[h->taken++];
    *out_sums = (bel_batch_sums){.block = c->batch,
                                 .examples = c->examples,
                                 .output_count = c->output_count,
                                 .elements = c->elements,
                                 .values = c->values};
    return true;
}

bel_remote_help *bel_remote_help_create(remote *r)
{
    bel_remote_help *h = bel_xcalloc(1, sizeof *h);
    h->r = r;
    h->helpers = (bel_evaluation_helpers){h, remote_help_give, remote_help_take};
    h->seats = bel_xcalloc((size_t)r->seats, sizeof *h->seats);
    return h;
}

void bel_remote_help_destroy(bel_remote_help *h)
{
    if (h == NULL) return;
    clear_queue(h);
    bel_free(h->queue);
    bel_free(h->checkpoint);
    bel_free(h->seats);
    bel_free(h);
}

const bel_evaluation_helpers *bel_remote_begin_help(bel_backend *backend, int evaluation,
                                                    const char *checkpoint, int64_t step,
                                                    uint64_t input)
{
    remote *r = (remote *)backend;
    bel_remote_help *h = r->help;
    h->open = true;
    h->evaluation = evaluation;
    h->checkpoint = bel_xstrdup(checkpoint);
    h->step = step;
    h->input = input;
    h->batches = 0;
    for (int w = 0; w < r->seats; w++)
        h->seats[w].last = -1;
    return &h->helpers;
}

// Ends the help; later results are dropped.
void bel_remote_end_help(bel_backend *backend)
{
    remote *r = (remote *)backend;
    bel_remote_help *h = r->help;
    for (int w = 0; w < r->seats; w++)
        if (!h->seats[w].refused && is_here(h, w)) remote_help_send(h, w, 0, 0);
    clear_queue(h);
    bel_log_write(BEL_LOG_DEBUG, "workers ran %lld batches of the evaluation of step %lld",
                  (long long)h->batches, (long long)h->step);
    bel_free(h->checkpoint);
    h->checkpoint = NULL;
    h->open = false;
}

// Whether there are as many values as the outputs have elements.
static bool is_whole(const Bel__Batch *m)
{
    size_t left = m->n_values;
    for (size_t i = 0; i < m->n_elements; i++) {
        if (m->elements[i] < 0 || (uint64_t)m->elements[i] > left) return false;
        left -= (size_t)m->elements[i];
    }
    return left == 0 && m->n_elements <= INT16_MAX && m->batch >= 0;
}

void bel_remote_take_batch(remote *r, int member, const Bel__Batch *m)
{
    const bel_member_view *sender = bel_members_get(r->config.members, member);
    bel_remote_help *h = r->help;
    bool now = h->open && m->evaluation == h->evaluation && m->step == h->step;
    if (!now) return; // an earlier evaluation's
    help_seat *seat = &h->seats[sender->index];
    if (m->code != BEL_OK || !is_whole(m)) {
        if (!seat->refused)
            bel_log_write(BEL_LOG_WARN, "worker %d does not help with evaluations: %s",
                          sender->index, m->code != BEL_OK ? m->text : "its numbers are damaged");
        seat->refused = true;
        return;
    }
    if (m->batch == seat->last) seat->last = -1;
    h->batches++;
    h->queue = bel_xgrow(h->queue, &h->capacity, h->count + 1, sizeof *h->queue);
    come *c = &h->queue[h->count++];
    *c = (come){.batch = m->batch,
                .examples = m->examples,
                .output_count = (int)m->n_elements,
                .elements = bel_xcalloc(m->n_elements, sizeof *c->elements),
                .values = bel_xcalloc(m->n_values, sizeof *c->values)};
    if (m->n_elements > 0) memcpy(c->elements, m->elements, m->n_elements * sizeof *c->elements);
    if (m->n_values > 0) memcpy(c->values, m->values, m->n_values * sizeof *c->values);
}
