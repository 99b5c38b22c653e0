// Files of vocabularies. encoder.json and tokenizer.json write a byte as the character that stands
// for it (bel_token_character_of). A rule that would split or change texts in another way is an
// error, because the tokens would silently differ from those of the program that made the file.
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "input/files/file_view.h"
#include "tokens/split.h"
#include "tokens/tokenizer.h"

// Turns a text of characters that stand for bytes into these bytes; free with bel_free. NULL: a
// character stands for no byte.
static char *bytes_of(const char *text, size_t length, size_t *out_size)
{
    char *bytes = bel_xmalloc(length + 1);
    size_t size = 0;
    for (size_t at = 0; at < length;) {
        uint32_t character;
        at += bel_text_character(text + at, length - at, &character);
        int byte = bel_token_byte_of(character);
        if (byte < 0) {
            bel_free(bytes);
            return NULL;
        }
        bytes[size++] = (char)byte;
    }
    *out_size = size;
    return bytes;
}

// --- Vocabularies -------------------------------------------------------------------------------

static bool is_end(const char *text)
{
    static const char *const names[] = {BEL_END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) return true;
    return false;
}

// A member of "vocab": a token and its number. Special ones are already set.
static bel_status *take_token(void *context, const char *name, const bel_json_value *value)
{
    bel_tokenizer *tokenizer = context;
    int64_t number;
    if (!bel_json_value_i64(value, &number)) {
        return BEL_ERR(BEL_DATA_LOSS, "token \"%s\": expected a number", name);
    }
    bool set = number >= 0 && (uint64_t)number < tokenizer->token_count &&
               tokenizer->tokens[number].special;
    if (set) return NULL;
    size_t size = strlen(name);
    if (tokenizer->by_character) {
        uint32_t character;
        if (size > 0 && bel_text_character(name, size, &character) == size)
            return bel_tokenizer_set(tokenizer, number, name, size, false);
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "token \"%s\": without pre_tokenizer ByteLevel, expected single characters",
                       name);
    }
    char *bytes = bytes_of(name, size, &size);
    if (bytes == NULL && is_end(name)) // encoder.json has it among the others
        return bel_tokenizer_set(tokenizer, tokenizer->end = (int)number, name, strlen(name), true);
    if (bytes == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "token \"%s\": expected characters that stand for bytes",
                       name);
    }
    bool special = tokenizer->end < 0 && strcmp(name, BEL_END_OF_TEXT) == 0;
    if (special) tokenizer->end = (int)number;
    bel_status *status = bel_tokenizer_set(tokenizer, number, bytes, size, special);
    bel_free(bytes);
    return status;
}

// Adds the merge of two texts of characters that stand for bytes.
static bel_status *take_merge(bel_tokenizer *tokenizer, const char *left, size_t left_length,
                              const char *right, size_t right_length)
{
    size_t left_size = 0, right_size = 0;
    char *a = bytes_of(left, left_length, &left_size);
    char *b = bytes_of(right, right_length, &right_size);
    int first = a != NULL ? bel_tokenizer_find(tokenizer, a, left_size) : -1;
    int second = b != NULL ? bel_tokenizer_find(tokenizer, b, right_size) : -1;
    bel_free(a);
    bel_free(b);
    if (first >= 0 && second >= 0) return bel_tokenizer_add_merge(tokenizer, first, second);
    return BEL_ERR(BEL_DATA_LOSS, "merge %zu: expected two tokens, got \"%.*s\" and \"%.*s\"",
                   tokenizer->merge_count, (int)left_length, left, (int)right_length, right);
}

// "left right", whose one blank is the border: tokens have none.
static bel_status *take_merge_line(bel_tokenizer *tokenizer, const char *line, size_t length)
{
    const char *blank = memchr(line, ' ', length);
    size_t left = blank == NULL ? length : (size_t)(blank - line);
    if (blank == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "merge %zu: expected two texts, got \"%.*s\"",
                       tokenizer->merge_count, (int)length, line);
    }
    return take_merge(tokenizer, line, left, blank + 1, length - left - 1);
}

