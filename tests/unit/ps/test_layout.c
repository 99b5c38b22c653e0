// Parameter space: properties of the layout for random lists of variables and 1 to 5 shards.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "ps/layout/initial.h"
#include "ps/layout/norms.h"
#include "ps/layout/space.h"
#include "support/bel_test.h"

enum { MAX_VARIABLES = 12, LISTS = 60 };

static uint32_t random_number(uint64_t list, uint64_t index)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{11, 12}}, list, index, words);
    return words[0];
}

// A list with small and large variables of all kinds; free the names.
static int random_variables(uint64_t list, bel_layout_variable *out)
{
    static const int64_t largest[] = {3, 100, 5000, 20000, 150000};
    int count = 1 + (int)(random_number(list, 0) % MAX_VARIABLES);
    for (int v = 0; v < count; v++) {
        uint64_t at = 10 * (uint64_t)v;
        int64_t limit = largest[random_number(list, at + 1) % 5];
        int64_t rows = 1 + random_number(list, at + 2) % limit;
        out[v] =
            (bel_layout_variable){.name = bel_strf("v%d", v),
                                  .shape = BEL_SHAPE(rows, 1 + random_number(list, at + 3) % 3),
                                  .kind = (bel_variable_kind)(random_number(list, at + 4) % 4),
                                  .initializer = {.kind = BEL_INIT_NORMAL, .value = 1}};
    }
    return count;
}

static void check_variables(const bel_layout *layout)
{
    int64_t end = 0, grains = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        assert_true(variable->offset >= end && variable->offset < end + BEL_LAYOUT_PAGE);
        bool large = variable->elements >= BEL_GRAIN;
        assert_int_equal(variable->offset % (large ? BEL_LAYOUT_PAGE : BEL_LAYOUT_ALIGN), 0);
        assert_int_equal(variable->elements, bel_shape_elements(&variable->shape));
        assert_int_equal(variable->first_grain, grains);
        end = variable->offset + variable->elements;
        grains += bel_grains_of(variable->elements);
        assert_int_equal(bel_layout_find(layout, variable->name), v);
    }
    assert_true(layout->size >= end && layout->size < end + BEL_LAYOUT_ALIGN);
    assert_int_equal(layout->grain_count, grains);
    assert_int_equal(bel_layout_find(layout, "nothing"), -1);
}

// Checks that segments cover the variables in order, each element once, and are cut only at grain
// boundaries.
static void check_segments(const bel_layout *layout)
{
    int segment = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        int64_t covered = 0;
        while (covered < variable->elements) {
            assert_true(segment < layout->segment_count);
            const bel_segment *s = &layout->segments[segment++];
            assert_int_equal(s->variable, v);
            assert_int_equal(s->first, covered);
            assert_int_equal(s->first % BEL_GRAIN, 0);
            assert_int_equal(s->offset, variable->offset + s->first);
            assert_true(s->count > 0);
            covered += s->count;
        }
        assert_int_equal(covered, variable->elements);
    }
    assert_int_equal(segment, layout->segment_count);
}

static void check_chunks(const bel_layout *layout)
{
    int segment = 0;
    int64_t end = 0, most = 0, load[5] = {0};
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        assert_int_equal(chunk->first_segment, segment);
        assert_true(chunk->segment_count > 0 && chunk->offset >= end);
        assert_int_equal(chunk->offset % BEL_LAYOUT_PAGE, 0);
        assert_in_range(chunk->shard, 0, layout->shard_count - 1);
        for (int s = 0; s < chunk->segment_count; s++, segment++) {
            const bel_segment *part = &layout->segments[segment];
            const bel_layout_variable *variable = &layout->variables[part->variable];
            assert_int_equal(variable->kind, chunk->kind);
            if (part->first == 0) assert_int_equal(variable->first_chunk, c);
            end = part->offset + part->count;
            assert_true(part->offset >= chunk->offset && end <= chunk->offset + chunk->count);
        }
        assert_int_equal(end, chunk->offset + chunk->count);
        if (chunk->count > most) most = chunk->count;
        load[chunk->shard] += chunk->count;
    }
    assert_int_equal(segment, layout->segment_count);
    for (int a = 0; a < layout->shard_count; a++)
        for (int b = 0; b < a; b++)
            assert_true(llabs(load[a] - load[b]) <= most); // balanced within one chunk
}

