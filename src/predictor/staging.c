// Double buffering with two counters. Stages are numbered over all runs; stage n is stage n mod
// stage count of its run, and uses buffer n mod 2. `loaded` counts stages that were read, `done`
// those that have computed:
//
//   the reader reads stage n as soon as n < done + 2: then stage n - 2 has computed, and its buffer
//   is free;
//   the caller computes stage n as soon as n < loaded.
//
// So neither writes data that the other reads. If everything fits into a single stage, it is read
// once. Every wait ends: the caller's by a deadline, the reader's when the staging is destroyed.
#include "predictor/staging.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_memory.h"

enum { ALIGNMENT = 64, MOST_SECONDS = 600 };

typedef struct piece {
    int variable;
    size_t offset; // in the buffer
} piece;

typedef struct stage {
    int first_group, end_group;
    piece *pieces;
    int piece_count;
    size_t bytes;
} stage;

struct bel_staging {
    bel_instance *instance;
    bel_staged_variables variables;
    float **shown; // by variable: copies for outputs that show it; NULL: no output does
    stage *stages;
    int stage_count;
    size_t buffer_bytes;
    char *buffers[2]; // the second one only with several stages
    pthread_t reader;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int64_t loaded, done; // under the mutex
    bool stop;            // under the mutex
    bel_status *failed;   // under the mutex: the error with which the reader stopped
};

// --- Stages --------------------------------------------------------------------------------------

static size_t staging_aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t bytes_of(const bel_staged_source *sources, const bool *read, int count)
{
    size_t bytes = 0;
    for (int v = 0; v < count; v++)
        if (read[v]) bytes += staging_aligned(sources[v].size_bytes);
    return bytes;
}

// Ends a stage. `read`: its variables; cleared.
static void close_stage(bel_staging *s, int first, int end, bool *read)
{
    int variable_count = s->variables.count;
    stage *to = &s->stages[s->stage_count++];
    *to = (stage){.first_group = first, .end_group = end};
    to->pieces = bel_xcalloc((size_t)variable_count + 1, sizeof *to->pieces);
    for (int v = 0; v < variable_count; v++) {
        if (!read[v]) continue;
        to->pieces[to->piece_count++] = (piece){.variable = v, .offset = to->bytes};
        to->bytes += staging_aligned(s->variables.sources[v].size_bytes);
        read[v] = false;
    }
    if (to->bytes > s->buffer_bytes) s->buffer_bytes = to->bytes;
}

// Puts the largest possible number of groups into each stage; all into one stage if they fit
// together.
static bel_status *staging_plan(bel_staging *s, const bel_program *program, size_t memory_bytes)
{
    int variable_count = s->variables.count;
    int groups = bel_program_group_count(program), first = 0;
    bool *held = bel_xcalloc((size_t)variable_count + 1, sizeof *held);
    bool *more = bel_xcalloc((size_t)variable_count + 1, sizeof *more);
    bel_status *status = NULL;
    s->stages = bel_xcalloc((size_t)groups + 1, sizeof *s->stages);
    for (int g = 0; g < groups; g++)
        bel_program_mark_variables(program, g, held);
    size_t all = bytes_of(s->variables.sources, held, variable_count);
    size_t most = all <= memory_bytes ? all : memory_bytes / 2;
    memset(held, 0, (size_t)variable_count * sizeof *held);
    for (int g = 0; g < groups && status == NULL; g++) {
        memset(more, 0, (size_t)variable_count * sizeof *more);
        bel_program_mark_variables(program, g, more);
        size_t own = bytes_of(s->variables.sources, more, variable_count);
        if (own > most) {
            status = BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                             "a stage needs %zu bytes for the variables of one instruction, and "
                             "half of %zu is for it; hint: a memory of %zu",
                             own, memory_bytes, 2 * own);
            break;
        }
        for (int v = 0; v < variable_count; v++)
            more[v] = more[v] || held[v];
        if (bytes_of(s->variables.sources, more, variable_count) > most) {
            close_stage(s, first, g, held);
            first = g;
        }
        bel_program_mark_variables(program, g, held);
    }
    if (status == NULL) close_stage(s, first, groups, held);
    bel_free(held);
    bel_free(more);
    return status;
}

// --- Reading -------------------------------------------------------------------------------------

static bel_status *read_variable(const bel_staging *s, int variable, void *out)
{
    const bel_staged_source *source = &s->variables.sources[variable];
    if (source->elements == NULL) return s->variables.read(s->variables.context, variable, out);
    memcpy(out, source->elements, source->size_bytes);
    if (source->mapped) bel_linux_drop_pages(source->elements, source->size_bytes);
    return NULL;
}

static bel_status *read_stage(const bel_staging *s, int64_t number)
{
    const stage *from = &s->stages[number % s->stage_count];
    char *to = s->buffers[s->stage_count > 1 ? number % 2 : 0];
    for (int p = 0; p < from->piece_count; p++)
        BEL_TRY(read_variable(s, from->pieces[p].variable, to + from->pieces[p].offset));
    return NULL;
}

static bool has_room(const bel_staging *s)
{
    return s->stage_count > 1 ? s->loaded < s->done + 2 : s->loaded == 0;
}

