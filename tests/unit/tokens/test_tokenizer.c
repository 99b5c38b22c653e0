// Tokenizers: the tokens of texts in 30 scripts beside those of tiktoken (oracle.js), files of
// vocabularies read and written, what is refused, characters, and merges that are learned.
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "support/bel_test.h"
#include "tokens/documents.h"
#include "tokens/split.h"

#define FOLDER "tests/unit/tokens/"

static bel_tokenizer *opened(const char *name)
{
    bel_tokenizer *tokenizer;
    BEL_ASSERT_OK(bel_tokenizer_open(name, &tokenizer));
    return tokenizer;
}

// Asserts the tokens of a text, written as numbers between blanks.
static void assert_tokens(const bel_tokenizer *tokenizer, const char *text, size_t size,
                          const char *expected)
{
    int64_t *tokens;
    size_t count;
    bel_str list = {0};
    BEL_ASSERT_OK(bel_tokenizer_encode(tokenizer, text, size, &tokens, &count));
    for (size_t i = 0; i < count; i++)
        bel_str_printf(&list, "%s%lld", i > 0 ? " " : "", (long long)tokens[i]);
    assert_string_equal(list.text != NULL ? list.text : "", expected);
    list.length = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = bel_tokenizer_bytes(tokenizer, tokens[i], &length);
        bel_str_append(&list, bytes, length);
    }
    assert_int_equal(list.length, size);
    if (size > 0) assert_memory_equal(list.text, text, size);
    bel_str_deinit(&list);
    bel_tokens_free(tokens);
}

