// Tests of matrix products against chains of fused multiply-adds: the same bits, whatever the
// shapes, the order of elements and the start of the sums.
#include "ops/kernels/product.h"

#include <math.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/openblas.h"
#include "support/bel_test.h"

static bel_product_fn *multiply = bel_product_run;
static double tolerance; // 0: the same bits

typedef enum start_kind { FROM_ZERO, FROM_ROW, FROM_Y, START_KINDS } start_kind;

typedef struct product_case {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    start_kind start;
} product_case;

// Room for `count` floats, followed by inaccessible memory. Free with release.
typedef struct room {
    void *pages;
    size_t bytes;
    float *floats;
} room;

static room make_room(int64_t count)
{
    enum { PAGE = 4096 };
    size_t used = ((size_t)count * sizeof(float) + PAGE - 1) / PAGE * PAGE;
    room r = {.bytes = used + PAGE};
    BEL_ASSERT_OK(bel_pages_create(r.bytes, false, "operand", &r.pages));
    assert_int_equal(mprotect((char *)r.pages + used, PAGE, PROT_NONE), 0);
    r.floats = (float *)(void *)((char *)r.pages + used) - count;
    return r;
}

static void release(room *r)
{
    bel_pages_destroy(r->pages, r->bytes);
}

static void fill(float *x, int64_t count, int64_t factor)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i + 1) * factor % 2003) / 1001.0f - 1.0f;
}

// y has one column more than the product. It must stay unchanged.
static void check(const product_case *c)
{
    enum { GUARD = 7 };
    int64_t y_row = c->n + 1;
    room rooms[] = {make_room(c->m * c->k), make_room(c->k * c->n), make_room(c->n),
                    make_room(c->m * y_row)};
    float *a = rooms[0].floats, *b = rooms[1].floats, *row = rooms[2].floats, *y = rooms[3].floats;
    float *before = bel_xcalloc((size_t)(c->m * y_row) + 1, sizeof *y);
    fill(a, c->m * c->k, 7919);
    fill(b, c->k * c->n, 104729);
    fill(row, c->n, 1299709);
    fill(before, c->m * y_row, 15485863);
    for (int64_t i = 0; i < c->m; i++)
        before[i * y_row + c->n] = GUARD;
    memcpy(y, before, (size_t)(c->m * y_row) * sizeof *y);
    bel_product product = {.m = c->m,
                           .n = c->n,
                           .k = c->k,
                           .a = a,
                           .a_row = c->transpose_a ? 1 : c->k,
                           .a_column = c->transpose_a ? c->m : 1,
                           .b = b,
                           .b_row = c->transpose_b ? 1 : c->n,
                           .b_column = c->transpose_b ? c->k : 1,
                           .start = c->start == FROM_ROW ? row
                                    : c->start == FROM_Y ? y
                                                         : NULL,
                           .start_is_row = c->start == FROM_ROW,
                           .y = y,
                           .y_row = y_row};
    multiply(&product);
    for (int64_t i = 0; i < c->m; i++) {
        assert_true(y[i * y_row + c->n] == GUARD);
        for (int64_t j = 0; j < c->n; j++) {
            float sum = c->start == FROM_ROW ? row[j]
                        : c->start == FROM_Y ? before[i * y_row + j]
                                             : 0;
            for (int64_t q = 0; q < c->k; q++)
                sum = fmaf(a[i * product.a_row + q * product.a_column],
                           b[q * product.b_row + j * product.b_column], sum);
            if (memcmp(&y[i * y_row + j], &sum, sizeof sum) == 0) continue;
            if (fabs((double)y[i * y_row + j] - (double)sum) < tolerance) continue;
            fail_msg("%lld x %lld x %lld%s%s, start %d: element (%lld, %lld) is %a, expected %a",
                     (long long)c->m, (long long)c->n, (long long)c->k,
                     c->transpose_a ? ", a transposed" : "", c->transpose_b ? ", b transposed" : "",
                     c->start, (long long)i, (long long)j, (double)y[i * y_row + j], (double)sum);
        }
    }
    for (int i = 0; i < 4; i++)
        release(&rooms[i]);
    bel_free(before);
}

static void check_shape(int64_t m, int64_t n, int64_t k)
{
    for (int variant = 0; variant < 4 * START_KINDS; variant++) {
        check(&(product_case){.m = m,
                              .n = n,
                              .k = k,
                              .transpose_a = variant % 2 == 1,
                              .transpose_b = variant / 2 % 2 == 1,
                              .start = (start_kind)(variant / 4)});
    }
}

// OpenBLAS adds in another order: the result is near, and nothing beside the product is touched.
static void openblas(void **state)
{
    (void)state;
    bel_status *status = bel_openblas_open();
    if (status != NULL) {
        print_message("left out: %s\n", bel_status_message(status));
        bel_status_destroy(status);
        skip();
    }
    tolerance = 1e-5;
    multiply = bel_product_run_openblas;
    static const int64_t sizes[] = {0, 1, 2, 7, 16, 33};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (int at = 0; at < SIZES * SIZES * SIZES; at++)
        check_shape(sizes[at % SIZES], sizes[at / SIZES % SIZES], sizes[at / SIZES / SIZES]);
    tolerance = 0;
    multiply = bel_product_run;
}

static void small_shapes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 5, 6, 7, 12, 13, 16, 17, 33, 48};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    for (int at = 0; at < SIZES * SIZES * SIZES; at++)
        check_shape(sizes[at % SIZES], sizes[at / SIZES % SIZES], sizes[at / SIZES / SIZES]);
}

// More than one part of every dimension.
static void large_shapes(void **state)
{
    (void)state;
    check_shape(64, 130, 257);
    check_shape(203, 50, 300);
    check_shape(100, 150, 600);
    check_shape(20, 2100, 17);
    check_shape(1100, 40, 33);
    check_shape(3, 200, 1000);
    check_shape(300, 1, 200);
    check_shape(530, 4, 70);
    check_shape(600, 12, 40);
    check_shape(1, 300, 300);
    check_shape(1, 600, 450); // from memory
    check_shape(1, 2099, 129);
    check_shape(1, 33000, 8);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_shapes),
        cmocka_unit_test(large_shapes),
        cmocka_unit_test(openblas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
