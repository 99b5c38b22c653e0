// A worker that helps with an evaluation, on a separate thread, beside training. The main thread
// takes the master's requests and sends the results. The master requests one range of batches at a
// time; another request replaces it, from the next batch on. The values are those of the
// checkpoint. They and the programs are kept from one range of an evaluation to the next, and freed
// when the master ends the evaluation.
//
// The mutex guards the request and the results. All other data belongs to the thread.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "evaluate/predict.h"
#include "member/member_inner.h"

typedef struct request {
    uint32_t generation; // the job's: the same step in another generation may have other values
    int evaluation;
    char *checkpoint; // owned
    int64_t step, first, count;
    uint64_t input; // fingerprint of the master's data
} request;

typedef struct result {
    uint32_t generation;
    int evaluation;
    int64_t step;
    bel_batch_sums sums; // its lists owned, as `elements` and `values`
    int64_t *elements;
    float *values;
    size_t value_count;
    bel_status *failure; // NULL: no failure
} result;

struct bel_member_help {
    const member *m;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool ends, asked;
    atomic_bool ended;
    request wanted; // if `asked`
    request now;    // the thread's
    result *results;
    size_t count, capacity;
    bel_evaluating *evaluating; // the thread's, for now.evaluation and now.step; NULL: not open
    uint32_t open_generation;
    int open_evaluation;
    int64_t open_step;
};

// --- The thread ----------------------------------------------------------------------------------

static bool is_asked_for_other(void *context)
{
    bel_member_help *h = context;
    pthread_mutex_lock(&h->mutex);
    bool other = h->ends || h->asked;
    pthread_mutex_unlock(&h->mutex);
    return other;
}

static void add_result(bel_member_help *h, const result *made)
{
    pthread_mutex_lock(&h->mutex);
    h->results = bel_xgrow(h->results, &h->capacity, h->count + 1, sizeof *h->results);
    h->results[h->count++] = *made;
    pthread_mutex_unlock(&h->mutex);
    bel_doorbell_ring(h->m->bell);
}

static void take_sums(void *context, const bel_batch_sums *sums)
{
    bel_member_help *h = context;
    result made = {.generation = h->now.generation,
                   .evaluation = h->now.evaluation,
                   .step = h->now.step,
                   .sums = *sums};
    size_t outputs = (size_t)sums->output_count;
    for (size_t i = 0; i < outputs; i++)
        made.value_count += (size_t)sums->elements[i];
    made.elements = bel_xcalloc(outputs, sizeof *made.elements);
    made.values = bel_xcalloc(made.value_count, sizeof *made.values);
    if (outputs > 0) memcpy(made.elements, sums->elements, outputs * sizeof *made.elements);
    if (made.value_count > 0)
        memcpy(made.values, sums->values, made.value_count * sizeof *made.values);
    add_result(h, &made);
}

// Opens the requested evaluation.
static bel_status *open_wanted(bel_member_help *h)
{
    const bel_member_program *program = h->m->program;
    const request *now = &h->now;
    if (h->evaluating != NULL && h->open_generation == now->generation &&
        h->open_evaluation == now->evaluation && h->open_step == now->step)
        return NULL;
    bel_evaluating_close(h->evaluating);
    h->evaluating = NULL;
    if (now->evaluation < 0 || now->evaluation >= program->eval_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no evaluation %d here, there are %d",
                       now->evaluation, program->eval_count);
    }
    bel_evaluating *opened;
    BEL_TRY(bel_evaluating_open(program->estimator, &program->evals[now->evaluation],
                                now->checkpoint, &opened));
    if (bel_evaluating_fingerprint(opened) != now->input) {
        bel_evaluating_close(opened);
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "the data to evaluate on, or their order, are not those of the master; "
                       "hint: --eval_files must be the same on all hosts");
    }
    h->evaluating = opened;
    h->open_generation = now->generation;
    h->open_evaluation = now->evaluation;
    h->open_step = now->step;
    return NULL;
}

static void member_help_work(bel_member_help *h)
{
    if (h->now.count == 0) {
        bel_evaluating_close(h->evaluating);
        h->evaluating = NULL;
        return;
    }
    bel_status *status = open_wanted(h);
    if (status == NULL)
        status = bel_evaluating_run(h->evaluating, h->now.first, h->now.count, is_asked_for_other,
                                    take_sums, h);
    if (status == NULL) return;
    const result failed = {.generation = h->now.generation,
                           .evaluation = h->now.evaluation,
                           .step = h->now.step,
                           .failure = status};
    add_result(h, &failed);
}