// --- GPT-2's files ------------------------------------------------------------------------------

// A line for each merge, after a line with the version.
static bel_status *read_merges(bel_tokenizer *tokenizer, const char *text, size_t size)
{
    const char *end = text + size;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((stop == NULL ? end : stop) - text);
        size_t used = length > 0 && text[length - 1] == '\r' ? length - 1 : length;
        bool comment = used >= 9 && memcmp(text, "#version:", 9) == 0;
        if (used > 0 && !comment) BEL_TRY(take_merge_line(tokenizer, text, used));
        text += length + 1;
    }
    return NULL;
}

static bel_status *fill_gpt2(const char *encoder, const char *merges, bel_tokenizer *tokenizer)
{
    bel_file_view view;
    bel_json *json = NULL;
    BEL_TRY(bel_file_view_open(encoder, &view));
    bel_status *status = bel_json_parse(view.data, view.size, encoder, &json);
    bel_file_view_close(&view);
    BEL_TRY(status);
    status = bel_json_each(bel_json_root(json), take_token, tokenizer);
    bel_json_destroy(json);
    BEL_TRY_CTX(status, "%s", encoder);
    BEL_TRY(bel_tokenizer_finish(tokenizer, encoder));
    BEL_TRY(bel_file_view_open(merges, &view));
    status = read_merges(tokenizer, view.data, view.size);
    bel_file_view_close(&view);
    BEL_TRY_CTX(status, "%s", merges);
    return NULL;
}

bel_status *bel_tokenizer_read_gpt2(const char *folder, bel_tokenizer **out_tokenizer)
{
    bel_tokenizer *tokenizer = bel_tokenizer_create(false, true);
    char *encoder = bel_path_join(folder, "encoder.json");
    char *merges = bel_path_join(folder, "vocab.bpe");
    bel_status *status = fill_gpt2(encoder, merges, tokenizer);
    bel_free(encoder);
    bel_free(merges);
    if (status == NULL) {
        *out_tokenizer = tokenizer;
    } else {
        bel_tokenizer_destroy(tokenizer);
    }
    return status;
}

// --- tokenizer.json -----------------------------------------------------------------------------

static bool is_null(const bel_json_value *object, const char *name)
{
    const bel_json_value *value = bel_json_member(object, name);
    bel_str text = {0};
    if (value == NULL) return true;
    bel_json_write_value(&text, value);
    bool null = strcmp(text.text, "null") == 0 || strcmp(text.text, "\"\"") == 0;
    bel_str_deinit(&text);
    return null;
}

static bool is_true(const bel_json_value *object, const char *name)
{
    const bel_json_value *value = bel_json_member(object, name);
    bel_str text = {0};
    if (value == NULL) return false;
    bel_json_write_value(&text, value);
    bool yes = strcmp(text.text, "true") == 0;
    bel_str_deinit(&text);
    return yes;
}

static bel_status *refuse(const char *rule)
{
    return BEL_ERR(
        BEL_UNIMPLEMENTED,
        "%s is not supported; expected type BPE with pre_tokenizer ByteLevel, as GPT-2's", rule);
}

