// Runs allocate nothing: in this program malloc and its family are replaced by counting functions.
// The test is skipped under sanitizers, which replace them too. label: release
#include <stdatomic.h>
#include <stdlib.h>

#include "unit/runtime/test_cnn.h"
#include "unit/runtime/test_mlp.h"

static atomic_bool counting;
static atomic_int calls;

#ifndef BEL_SANITIZE

// glibc's names for the replaced functions.
void *__libc_malloc(size_t size);
void __libc_free(void *pointer);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);

static void count_call(void)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&calls, 1);
}

void *malloc(size_t size)
{
    count_call();
    return __libc_malloc(size);
}

void free(void *pointer)
{
    count_call();
    __libc_free(pointer);
}

void *calloc(size_t count, size_t size)
{
    count_call();
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size)
{
    count_call();
    return __libc_realloc(pointer, size);
}

#endif

static void count_publication(void *context, int output, int64_t first, int64_t count)
{
    (void)output, (void)count;
    if (first == 0) ++*(int *)context;
}

static void check_steps(const bel_program_options *options)
{
    enum { STEPS = 100 };
    mlp *m = mlp_create();
    bel_shape shapes[2];
    bel_program *program;
    bel_team *team;
    void *arena;
    mlp_shapes(MLP_BATCH, shapes);
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, shapes, m->outputs, MLP_OUTPUTS, options, &program));
    size_t bytes = bel_program_arena_bytes(program);
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &arena));
    BEL_ASSERT_OK(bel_team_create(options->threads, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_status *status = NULL;
    int published = 0;
    for (int64_t step = -1; status == NULL && step < STEPS; step++) {
        bel_run_context context = {.seed = 1, .step = step + 1};
        mlp_bind(m, instance);
        status = bel_instance_run(instance, team, &context, count_publication, &published);
        // The first run may load the matrix library, as compilation may.
        if (step < 0) atomic_store(&counting, true);
    }
    atomic_store(&counting, false);
    BEL_ASSERT_OK(status);
    assert_int_equal(published, (STEPS + 1) * MLP_VARIABLES);
    assert_int_equal(atomic_exchange(&calls, 0), 0);
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    mlp_destroy(m);
}

static void check_images(const bel_program_options *options)
{
    cnn *m = cnn_create(options);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(options->threads, &team));
    bel_status *status = NULL;
    for (int step = -1; status == NULL && step < 5; step++) {
        bel_run_context context = {.seed = 1};
        status = bel_instance_run(m->instance, team, &context, NULL, NULL);
        if (step < 0) atomic_store(&counting, true);
    }
    atomic_store(&counting, false);
    BEL_ASSERT_OK(status);
    assert_int_equal(atomic_exchange(&calls, 0), 0);
    bel_team_destroy(team);
    cnn_destroy(m);
}

static void test_running_allocates_nothing(void **state)
{
    (void)state;
#ifdef BEL_SANITIZE
    print_message("skipped: sanitizers (%s) replace malloc themselves\n", BEL_SANITIZE);
    skip();
#endif
    static const bel_program_options all[] = {
        {.threads = 1}, {.threads = 3}, {.asynchronous = true, .threads = 3}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        check_steps(&all[i]);
        check_images(&all[i]);
    }
}

// Checks that the count above can fail.
static void test_counting_counts(void **state)
{
    (void)state;
#ifdef BEL_SANITIZE
    skip();
#endif
    atomic_store(&counting, true);
    void *volatile memory = malloc(10);
    memory = realloc(memory, 20);
    free(memory);
    atomic_store(&counting, false);
    assert_int_equal(atomic_exchange(&calls, 0), 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_allocates_nothing),
        cmocka_unit_test(test_counting_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
