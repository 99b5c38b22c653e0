// report.html: complete, well-formed, escaped, free of links, and valid for any numbers.
#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/str.h"
#include "report/report.h"
#include "report/report_chart.h"
#include "support/bel_test.h"

// Writes a report and returns its text; free with bel_free.
static char *render(const bel_report *report)
{
    char *path = bel_path_join(bel_test_own_folder(), "report.html"), *text;
    size_t size;
    BEL_ASSERT_OK(bel_report_write(report, path));
    BEL_ASSERT_OK(bel_file_read(path, &text, &size));
    assert_int_equal(strlen(text), size);
    bel_free(path);
    return text;
}

static char *render_series(const bel_report_series *series, int series_count)
{
    const bel_report_chart chart = {"Loss", "nats", series, series_count, NULL};
    const bel_report report = {.title = "t", .charts = &chart, .chart_count = 1};
    return render(&report);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

#define ASSERT_HAS(text, part) assert_non_null(strstr((text), (part)))

// Checks that every opened tag closes, in order. Elements without an end tag are those of HTML or
// end in "/>".
static void assert_well_formed(const char *text)
{
    char open[64][16];
    int depth = 0;
    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
        bool closes = at[1] == '/';
        const char *name = at + 1 + closes;
        size_t length = strcspn(name, " />");
        const char *end = strchr(at, '>');
        assert_non_null(end);
        if (at[1] == '!' || strncmp(name, "meta", 4) == 0 || end[-1] == '/') continue;
        assert_true(length > 0 && length < sizeof open[0]);
        if (closes) {
            assert_true(depth > 0);
            depth--;
            assert_true(strlen(open[depth]) == length && strncmp(open[depth], name, length) == 0);
            continue;
        }
        assert_true(depth < 64);
        memcpy(open[depth], name, length);
        open[depth++][length] = '\0';
        if (strncmp(name, "script", 6) == 0) at = strstr(at, "</script>") - 1; // may contain "<"
    }
    assert_int_equal(depth, 0);
}

static void assert_self_contained(const char *text)
{
    static const char *const outward[] = {
        "http:", "https:", "//", "src=", "href=", "url(", "<link", "@import", "fetch(", "<img"};
    for (size_t i = 0; i < sizeof outward / sizeof outward[0]; i++)
        assert_null(strstr(text, outward[i]));
}

// Checks that no coordinate or number in a drawing is NaN or infinite.
static void assert_finite_drawings(const char *text)
{
    for (const char *svg = strstr(text, "<svg"); svg != NULL; svg = strstr(svg + 1, "<svg")) {
        const char *end = strstr(svg, "</svg>");
        const char *nan = strstr(svg, "nan"), *inf = strstr(svg, "inf");
        assert_true(nan == NULL || nan > end);
        assert_true(inf == NULL || inf > end);
    }
}

// --- The page -----------------------------------------------------------------------------------

static const int64_t steps[] = {0, 500, 1000, 1500};
static const double falling[] = {2.5, 1.25, 0.75, 0.5};
static const double rising[] = {0.1, 0.6, 0.8, 0.9};

static const bel_report_series loss[] = {{"train", steps, falling, 4}, {"eval", steps, rising, 4}};
static const bel_report_series rate[] = {{"dense & <b>wide</b>", steps, rising, 3}};
static const bel_report_chart charts[] = {{"Loss", "cross-entropy", loss, 2, NULL},
                                          {"Learning rate", NULL, rate, 1, NULL}};
static const bel_report_part parts[] = {{"input", 1.0, NULL},
                                        {"compute", 6.0, "<forward>"},
                                        {"exchange", 2.0, NULL},
                                        {"wait", 1.0, "for it"},
                                        {"other", -0.5, NULL}};
static const bel_report_tile tiles[] = {{"final accuracy", "98.31 %"},
                                        {"digest", "0123456789abcdef0123456789abcdef"}};