// Checks that the rules are those of split.h and of the merges, and makes the tokenizer.
static bel_status *read_rules(const bel_json_value *root, bel_tokenizer **out_tokenizer)
{
    const bel_json_value *model = bel_json_member(root, "model");
    const bel_json_value *pre = bel_json_member(root, "pre_tokenizer");
    const char *type = NULL, *pre_type = NULL;
    bool bpe = bel_json_string(model, "type", &type) ? strcmp(type, "BPE") == 0
                                                     : bel_json_member(model, "merges") != NULL;
    if (!bpe) return refuse(type != NULL ? type : "a model without a type");
    if (!is_null(root, "normalizer")) return refuse("a normalizer");
    if (!is_null(model, "dropout")) return refuse("dropout of merges");
    if (!is_null(model, "continuing_subword_prefix")) return refuse("continuing_subword_prefix");
    if (!is_null(model, "end_of_word_suffix")) return refuse("end_of_word_suffix");
    if (is_true(model, "byte_fallback")) return refuse("byte_fallback");
    if (is_true(model, "ignore_merges")) return refuse("ignore_merges");
    bool by_character = is_null(root, "pre_tokenizer");
    if (!by_character) {
        bool level = bel_json_string(pre, "type", &pre_type) && strcmp(pre_type, "ByteLevel") == 0;
        if (!level) return refuse(pre_type != NULL ? pre_type : "a pre_tokenizer without a type");
        if (is_true(pre, "add_prefix_space")) return refuse("add_prefix_space");
    }
    bool splits =
        !by_character && (bel_json_member(pre, "use_regex") == NULL || is_true(pre, "use_regex"));
    if (!is_null(root, "post_processor")) {
        const char *post = NULL;
        (void)bel_json_string(bel_json_member(root, "post_processor"), "type", &post);
        bool level = post != NULL && strcmp(post, "ByteLevel") == 0; // changes no tokens
        if (!level) return refuse(post != NULL ? post : "a post_processor without a type");
    }
    *out_tokenizer = bel_tokenizer_create(by_character, splits);
    return NULL;
}

static bel_status *read_added(const bel_json_value *list, bel_tokenizer *tokenizer)
{
    for (size_t i = 0; i < bel_json_length(list); i++) {
        const bel_json_value *added = bel_json_at(list, i);
        int64_t number;
        const char *content;
        if (!bel_json_i64(added, "id", &number) || !bel_json_string(added, "content", &content)) {
            return BEL_ERR(BEL_DATA_LOSS, "added_tokens[%zu]: expected an id and a content", i);
        }
        BEL_TRY(bel_tokenizer_set(tokenizer, number, content, strlen(content), true));
        if (tokenizer->end < 0 && is_end(content)) tokenizer->end = (int)number;
    }
    return NULL;
}

static bel_status *read_merge_list(const bel_json_value *list, bel_tokenizer *tokenizer)
{
    if (tokenizer->by_character && bel_json_length(list) > 0) return refuse("merges of characters");
    for (size_t i = 0; i < bel_json_length(list); i++) {
        const bel_json_value *merge = bel_json_at(list, i);
        const char *line = bel_json_value_string(merge);
        if (line != NULL) {
            BEL_TRY(take_merge_line(tokenizer, line, strlen(line)));
            continue;
        }
        const char *left = bel_json_value_string(bel_json_at(merge, 0));
        const char *right = bel_json_value_string(bel_json_at(merge, 1));
        if (left == NULL || right == NULL || bel_json_length(merge) != 2) {
            return BEL_ERR(BEL_DATA_LOSS, "merge %zu: expected two texts", i);
        }
        BEL_TRY(take_merge(tokenizer, left, strlen(left), right, strlen(right)));
    }
    return NULL;
}

static bel_status *fill_json(const bel_json_value *root, const char *path, bel_tokenizer *tokenizer)
{
    const bel_json_value *model = bel_json_member(root, "model");
    BEL_TRY(read_added(bel_json_member(root, "added_tokens"), tokenizer));
    BEL_TRY(bel_json_each(bel_json_member(model, "vocab"), take_token, tokenizer));
    if (tokenizer->token_count == 0) return BEL_ERR(BEL_DATA_LOSS, "expected tokens, got none");
    BEL_TRY(bel_tokenizer_finish(tokenizer, path));
    return read_merge_list(bel_json_member(model, "merges"), tokenizer);
}