static void scripts_are_as_in_tiktoken(void **state)
{
    (void)state;
    char *texts, *lists;
    size_t size, list_size;
    BEL_ASSERT_OK(bel_file_read(FOLDER "scripts.txt", &texts, &size));
    BEL_ASSERT_OK(bel_file_read(FOLDER "oracle.txt", &lists, &list_size));
    bel_tokenizer *tokenizer = opened(FOLDER "tokenizer.json");
    int lines = 0;
    for (char *text = texts, *list = lists; *text != '\0'; lines++) {
        size_t length = strcspn(text, "\n") + 1;
        char *end = strchr(list, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_tokens(tokenizer, text, length, list);
        text += length;
        list = end + 1;
    }
    assert_int_equal(lines, 33);
    bel_tokenizer_destroy(tokenizer);
    bel_free(texts);
    bel_free(lists);
}

static void assert_piece(const char *text, size_t expected)
{
    assert_int_equal(bel_text_piece(text, strlen(text)), expected);
}

static void pieces_follow_the_pattern(void **state)
{
    (void)state;
    assert_piece("'ll go", 3);
    assert_piece("'lx", 1);
    assert_piece("''s", 2); // both are of class OTHER
    assert_piece(" word.", 5);
    assert_piece("  word", 1);
    assert_piece("   ", 3);
    assert_piece(" \n x", 2);
    assert_piece("\nx", 1);
    assert_piece(" 12a", 3);
    assert_piece("\xc3\xa9t\xc3\xa9 x", 5); // été
    assert_piece("\xe3\x80\x80x", 3);       // U+3000, a space that is no blank
    assert_piece("\xff\xfe!x", 3);          // no UTF-8: OTHER
    assert_piece("\xed\xa0\x80x", 3);       // a surrogate is no UTF-8
    assert_piece("\xe2\x85\xab.", 3);       // Ⅻ is a number
    assert_int_equal(bel_text_class_of(0x10FFFF), BEL_TEXT_OTHER);
    assert_int_equal(bel_text_class_of(0), BEL_TEXT_OTHER);
}

static void bytes_take_everything(void **state)
{
    (void)state;
    bel_tokenizer *tokenizer = opened("bytes");
    assert_int_equal(bel_tokenizer_size(tokenizer), 257);
    assert_int_equal(bel_tokenizer_end(tokenizer), 256);
    assert_tokens(tokenizer, "a\0\xff<", 4, "97 0 255 60");
    assert_tokens(tokenizer, "", 0, "");
    size_t size;
    assert_string_equal(bel_tokenizer_bytes(tokenizer, 256, &size), "");
    assert_int_equal(size, 0);
    assert_string_equal(bel_tokenizer_bytes(tokenizer, 9999, &size), "");
    bel_tokenizer_destroy(tokenizer);
}

// --- Files --------------------------------------------------------------------------------------

static void assert_kept(const bel_tokenizer *tokenizer, const char *text, const char *tokens)
{
    char *path = bel_path_join(bel_test_own_folder(), "kept.json");
    bel_str first = {0}, second = {0};
    BEL_ASSERT_OK(bel_tokenizer_save(tokenizer, path));
    bel_tokenizer *read = opened(path);
    assert_tokens(read, text, strlen(text), tokens);
    assert_int_equal(bel_tokenizer_end(read), bel_tokenizer_end(tokenizer));
    bel_tokenizer_write(tokenizer, &first);
    bel_tokenizer_write(read, &second);
    assert_string_equal(first.text, second.text);
    bel_str_deinit(&first);
    bel_str_deinit(&second);
    bel_tokenizer_destroy(read);
    bel_free(path);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    bel_tokenizer *bytes = opened("bytes"), *merges = opened(FOLDER "tokenizer.json");
    assert_kept(bytes, "a b", "97 32 98");
    assert_kept(merges, "a", "64");
    bel_tokenizer_destroy(bytes);
    bel_tokenizer_destroy(merges);
}

#define JSON(pre, model) "{\"pre_tokenizer\":" pre ",\"model\":{\"type\":\"BPE\"," model "}}"
#define LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static void assert_refused(const char *json, bel_code code, const char *message)
{
    char *path = bel_test_file(bel_test_own_folder(), "t.json", json, strlen(json));
    bel_tokenizer *tokenizer;
    BEL_ASSERT_FAILS(bel_tokenizer_open(path, &tokenizer), code, message);
    bel_free(path);
}

static void other_rules_are_refused(void **state)
{
    (void)state;
    assert_refused("{}", BEL_UNIMPLEMENTED, "a model without a type is not supported");
    assert_refused("{\"model\":{\"type\":\"WordPiece\"}}", BEL_UNIMPLEMENTED, "WordPiece");
    assert_refused("{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"type\":\"BPE\"}}",
                   BEL_UNIMPLEMENTED, "a normalizer");
    assert_refused(JSON("{\"type\":\"Metaspace\"}", "\"vocab\":{\"a\":0}"), BEL_UNIMPLEMENTED,
                   "Metaspace");
    assert_refused(
        JSON("{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "\"vocab\":{\"a\":0}"),
        BEL_UNIMPLEMENTED, "add_prefix_space");
    assert_refused(JSON(LEVEL, "\"ignore_merges\":true,\"vocab\":{\"a\":0}"), BEL_UNIMPLEMENTED,
                   "ignore_merges");
    assert_refused(JSON(LEVEL, "\"vocab\":{\"a\":0}"), BEL_DATA_LOSS,
                   "expected a token for each byte, got none for 00");
    assert_refused(JSON(LEVEL, "\"vocab\":{\"a\":-1}"), BEL_DATA_LOSS, "expected tokens in 0..");
    assert_refused(JSON("null", "\"vocab\":{\"a\":0,\"b\":0}"), BEL_DATA_LOSS,
                   "two tokens have this number");
    assert_refused(JSON("null", "\"vocab\":{\"ab\":0}"), BEL_UNIMPLEMENTED, "single characters");
    assert_refused(JSON("null", "\"vocab\":{}"), BEL_DATA_LOSS, "expected tokens, got none");
    assert_refused("[1", BEL_DATA_LOSS, "t.json");
    bel_tokenizer *tokenizer;
    BEL_ASSERT_FAILS(bel_tokenizer_open("words", &tokenizer), BEL_INVALID_ARGUMENT,
                     "expected bytes, gpt2:FOLDER or FILE.json");
    BEL_ASSERT_FAILS(bel_tokenizer_open("gpt2:nowhere", &tokenizer), BEL_NOT_FOUND, "encoder.json");
}

static void a_mask_token_is_found_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *token, *special;
        int64_t mask;
    } cases[] = {{"[MASK]", "true", 1}, {"<mask>", "true", 1}, {"[PAD]", "true", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bel_tokenizer *tokenizer;
        char *text = bel_strf("{\"added_tokens\":[{\"id\":1,\"content\":\"%s\",\"special\":%s}],"
                              "\"pre_tokenizer\":null,\"model\":{\"type\":\"BPE\",\"merges\":[],"
                              "\"vocab\":{\"a\":0}}}",
                              cases[i].token, cases[i].special);
        char *path = bel_test_file(bel_test_own_folder(), "mask.json", text, strlen(text));
        BEL_ASSERT_OK(bel_tokenizer_open(path, &tokenizer));
        bel_free(path);
        assert_int_equal(bel_tokenizer_mask(tokenizer), cases[i].mask);
        bel_tokenizer_destroy(tokenizer);
        bel_free(text);
    }
}

