// Random graphs give the same bits with all passes, some and none, in several runs with changing
// inputs and then changing variables. So do programs that compute some values again because memory
// is limited. A failure prints the seed and the graph before and after.
#include <math.h>
#include <stdlib.h>

#include "autodiff/autodiff.h"
#include "base/alloc.h"
#include "base/str.h"
#include "runtime/program_inner.h"
#include "support/bel_test.h"
#include "unit/passes/random_graph.h"

enum { GRAPHS = 5000, MOST_OUTPUTS = 12, RUNS = 4 };

typedef struct fed {
    random_graph random;
    bel_program_output outputs[MOST_OUTPUTS];
    int output_count;
    bel_shape shapes[3];
    float *inputs[3], *variables[2][POOL]; // two sets
} fed;

typedef struct running {
    bel_program *program;
    bel_instance *instance;
    void *arena, *results[MOST_OUTPUTS];
} running;

static float *numbers(uint64_t seed, int64_t count)
{
    float *made = bel_xcalloc((size_t)count + 1, sizeof *made);
    bel_rng_key key = bel_rng_key_make(seed, "numbers", 0);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        made[i] = words[1] % 16 == 0 ? -0.0f : 4.0f * bel_rng_unit(words[0]) - 2.0f;
    }
    return made;
}

static void add_gradients(fed *f)
{
    random_graph *g = &f->random;
    bel_value *y = draw_value(g), *wanted[POOL], *gradients[POOL];
    bel_value *loss = bel_mean(g->graph, bel_mul(g->graph, y, y));
    int count = (int)g->graph->variable_count < 6 ? (int)g->graph->variable_count : 6;
    for (int v = 0; v < count; v++)
        wanted[v] = g->graph->variables[v].value;
    bel_dtype kept = draw(g, 2) == 0 ? BEL_DTYPE_F32 : BEL_DTYPE_BF16;
    bel_gradients_keeping(g->graph, kept, loss, wanted, count, gradients);
    f->outputs[f->output_count++] = (bel_program_output){.value = loss};
    for (int v = 0; v < count; v++) {
        if (gradients[v] == NULL) continue;
        f->outputs[f->output_count++] =
            (bel_program_output){.value = gradients[v], .external = true};
    }
}

// Returns false if the graph has an operation without a gradient.
static bool feed(fed *f, uint64_t seed)
{
    random_graph *g = &f->random;
    *f = (fed){.output_count = 0};
    random_graph_start(g, seed);
    random_graph_grow(g);
    int count = 1 + (int)draw(g, 3);
    for (int i = 0; i < count; i++) {
        f->outputs[f->output_count++] =
            (bel_program_output){.value = draw_value(g), .external = draw(g, 2) == 0};
    }
    if (draw(g, 2) == 0) add_gradients(f);
    bel_status *status = bel_graph_check(g->graph);
    bool good = status == NULL;
    bel_status_ignore(status); // the caller counts it
    if (!good) return false;
    for (int i = 0; i < 3; i++) {
        f->shapes[i] = bel_value_shape(g->graph->inputs[i].value);
        f->inputs[i] = numbers(seed + (uint64_t)i, bel_shape_elements(&f->shapes[i]));
    }
    for (size_t v = 0; v < g->graph->variable_count; v++) {
        bel_shape shape = bel_value_shape(g->graph->variables[v].value);
        for (uint64_t set = 0; set < 2; set++)
            f->variables[set][v] = numbers(seed + 10 * set + v, bel_shape_elements(&shape));
    }
    return true;
}

static void unfeed(fed *f)
{
    for (int i = 0; i < 3; i++)
        bel_free(f->inputs[i]);
    for (int v = 0; v < POOL; v++) {
        bel_free(f->variables[0][v]);
        bel_free(f->variables[1][v]);
    }
    bel_graph_destroy(f->random.graph);
}

static void start(fed *f, const bel_program_options *options, running *r)
{
    BEL_ASSERT_OK(bel_program_compile(f->random.graph, f->shapes, f->outputs, f->output_count,
                                      options, &r->program));
    size_t bytes = bel_program_arena_bytes(r->program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "arena", &r->arena));
    r->instance = bel_instance_create(r->program, r->arena);
    for (int o = 0; o < f->output_count; o++) {
        bel_tensor tensor = bel_instance_output(r->instance, o);
        r->results[o] = bel_xcalloc(bel_tensor_bytes(&tensor) + 1, 1);
        bel_instance_bind_output(r->instance, o, r->results[o]);
    }
}

static void stop(running *r, int output_count)
{
    for (int o = 0; o < output_count; o++)
        bel_free(r->results[o]);
    bel_instance_destroy(r->instance);
    bel_pages_destroy(r->arena, bel_program_arena_bytes(r->program) + 64);
    bel_program_destroy(r->program);
}

static void run(fed *f, running *r, bel_team *team, int number)
{
    memset(r->arena, 0xff, bel_program_arena_bytes(r->program)); // another program's bytes
    for (int i = 0; i < 3; i++)
        bel_instance_bind_input(r->instance, i, f->inputs[i]);
    for (size_t v = 0; v < f->random.graph->variable_count; v++)
        bel_instance_bind_variable(r->instance, (int)v, f->variables[number / 2][v]);
    bel_run_context context = {.seed = 5, .step = number};
    BEL_ASSERT_OK(bel_instance_run(r->instance, team, &context, NULL, NULL));
}