static const bel_report_setting settings[] = {{"learning_rate", "0.001"}, {"data", "\"a\" & 'b'"}};
static const char *const columns[] = {"Worker", "steps", "<memory>"};
static const char *const cells[] = {"worker 0", "1,500", "1 MiB", "worker 1", "1,499", "& more"};
static const bel_report_table tables[] = {{"Cluster", "No \"restart\".", columns, 3, cells, 2},
                                          {NULL, NULL, columns, 3, cells, 1},
                                          {"What was read", "Nothing.", NULL, 0, NULL, 0}};
static const bel_report full = {
    .title = "<script>alert(\"x\")</script> & more",
    .subtitle = "a\tb\x01'c'",
    .tiles = tiles,
    .tile_count = 2,
    .charts = charts,
    .chart_count = 2,
    .parts = parts,
    .part_count = 5,
    .tables = tables,
    .table_count = 3,
    .settings = settings,
    .setting_count = 2,
    .other_settings = &settings[1],
    .other_setting_count = 1,
};

static void test_everything_is_on_the_page(void **state)
{
    (void)state;
    char *text = render(&full);
    assert_well_formed(text);
    assert_self_contained(text);
    assert_int_equal(count_of(text, "<svg"), 2);
    assert_int_equal(count_of(text, "class=\"line "), 3);
    ASSERT_HAS(text, "data-name=\"train\"");
    ASSERT_HAS(text, "data-name=\"eval\"");
    ASSERT_HAS(text, "cross-entropy");
    ASSERT_HAS(text, "98.31 %");
    ASSERT_HAS(text, "0123456789abcdef0123456789abcdef");
    ASSERT_HAS(text, "<h2>Settings that determine the result</h2>");
    ASSERT_HAS(text, "<td>learning_rate</td><td>0.001</td>");
    ASSERT_HAS(strstr(text, "<h2>Other settings</h2>"), "<td>data</td>");
    ASSERT_HAS(text, "<h2>Cluster</h2>\n<div class=\"card\">\n<p>No &quot;restart&quot;.</p>");
    ASSERT_HAS(text, "<th>Worker</th><th class=\"n\">steps</th><th class=\"n\">&lt;memory&gt;");
    ASSERT_HAS(text, "<tr><td>worker 1</td><td class=\"n\">1,499</td><td class=\"n\">&amp; more");
    assert_int_equal(count_of(text, "<table class=\"facts\">"), 2);
    ASSERT_HAS(text, "<p>Nothing.</p>\n</div>");
    ASSERT_HAS(text, "compute</td><td class=\"n\">6.00 ms</td><td class=\"n\">60.0 %");
    ASSERT_HAS(text, "60.0 %</td><td><small>&lt;forward&gt;</small></td>");
    ASSERT_HAS(text, "other</td><td class=\"n\">0.00 ms</td><td class=\"n\">0.0 %");
    ASSERT_HAS(text, "a step</td><td class=\"n\">10.00 ms</td><td class=\"n\">100.0 %");
    bel_free(text);
}

static void test_texts_are_escaped(void **state)
{
    (void)state;
    char *text = render(&full);
    static const char title[] = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; more";
    assert_int_equal(count_of(text, title), 2); // <title> and <h1>
    assert_null(strstr(text, "<script>alert"));
    assert_null(strstr(text, "<b>"));
    assert_int_equal(count_of(text, "dense &amp; &lt;b&gt;wide&lt;/b&gt;"), 2); // legend, read-out
    ASSERT_HAS(text, "a b &#39;c&#39;");
    ASSERT_HAS(text, "&quot;a&quot; &amp; &#39;b&#39;");
    bel_free(text);
}

static void test_an_empty_report_is_a_page(void **state)
{
    (void)state;
    const bel_report report = {.title = "nothing yet"};
    char *text = render(&report);
    assert_well_formed(text);
    assert_self_contained(text);
    assert_null(strstr(text, "<h2>"));
    bel_free(text);
}