// The lists of all shards have every grain once: unpacked elsewhere they give the same array.
static void check_norms(const bel_layout *layout)
{
    size_t sum = 0, grains = (size_t)layout->grain_count;
    double *from = bel_xcalloc(2 * grains, sizeof *from), *to = bel_xcalloc(2 * grains, sizeof *to);
    for (size_t i = 0; i < 2 * grains; i++)
        from[i] = 1.0 + (double)i;
    for (int planes = 1; planes <= 2; planes++) {
        for (int k = 0; k < layout->shard_count; k++) {
            size_t count = bel_norms_count(layout, k), bytes = count * (size_t)planes;
            double *list = bel_xcalloc(bytes + 1, sizeof *list);
            bel_norms_pack(layout, k, planes, from, list);
            bel_norms_unpack(layout, k, planes, list, to);
            assert_true(list[bytes] == 0); // nothing after the end
            bel_free(list);
            sum += count;
        }
        assert_memory_equal(to, from, (size_t)planes * grains * sizeof *to);
    }
    assert_int_equal(sum, 2 * grains);
    bel_free(from);
    bel_free(to);
}

static void test_properties(void **state)
{
    (void)state;
    for (uint64_t list = 0; list < LISTS; list++) {
        bel_layout_variable variables[MAX_VARIABLES];
        int count = random_variables(list, variables);
        uint64_t fingerprint = 0;
        for (int shards = 1; shards <= 5; shards++) {
            bel_layout *layout = bel_layout_create(variables, count, shards);
            check_variables(layout);
            check_segments(layout);
            check_chunks(layout);
            check_norms(layout);
            if (shards == 1) fingerprint = bel_layout_fingerprint(layout);
            assert_true(bel_layout_fingerprint(layout) == fingerprint); // shards do not matter
            bel_layout_destroy(layout);
        }
        for (int v = 0; v < count; v++)
            bel_free(variables[v].name);
    }
}

static uint64_t fingerprint_of(bel_layout_variable variable)
{
    bel_layout *layout = bel_layout_create(&variable, 1, 1);
    uint64_t fingerprint = bel_layout_fingerprint(layout);
    bel_layout_destroy(layout);
    return fingerprint;
}

static void test_fingerprint(void **state)
{
    (void)state;
    char w[] = "w", x[] = "x";
    bel_layout_variable base = {.name = w, .shape = BEL_SHAPE(2, 3)};
    bel_layout_variable name = base, shape = base, kind = base, start = base;
    name.name = x;
    shape.shape = BEL_SHAPE(3, 2);
    kind.kind = BEL_VARIABLE_FROZEN;
    start.initializer.value = 7; // initial values are not part of the agreement
    assert_true(fingerprint_of(base) != fingerprint_of(name));
    assert_true(fingerprint_of(base) != fingerprint_of(shape));
    assert_true(fingerprint_of(base) != fingerprint_of(kind));
    assert_true(fingerprint_of(base) == fingerprint_of(start));
}