static void *read_all(void *argument)
{
    bel_staging *s = argument;
    pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        if (!has_room(s)) {
            // Waits until the caller computes, or destroys the staging.
            pthread_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        int64_t number = s->loaded;
        pthread_mutex_unlock(&s->mutex);
        bel_status *status = read_stage(s, number);
        pthread_mutex_lock(&s->mutex);
        s->failed = status;
        s->stop = s->stop || status != NULL;
        s->loaded += status == NULL;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

// --- Life ----------------------------------------------------------------------------------------

// Reads the variables that outputs show; they must be in memory whatever stage is in the buffers.
static bel_status *read_shown(bel_staging *s, const bel_program *program)
{
    bool *shown = bel_xcalloc((size_t)s->variables.count + 1, sizeof *shown);
    bel_program_mark_shown(program, shown);
    bel_status *status = NULL;
    for (int v = 0; v < s->variables.count && status == NULL; v++) {
        if (!shown[v]) continue;
        s->shown[v] = bel_xcalloc(s->variables.sources[v].size_bytes + 1, 1);
        status = read_variable(s, v, s->shown[v]);
        bel_instance_bind_variable(s->instance, v, s->shown[v]);
    }
    bel_free(shown);
    return status;
}

static bel_status *staging_begin(bel_staging *s, const bel_program *program, size_t memory_bytes)
{
    BEL_TRY(staging_plan(s, program, memory_bytes));
    for (int b = 0; b < (s->stage_count > 1 ? 2 : 1); b++) {
        void *memory;
        BEL_TRY(bel_pages_create(s->buffer_bytes + ALIGNMENT, false, "a stage's weights", &memory));
        s->buffers[b] = memory;
    }
    BEL_TRY(read_shown(s, program));
    BEL_TRY(bel_thread_start(&s->reader, read_all, s));
    s->started = true;
    return NULL;
}

bel_status *bel_staging_create(const bel_program *program, bel_instance *instance,
                               const bel_staged_variables *variables, size_t memory_bytes,
                               bel_staging **out_staging)
{
    bel_staging *s = bel_xcalloc(1, sizeof *s);
    s->instance = instance;
    s->variables = *variables;
    s->shown = bel_xcalloc((size_t)variables->count + 1, sizeof *s->shown);
    pthread_mutex_init(&s->mutex, NULL);
    bel_cond_init(&s->changed);
    bel_status *status = staging_begin(s, program, memory_bytes);
    if (status != NULL) {
        bel_staging_destroy(s);
        return status;
    }
    *out_staging = s;
    return NULL;
}

void bel_staging_destroy(bel_staging *s)
{
    if (s == NULL) return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (s->started) pthread_join(s->reader, NULL);
    for (int i = 0; i < s->stage_count; i++)
        bel_free(s->stages[i].pieces);
    for (int v = 0; v < s->variables.count; v++)
        bel_free(s->shown[v]);
    bel_free(s->shown);
    bel_status_destroy(s->failed);
    for (int b = 0; b < 2; b++)
        if (s->buffers[b] != NULL) bel_pages_destroy(s->buffers[b], s->buffer_bytes + ALIGNMENT);
    bel_free(s->stages);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    bel_free(s);
}

int bel_staging_count(const bel_staging *s)
{
    return s->stage_count;
}

size_t bel_staging_bytes(const bel_staging *s)
{
    return s->buffer_bytes * (s->stage_count > 1 ? 2 : 1);
}

// --- Running -------------------------------------------------------------------------------------

static bel_status *wait_for(bel_staging *s, int64_t number)
{
    int64_t deadline = bel_clock_ns() + (int64_t)MOST_SECONDS * 1000000000;
    bool in_time = true;
    bel_status *status = NULL;
    pthread_mutex_lock(&s->mutex);
    while (s->loaded <= number && s->failed == NULL && in_time)
        in_time = bel_cond_wait_until(&s->changed, &s->mutex, deadline);
    if (s->loaded > number) {
        status = NULL;
    } else if (s->failed != NULL) {
        status = BEL_ERR(bel_status_code(s->failed), "%s", bel_status_message(s->failed));
    } else {
        status = BEL_ERR(BEL_UNAVAILABLE, "the weights of stage %d were not read within %d s",
                         (int)(number % s->stage_count), MOST_SECONDS);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static void computed(bel_staging *s)
{
    pthread_mutex_lock(&s->mutex);
    s->done++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

// After an error in a stage later ones are not computed, but still counted in order.
bel_status *bel_staging_run(bel_staging *s, bel_team *team, bel_run_context *context)
{
    bel_status *status = NULL;
    bool alone = s->stage_count == 1;
    int64_t first = alone ? 0 : s->done; // only this thread changes it
    for (int i = 0; i < s->stage_count; i++) {
        const stage *now = &s->stages[i];
        const char *buffer = s->buffers[alone ? 0 : (first + i) % 2];
        if (status == NULL) status = wait_for(s, alone ? 0 : first + i);
        for (int p = 0; p < now->piece_count && status == NULL; p++) {
            const piece *its = &now->pieces[p];
            const void *shown = s->shown[its->variable];
            bel_instance_bind_variable(s->instance, its->variable,
                                       shown != NULL ? shown : buffer + its->offset);
        }
        if (status == NULL) {
            status = bel_instance_run_groups(s->instance, now->first_group, now->end_group, team,
                                             context);
        }
        if (!alone) computed(s);
    }
    return status;
}