static void test_evaluations(void **state)
{
    (void)state;
    double counts[] = {1200, 300, 0, 0}; // no example has the second label
    bel_details details = {.step = 40, .classes = 2, .confusion = counts, .roc_count = 1};
    const bel_details none = {.step = 40};
    details.rocs[0] = (bel_roc){.name = "auc <1>",
                                .no = {0, 0.5, 1},
                                .yes = {0, 1, 1},
                                .precision = {1, 0.5, 0.25},
                                .count = 3};
    const bel_report_evaluation evaluations[] = {{"eval", &none}, {"eval_<b>", &details}};
    const bel_report report = {.title = "t", .evaluations = evaluations, .evaluation_count = 2};
    char *text = render(&report);
    assert_well_formed(text);
    assert_self_contained(text);
    ASSERT_HAS(text, "The last evaluation");
    ASSERT_HAS(text, "Confusion matrix, eval_&lt;b&gt;");
    ASSERT_HAS(text, "<span>1,200</span>");
    ASSERT_HAS(text, "80.0 %");
    assert_int_equal(count_of(text, "ROC of auc &lt;1&gt;"), 2); // title and label
    ASSERT_HAS(text, "<figure class=\"matrix few\">");
    assert_finite_drawings(text);
    ASSERT_HAS(text, "d=\"M40.0 310.0L190.0 10.0L340.0 10.0\"");
    assert_int_equal(count_of(text, "Precision and recall of auc &lt;1&gt;"), 2);
    ASSERT_HAS(text, "d=\"M40.0 10.0L340.0 160.0L340.0 235.0\"");
    assert_int_equal(count_of(text, "<figure"), 3);
    assert_null(strstr(text, "nan"));
    ASSERT_HAS(text, "<th>1</th>");
    bel_free(text);
    const bel_report named = {.title = "t",
                              .about = "a.csv, 3 examples; label \"y\"",
                              .evaluations = evaluations,
                              .evaluation_count = 2,
                              .classes = (const char *const[]){"no", "<yes>"},
                              .class_count = 2};
    text = render(&named);
    assert_well_formed(text);
    assert_int_equal(count_of(text, "<th>&lt;yes&gt;</th>"), 2);
    assert_null(strstr(text, "<th>1</th>"));
    ASSERT_HAS(text, "<p class=\"sub\">a.csv, 3 examples; label &quot;y&quot;</p>");
    bel_free(text);
}

// A single point between gaps has a mark, and so has each point of a short curve.
static void test_marks(void **state)
{
    (void)state;
    enum { MANY = 100 };
    int64_t at[MANY];
    double values[MANY];
    for (int i = 0; i < MANY; i++) {
        at[i] = i;
        values[i] = i == 50 || i == 52 ? NAN : (double)i;
    }
    const bel_report_series series[] = {{"many", at, values, MANY}, {"few", at, values, 3}};
    const bel_report_chart two[] = {{"many", NULL, series, 1, NULL},
                                    {"few", NULL, series + 1, 1, "workers"}};
    const bel_report report = {.title = "t", .charts = two, .chart_count = 2};
    char *text = render(&report);
    assert_well_formed(text);
    assert_int_equal(count_of(text, "<circle class=\"mark c0\""), 1 + 3);
    bel_free(text);
}

static void test_the_same_report_gives_the_same_bytes(void **state)
{
    (void)state;
    char *first = render(&full), *second = render(&full);
    assert_string_equal(first, second);
    bel_free(first);
    bel_free(second);
}

static void test_a_failed_write_keeps_the_old_page(void **state)
{
    (void)state;
    char *path = bel_test_file(bel_test_own_folder(), "report.html", "old", 3), *text;
    size_t size;
    bel_fault_set("write:1");
    BEL_ASSERT_FAILS(bel_report_write(&full, path), BEL_RESOURCE_EXHAUSTED, path);
    BEL_ASSERT_OK(bel_file_read(path, &text, &size));
    assert_string_equal(text, "old");
    bel_free(text);
    bel_free(path);
}

