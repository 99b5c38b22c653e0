// Descriptions of columns: the text format, dates, statistics whose bits do not depend on threads,
// inference from a table, and the elements that rows become.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/graph.h"
#include "columns/description.h"
#include "columns/statistics.h"
#include "columns/transform.h"
#include "support/bel_test.h"
#include "tokens/tokenizer.h"

// --- Statistics ----------------------------------------------------------------------------------

static void moments_are_right_far_from_zero(void **state)
{
    (void)state;
    bel_column_statistics total = {0};
    for (int part = 0; part < 3; part++) {
        bel_column_gatherer g;
        bel_column_gatherer_begin(&g, false, false, '.');
        for (int i = 0; i < 1000; i++)
            bel_column_gatherer_take_number(&g, 1e9 + part * 1000 + i, i);
        bel_column_gatherer_end(&g);
        bel_column_statistics_merge(&total, &g.statistics);
    }
    assert_int_equal(total.numbers, 3000);
    assert_true(total.range.rises);
    assert_true(fabs(total.values_of_numbers.mean - (1e9 + 1499.5)) < 1e-6);
    double deviation = sqrt((3000.0 * 3000.0 - 1) / 12);
    assert_true(fabs(bel_moments_deviation(&total.values_of_numbers) / deviation - 1) < 1e-12);
}

// --- Text format ---------------------------------------------------------------------------------

static const char everything[] =
    "delimiter: \";\"\n"
    "missing: [\"\", \"?\"]\n"
    "rows: 12\n"
    "columns:\n"
    "  - {name: age, kind: number, mean: 40, deviation: 10, missing: constant, fill: 30, "
    "indicator: true}\n"
    "  - {name: size, kind: number, scale: buckets, bounds: [1, 2, 4]}\n"
    "  - {name: city, kind: category, values: [Oslo, Rome], missing: value}\n"
    "  - {name: shop, kind: hash}\n"
    "  - {name: both, kind: cross, of: [city, shop]}\n"
    "  - {name: tags, kind: list, separator: \",\", most: 2}\n"
    "  - {name: words, kind: text, most: 4, grams: 2}\n"
    "  - {name: day, kind: date, parts: [month]}\n"
    "  - {name: id, kind: key}\n"
    "  - {name: w, kind: weight}\n"
    "  - {name: y, kind: label, classes: [\"no\", \"yes\"]}\n";

static void text_comes_back(void **state)
{
    (void)state;
    bel_columns *first, *second;
    BEL_ASSERT_OK(bel_columns_parse(everything, "c.yaml", &first));
    BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(first), "again", &second));
    assert_string_equal(bel_columns_text(first), bel_columns_text(second));
    assert_int_equal(first->x_width, 2 + 4 + 3 + 12);
    assert_int_equal(first->id_count, 2);
    assert_int_equal(first->list_count, 2);
    assert_int_equal(first->list_most, 4);
    assert_int_equal(bel_columns_class_count(first), 2);
    assert_string_equal(bel_columns_class(first, 1), "yes");
    assert_int_equal(bel_columns_rows(first), 12);
    bel_columns_destroy(first);
    bel_columns_destroy(second);
}

// Characters that YAML treats as line breaks, as marks or as nothing.
static void odd_characters_come_back(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "\x7F",         "\xC2\x80",     "\xC2\x85",     "\xC2\x9F",     "\xE2\x80\xA8",
        "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF", "\t",
        "\r",           "\n",           "\x1B",         "\xC2\xA0",     "\xF0\x9F\x90\xA7"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char *text = bel_strf("name %s x", odd[i]);
        bel_columns *first = bel_columns_create(), *second;
        bel_column *column = bel_columns_add(first, text, BEL_COLUMN_CATEGORY);
        column->values = (const char *const[]){odd[i], text};
        column->value_count = 2;
        BEL_ASSERT_OK(bel_columns_finish(first, "t.csv"));
        BEL_ASSERT_OK(bel_columns_check_text(first, "t.csv"));
        BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(first), "again", &second));
        assert_string_equal(second->items[0].name, text);
        assert_string_equal(second->items[0].values[0], odd[i]);
        assert_string_equal(second->items[0].values[1], text);
        bel_columns_destroy(first);
        bel_columns_destroy(second);
        bel_free(text);
    }
}

static void texts_that_do_not_come_back_are_refused(void **state)
{
    (void)state;
    bel_columns *columns;
    BEL_ASSERT_OK(bel_columns_parse(everything, "c.yaml", &columns));
    BEL_ASSERT_OK(bel_columns_check_text(columns, "c.yaml"));
    *strstr(columns->text, "Oslo") = '"';
    BEL_ASSERT_FAILS(bel_columns_check_text(columns, "c.yaml"), BEL_INVALID_ARGUMENT,
                     "would not come back from its text");
    bel_columns_destroy(columns);
}

