// Contexts of tokens: every token once, in any order, over several files; texts, JSONL and token
// files in each form; contexts that are held out; and errors with their places.
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "belfry/tokens.h"
#include "unit/input/test_fixture.h"

enum { HEADER = 1024 };

static char *write_ids(const char *name, const uint16_t *ids, size_t count, bool headed)
{
    static unsigned char bytes[HEADER + 256];
    uint32_t header[] = {20240520, 1, (uint32_t)count};
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + HEADER, ids, 2 * count);
    const unsigned char *from = headed ? bytes : bytes + HEADER;
    return bel_test_file(bel_test_own_folder(), name, from, 2 * count + (headed ? HEADER : 0));
}

// Two files, with and without a header, of the tokens 0 … 9 and 10 … 16.
static void write_two(char *paths[2])
{
    uint16_t ids[17];
    for (int i = 0; i < 17; i++)
        ids[i] = (uint16_t)i;
    paths[0] = write_ids("a.bin", ids, 10, true);
    paths[1] = write_ids("b.bin", ids + 10, 7, false);
}

static bel_token_options options_of(char *const *paths, int count, int64_t context)
{
    return (bel_token_options){.size = sizeof(bel_token_options),
                               .paths = (const char *const *)paths,
                               .path_count = count,
                               .format = BEL_TOKENS_IDS,
                               .context = context};
}