// --- Charts -------------------------------------------------------------------------------------

static void test_ticks_are_round_and_the_last_value_is_said(void **state)
{
    (void)state;
    char *text = render_series(loss, 2);
    static const char *const ticks[] = {">0.0<", ">0.5<", ">2.5<", ">500<", ">1,000<", ">1,500<"};
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++)
        ASSERT_HAS(text, ticks[i]);
    ASSERT_HAS(text, ">0.5000</text>");
    ASSERT_HAS(text, ">0.9000</text>");
    // The line spans the plot from left to right: 2.5 is at the top, 0.5 at a fifth of the height.
    ASSERT_HAS(text, "d=\"M62.0 12.0L205.3 138.0L348.7 188.4L492.0 213.6\"");
    bel_free(text);
}

static void test_no_point_and_one_point(void **state)
{
    (void)state;
    const bel_report_series none = {"none", NULL, NULL, 0}, one = {"one", steps + 2, falling, 1};
    char *text = render_series(&none, 1);
    assert_well_formed(text);
    ASSERT_HAS(text, "no values");
    bel_free(text);
    text = render_series(NULL, 0);
    ASSERT_HAS(text, "no values");
    bel_free(text);
    text = render_series(&one, 1);
    assert_well_formed(text);
    ASSERT_HAS(text, "d=\"M277.0 138.0h0\""); // a dot in the middle
    ASSERT_HAS(text, ">1,000</text>");
    ASSERT_HAS(text, ">2.500</text>");
    bel_free(text);
}

static void test_values_that_are_not_finite_are_gaps(void **state)
{
    (void)state;
    static const int64_t at[] = {0, 100, 200, 300, 400, 500, 600};
    const double values[] = {1, 2, NAN, 3, INFINITY, -INFINITY, 2};
    const double nothing[] = {NAN, NAN, NAN, NAN, INFINITY, NAN, NAN};
    const bel_report_series series = {"train", at, values, 7}, empty = {"none", at, nothing, 7};
    char *text = render_series(&series, 1);
    ASSERT_HAS(text, "3 not finite");
    ASSERT_HAS(text, "data-points=\"0,1 100,2 300,3 600,2\"");
    const char *line = strstr(text, "class=\"line ");
    const char *path = strstr(line, "d=\"M"), *end = strchr(path + 3, '"');
    int moves = 0;
    for (const char *c = path; c < end; c++)
        moves += *c == 'M';
    assert_int_equal(moves, 3); // 0–100, 300, 600
    assert_finite_drawings(text);
    bel_free(text);
    text = render_series(&empty, 1);
    ASSERT_HAS(text, "no values");
    ASSERT_HAS(text, "7 not finite");
    bel_free(text);
}

static void test_many_points_stay_small_and_no_spike_is_lost(void **state)
{
    (void)state;
    enum { COUNT = 100000, SPIKE = 70001 };
    int64_t *at = bel_xcalloc(COUNT, sizeof *at);
    double *values = bel_xcalloc(COUNT, sizeof *values);
    for (int i = 0; i < COUNT; i++) {
        at[i] = i;
        values[i] = 1.0 + 0.5 * (i % 2);
    }
    values[SPIKE] = 10.0;
    const bel_report_series series = {"train", at, values, COUNT};
    char *text = render_series(&series, 1);
    assert_well_formed(text);
    assert_true(strlen(text) < 60000);
    const char *band = strstr(text, "class=\"band "), *line = strstr(text, "class=\"line ");
    assert_non_null(band);
    assert_true(band < line);                 // below the lines
    const char *top = strstr(band, " 12.0L"); // 10 is the top of the axis
    assert_true(top != NULL && top < line);
    const char *points = strstr(line, "data-points=\"");
    size_t drawn = 1;
    for (const char *c = points; strncmp(c, "\"/>", 3) != 0; c++)
        drawn += *c == ' ';
    assert_in_range(drawn, 400, 432); // one for each column
    ASSERT_HAS(text, ">1.500</text>");
    ASSERT_HAS(text, ">20,000</text>");
    bel_free(text);
    bel_free(at);
    bel_free(values);
}