static void wrong_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *columns, *says;
    } cases[] = {
        {"{name: a, kind: numbr}", "c.yaml:1:27: expected number, category"},
        {"{name: a, kind: number, scal: log}", "did you mean \"scale\"?"},
        {"{name: a, kind: key, mean: 1}", "a column of kind key has no \"mean\""},
        {"{name: a, kind: category}", "c.yaml:1:27: expected \"values\" beside it"},
        {"{name: a, kind: category, values: []}", "c.yaml:1:27: expected \"values\" beside it"},
        {"{name: a, kind: number, scale: standard}", "c.yaml:1:42: expected a \"mean\" and a"},
        {"{name: a, kind: number, scale: log, mean: 1}", "c.yaml:1:42: expected a \"mean\" and a"},
        {"{name: a, kind: number, scale: min_max}", "c.yaml:1:42: expected a \"low\" and a"},
        {"{name: a, kind: date}", "c.yaml:1:27: expected a \"mean\" and a \"deviation\""},
        {"{name: a, kind: number, deviation: 0}",
         "c.yaml:1:11: column \"a\": expected a mean and a deviation above 0"},
        {"{name: a, kind: number, scale: buckets, bounds: [2, 1]}", "expected bounds that rise"},
        {"{name: a, kind: category, values: [x, x]}", "the value \"x\" stands twice"},
        {"{name: a, kind: number}, {name: a, kind: number}", "the column \"a\" is already there"},
        {"{name: c, kind: cross, of: [a, b]}", "expected a category or hash \"a\" to cross"},
        {"{name: y, kind: label, classes: [x]}", "expected two classes or more"},
        {"{name: y, kind: label}", "expected a column to learn from"},
        {"{name: a, kind: list, separator: ab}", "expected one character"},
        {"{name: a, kind: date, parts: [eon]}", "expected time, season"},
        {"{name: a, kind: text, grams: 9}", "c.yaml:1:40: expected an integer from 1 to 8"},
        {"{name: a, kind: number, missing: median}", "c.yaml:1:44: expected a \"fill\""},
        {"{name: a, kind: number, missing: constant}", "expected a \"fill\""},
        {"{name: a, kind: number, scale: log, mean: 1e3, deviation: 1}",
         "expected a fill that is a number"},
        {"{name: a, kind: date, mean: 0, deviation: 1, clip: -1}", "expected a clip from 0 to"},
        {"{name: a, kind: number, mean: 0, deviation: 1, clip: 1e39}", "expected a clip from 0 to"},
        {"{name: a, kind: tokens}", "expected a \"most\" beside it"},
        {"{name: a, kind: tokens, most: 4}, {name: b, kind: tokens, most: 4}",
         "\"a\" is the column of tokens already"},
        {"{name: a, kind: tokens, most: 4}, {name: b, kind: hash}",
         "beside the tokens of \"a\" no column is learned from"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_columns *columns;
        char *text = bel_strf("columns: [%s]\n", cases[i].columns);
        BEL_ASSERT_FAILS(bel_columns_parse(text, "c.yaml", &columns), BEL_INVALID_ARGUMENT,
                         cases[i].says);
        bel_free(text);
    }
}

// --- Rows ----------------------------------------------------------------------------------------

typedef struct row {
    float x[32];
    int64_t ids[4], lists[8], label;
    float weight;
    uint64_t crossed[16];
} row;

static void put(const bel_columns *columns, row *r, const char *const *cells)
{
    const bel_columns_block to = {.x = r->x,
                                  .ids = r->ids,
                                  .lists = r->lists,
                                  .class_number = &r->label,
                                  .weight = &r->weight,
                                  .crossed = r->crossed};
    int cell = 0;
    bel_columns_begin(columns, &to, 1);
    for (int i = 0; i < columns->count; i++) {
        const bel_column *column = &columns->items[i];
        if (column->kind == BEL_COLUMN_CROSS) continue;
        const bel_cell one = {cells[cell], strlen(cells[cell])};
        assert_int_equal(bel_columns_put(columns, column, &one, 1, &to), 0);
        cell++;
    }
    bel_columns_end(columns, &to, 1);
}

static void rows_become_elements(void **state)
{
    (void)state;
    bel_columns *columns;
    row a, b;
    BEL_ASSERT_OK(bel_columns_parse(everything, "c.yaml", &columns));
    put(columns, &a,
        (const char *const[]){"50", "2", "Rome", "7", "p, q", "Big big dog", "2020-02-03", "k", "2",
                              "yes"});
    static const float expected[21] = {1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1};
    for (int i = 0; i < 21; i++)
        assert_true(a.x[i] == expected[i]);
    assert_int_equal(a.label, 1);
    assert_true(a.weight == 2);
    assert_true(a.lists[0] != BEL_NO_ID && a.lists[1] != a.lists[0]);
    assert_int_equal(a.lists[2], BEL_NO_ID);
    assert_true(a.lists[4] == a.lists[5] && a.lists[6] != a.lists[4]); // big, big, "big big"

    put(columns, &b, (const char *const[]){"?", "0", "", "8", "", "", "", "k", "0", "no"});
    assert_true(b.x[0] == -1 && b.x[1] == 1); // the constant, and the indicator
    assert_true(b.x[2] == 1 && b.x[6] == 0 && b.x[7] == 0 && b.x[8] == 1);
    assert_true(b.ids[0] != a.ids[0] && b.ids[1] != a.ids[1]);
    assert_int_equal(b.lists[0], BEL_NO_ID);
    bel_columns_destroy(columns);
}

// A tokenizer of bytes: "Oslo" has four tokens.
static void texts_become_tokens(void **state)
{
    (void)state;
    static const char text[] = "columns:\n"
                               "  - {name: line, kind: tokens, most: 3}\n"
                               "  - {name: y, kind: label, classes: [a, b]}\n";
    const bel_cell cells[] = {{"Oslo", 4}, {"", 0}, {"NA", 2}};
    int64_t tokens[3][3], lengths[3];
    bel_category_cells seen[2] = {{0}};
    const bel_columns_block to = {.tokens = *tokens, .lengths = lengths, .seen = seen};
    bel_columns *columns, *again;
    bel_tokenizer *tokenizer;
    BEL_ASSERT_OK(bel_columns_parse(text, "c.yaml", &columns));
    BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
    assert_string_equal(bel_columns_text(columns), bel_columns_text(again));
    BEL_ASSERT_OK(bel_tokenizer_open("bytes", &tokenizer));
    const bel_column *line = &columns->items[0];
    assert_int_equal(bel_columns_put(columns, line, cells, 7, &to), 7); // all are wrong
    char expected[BEL_COLUMN_EXPECTED];
    assert_non_null(strstr(bel_columns_expected(columns, line, cells[0], expected), "a tokenizer"));
    memset(seen, 0, sizeof seen);
    BEL_ASSERT_OK(bel_columns_set_tokenizer(columns, tokenizer));
    assert_int_equal(bel_columns_put(columns, line, cells, 7, &to), 0);
    static const int64_t wanted[3][3] = {{'O', 's', 'l'}, {0, 0, 0}, {'N', 'A', 0}};
    static const int64_t counts[3] = {3, 0, 2};
    assert_memory_equal(tokens, wanted, sizeof wanted);
    assert_memory_equal(lengths, counts, sizeof counts);
    assert_int_equal(seen[0].cells, 3);
    assert_int_equal(seen[0].unknown, 1); // cut
    assert_int_equal(seen[0].empty, 1);
    bel_columns_destroy(again);
    bel_columns_destroy(columns);
    bel_tokenizer_destroy(tokenizer);
}

