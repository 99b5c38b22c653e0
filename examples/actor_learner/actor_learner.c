/// Actors and a learner (Buchlovsky et al. 2019, section 4.3; Espeholt et al. 2018). Actor threads
/// act by the current policy and put their experience into a queue. The queue is the input of the
/// training, which every replica of the learner reads.
///
/// ```
/// actor ─┐                                        ┌─ replica 0 ─┐
/// actor ─┼─ queue ─ map ─ batch [n, …] ───────────┤             ├─ policy ─ ckpt-<step> ─→ actors
/// actor ─┘  (state, action, reward, its chance)   └─ replica 1 ─┘
/// ```
///
/// The world: an observation has 8 numbers. One of 4 actions is right, the one with the largest
/// score under hidden weights. An actor draws an action from the policy's softmax and gets 1 or 0.
/// The learner follows the policy gradient (Williams 1992). Actors are some steps late, so each
/// example is weighted by the probability ratio of the current policy and the actor's, at most 2.
/// Random actions get 0.25.
///
/// Actors run in every process that has workers, and check for a newer checkpoint now and then.
/// Their actions depend on timing, so two runs differ.
///
/// usage: actor_learner [STEPS] [--model_dir FOLDER] [flags of a run]
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <belfry/belfry.h>

enum { SEEN = 8, ACTIONS = 4, BATCH = 32, ACTORS = 2, ROOM = 256, SAVE_EVERY = 20 };

// --- The queue -----------------------------------------------------------------------------------

typedef struct moment {
    float seen[SEEN], action, reward, chance;
} moment;

// Bounded queue: actors wait while the learner has enough. Both waits check twice a second.
typedef struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    moment moments[ROOM];
    int first, count;
    atomic_bool over;
} queue;

static void wait_for_change(queue *q)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 500000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&q->changed, &q->mutex, &until);
}

static void put(queue *q, const moment *m)
{
    pthread_mutex_lock(&q->mutex);
    while (q->count == ROOM && !q->over)
        wait_for_change(q);
    if (q->count < ROOM) q->moments[(q->first + q->count++) % ROOM] = *m;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
}

// Returns false if no more data comes.
static bool take(queue *q, moment *m)
{
    pthread_mutex_lock(&q->mutex);
    while (q->count == 0 && !q->over)
        wait_for_change(q);
    bool got = q->count > 0;
    if (got) {
        *m = q->moments[q->first];
        q->first = (q->first + 1) % ROOM;
        q->count--;
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    return got;
}

// --- Actors --------------------------------------------------------------------------------------

typedef struct program {
    queue queue;
    int64_t steps;
    const char *model_dir;
    pthread_t actors[ACTORS];
    int actor_count;
    atomic_int numbers; // number of actors, so that their random numbers differ
} program;

// 64 bits of SplitMix64 (Steele et al. 2014).
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static float next_uniform(uint64_t *state) // [0, 1)
{
    return (float)(next_random(state) >> 40) * 0x1p-24f;
}

// Returns the right action.
static int right_action(const float seen[SEEN])
{
    int best = 0;
    float most = -INFINITY;
    for (int a = 0; a < ACTIONS; a++) {
        float score = 0;
        for (int i = 0; i < SEEN; i++)
            score += seen[i] * sinf((float)(5 * a + 3 * i + 1));
        if (score > most) {
            most = score;
            best = a;
        }
    }
    return best;
}

typedef struct policy {
    float kernel[SEEN][ACTIONS], bias[ACTIONS]; // zeros: all actions are equally likely
} policy;

// Reads the newest checkpoint's policy; keeps the old one if there is no checkpoint or it is just
// being removed.
static void look_for_policy(const char *model_dir, policy *p)
{
    bel_checkpoint *checkpoint;
    bel_status *status = bel_checkpoint_open(model_dir, &checkpoint);
    if (status == NULL) {
        policy newer;
        status =
            bel_checkpoint_read(checkpoint, "policy/kernel", newer.kernel, sizeof newer.kernel);
        if (status == NULL)
            status = bel_checkpoint_read(checkpoint, "policy/bias", newer.bias, sizeof newer.bias);
        if (status == NULL) *p = newer;
        bel_checkpoint_close(checkpoint);
    }
    bel_status_destroy(status);
}

static void act(const policy *p, uint64_t *random, moment *m)
{
    float scores[ACTIONS], sum = 0;
    for (int i = 0; i < SEEN; i++)
        m->seen[i] = 2 * next_uniform(random) - 1;
    for (int a = 0; a < ACTIONS; a++) {
        scores[a] = p->bias[a];
        for (int i = 0; i < SEEN; i++)
            scores[a] += m->seen[i] * p->kernel[i][a];
        sum += scores[a] = expf(scores[a]);
    }
    int action = 0;
    float left = next_uniform(random) * sum;
    while (action < ACTIONS - 1 && left >= scores[action])
        left -= scores[action++];
    m->action = (float)action;
    m->chance = scores[action] / sum;
    m->reward = action == right_action(m->seen) ? 1 : 0;
}

static void *actor_main(void *argument)
{
    enum { LOOK_EVERY = 200 };
    program *p = argument;
    uint64_t random = (uint64_t)atomic_fetch_add(&p->numbers, 1) + 1;
    policy own = {{{0}}, {0}};
    for (int n = 0; !p->queue.over; n++) {
        moment m;
        if (n % LOOK_EVERY == 0) look_for_policy(p->model_dir, &own);
        act(&own, &random, &m);
        put(&p->queue, &m);
    }
    return NULL;
}

static void start_actors(program *p)
{
    while (p->actor_count < ACTORS &&
           pthread_create(&p->actors[p->actor_count], NULL, actor_main, p) == 0)
        p->actor_count++;
}

static void end_actors(program *p)
{
    p->queue.over = true;
    while (p->actor_count > 0)
        pthread_join(p->actors[--p->actor_count], NULL);
}

// --- The learner ---------------------------------------------------------------------------------

static bel_status *map(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    program *p = user;
    moment m;
    if (!take(&p->queue, &m)) return BEL_ERR(BEL_CANCELLED, "the actors finished");
    const bel_shape seen = BEL_SHAPE(SEEN), one = {0};
    memcpy(bel_record_add(record, "seen", BEL_DTYPE_F32, &seen), m.seen, sizeof m.seen);
    *(float *)bel_record_add(record, "reward", BEL_DTYPE_F32, &one) = m.reward;
    *(float *)bel_record_add(record, "chance", BEL_DTYPE_F32, &one) = m.chance;
    *(int64_t *)bel_record_add(record, "action", BEL_DTYPE_I64, &one) = (int64_t)m.action;
    return NULL;
}

// Repeats one record, which the map replaces by one from the queue.
static bel_status *input_fn(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    static float nothing[1];
    program *p = user;
    if (p->actor_count == 0) start_actors(p);
    const bel_memory_field field = {"nothing", {BEL_DTYPE_F32, BEL_SHAPE(1), nothing}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_map(*out_dataset, map, p, NULL);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// The gradient of this loss is that of the advantage (reward less its usual value), times the
// action's probability ratio, now over then.
static bel_status *learn_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_feature(context, "seen"), ACTIONS, "policy");
    bel_value *reward = bel_context_feature(context, "reward");
    bel_value *surprise = // minus the logarithm of the action's probability, [n]
        bel_softmax_cross_entropy(g, logits, bel_context_feature(context, "action"));
    bel_value *chance = bel_exp(g, bel_neg(g, surprise));
    bel_value *ratio = bel_div(g, chance, bel_context_feature(context, "chance"));
    bel_value *weight = bel_stop_gradient(g, bel_min(g, ratio, bel_scalar(g, BEL_DTYPE_F32, 2)));
    bel_value *usual = bel_mean(g, reward);
    bel_value *above = bel_mul(g, weight, bel_sub(g, reward, usual));
    bel_loss_set(spec, bel_mean(g, bel_mul(g, above, surprise)));
    const bel_optimizer adam = {
        .size = sizeof adam, .kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.03};
    bel_optimizer_use(spec, NULL, &adam);
    bel_return_add(context, spec, "reward", usual, BEL_RETURN_MEAN);
    return NULL;
}

static bel_status *model_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_feature(context, "seen"), ACTIONS, "policy");
    bel_predictions_set(spec, bel_softmax(g, logits));
    return NULL;
}