// Appends "0 1 2>1 2 3|…" for all records: tokens and labels, and with a tokenizer "=bytes".
static void read_contexts(const bel_token_options *options, bel_str *out)
{
    bel_input *input;
    bel_dataset *dataset = bel_dataset_from_tokens(options);
    bel_dataset_batch(dataset, 100);
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    int64_t t = options->context;
    const int64_t *tokens = batch_field(input, batch, BEL_TOKENS_FIELD)->data;
    const int64_t *labels = batch_field(input, batch, BEL_LABEL_FIELD)->data;
    for (int64_t n = 0; n < batch->example_count; n++) {
        for (int64_t i = 0; i < 2 * t; i++)
            bel_str_printf(out, "%s%lld",
                           i == 0   ? ""
                           : i == t ? ">"
                                    : " ",
                           (long long)(i < t ? tokens[n * t + i] : labels[n * t + i - t]));
        if (options->tokenizer != NULL)
            bel_str_printf(
                out, "=%g",
                (double)((const float *)batch_field(input, batch, BEL_TOKEN_BYTES_FIELD)->data)[n]);
        bel_str_puts(out, "|");
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void assert_contexts(const bel_token_options *options, const char *expected)
{
    bel_str text = {0};
    read_contexts(options, &text);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
}

static void assert_fails(const bel_token_options *options, bel_code code, const char *message)
{
    bel_dataset *dataset = bel_dataset_from_tokens(options);
    bel_dataset_batch(dataset, 4);
    BEL_ASSERT_FAILS(open_failing(dataset), code, message);
}

// A context may begin in one file and end in the next.
static void contexts_cross_files(void **state)
{
    (void)state;
    char *paths[2];
    write_two(paths);
    bel_token_options options = options_of(paths, 2, 4);
    assert_contexts(&options, "0 1 2 3>1 2 3 4|4 5 6 7>5 6 7 8|8 9 10 11>9 10 11 12|"
                              "12 13 14 15>13 14 15 16|");
    options.context = 16;
    assert_contexts(&options, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15>"
                              "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16|");
    options.context = 17;
    assert_fails(&options, BEL_DATA_LOSS, "expected at least 18 tokens");
    options.context = 0;
    assert_fails(&options, BEL_INVALID_ARGUMENT, "expected a context from 1 on");
    bel_free(paths[0]);
    bel_free(paths[1]);
}

static void neighbors_are_held_out(void **state)
{
    (void)state;
    char *paths[2];
    write_two(paths);
    bel_token_options options = options_of(paths, 2, 3); // 5 contexts; token 16 is a label only
    options.holdout = (bel_holdout){.share = 0.4};
    assert_contexts(&options, "0 1 2>1 2 3|3 4 5>4 5 6|6 7 8>7 8 9|");
    options.holdout.held = true;
    assert_contexts(&options, "9 10 11>10 11 12|12 13 14>13 14 15|");
    options.holdout = (bel_holdout){.fold = 1, .fold_count = 5};
    assert_contexts(&options, "0 1 2>1 2 3|6 7 8>7 8 9|9 10 11>10 11 12|12 13 14>13 14 15|");
    options.holdout.held = true;
    assert_contexts(&options, "3 4 5>4 5 6|");
    options.holdout = (bel_holdout){.share = 0.01};
    assert_fails(&options, BEL_INVALID_ARGUMENT, "of 5 contexts 0 are held out");
    bel_free(paths[0]);
    bel_free(paths[1]);
}

static void texts_are_encoded(void **state)
{
    (void)state;
    bel_tokenizer *tokenizer;
    BEL_ASSERT_OK(bel_tokenizer_open("bytes", &tokenizer));
    char *paths[] = {bel_test_file(bel_test_own_folder(), "a.txt", "AB", 2),
                     bel_test_file(bel_test_own_folder(), "b.txt", "C", 1)};
    bel_token_options options = options_of(paths, 2, 2);
    options.format = BEL_TOKENS_TEXT;
    options.tokenizer = tokenizer;
    assert_contexts(&options, "65 66>66 256=1|256 67>67 256=1|");
    const char line[] = "{\"t\":\"D\"}\n{\"t\":\"E\"}\n";
    char *lines[] = {bel_test_file(bel_test_own_folder(), "a.jsonl", line, sizeof line - 1)};
    options.paths = (const char *const *)lines;
    options.path_count = 1;
    options.format = BEL_TOKENS_JSONL;
    options.key = "t";
    options.context = 3;
    assert_contexts(&options, "68 256 69>256 69 256=1|");
    options.key = NULL;
    assert_fails(&options, BEL_DATA_LOSS, "a.jsonl:1: expected an object with a text \"text\"");
    options.tokenizer = NULL;
    assert_fails(&options, BEL_INVALID_ARGUMENT, "texts need a tokenizer");
    bel_free(paths[0]), bel_free(paths[1]), bel_free(lines[0]);
    bel_tokenizer_destroy(tokenizer);
}

static size_t kept_files(const char *folder)
{
    char *kept = bel_strf("%s/belfry-objects-%lld", folder, (long long)geteuid());
    char **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(kept, &names, &count));
    bel_dir_names_free(names, count);
    bel_free(kept);
    return count;
}

// The host keeps the tokens of texts: by their bytes and borders, and by the tokenizer.
static void tokens_of_texts_are_kept(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    bel_tokenizer *bytes, *merges;
    assert_int_equal(setenv("BELFRY_CACHE_DIR", folder, 1), 0);
    bel_str out = {0};
    BEL_ASSERT_OK(bel_tokenizer_open("bytes", &bytes));
    BEL_ASSERT_OK(bel_tokenizer_open("tests/unit/tokens/tokenizer.json", &merges));
    char *paths[] = {bel_test_file(folder, "a.txt", "AB", 2),
                     bel_test_file(folder, "b.txt", "C", 1)};
    bel_token_options options = options_of(paths, 2, 2);
    options.format = BEL_TOKENS_TEXT;
    options.tokenizer = bytes;
    for (int i = 0; i < 2; i++) {
        assert_contexts(&options, "65 66>66 256=1|256 67>67 256=1|");
        assert_int_equal(kept_files(folder), 1);
    }
    bel_free(bel_test_file(folder, "a.txt", "A", 1));
    bel_free(bel_test_file(folder, "b.txt", "BC", 2));
    assert_contexts(&options, "65 256>256 66=1|66 67>67 256=1|");
    assert_int_equal(kept_files(folder), 2);
    options.tokenizer = merges;
    read_contexts(&options, &out);
    assert_int_equal(kept_files(folder), 3);
    bel_str_deinit(&out);
    bel_tokenizer_destroy(merges);
    bel_tokenizer_destroy(bytes);
    bel_free(paths[0]), bel_free(paths[1]);
}

static void wide_tokens_are_read(void **state)
{
    (void)state;
    const uint32_t ids[] = {70000, 1, 2};
    char *paths[] = {bel_test_file(bel_test_own_folder(), "w.bin", ids, sizeof ids)};
    bel_token_options options = options_of(paths, 1, 2);
    options.wide = true;
    assert_contexts(&options, "70000 1>1 2|");
    options.vocabulary = 70000;
    assert_fails(&options, BEL_DATA_LOSS, "w.bin: token 0: expected a number below 70000");
    bel_free(paths[0]);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    const uint16_t ids[] = {1, 2, 3};
    char *paths[] = {write_ids("a.bin", ids, 3, true), NULL};
    char bytes[HEADER + 6];
    FILE *file = fopen(paths[0], "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
    fclose(file);
    bel_token_options options = options_of(paths, 1, 2);
    bytes[8] = 4; // tokens in the header
    bel_free(bel_test_file(bel_test_own_folder(), "a.bin", bytes, sizeof bytes));
    assert_fails(&options, BEL_DATA_LOSS, "its header promises 4 tokens, and 3 follow");
    bytes[4] = 2; // version
    bel_free(bel_test_file(bel_test_own_folder(), "a.bin", bytes, sizeof bytes));
    assert_fails(&options, BEL_DATA_LOSS, "expected version 1 of llm.c's header, got 2");
    bel_free(bel_test_file(bel_test_own_folder(), "a.bin", "abc", 3));
    assert_fails(&options, BEL_DATA_LOSS, "expected tokens of 2 bytes, got 3 bytes");
    bel_free(bel_test_file(bel_test_own_folder(), "a.bin", "", 0));
    assert_fails(&options, BEL_DATA_LOSS, "expected at least 3 tokens");
    bel_free(paths[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(contexts_cross_files),      BEL_TEST_IN_FOLDER(neighbors_are_held_out),
        BEL_TEST_IN_FOLDER(texts_are_encoded),         BEL_TEST_IN_FOLDER(wide_tokens_are_read),
        BEL_TEST_IN_FOLDER(damaged_files_are_refused), BEL_TEST_IN_FOLDER(tokens_of_texts_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