// The tokenizer has "a" and "b". Only a character before the cut is an error, which names it.
static void characters_after_the_cut_do_not_count(void **state)
{
    (void)state;
    static const char text[] = "columns:\n"
                               "  - {name: line, kind: tokens, most: 3}\n"
                               "  - {name: y, kind: label, classes: [a, b]}\n";
    const bel_cell cells[] = {{"abac", 4}, {"ac", 2}, {"bac", 3}, {"abc", 3}, {"aba", 3}};
    int64_t tokens[5][3], lengths[5];
    bel_category_cells seen[2] = {{0}};
    const bel_columns_block to = {.tokens = *tokens, .lengths = lengths, .seen = seen};
    bel_columns *columns;
    bel_tokenizer *tokenizer = bel_tokenizer_create(true, false);
    char expected[BEL_COLUMN_EXPECTED];
    BEL_ASSERT_OK(bel_columns_parse(text, "c.yaml", &columns));
    BEL_ASSERT_OK(bel_tokenizer_set(tokenizer, 0, "a", 1, false));
    BEL_ASSERT_OK(bel_tokenizer_set(tokenizer, 1, "b", 1, false));
    BEL_ASSERT_OK(bel_columns_set_tokenizer(columns, tokenizer));
    const bel_column *line = &columns->items[0];
    assert_int_equal(bel_columns_put(columns, line, cells, 31, &to), 2 + 4 + 8);
    assert_int_equal(lengths[0], 3);
    assert_int_equal(seen[0].unknown, 1); // cut
    assert_non_null(strstr(bel_columns_expected(columns, line, cells[1], expected),
                           "byte 1: the vocabulary lacks the character U+0063"));
    bel_columns_destroy(columns);
    bel_tokenizer_destroy(tokenizer);
}

// Integers are equal with and without a final ".0", unless the training data had both.
static void whole_numbers_are_equal_in_categories(void **state)
{
    (void)state;
    static const char text[] =
        "columns:\n"
        "  - {name: a, kind: category, values: [\"1\", \"2.0\", \"3\", \"3.0\", \"-4\", x]}\n"
        "  - {name: b, kind: category, as: embedding, values: [\"1\", x]}\n";
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"1", 0},    {"1.0", 0},  {"2", 1},    {"2.0", 1},   {"3", 2}, {"3.0", 3},
                 {"-4.0", 4}, {"1.00", 0}, {"+1", 0},   {"10e-1", 0}, {"", -1}, {"-", -1},
                 {"-.0", -1}, {".0", -1},  {"x.0", -1}, {"1.5", -1}};
    bel_columns *columns;
    row one, other;
    BEL_ASSERT_OK(bel_columns_parse(text, "c.yaml", &columns));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(bel_column_value(&columns->items[0], cases[i].text, strlen(cases[i].text)),
                         cases[i].value);
    assert_int_equal(bel_column_value(&columns->items[0], "01", 2), -1); // a name, not a number
    put(columns, &one, (const char *const[]){"x", "1"});
    put(columns, &other, (const char *const[]){"x", "1.0"});
    assert_true(one.ids[0] == other.ids[0]);
    bel_columns_destroy(columns);
}

// Unless `missing` is given, a missing number counts as the mean.
static void missing_numbers_count_as_the_mean(void **state)
{
    (void)state;
    static const char text[] =
        "columns:\n"
        "  - {name: a, kind: number, mean: 40, deviation: 10, missing: mean}\n"
        "  - {name: b, kind: number, scale: log, mean: -2, deviation: 3}\n"
        "  - {name: c, kind: number, scale: none, mean: 7}\n"
        "  - {name: d, kind: date, mean: 0, deviation: 1, parts: [time], clip: 10}\n";
    bel_columns *columns;
    row r;
    BEL_ASSERT_OK(bel_columns_parse(text, "c.yaml", &columns));
    BEL_ASSERT_OK(bel_columns_check_text(columns, "c.yaml"));
    put(columns, &r, (const char *const[]){"", "", "", "2020-01-01"});
    assert_true(r.x[0] == 0 && fabsf(r.x[1]) < 1e-6F && r.x[2] == 7);
    assert_true(columns->items[1].fill < -6.38 && columns->items[1].fill > -6.39); // 1 - e^2
    assert_true(r.x[3] == 10);                                                     // clipped
    bel_columns_destroy(columns);
}

static void wrong_cells_say_what_was_expected(void **state)
{
    (void)state;
    bel_columns *columns;
    row r;
    char expected[BEL_COLUMN_EXPECTED];
    const bel_columns_block to = {.x = r.x,
                                  .ids = r.ids,
                                  .lists = r.lists,
                                  .class_number = &r.label,
                                  .weight = &r.weight,
                                  .crossed = r.crossed};
    BEL_ASSERT_OK(bel_columns_parse(everything, "c.yaml", &columns));
    static const struct {
        const char *name, *cell, *says;
    } cases[] = {{"age", "old", "a number"},
                 {"age", "1e300", "a number that fits f32 when it is scaled"},
                 {"day", "soon", "a date"},
                 {"tags", "a,b,c", "at most 2 values"},
                 {"w", "-1", "a weight of 0 or more"},
                 {"w", "1e300", "a weight of 0 or more"},
                 {"y", "maybe", "a class, one of \"no\" \"yes\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bel_column *column = &columns->items[bel_columns_find(columns, cases[i].name)];
        const bel_cell cell = {cases[i].cell, strlen(cases[i].cell)};
        assert_int_equal(bel_columns_put(columns, column, &cell, 1, &to), 1);
        bel_columns_expected(columns, column, cell, expected);
        assert_non_null(strstr(expected, cases[i].says));
    }
    bel_columns_destroy(columns);
}

// --- Inference -----------------------------------------------------------------------------------

static bel_columns *infer(const char *text, const bel_columns_options *options)
{
    char *path = bel_test_file(bel_test_own_folder(), "t.csv", text, strlen(text));
    bel_columns *columns = NULL;
    BEL_ASSERT_OK(bel_columns_infer(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                       .paths = (const char *const[]){path},
                                                       .path_count = 1},
                                    options, &columns));
    bel_free(path);
    return columns;
}