static bel_status *loop(void *user, bel_replicator *replicator)
{
    enum { SAY_EVERY = 200 };
    const program *p = user;
    double sum = 0;
    for (int64_t n = 1; bel_replicator_step(replicator) < p->steps; n++) {
        const bel_step_result *result;
        BEL_TRY(bel_replicator_run(replicator, 0, &result));
        sum += *bel_step_result_find(result, "reward", NULL);
        if (n % SAY_EVERY != 0) continue;
        printf("step %lld: reward %.3f\n", (long long)result->step, sum / SAY_EVERY);
        fflush(stdout);
        sum = 0;
    }
    return NULL;
}

// Parses a number of steps; false if it is malformed.
static bool read_count(const char *text, int64_t *out)
{
    char *rest;
    *out = strtoll(text, &rest, 10);
    return rest != text && *rest == '\0' && *out > 0;
}

int main(int count, char **arguments)
{
    static program p = {
        .queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.num_gpus = 2;
    config.save_checkpoints_steps = SAVE_EVERY;
    bel_status *status = bel_run_config_flags(&config, &count, arguments);
    if (status == NULL) status = bel_refuse_flags(count, arguments);
    if (status != NULL) return bel_status_report(status);
    p.steps = 2000;
    if (count > 2 || (count == 2 && !read_count(arguments[1], &p.steps))) {
        fprintf(stderr, "usage: actor_learner [STEPS] [--model_dir FOLDER] [flags]\n");
        return 2;
    }
    bel_estimator *estimator;
    status = bel_estimator_create(model_fn, &config, NULL, 0, &estimator);
    if (status != NULL) return bel_status_report(status);
    p.model_dir = bel_estimator_config(estimator)->model_dir;
    const bel_step_function learn = {"learn", learn_fn, NULL};
    const bel_loop own = {
        .size = sizeof own, .functions = &learn, .function_count = 1, .run = loop, .user = &p};
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = input_fn, .input_user = &p, .loop = &own};
    int code = bel_run_job(estimator, &train, NULL, 0, NULL);
    end_actors(&p);
    bel_estimator_destroy(estimator);
    return code;
}