bel_status *bel_tokenizer_read_json(const char *path, bel_tokenizer **out_tokenizer)
{
    bel_file_view view;
    bel_json *json = NULL;
    bel_tokenizer *tokenizer = NULL;
    BEL_TRY(bel_file_view_open(path, &view));
    bel_status *status = bel_json_parse(view.data, view.size, path, &json);
    bel_file_view_close(&view);
    BEL_TRY(status);
    const bel_json_value *root = bel_json_root(json);
    status = read_rules(root, &tokenizer);
    if (status == NULL) status = fill_json(root, path, tokenizer);
    bel_json_destroy(json);
    if (status == NULL) {
        *out_tokenizer = tokenizer;
        return NULL;
    }
    bel_tokenizer_destroy(tokenizer);
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", path);
}

// --- Writing ------------------------------------------------------------------------------------

static void put_character(bel_str *text, uint32_t c) // below 0x800, as all that stand for bytes
{
    char bytes[2] = {(char)c, 0};
    if (c >= 0x80) bytes[0] = (char)(0xC0 | c >> 6);
    if (c >= 0x80) bytes[1] = (char)(0x80 | (c & 0x3F));
    bel_str_append(text, bytes, c >= 0x80 ? 2 : 1);
}

// Appends the JSON string of a token.
static void put_token(const bel_tokenizer *tokenizer, int number, bel_str *out)
{
    const bel_token *token = &tokenizer->tokens[number];
    bel_str text = {0};
    bool plain = tokenizer->by_character || token->special;
    for (size_t i = 0; i < token->size && !plain; i++)
        put_character(&text, bel_token_character_of((unsigned char)token->bytes[i]));
    if (plain) bel_str_append(&text, token->bytes, token->size);
    bel_json_write_string(out, text.text != NULL ? text.text : "");
    bel_str_deinit(&text);
}

static void put_added(const bel_tokenizer *tokenizer, bel_str *out)
{
    const char *comma = "";
    for (size_t i = 0; i < tokenizer->token_count; i++) {
        if (!tokenizer->tokens[i].special) continue;
        bel_str_printf(out, "%s\n    {\"id\": %zu, \"content\": ", comma, i);
        put_token(tokenizer, (int)i, out);
        bel_str_puts(out, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                          "\"normalized\": false, \"special\": true}");
        comma = ",";
    }
}

static void put_vocabulary(const bel_tokenizer *tokenizer, bel_str *out)
{
    const char *comma = "";
    for (size_t i = 0; i < tokenizer->token_count; i++) {
        if (tokenizer->tokens[i].bytes == NULL) continue;
        bel_str_printf(out, "%s\n      ", comma);
        put_token(tokenizer, (int)i, out);
        bel_str_printf(out, ": %zu", i);
        comma = ",";
    }
}

static void put_merges(const bel_tokenizer *tokenizer, bel_str *out)
{
    for (size_t i = 0; i < tokenizer->merge_count; i++) {
        bel_str_puts(out, i > 0 ? ",\n      [" : "\n      [");
        put_token(tokenizer, tokenizer->merges[i].left, out);
        bel_str_puts(out, ", ");
        put_token(tokenizer, tokenizer->merges[i].right, out);
        bel_str_puts(out, "]");
    }
}

void bel_tokenizer_write(const bel_tokenizer *tokenizer, bel_str *out)
{
    bel_str_puts(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
                      "  \"added_tokens\": [");
    put_added(tokenizer, out);
    bel_str_puts(out, "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": ");
    if (tokenizer->by_character) {
        bel_str_puts(out, "null,\n  \"post_processor\": null,\n  \"decoder\": {\"type\": "
                          "\"Fuse\"},\n");
    } else {
        bel_str_printf(out,
                       "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
                       "true, \"use_regex\": %s},\n  \"post_processor\": null,\n  \"decoder\": "
                       "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": "
                       "true, \"use_regex\": true},\n",
                       tokenizer->splits ? "true" : "false");
    }
    bel_str_puts(out, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                      "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"
                      "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
                      "    \"byte_fallback\": false,\n    \"vocab\": {");
    put_vocabulary(tokenizer, out);
    bel_str_puts(out, "\n    },\n    \"merges\": [");
    put_merges(tokenizer, out);
    bel_str_puts(out, "\n    ]\n  }\n}\n");
}