static bel_column_kind kind_of(const bel_columns *columns, const char *name)
{
    int found = bel_columns_find(columns, name);
    assert_true(found >= 0);
    return columns->items[found].kind;
}

// Makes rows of a table with a column of each kind.
static char *make_table(int rows)
{
    static const char *const cities[] = {"Oslo", "Rome", "Bonn"};
    bel_str text = {0};
    bel_str_puts(&text, "row;size;city;day;name;note;flat;late;label\n");
    for (int i = 0; i < rows; i++) {
        bel_str_printf(&text, "%d;%s;%s;2020-01-%02d;name%d;", i, i % 7 == 3 ? "unknown" : "1.5",
                       cities[i * 5 % 3], i % 28 + 1, i);
        bel_str_printf(&text, "word%d and three more;same;%s;%s\n", i, i == rows - 1 ? "x" : "17",
                       i % 11 == 0  ? ""
                       : i % 2 == 0 ? "a"
                                    : "b");
    }
    return text.text;
}

static void kinds_follow_from_all_cells(void **state)
{
    (void)state;
    char *text = make_table(5000);
    bel_columns *columns =
        infer(text, &(bel_columns_options){.size = sizeof(bel_columns_options), .num_threads = 1});
    assert_int_equal(columns->delimiter, ';');
    assert_int_equal(kind_of(columns, "row"), BEL_COLUMN_IGNORE); // gaps: rows without a label
    assert_int_equal(kind_of(columns, "size"), BEL_COLUMN_NUMBER);
    assert_int_equal(kind_of(columns, "city"), BEL_COLUMN_CATEGORY);
    assert_int_equal(kind_of(columns, "day"), BEL_COLUMN_DATE);
    assert_int_equal(kind_of(columns, "name"), BEL_COLUMN_IGNORE);
    assert_int_equal(kind_of(columns, "note"), BEL_COLUMN_TEXT);
    assert_int_equal(kind_of(columns, "flat"), BEL_COLUMN_IGNORE);
    assert_int_equal(kind_of(columns, "late"), BEL_COLUMN_NUMBER); // "x" marks a missing number
    const bel_column *size = &columns->items[bel_columns_find(columns, "size")];
    const bel_column *late = &columns->items[bel_columns_find(columns, "late")];
    assert_true(bel_column_is_missing(columns, size, "unknown", 7));
    assert_true(bel_column_is_missing(columns, late, "x", 1));
    assert_false(bel_column_is_missing(columns, size, "x", 1));
    assert_false(bel_columns_is_missing(columns, "unknown", 7));
    assert_string_equal(bel_columns_label(columns), "label");
    assert_int_equal(bel_columns_class_count(columns), 2);
    assert_int_equal(bel_columns_rows(columns), 5000 - 455);
    for (int threads = 2; threads <= 5; threads++) {
        bel_columns *again = infer(text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                                .num_threads = threads});
        assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
        bel_columns_destroy(again);
    }
    bel_columns_destroy(columns);
    bel_free(text);
}

static void options_have_the_last_word(void **state)
{
    (void)state;
    const char *const ignored[] = {"n*"}, *const categories[] = {"size"}, *const keys[] = {"row"};
    char *text = make_table(100);
    bel_columns *columns = infer(text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                              .label = "late",
                                                              .label_kind = BEL_LABEL_CLASSES,
                                                              .ignored = ignored,
                                                              .ignored_count = 1,
                                                              .categories = categories,
                                                              .category_count = 1,
                                                              .keys = keys,
                                                              .key_count = 1});
    assert_int_equal(kind_of(columns, "row"), BEL_COLUMN_KEY);
    assert_int_equal(kind_of(columns, "note"), BEL_COLUMN_IGNORE);
    assert_int_equal(kind_of(columns, "size"), BEL_COLUMN_CATEGORY);
    assert_int_equal(kind_of(columns, "late"), BEL_COLUMN_LABEL);
    assert_string_equal(bel_columns_class(columns, 0), "17");
    bel_columns_destroy(columns);
    bel_free(text);
}

static void tables_that_cannot_be_learned_are_refused(void **state)
{
    (void)state;
    const char *const numbers[] = {"a"};
    const char *const latin[] = {"\xE9"};
    const bel_columns_options label = {.size = sizeof label, .label = "z"},
                              latins = {.size = sizeof latins,
                                        .missing = latin,
                                        .missing_count = 1},
                              number = {.size = sizeof number, .label_kind = BEL_LABEL_NUMBER},
                              named = {.size = sizeof named, .numbers = numbers, .number_count = 1};
    const struct {
        const char *text, *says;
        const bel_columns_options *options;
    } cases[] = {
        {"a,y\n1,0\n2,0\n", "has the same value in all rows", NULL},
        {"a,y\n1,\n2,\n", "has no value in any row", NULL},
        {"a,y\n1,0\n2,1\n", "no column \"z\"", &label},
        {"a,y\nb,0\n2,1\n", "t.csv:2:1: \"b\"", &named},
        {"a,y\n1,x\n2,3\n", "is to be a number", &number},
        {"y\n1\n0\n", "expected a column to learn from", NULL},
        {"a,y\n1,0\n2,1\n", "expected texts for missing values in UTF-8", &latins},
        {"a,y\n\xE9,0\n2,1\n3,0\n", "column \"a\": expected text in UTF-8", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = strlen(cases[i].text);
        char *path = bel_test_file(bel_test_own_folder(), "t.csv", cases[i].text, length);
        bel_columns *columns;
        bel_status *status =
            bel_columns_infer(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                 .paths = (const char *const[]){path},
                                                 .path_count = 1},
                              cases[i].options, &columns);
        assert_non_null(status);
        BEL_ASSERT_FAILS(status, bel_status_code(status), cases[i].says);
        bel_free(path);
    }
}

