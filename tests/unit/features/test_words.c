// Words and their ids: word boundaries, n-grams in order, and ids equal to those of CSV columns.
#include "base/hash.h"
#include "belfry/features.h"
#include "unit/input/test_fixture.h"

static int64_t id_of_word(const char *word, const char *name)
{
    uint64_t seed = bel_hash64(name, strlen(name));
    return (int64_t)bel_hash128_of(word, strlen(word), seed).low;
}

// Checks that the ids of `text` are those of `words`, which end with NULL.
static void assert_ids(const char *text, const bel_words_options *options, const char *const *words)
{
    int64_t ids[64], count = 0;
    while (words[count] != NULL)
        count++;
    assert_int_equal(bel_word_ids(text, strlen(text), options, ids, 64), count);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(ids[i], id_of_word(words[i], "ids"));
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_what_words_are(void **state)
{
    (void)state;
    assert_ids("Hello, world!", NULL, WORDS("hello", "world"));
    assert_ids("  don't stop_now 3.14\n", NULL, WORDS("don", "t", "stop", "now", "3", "14"));
    assert_ids("Füße ÄÖ 日本", NULL, WORDS("füße", "ÄÖ", "日本"));
    assert_ids("\x80\xFF-a", NULL, WORDS("\x80\xFF", "a"));
    assert_ids("a", NULL, WORDS("a"));
    assert_ids("", NULL, (const char *const[]){NULL});
    assert_ids(" .,;", NULL, (const char *const[]){NULL});
    assert_ids("Hello WORLD",
               &(bel_words_options){.size = sizeof(bel_words_options), .keep_case = true},
               WORDS("Hello", "WORLD"));
}

static void test_ngrams(void **state)
{
    (void)state;
    bel_words_options two = {.size = sizeof two, .ngrams = 2},
                      three = {.size = sizeof three, .ngrams = 3},
                      cut = {.size = sizeof cut, .ngrams = 2, .max_count = 4};
    assert_ids("one Two, three", &two, WORDS("one", "two", "three", "one two", "two three"));
    assert_ids("one two", &three, WORDS("one", "two", "one two"));
    assert_ids("one", &three, WORDS("one"));
    assert_ids("one two three", &cut, WORDS("one", "two", "three", "one two"));
    int64_t ids[2] = {7, 7};
    assert_int_equal(bel_word_ids("a b c", 5, NULL, ids, 1), 3); // more than fit
    assert_int_equal(ids[0], id_of_word("a", "ids"));
    assert_int_equal(ids[1], 7);
    two.size = 0;
    assert_int_equal(bel_word_ids("a b", 3, &two, ids, 2), -1);
}

// A word has the same id as the same value in a CSV column of that name.
static void test_ids_are_those_of_columns(void **state)
{
    (void)state;
    static const char text[] = "word\nhello\n";
    char *path = bel_test_file(bel_test_own_folder(), "a.csv", text, sizeof text - 1);
    bel_dataset *data =
        bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                .paths = (const char *[]){path},
                                                .path_count = 1,
                                                .id_columns = (const char *[]){"word"},
                                                .id_column_count = 1});
    bel_dataset_batch(data, 1);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(data, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    int64_t id, of_column = *(const int64_t *)batch_field(input, batch, BEL_ID_FIELD)->data;
    bel_words_options options = {.size = sizeof options, .hash_name = "word"};
    assert_int_equal(bel_word_ids("HELLO", 5, &options, &id, 1), 1);
    assert_int_equal(id, of_column);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

// Opens CSV -> map -> padded batches.
static bel_dataset *texts(const char *path, const bel_words_options *options)
{
    static const bel_csv_column columns[] = {{"text", BEL_DTYPE_STRING}};
    bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                                .paths = (const char *[]){path},
                                                                .path_count = 1,
                                                                .columns = columns,
                                                                .column_count = 1});
    bel_dataset_map_words(data, options);
    bel_dataset_padded_batch(data, 3, NULL, 0);
    return data;
}

static void test_map(void **state)
{
    (void)state;
    static const char text[] = "text\n\"One, two\"\nthree\n...\n";
    char *path = bel_test_file(bel_test_own_folder(), "a.csv", text, sizeof text - 1);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(texts(path, NULL), &input));
    assert_int_equal(bel_input_field_count(input), 1);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const bel_tensor *ids = batch_field(input, batch, "ids");
    bel_shape shape = BEL_SHAPE(3, 2);
    assert_true(bel_shape_equal(&ids->shape, &shape));
    const int64_t expected[] = {
        id_of_word("one", "ids"), id_of_word("two", "ids"), id_of_word("three", "ids"), 0, 0, 0};
    assert_memory_equal(ids->data, expected, sizeof expected);
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    bel_words_options options = {.size = sizeof options, .ngrams = 9};
    BEL_ASSERT_FAILS(open_failing(texts(path, &options)), BEL_INVALID_ARGUMENT, "ngrams in 0..8");
    options = (bel_words_options){.size = sizeof(bel_words_options), .max_count = -1};
    BEL_ASSERT_FAILS(open_failing(texts(path, &options)), BEL_INVALID_ARGUMENT, "max_count");
    options = (bel_words_options){.size = sizeof(bel_words_options), .text_field = "body"};
    BEL_ASSERT_FAILS(open_failing(texts(path, &options)), BEL_INVALID_ARGUMENT,
                     "a.csv:2: expected a text field \"body\", got no such field");
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_words_are),
        cmocka_unit_test(test_ngrams),
        BEL_TEST_IN_FOLDER(test_ids_are_those_of_columns),
        BEL_TEST_IN_FOLDER(test_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