static void test_extreme_numbers_are_drawn_or_gaps(void **state)
{
    (void)state;
    static const int64_t ends[] = {INT64_MIN, 0, INT64_MAX};
    static const int64_t high[] = {INT64_MAX - 2, INT64_MAX - 1, INT64_MAX};
    static const double values[][3] = {
        {-DBL_MAX, 0, DBL_MAX},
        {DBL_MAX, DBL_MAX, DBL_MAX},
        {5e-324, 1e-320, 0},
        {1e150, -1e150, 0},
        {1e9, 1e9 + 1e-6, 1e9},
        {-7, -7, -7},
        {0, 0, 0},
        {1e-12, 2e-12, 3e-12},
        {123456789, 987654321, 5e11},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const bel_report_series series[] = {{"ends", ends, values[i], 3},
                                            {"high", high, values[i], 3}};
        for (int j = 0; j < 2; j++) {
            char *text = render_series(&series[j], 1);
            assert_well_formed(text);
            assert_finite_drawings(text);
            assert_true(strlen(text) < 20000); // only a few ticks
            bel_free(text);
        }
    }
}

static void test_many_series_share_a_chart(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    bel_report_series series[COUNT];
    char names[COUNT][24];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "series-%02d", i);
        series[i] = (bel_report_series){names[i], steps, falling, 4};
    }
    char *text = render_series(series, COUNT);
    assert_well_formed(text);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(count_of(text, names[i]), 2); // legend and read-out
    bel_free(text);
}

static void test_numbers_read_well(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1.000"},
        {0.012345, "0.01235"},
        {98.314, "98.31"},
        {1234567, "1,234,567"},
        {-4321.5, "\u22124,322"},
        {1.2e-7, "1.2e-07"},
        {3e12, "3e+12"},
        {NAN, "not finite"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_str text = {0};
        bel_report_value(&text, rows[i].value);
        assert_string_equal(text.text, rows[i].text);
        bel_str_deinit(&text);
    }
    bel_str text = {0};
    bel_report_integer(&text, INT64_MIN);
    assert_string_equal(text.text, "\u22129,223,372,036,854,775,808");
    bel_str_deinit(&text);
    bel_report_fixed(&text, -0.04, 1);
    assert_string_equal(text.text, "0.0");
    bel_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_everything_is_on_the_page),
        BEL_TEST_IN_FOLDER(test_texts_are_escaped),
        BEL_TEST_IN_FOLDER(test_an_empty_report_is_a_page),
        BEL_TEST_IN_FOLDER(test_evaluations),
        BEL_TEST_IN_FOLDER(test_marks),
        BEL_TEST_IN_FOLDER(test_the_same_report_gives_the_same_bytes),
        BEL_TEST_IN_FOLDER(test_a_failed_write_keeps_the_old_page),
        BEL_TEST_IN_FOLDER(test_ticks_are_round_and_the_last_value_is_said),
        BEL_TEST_IN_FOLDER(test_no_point_and_one_point),
        BEL_TEST_IN_FOLDER(test_values_that_are_not_finite_are_gaps),
        BEL_TEST_IN_FOLDER(test_many_points_stay_small_and_no_spike_is_lost),
        BEL_TEST_IN_FOLDER(test_extreme_numbers_are_drawn_or_gaps),
        BEL_TEST_IN_FOLDER(test_many_series_share_a_chart),
        cmocka_unit_test(test_numbers_read_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