// A text that marks missing numbers in one column is a value in another.
static void missing_texts_are_those_of_their_column(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "size,city,y\n");
    for (int i = 0; i < 200; i++)
        bel_str_printf(&text, "%s,%s,%d\n",
                       i % 20 == 3  ? "unknown"
                       : i % 2 == 0 ? "1"
                                    : "3",
                       i % 3 == 0 ? "unknown" : "Oslo", i % 2);
    bel_columns *columns = infer(text.text, NULL), *again;
    assert_non_null(strstr(bel_columns_text(columns), "missing_texts: [\"unknown\"]"));
    BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
    row r = {0};
    put(again, &r, (const char *const[]){"unknown", "unknown", "1"});
    assert_true(r.x[1] == 1); // the missing indicator
    assert_int_equal(again->items[1].value_count, 2);
    assert_true(r.x[2] + r.x[3] == 1);
    bel_columns_destroy(again);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// A small column may have two different markers, too.
static void markers_are_missing_texts(void **state)
{
    (void)state;
    static const char text[] = "a,y\n1.5,0\n2.5,1\n3.5,0\n4.5,1\n-,1\nunknown,0\n";
    bel_columns *columns = infer(text, NULL);
    assert_int_equal(columns->items[0].kind, BEL_COLUMN_NUMBER);
    assert_non_null(strstr(bel_columns_text(columns), "missing_texts: [\"-\", \"unknown\"]"));
    bel_columns_destroy(columns);
}

// Date columns may have markers too, also numbers. A column with four different markers is not a
// date.
static void markers_among_dates_are_missing(void **state)
{
    (void)state;
    static const char *const markers[] = {"unknown", "0000-00-00", "0", "soon"};
    for (int count = 1; count <= 4; count++) {
        bel_str text = {0};
        bel_str_puts(&text, "day,size,y\n");
        for (int i = 0; i < 9000; i++) {
            const char *marker = i % 50 == 0 ? markers[i / 50 % count] : NULL;
            if (marker != NULL) bel_str_puts(&text, marker);
            if (marker == NULL) bel_str_printf(&text, "%02d/03/2020", i % 25 + 1);
            bel_str_printf(&text, ",%d,%d\n", i % 7, i % 2);
        }
        bel_columns *columns = infer(text.text, NULL), *again;
        const bel_column *day = &columns->items[0];
        assert_int_equal(day->kind, count < 4 ? BEL_COLUMN_DATE : BEL_COLUMN_CATEGORY);
        assert_int_equal(day->absent.count, count < 4 ? count : 0);
        assert_true(count == 4 || (day->day_first && day->indicator));
        BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
        assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
        row r = {0};
        put(again, &r, (const char *const[]){"unknown", "1", "0"});
        assert_true(count == 4 || r.x[again->items[0].x_width - 1] == 1); // the missing indicator
        bel_columns_destroy(again);
        bel_columns_destroy(columns);
        bel_str_deinit(&text);
    }
}

// Decimal commas are found if the delimiter is another character and the cells leave no doubt.
static void decimal_commas_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char asked, decimal;
        double low, high; // range of column "a"
    } cases[] = {
        {"a;b;y\n1,5;2.500;3,5\n2;7;4,5\n;10;1\n1.250,5;20;9,25\n", 0, ',', 1.5, 1250.5},
        {"a;b;y\n1,5;2.5;1\n2;7;0\n1,25;10;1\n", 0, '.', 0, 0},  // "b" has points
        {"a;b;y\n1,500;2;1\n2;7;0\n1,250;10;1\n", 0, '.', 0, 0}, // perhaps thousands separators
        {"a;b;y\n1,500;2;1\n2;7;0\n1,250;10;1\n", ',', ',', 1.25, 2},
        {"a;b;y\n1,5;2;1\n2;7;0\n1,25;10;1\n", '.', '.', 0, 0},
        {"a;b;y\n1,5;2;1\nx;7;0\n1,25;10;1\n", 0, '.', 0, 0},
        {"a,b,y\n\"1,5\",2,1\n2,7,0\n\"1,25\",10,1\n", 0, '.', 0, 0},
        {"a,b,y\n\"1,5\",2,1\n2,7,0\n\"1,25\",10,1\n", ',', ',', 1.25, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_columns *columns = infer(cases[i].text,
                                     &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                            .decimal = cases[i].asked}),
                    *again;
        BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
        assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
        assert_int_equal(again->decimal, cases[i].decimal);
        const bel_column *a = &again->items[0];
        bool number = a->kind == BEL_COLUMN_NUMBER;
        assert_true(number == (cases[i].decimal == ','));
        assert_true(!number || (a->low == cases[i].low && a->high == cases[i].high));
        const char *said = strstr(bel_columns_text(again), "these look like numbers with");
        assert_true(number || said != NULL || i == 5); // "x" is not a number
        bel_columns_destroy(columns);
        bel_columns_destroy(again);
    }
}