// Initial values depend only on seed and name, and have the requested moments.
static void test_initial_values(void **state)
{
    (void)state;
    enum { ROWS = 100, COLUMNS = 200, COUNT = ROWS * COLUMNS };
    char first[] = "first", w[] = "w";
    static const struct {
        bel_initializer initializer;
        double deviation, bound;
    } rows[] = {{{BEL_INIT_ZEROS, 0}, 0, 0},
                {{BEL_INIT_UNIFORM, 3}, 3 / 1.7320508, 3},
                {{BEL_INIT_NORMAL, 2}, 2, 12},
                {{BEL_INIT_GLOROT_UNIFORM, 0}, 0.1414214 / 1.7320508, 0.1414214},
                {{BEL_INIT_HE_NORMAL, 0}, 0.1414214, 1},
                {{BEL_INIT_TRUNCATED_NORMAL, 2}, 2 * 0.8796257, 4},
                {{BEL_INIT_GLOROT_NORMAL, 0}, 0.0816497, 0.6},
                {{BEL_INIT_HE_UNIFORM, 0}, 0.2449490 / 1.7320508, 0.2449490},
                {{BEL_INIT_ORTHOGONAL, 3}, 3 / 14.1421356, 1.5}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        bel_layout_variable pair[2] = {
            {.name = first, .shape = BEL_SHAPE(5)},
            {.name = w, .shape = BEL_SHAPE(ROWS, COLUMNS), .initializer = rows[r].initializer}};
        bel_layout *both = bel_layout_create(pair, 2, 1),
                   *alone = bel_layout_create(pair + 1, 1, 2);
        float *a, *b;
        BEL_ASSERT_OK(bel_space_array(both, "values", &a));
        BEL_ASSERT_OK(bel_space_array(alone, "values", &b));
        BEL_ASSERT_OK(bel_space_initialize(both, 42, a));
        BEL_ASSERT_OK(bel_space_initialize(alone, 42, b));
        const float *values = a + both->variables[1].offset;
        assert_memory_equal(values, b, COUNT * sizeof *b);
        double sum = 0, squares = 0;
        for (int i = 0; i < COUNT; i++) {
            assert_true((double)values[i] >= -rows[r].bound && (double)values[i] <= rows[r].bound);
            sum += (double)values[i];
            squares += (double)values[i] * (double)values[i];
        }
        double variance = rows[r].deviation * rows[r].deviation;
        assert_true(sum * sum / COUNT <= 25 * variance); // 5 deviations of the mean
        assert_true(squares / COUNT <= variance * 1.05 && squares / COUNT >= variance * 0.95);
        BEL_ASSERT_OK(bel_space_initialize(alone, 43, b));
        if (variance > 0) assert_memory_not_equal(values, b, COUNT * sizeof *b);
        bel_space_free_array(both, a);
        bel_space_free_array(alone, b);
        bel_layout_destroy(both);
        bel_layout_destroy(alone);
    }
}

static void test_constants(void **state)
{
    (void)state;
    static const struct {
        bel_initializer initializer;
        float value;
    } rows[] = {{{BEL_INIT_ZEROS, 7}, 0}, {{BEL_INIT_ONES, 7}, 1}, {{BEL_INIT_CONSTANT, 7}, 7}};
    char w[] = "w";
    for (int r = 0; r < 3; r++) {
        float values[5] = {-1, -1, -1, -1, -1};
        bel_layout_variable variable = {
            .name = w, .shape = BEL_SHAPE(4), .elements = 4, .initializer = rows[r].initializer};
        BEL_ASSERT_OK(bel_initial_values(&variable, 1, values));
        for (int i = 0; i < 4; i++)
            assert_true(values[i] == rows[r].value);
        assert_true(values[4] == -1);
    }
}

// Inner product of row or column i and row or column j.
static double inner(const float *q, int64_t i, int64_t j, int64_t step, int64_t next, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += (double)q[i * step + k * next] * (double)q[j * step + k * next];
    return sum;
}

// Columns are orthonormal, or rows if these are fewer, for any shape. Signs show no pattern.
static void test_orthogonal(void **state)
{
    (void)state;
    const bel_shape shapes[] = {BEL_SHAPE(40, 40), BEL_SHAPE(37, 11), BEL_SHAPE(9, 4, 3, 2),
                                BEL_SHAPE(1, 7),   BEL_SHAPE(7),      BEL_SHAPE(1, 1)};
    char w[] = "w";
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        float q[1600];
        int64_t rows = shapes[s].dims[0];
        bel_layout_variable variable = {.name = w,
                                        .shape = shapes[s],
                                        .elements = bel_shape_elements(&shapes[s]),
                                        .initializer = {.kind = BEL_INIT_ORTHOGONAL}};
        int64_t columns = variable.elements / rows;
        BEL_ASSERT_OK(bel_initial_values(&variable, 5, q));
        bool tall = rows >= columns;
        int64_t count = tall ? columns : rows;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = 0; j < count; j++) {
                double product =
                    inner(q, i, j, tall ? 1 : columns, tall ? columns : 1, tall ? rows : columns);
                assert_true(fabs(product - (i == j)) < 1e-6);
            }
        int positive = 0;
        for (int64_t i = 0; i < count; i++)
            positive += q[i * columns + i] > 0;
        if (s == 0) assert_true(positive > 8 && positive < 32); // all one sign without R's signs
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),     cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_initial_values), cmocka_unit_test(test_constants),
        cmocka_unit_test(test_orthogonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
