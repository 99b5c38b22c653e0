// Calls on a second stack, from threads with a small one. label: threads
#include "base/linux_stack.h"

#include <pthread.h>

#include "support/bel_test.h"

enum { ROOM = 4 << 20, SMALL = 128 << 10 };

typedef struct task {
    bel_linux_stack *stack, *second;
    int calls, sum;
} task;

static void add_one(void *argument)
{
    ((task *)argument)->sum++;
}

// Touches more memory than the thread's stack has.
static void use_room(void *argument)
{
    task *t = argument;
    volatile char room[ROOM / 2];
    for (int i = 0; i < ROOM / 2; i += 512)
        room[i] = (char)i;
    t->sum += room[512 * 3] == (char)(512 * 3);
    bel_linux_stack_call(t->second, add_one, t);
}

static void *call_often(void *argument)
{
    task *t = argument;
    for (int i = 0; i < t->calls; i++)
        bel_linux_stack_call(t->stack, use_room, t);
    return NULL;
}

static void test_calls(void **state)
{
    (void)state;
    task t = {.calls = 20};
    pthread_attr_t attributes;
    pthread_t thread;
    BEL_ASSERT_OK(bel_linux_stack_create(ROOM, &t.stack));
    BEL_ASSERT_OK(bel_linux_stack_create(SMALL, &t.second));
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL), 0);
    for (int round = 0; round < 2; round++) { // another thread takes it over
        assert_int_equal(pthread_create(&thread, &attributes, call_often, &t), 0);
        pthread_join(thread, NULL);
    }
    assert_int_equal(t.sum, 2 * 2 * 20);
    pthread_attr_destroy(&attributes);
    bel_linux_stack_destroy(t.stack);
    bel_linux_stack_destroy(t.second);
    bel_linux_stack_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