// Leading zeros make numbers into names. Columns with names that tools give to row numbers count
// the rows.
static void numbers_may_be_names(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, ",zip,late,share,index,Unnamed: 0,y\n");
    for (int i = 0; i < 9000; i++)
        bel_str_printf(&text, "%d,%05d,%s,0.%d,%d,%d,%d\n", i * 7 % 9000, 501 + i % 30 * 1000,
                       i == 8000    ? "01"
                       : i % 2 == 0 ? "12"
                                    : "10",
                       i % 7, i / 2, i * 7 % 9000 * 3, i % 2);
    bel_columns *columns = infer(
        text.text, &(bel_columns_options){.size = sizeof(bel_columns_options), .num_threads = 1});
    assert_int_equal(kind_of(columns, ""), BEL_COLUMN_IGNORE);
    assert_string_equal(columns->items[0].note, "its name says that it numbers the rows");
    assert_int_equal(kind_of(columns, "zip"), BEL_COLUMN_CATEGORY);
    assert_int_equal(kind_of(columns, "late"), BEL_COLUMN_CATEGORY);
    assert_int_equal(kind_of(columns, "share"), BEL_COLUMN_NUMBER);
    assert_int_equal(kind_of(columns, "index"), BEL_COLUMN_NUMBER);      // each value comes twice
    assert_int_equal(kind_of(columns, "Unnamed: 0"), BEL_COLUMN_IGNORE); // rises with gaps
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Left-out rows, a split of the file and a step cause gaps. An integer column that rises or falls
// still counts the rows, and so does a date column. An id with a different number in each row
// teaches the model nothing.
static void gaps_do_not_hide_a_counter(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "nr,down,PassengerId,shop_id,grid,x,day,minute,y\n");
    for (int i = 0; i < 1200; i++) {
        if (i * 7 % 5 == 0) continue; // as if held out
        bel_str_printf(&text, "%d,%d,%d,%d,%d,%d,%04d-01-%02d,2020-01-01 %02d:%02d,%d\n",
                       10 * i + 3, -i, i * 7 % 1200, i % 60, i * 7 % 1200, i % 13, 1000 + i,
                       i % 28 + 1, i / 60, i % 60, i % 3);
    }
    bel_columns *columns = infer(text.text, NULL);
    static const char *const left_out[] = {"nr", "down", "PassengerId", "minute"};
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        assert_int_equal(kind_of(columns, left_out[i]), BEL_COLUMN_IGNORE);
    assert_int_equal(kind_of(columns, "shop_id"), BEL_COLUMN_NUMBER); // values repeat
    assert_int_equal(kind_of(columns, "grid"), BEL_COLUMN_NUMBER);    // "id" at the end, yet no id
    const bel_column *day = &columns->items[bel_columns_find(columns, "day")];
    assert_int_equal(day->kind, BEL_COLUMN_DATE);
    assert_int_equal(day->parts & (BEL_DATE_TIME | BEL_DATE_SEASON), BEL_DATE_SEASON);
    bel_columns_destroy(columns);
    columns = infer(text.text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                      .numbers = (const char *const[]){"nr"},
                                                      .number_count = 1});
    assert_int_equal(kind_of(columns, "nr"), BEL_COLUMN_NUMBER);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Equal numbers are one value, one class and one mark of missing values, however they are written.
// No number is shortened before its whole column is known to hold numbers.
static void numbers_are_told_apart_by_their_value(void **state)
{
    (void)state;
    bel_str text = {0};
    static const char *const nines[] = {"9", "9.0", "9.00", "7", "x"};
    static const char *const marks[] = {"-999", "-999.0", "-9.99e2"};
    bel_str_puts(&text, "user,code,size,y\n");
    for (int i = 0; i < 600; i++)
        bel_str_printf(&text, "123456789012345678%d,%s,%s,%s\n", i * 7 % 6, nines[i % 5],
                       i % 4 == 0 ? marks[i % 3] : nines[i % 3],
                       i % 2 == 0   ? "1.0"
                       : i % 3 == 0 ? "1"
                                    : "2");
    bel_columns *columns =
        infer(text.text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                .missing = (const char *const[]){"-999"},
                                                .missing_count = 1,
                                                .categories = (const char *const[]){"code"},
                                                .category_count = 1,
                                                .numbers = (const char *const[]){"size"},
                                                .number_count = 1});
    const bel_column *user = &columns->items[0], *code = &columns->items[1];
    assert_int_equal(user->kind, BEL_COLUMN_CATEGORY);
    assert_int_equal(user->value_count, 6);
    assert_int_equal(code->value_count, 3);
    assert_string_equal(code->values[0], "9");
    assert_true(columns->items[2].low == 9 && columns->items[2].high == 9); // without the marks
    assert_int_equal(bel_columns_class_count(columns), 2);
    assert_true(bel_columns_class_rows(columns, 0) == 400);
    bel_columns_destroy(columns);
    columns = infer(text.text,
                    &(bel_columns_options){.size = sizeof(bel_columns_options), .label = "user"});
    assert_int_equal(bel_columns_class_count(columns), 6);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Units and thousands commas are read if all cells have the same ones and no other meaning is
// possible. Rows are then read with the inferred description.
static void dressed_numbers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *third;
        char decimal;
        bool number;
        double low, high;
    } cases[] = {{"$5", "$1,250.50", "-$3", 0, true, -3, 1250.5},
                 {"43.2 kg", "7 kg", "", 0, true, 7, 43.2},
                 {"43.2 kg", "7 lb", "5 kg", 0, false, 0, 0},
                 {"43.2 kg", "7", "5 kg", 0, false, 0, 0},
                 {"1,250", "7", "2,500", 0, false, 0, 0}, // perhaps a decimal comma
                 {"1,250", "7", "2,500", '.', true, 7, 2500},
                 {"1,250", "7.5", "2,500", 0, true, 7.5, 2500},
                 {"7 %", "50 %", "5 %", 0, true, 5, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_str text = {0};
        bel_str_puts(&text, "a;b;y\n");
        for (int n = 0; n < 60; n++)
            bel_str_printf(&text, "%s;%d;%d\n",
                           n % 3 == 0   ? cases[i].first
                           : n % 3 == 1 ? cases[i].second
                                        : cases[i].third,
                           n % 7, n % 2);
        bel_columns *columns =
                        infer(text.text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                                .decimal = cases[i].decimal}),
                    *again;
        assert_true((columns->items[0].kind == BEL_COLUMN_NUMBER) == cases[i].number);
        BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
        assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
        const bel_column *a = &again->items[0];
        double value;
        if (cases[i].number) {
            assert_true(a->low == cases[i].low && a->high == cases[i].high);
            assert_true(
                bel_column_read_number(again, a, cases[i].second, strlen(cases[i].second), &value));
            assert_true(value == cases[i].low || value == cases[i].high);
            assert_false(bel_column_read_number(again, a, "7 cubits", 8, &value));
        }
        bel_columns_destroy(again);
        bel_columns_destroy(columns);
        bel_str_deinit(&text);
    }
}