static void print_graphs(const fed *f, const bel_program *program)
{
    bel_value *values[MOST_OUTPUTS], *rewritten[MOST_OUTPUTS];
    const bel_graph *graph = f->random.graph, *made = program->rewritten.graph;
    for (int o = 0; o < f->output_count; o++) {
        values[o] = f->outputs[o].value;
        rewritten[o] = made != NULL ? program->rewritten.values[values[o]->id] : values[o];
    }
    bel_str text = {0};
    bel_spec *specs = bel_xcalloc(graph->value_count, sizeof *specs);
    BEL_ASSERT_OK(bel_graph_infer(graph, f->shapes, specs));
    bel_str_puts(&text, "before:\n");
    bel_graph_dump(graph, specs, values, f->output_count, &text);
    bel_free(specs);
    if (made != NULL) {
        bel_str_puts(&text, "after:\n");
        bel_graph_dump(made, NULL, rewritten, f->output_count, &text);
    }
    print_error("%s", text.text);
    bel_str_deinit(&text);
}

static bool same_bits(const bel_tensor *a, const bel_tensor *b)
{
    if (a->dtype != BEL_DTYPE_F32) return memcmp(a->data, b->data, bel_tensor_bytes(a)) == 0;
    const float *p = a->data, *q = b->data;
    for (int64_t i = 0; i < bel_shape_elements(&a->shape); i++)
        if (memcmp(&p[i], &q[i], sizeof p[i]) != 0 && !(isnan(p[i]) && isnan(q[i]))) return false;
    return true;
}

// Returns the lowest of some limits that the program can keep; 0: no limit.
static size_t find_limit(const fed *f, const bel_program_options *options)
{
    enum { PARTS = 8 };
    size_t whole = 0, found = 0;
    for (size_t parts = PARTS; parts > 0; parts--) {
        bel_program_options limited = *options;
        limited.memory_bytes = parts == PARTS ? 0 : whole * parts / PARTS;
        bel_program *program;
        bel_status *status = bel_program_compile(f->random.graph, f->shapes, f->outputs,
                                                 f->output_count, &limited, &program);
        if (status != NULL) {
            assert_int_equal(bel_status_code(status), BEL_RESOURCE_EXHAUSTED);
            bel_status_destroy(status);
            break;
        }
        size_t bytes = bel_program_arena_bytes(program);
        bel_program_destroy(program);
        if (parts == PARTS) whole = bytes;
        if (whole == 0) break;
        if (parts < PARTS) assert_true(bytes <= limited.memory_bytes);
        found = limited.memory_bytes;
    }
    return found;
}

static void check_graph(fed *f, uint64_t seed, bel_team *team, int *counts, int *repeated)
{
    const bel_program_options plain_options = {.passes_off = BEL_PASSES_ALL};
    unsigned off = draw(&f->random, 2) == 0 ? 0 : (unsigned)draw(&f->random, BEL_PASSES_ALL + 1);
    bel_program_options options = {.passes_off = off, .fixed_variables = draw(&f->random, 2) == 0};
    if (draw(&f->random, 4) == 0) options.memory_bytes = find_limit(f, &options);
    running plain, made;
    start(f, &plain_options, &plain);
    start(f, &options, &made);
    for (int number = 0; number < RUNS; number++) {
        if (number > 0) f->inputs[2][0] += 1;
        run(f, &plain, team, number);
        run(f, &made, team, number);
        for (int o = 0; o < f->output_count; o++) {
            bel_tensor expected = bel_instance_output(plain.instance, o);
            bel_tensor got = bel_instance_output(made.instance, o);
            if (bel_shape_equal(&expected.shape, &got.shape) && same_bits(&expected, &got))
                continue;
            print_graphs(f, made.program);
            fail_msg("seed %llu, passes off %#x, run %d: output %d (%s) differs",
                     (unsigned long long)seed, off, number, o, f->outputs[o].value->node->name);
        }
    }
    for (int p = 0; p < BEL_PASS_COUNT; p++)
        counts[p] += made.program->rewritten.counts[p];
    *repeated += bel_program_repeated_count(made.program);
    counts[BEL_PASS_HOIST] += bel_program_prologue_count(made.program);
    stop(&plain, f->output_count);
    stop(&made, f->output_count);
}

// BELFRY_SEED repeats one graph, BELFRY_GRAPHS sets the number of graphs.
static void test_random_graphs(void **state)
{
    (void)state;
    const char *only = getenv("BELFRY_SEED"), *more = getenv("BELFRY_GRAPHS");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 0;
    uint64_t end = only != NULL ? first + 1 : more != NULL ? strtoull(more, NULL, 10) : GRAPHS;
    int counts[BEL_PASS_COUNT] = {0}, refused = 0, repeated = 0;
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    for (uint64_t seed = first; seed < end; seed++) {
        fed f;
        if (feed(&f, seed)) {
            check_graph(&f, seed, team, counts, &repeated);
        } else {
            refused++;
        }
        unfeed(&f);
    }
    bel_team_destroy(team);
    if (only != NULL) return;
    assert_true((uint64_t)refused < end / 10);
    if (repeated < 100) fail_msg("%d operations were run again", repeated);
    for (int p = 0; p < BEL_PASS_COUNT; p++)
        if (counts[p] < 100 && p != BEL_PASS_CHUNK) // its values are too large: test_passes.c
            fail_msg("pass %s found %d nodes", bel_pass_name((bel_pass)p), counts[p]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