// Writes the files of GPT-2's form for the merges of tokenizer.json.
static void gpt2_files_are_read(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    bel_tokenizer *bytes = bel_tokenizer_create(false, true);
    bel_str vocabulary = {0};
    bel_tokenizer_add_bytes(bytes);
    BEL_ASSERT_OK(bel_tokenizer_set(bytes, 256, "ab", 2, false));
    BEL_ASSERT_OK(bel_tokenizer_set(bytes, 257, "\xe2\x82", 2, false));
    bel_tokenizer_write(bytes, &vocabulary);
    const char *start = strstr(vocabulary.text, "\"vocab\": ") + strlen("\"vocab\": ");
    const char *end = strstr(start, "\n    }");
    char *encoder = bel_strf("%.*s,\"<|endoftext|>\":258}", (int)(end - start), start);
    const char merges[] = "#version: 0.2\na b\r\n\xc3\xa2 \xc4\xa4\n"; // â Ĥ: E2 82
    char *paths[] = {bel_test_file(folder, "encoder.json", encoder, strlen(encoder)),
                     bel_test_file(folder, "vocab.bpe", merges, sizeof merges - 1)};
    char *name = bel_strf("gpt2:%s", folder);
    bel_tokenizer *tokenizer = opened(name);
    assert_int_equal(bel_tokenizer_end(tokenizer), 258);
    assert_tokens(tokenizer, "abc\xe2\x82\xac", 6, "256 66 257 105");
    bel_tokenizer_destroy(tokenizer);
    bel_tokenizer_destroy(bytes);
    bel_str_deinit(&vocabulary);
    bel_free(encoder), bel_free(paths[0]), bel_free(paths[1]), bel_free(name);
}

// --- Documents ----------------------------------------------------------------------------------

static void open_texts(bel_documents *documents, const char *const *texts, int count)
{
    char *paths[8];
    for (int i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d.txt", i);
        paths[i] = bel_test_file(bel_test_own_folder(), name, texts[i], strlen(texts[i]));
    }
    BEL_ASSERT_OK(bel_documents_open(documents, (const char *const *)paths, count, NULL));
    for (int i = 0; i < count; i++)
        bel_free(paths[i]);
}

static void characters_are_those_of_the_texts(void **state)
{
    (void)state;
    bel_documents documents = {0};
    bel_tokenizer *tokenizer;
    int64_t *tokens;
    size_t count;
    open_texts(&documents, (const char *const[]){"ba", "a\xc3\xa9"}, 2);
    BEL_ASSERT_OK(bel_documents_characters(&documents, &tokenizer));
    assert_int_equal(bel_tokenizer_size(tokenizer), 4);
    assert_int_equal(bel_tokenizer_end(tokenizer), 3);
    assert_tokens(tokenizer,
                  "\xc3\xa9"
                  "ab",
                  4, "2 0 1");
    assert_kept(tokenizer, "b\xc3\xa9", "1 2");
    BEL_ASSERT_FAILS(bel_tokenizer_encode(tokenizer, "aax", 3, &tokens, &count), BEL_DATA_LOSS,
                     "byte 2: the vocabulary lacks the character U+0078");
    bel_tokenizer_destroy(tokenizer);
    bel_documents_close(&documents);
    open_texts(&documents, (const char *const[]){"ok", "a\xff"}, 2);
    BEL_ASSERT_FAILS(bel_documents_characters(&documents, &tokenizer), BEL_DATA_LOSS,
                     "1.txt: byte 1: expected UTF-8 without zero bytes, got byte ff");
    bel_documents_close(&documents);
}