// Likely mistakes are warned of, by column name.
static void mistakes_are_suspected(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "copy,place,marked,far,half,noise,pixel,y\n");
    for (int i = 0; i < 400; i++) {
        int random = i * 7919 % 401, y = random % 2;
        bel_str_printf(&text, "%s,%d,%d,%s%d,%d,%d,%d,%d\n", y ? "b" : "a", random + y * 1000,
                       i % 3 == 0 ? -999 : i % 37, i == 17 ? "1e" : "", i % 41, y * 20 + i % 41,
                       i % 29, i % 25 == 0 ? 8 + i / 25 % 7 : 0, y);
    }
    bel_columns *columns = infer(text.text, NULL), *again;
    static const char *const says[] = {"it predicts nearly all of \"y\" without",
                                       "it predicts nearly all of \"y\" without",
                                       "-999 is in 34 % of the rows",
                                       "t.csv:19:",
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL};
    for (int i = 0; i < columns->count; i++) {
        const char *warning = columns->items[i].warning;
        assert_true((warning != NULL) == (says[i] != NULL));
        assert_true(warning == NULL || strstr(warning, says[i]) != NULL);
    }
    BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
    assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
    bel_columns_destroy(again);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Column "a" of `count` numbers followed by the other texts.
static char *make_numbers(int count, const char *const *others, int other_count)
{
    bel_str text = {0};
    bel_str_puts(&text, "a,b,y\n");
    for (int i = 0; i < count + other_count; i++) {
        if (i < count) bel_str_printf(&text, "%d.5", i * 37 % 101);
        if (i >= count) bel_str_puts(&text, others[i - count]);
        bel_str_printf(&text, ",%d,%d\n", i % 7, i % 2);
    }
    return text.text;
}

// Other texts among numbers are wrong if they differ too much to be markers and nearly all cells
// are numbers. A number followed by a letter is a name.
static void few_other_texts_among_numbers_are_wrong(void **state)
{
    (void)state;
    static const char *const wrong[] = {"abc", "x", "n.d.", "<0.5"}, *const houses[] = {
                                                                         "12a", "7 B", "3c", "9d"};
    char *text = make_numbers(400, wrong, 4);
    char *path = bel_test_file(bel_test_own_folder(), "t.csv", text, strlen(text));
    const bel_csv_options csv = {
        .size = sizeof csv, .paths = (const char *const[]){path}, .path_count = 1};
    bel_columns *columns;
    BEL_ASSERT_FAILS(bel_columns_infer(&csv, NULL, &columns), BEL_DATA_LOSS,
                     "\"a\" holds numbers in nearly all rows, but 4 of its cells are not numbers");
    BEL_ASSERT_FAILS(bel_columns_infer(&csv, NULL, &columns), BEL_DATA_LOSS,
                     "t.csv:405:1: \"<0.5\"; hint: --missing");
    columns = infer(text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                 .ignored = (const char *const[]){"a"},
                                                 .ignored_count = 1});
    assert_int_equal(kind_of(columns, "a"), BEL_COLUMN_IGNORE);
    bel_columns_destroy(columns);
    bel_free(text);
    bel_free(path);
    text = make_numbers(30, wrong, 4); // 30 of 34 are less than nine tenths
    columns = infer(text, NULL);
    assert_int_equal(kind_of(columns, "a"), BEL_COLUMN_IGNORE);
    bel_columns_destroy(columns);
    bel_free(text);
    text = make_numbers(400, houses, 4);
    columns = infer(text, NULL);
    assert_int_equal(kind_of(columns, "a"), BEL_COLUMN_CATEGORY);
    bel_columns_destroy(columns);
    bel_free(text);
}

// Cells that begin like numbers are parsed first, and may still be missing values.
static void numbers_may_be_missing(void **state)
{
    (void)state;
    static const char text[] = "a,b,y\n-999,1,0\n1,-999,1\n3,2,0\n3,-999,1\n-999,5,1\n";
    const char *const missing[] = {"-999"};
    bel_columns *columns = infer(text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                              .missing = missing,
                                                              .missing_count = 1});
    assert_true(columns->items[0].low == 1 && columns->items[0].high == 3);
    assert_true(columns->items[0].indicator && columns->items[1].indicator);
    bel_columns_destroy(columns);
}

