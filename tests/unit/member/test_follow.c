// An evaluator outside the cluster ends when the job that it has seen is gone, wherever the job
// ended. label: threads
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "launch/task/task.h"
#include "member/member.h"
#include "support/bel_test.h"

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    (void)context, (void)spec;
    return NULL;
}

typedef struct following {
    bel_member_program program;
    bel_status *status;
    atomic_bool ended;
} following;

static void *follow(void *argument)
{
    following *f = argument;
    bel_result result = {.size = sizeof result};
    f->status = bel_member_follow(&f->program, 0, &result);
    atomic_store(&f->ended, true);
    return NULL;
}

// The evaluator looks from time to time, so the job comes and goes until it was seen and missed.
static void test_a_job_that_is_gone(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    const bel_train_spec train = {.size = sizeof train, .max_steps = 1000};
    following f = {.program = {.train = &train}};
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &f.program.estimator));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, follow, &f), 0);
    while (!atomic_load(&f.ended)) {
        char *token = bel_test_file(bel_test_own_folder(), BEL_TOKEN_FILE, "token", 5);
        (void)poll(NULL, 0, 250);
        unlink(token);
        (void)poll(NULL, 0, 250);
        bel_free(token);
    }
    pthread_join(thread, NULL);
    BEL_ASSERT_OK(f.status);
    bel_estimator_destroy(f.program.estimator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(test_a_job_that_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