static void lines_of_json_are_documents(void **state)
{
    (void)state;
    const char text[] = "{\"text\":\"a\\n\\u00e9\",\"n\":1}\r\n\n{\"n\":2,\"text\":\"\"}";
    const char wrong[] = "{\"text\":\"a\"}\n{\"other\":\"b\"}\n";
    char *path = bel_test_file(bel_test_own_folder(), "a.jsonl", text, sizeof text - 1);
    char *bad = bel_test_file(bel_test_own_folder(), "b.jsonl", wrong, sizeof wrong - 1);
    bel_documents documents = {0};
    BEL_ASSERT_OK(bel_documents_open(&documents, (const char *const[]){path}, 1, "text"));
    assert_int_equal(documents.count, 2);
    assert_int_equal(documents.items[0].size, 4);
    assert_memory_equal(documents.items[0].text, "a\n\xc3\xa9", 4);
    assert_int_equal(documents.items[1].line, 3);
    bel_documents_close(&documents);
    BEL_ASSERT_FAILS(bel_documents_open(&documents, (const char *const[]){bad}, 1, "text"),
                     BEL_DATA_LOSS, "b.jsonl:2: expected an object with a text \"text\"");
    bel_documents_close(&documents);
    bel_free(path);
    bel_free(bad);
}

static bel_tokenizer *trained(const bel_documents *documents, int64_t size, int threads)
{
    bel_team *team;
    bel_tokenizer *tokenizer;
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    BEL_ASSERT_OK(bel_documents_train(documents, size, team, &tokenizer));
    bel_team_destroy(team);
    return tokenizer;
}

// z z occurs 4 times, as the blank and z; l has the lowest number of the pairs that occur 3 times.
static void merges_are_learned(void **state)
{
    (void)state;
    bel_documents documents = {0};
    open_texts(&documents, (const char *const[]){" low low lower", " zz zz zz zz"}, 2);
    bel_tokenizer *tokenizer = trained(&documents, 262, 1);
    assert_int_equal(bel_tokenizer_size(tokenizer), 262);
    assert_int_equal(bel_tokenizer_end(tokenizer), 261);
    const char *const expected[] = {"zz", " zz", "lo", " lo", " low"};
    for (int i = 0; i < 5; i++) {
        size_t size;
        const char *bytes = bel_tokenizer_bytes(tokenizer, 256 + i, &size);
        assert_int_equal(size, strlen(expected[i]));
        assert_memory_equal(bytes, expected[i], size);
    }
    assert_tokens(tokenizer, " low zz", 7, "260 257");
    bel_tokenizer_destroy(tokenizer);
    tokenizer = trained(&documents, 10000, 1); // fewer merges than that exist
    assert_true(bel_tokenizer_size(tokenizer) < 270);
    bel_tokenizer_destroy(tokenizer);
    bel_team *team = bel_team_create_some(1);
    BEL_ASSERT_FAILS(bel_documents_train(&documents, 256, team, &tokenizer), BEL_INVALID_ARGUMENT,
                     "expected at least 257 tokens");
    bel_team_destroy(team);
    bel_documents_close(&documents);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    bel_documents documents = {0};
    const char *const paths[] = {FOLDER "*.txt", FOLDER "*.js", FOLDER "*.c", "README.md"};
    bel_str texts[2] = {{0}, {0}};
    BEL_ASSERT_OK(bel_documents_open(&documents, paths, 4, NULL));
    for (int i = 0; i < 2; i++) {
        bel_tokenizer *tokenizer = trained(&documents, 600, 1 + 2 * i);
        bel_token_list list = {0};
        bel_team *team = bel_team_create_some(1 + 2 * i);
        BEL_ASSERT_OK(bel_documents_encode(&documents, 0, documents.count, tokenizer, team, &list));
        bel_tokenizer_write(tokenizer, &texts[i]);
        for (size_t t = 0; t < list.count; t++)
            bel_str_printf(&texts[i], " %d", (int)list.items[t]);
        bel_team_destroy(team);
        bel_free(list.items);
        bel_tokenizer_destroy(tokenizer);
    }
    assert_string_equal(texts[0].text, texts[1].text);
    bel_str_deinit(&texts[0]);
    bel_str_deinit(&texts[1]);
    bel_documents_close(&documents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_are_as_in_tiktoken),
        cmocka_unit_test(pieces_follow_the_pattern),
        cmocka_unit_test(bytes_take_everything),
        BEL_TEST_IN_FOLDER(what_is_written_is_read),
        BEL_TEST_IN_FOLDER(other_rules_are_refused),
        BEL_TEST_IN_FOLDER(a_mask_token_is_found_by_its_name),
        BEL_TEST_IN_FOLDER(gpt2_files_are_read),
        BEL_TEST_IN_FOLDER(characters_are_those_of_the_texts),
        BEL_TEST_IN_FOLDER(lines_of_json_are_documents),
        BEL_TEST_IN_FOLDER(merges_are_learned),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