// The limit is 3 / sqrt(n + 1) above the largest number in training, and at most ten deviations.
static void numbers_beyond_the_training_are_limited(void **state)
{
    (void)state;
    enum { ROWS = 400, OUTLIER = 1000 };
    bel_str text = {0};
    bel_str_puts(&text, "a,b,c,y\n");
    for (int i = 0; i < ROWS; i++)
        bel_str_printf(&text, "%d,%d,%d,%d\n", i * 7 % 20, i == 9 ? OUTLIER : i % 2, i * i % 90,
                       i * 3 % 2);
    bel_columns *columns =
        infer(text.text, &(bel_columns_options){.size = sizeof(bel_columns_options),
                                                .logs = (const char *const[]){"c"},
                                                .log_count = 1});
    const bel_column *a = &columns->items[0], *b = &columns->items[1], *c = &columns->items[2];
    double more = 1 + 3 / sqrt(ROWS + 1), largest = 9.5 / a->deviation * more;
    assert_true(a->clip >= largest && a->clip < largest + 0.01);
    assert_true(b->clip == 10);
    double most = fmax(c->mean, log(1 + c->high) - c->mean) / c->deviation * more;
    assert_int_equal(c->scale, BEL_SCALE_LOG);
    assert_true(c->clip >= most && c->clip < most + 0.01);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// If the label is a number, the limit of numbers is at most five deviations, that of dates is ten.
static void numbers_are_limited_earlier_to_learn_a_number(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    bel_str text = {0};
    bel_str_puts(&text, "a,b,day,y\n");
    for (int i = 0; i < ROWS; i++)
        bel_str_printf(&text, "%d,%d,2020-%d-%d,%d.5\n", i * 7 % 20, i == 9 ? 1000 : i % 2,
                       i * 5 % 12 + 1, i * 11 % 28 + 1, i * 3 % 101);
    bel_columns *columns = infer(text.text, NULL);
    const bel_column *a = &columns->items[0], *b = &columns->items[1], *day = &columns->items[2];
    assert_int_equal(bel_columns_label_kind(columns), BEL_LABEL_NUMBER);
    assert_true(a->clip > 9.5 / a->deviation && a->clip < 2);
    assert_true(b->clip == 5);
    assert_true(day->kind == BEL_COLUMN_DATE && day->clip == 10);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// One cell decides between day-first and month-first, and the decision holds for all cells.
static void moments_of_dates_are_of_their_reading(void **state)
{
    (void)state;
    static const char text[] = "day,y\n1/2/2020,0\n2/2/2020,1\n13/2/2020,0\n4/2/2020,1\n";
    bel_columns *columns = infer(text, NULL);
    const bel_column *day = &columns->items[0];
    assert_int_equal(day->kind, BEL_COLUMN_DATE);
    assert_true(day->day_first);
    const double first = 18293 * 86400.0; // February 1
    assert_true(fabs(day->mean - (first + 4 * 86400)) < 1e-3);
    assert_true(fabs(day->deviation / 86400 - sqrt(22.5)) < 1e-9);
    assert_true(day->clip == 10);
    bel_columns_destroy(columns);
}

// Which values count as repeated depends neither on their order nor on the threads.
static void many_values_are_a_hash_when_they_come_again(void **state)
{
    (void)state;
    enum { USERS = 70000, TIMES = 5 };
    bel_str text = {0};
    bel_str_puts(&text, "user,visit,amount,rare,y\n");
    for (int i = 0; i < USERS * TIMES; i++) {
        bel_str_printf(&text, "u%d,v%d,", i % USERS, i / 2);
        i == 99999 ? bel_str_puts(&text, "none") : bel_str_printf(&text, "%d.5", i);
        bel_str_printf(&text, ",w%d,%d\n", i, i % 2);
    }
    bel_columns *columns = infer(
        text.text, &(bel_columns_options){.size = sizeof(bel_columns_options), .num_threads = 1});
    assert_int_equal(kind_of(columns, "user"), BEL_COLUMN_HASH);
    assert_int_equal(kind_of(columns, "visit"), BEL_COLUMN_IGNORE);
    assert_int_equal(kind_of(columns, "amount"), BEL_COLUMN_NUMBER); // except one cell
    assert_int_equal(kind_of(columns, "rare"), BEL_COLUMN_IGNORE);
    assert_true(bel_column_is_missing(columns, &columns->items[2], "none", 4));
    bel_columns *again = infer(
        text.text, &(bel_columns_options){.size = sizeof(bel_columns_options), .num_threads = 3});
    assert_string_equal(bel_columns_text(again), bel_columns_text(columns));
    bel_columns_destroy(again);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

// Every town comes only twice in 2000 rows, too rarely to learn from.
static void categories_without_values_are_ignored(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "town,size,y\n");
    for (int i = 0; i < 2000; i++)
        bel_str_printf(&text, "t%d,%d,%d\n", i / 2, i * 7 % 50, i % 2);
    bel_columns *columns = infer(text.text, NULL);
    assert_int_equal(kind_of(columns, "town"), BEL_COLUMN_IGNORE);
    assert_string_equal(columns->items[0].note, "each of its 1000 values comes fewer than 5 times");
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

static void wide_tables_come_back(void **state)
{
    (void)state;
    enum { COLUMNS = 4000 };
    bel_str text = {0};
    for (int i = 0; i < COLUMNS; i++)
        bel_str_printf(&text, "c%d,", i);
    bel_str_puts(&text, "y\n");
    for (int r = 0; r < 4; r++) {
        for (int i = 0; i < COLUMNS; i++)
            bel_str_printf(&text, "%d,", r * i % 7);
        bel_str_printf(&text, "%d\n", r % 2);
    }
    bel_columns *columns = infer(text.text, NULL), *again;
    BEL_ASSERT_OK(bel_columns_parse(bel_columns_text(columns), "again", &again));
    assert_int_equal(again->count, COLUMNS + 1);
    bel_columns_destroy(again);
    bel_columns_destroy(columns);
    bel_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_right_far_from_zero),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(odd_characters_come_back),
        cmocka_unit_test(texts_that_do_not_come_back_are_refused),
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(rows_become_elements),
        cmocka_unit_test(texts_become_tokens),
        cmocka_unit_test(characters_after_the_cut_do_not_count),
        cmocka_unit_test(whole_numbers_are_equal_in_categories),
        cmocka_unit_test(missing_numbers_count_as_the_mean),
        cmocka_unit_test(wrong_cells_say_what_was_expected),
        BEL_TEST_IN_FOLDER(kinds_follow_from_all_cells),
        BEL_TEST_IN_FOLDER(options_have_the_last_word),
        BEL_TEST_IN_FOLDER(tables_that_cannot_be_learned_are_refused),
        BEL_TEST_IN_FOLDER(missing_texts_are_those_of_their_column),
        BEL_TEST_IN_FOLDER(markers_are_missing_texts),
        BEL_TEST_IN_FOLDER(markers_among_dates_are_missing),
        BEL_TEST_IN_FOLDER(numbers_may_be_names),
        BEL_TEST_IN_FOLDER(gaps_do_not_hide_a_counter),
        BEL_TEST_IN_FOLDER(dressed_numbers_are_read),
        BEL_TEST_IN_FOLDER(numbers_are_told_apart_by_their_value),
        BEL_TEST_IN_FOLDER(mistakes_are_suspected),
        BEL_TEST_IN_FOLDER(decimal_commas_are_found),
        BEL_TEST_IN_FOLDER(few_other_texts_among_numbers_are_wrong),
        BEL_TEST_IN_FOLDER(numbers_may_be_missing),
        BEL_TEST_IN_FOLDER(numbers_beyond_the_training_are_limited),
        BEL_TEST_IN_FOLDER(numbers_are_limited_earlier_to_learn_a_number),
        BEL_TEST_IN_FOLDER(moments_of_dates_are_of_their_reading),
        BEL_TEST_IN_FOLDER(many_values_are_a_hash_when_they_come_again),
        BEL_TEST_IN_FOLDER(categories_without_values_are_ignored),
        BEL_TEST_IN_FOLDER(wide_tables_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