static void *help_main(void *argument)
{
    bel_member_help *h = argument;
    pthread_mutex_lock(&h->mutex);
    while (!h->ends) {
        if (!h->asked) {
            pthread_cond_wait(&h->wake, &h->mutex);
            continue;
        }
        bel_free(h->now.checkpoint);
        h->now = h->wanted;
        h->asked = false;
        pthread_mutex_unlock(&h->mutex);
        member_help_work(h);
        pthread_mutex_lock(&h->mutex);
    }
    pthread_mutex_unlock(&h->mutex);
    atomic_store(&h->ended, true);
    bel_doorbell_ring(h->m->bell);
    return NULL;
}

// --- The main thread -----------------------------------------------------------------------------

static bel_status *member_begin(member *m)
{
    bel_member_help *h = bel_xcalloc(1, sizeof *h);
    h->m = m;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->wake, NULL);
    bel_status *status = bel_thread_start(&h->thread, help_main, h);
    if (status != NULL) {
        pthread_mutex_destroy(&h->mutex);
        pthread_cond_destroy(&h->wake);
        bel_free(h);
        return status;
    }
    m->help = h;
    return NULL;
}

bel_status *bel_member_help_take(member *m, const Bel__Evaluate *message)
{
    if (!m->worker.here) return NULL;
    if (m->help == NULL && message->count > 0) BEL_TRY(member_begin(m));
    bel_member_help *h = m->help;
    if (h == NULL) return NULL;
    pthread_mutex_lock(&h->mutex);
    if (h->asked) bel_free(h->wanted.checkpoint);
    h->wanted = (request){.generation = m->generation,
                          .evaluation = message->evaluation,
                          .checkpoint = bel_xstrdup(message->checkpoint),
                          .step = message->step,
                          .first = message->first,
                          .count = message->count,
                          .input = message->input};
    h->asked = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

static void free_result(result *r)
{
    bel_free(r->elements);
    bel_free(r->values);
    bel_status_destroy(r->failure);
}

static void send_result(member *m, const result *r)
{
    Bel__Batch batch;
    bel__batch__init(&batch);
    batch.evaluation = r->evaluation;
    batch.step = r->step;
    batch.batch = r->sums.block;
    batch.examples = r->sums.examples;
    batch.elements = r->elements;
    batch.n_elements = (size_t)r->sums.output_count;
    batch.values = r->values;
    batch.n_values = r->value_count;
    char *text = NULL;
    if (r->failure != NULL) {
        batch.code = (int32_t)bel_status_code(r->failure);
        batch.text = text = bel_xstrdup(bel_status_message(r->failure));
    }
    bel_member_send(m, &batch.base);
    bel_free(text);
}

void bel_member_help_send(member *m)
{
    bel_member_help *h = m->help;
    if (h == NULL) return;
    pthread_mutex_lock(&h->mutex);
    result *results = h->results;
    size_t count = h->count;
    h->results = NULL;
    h->count = h->capacity = 0;
    pthread_mutex_unlock(&h->mutex);
    for (size_t i = 0; i < count; i++) {
        bel_member_leave_if_lost(m, results[i].failure);
        if (results[i].generation == m->generation) send_result(m, &results[i]);
        free_result(&results[i]);
    }
    bel_free(results);
}

void bel_member_help_end(member *m, double patience_secs)
{
    bel_member_help *h = m->help;
    if (h == NULL) return;
    pthread_mutex_lock(&h->mutex);
    h->ends = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    bel_member_join_thread(m, h->thread, &h->ended, patience_secs, "an evaluation",
                           m->end.over ? 0 : 1);
    for (size_t i = 0; i < h->count; i++)
        free_result(&h->results[i]);
    bel_free(h->results);
    if (h->asked) bel_free(h->wanted.checkpoint);
    bel_free(h->now.checkpoint);
    bel_evaluating_close(h->evaluating);
    pthread_mutex_destroy(&h->mutex);
    pthread_cond_destroy(&h->wake);
    bel_free(h);
    m->help = NULL;
}
