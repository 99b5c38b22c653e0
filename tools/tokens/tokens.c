// Verbs tokens train, encode and decode. A vocabulary is written as tokenizer.json, and tokens as
// the files that a training reads: with the header of llm.c if two bytes hold a token, else as
// uint32 without a header.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "setup/inputs.h"
#include "tokens/block.h"
#include "tokens/documents.h"

// Returns a team of --num_threads threads, by default one per core.
static bel_team *tokens_team(const bel_options *options)
{
    int64_t threads = bel_options_int(options, "num_threads");
    return bel_team_create_some(threads > 0 ? (int)threads : bel_available_cores());
}

// Opens the files that the arguments name: JSONL by --input_format or the first name, else texts.
// Close also after a failure.
static bel_status *tokens_open(const bel_options *options, bel_documents *documents)
{
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    if (count == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "expected files with texts, got none");
    const char *format = bel_flag_inputs_text_format(options, paths[0]);
    const bel_option_meaning meanings[] = {{"input_format", format}, {NULL, NULL}};
    BEL_TRY(bel_options_check_read(options, meanings));
    if (strcmp(format, "tokens") == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s has tokens by its name; hint: --input_format text reads it as a text",
                       paths[0]);
    }
    const char *key = strcmp(format, "jsonl") == 0 ? bel_options_string(options, "text_key") : NULL;
    BEL_TRY(bel_documents_open(documents, paths, (int)count, key));
    char size[32];
    bel_log_write(BEL_LOG_INFO, "%zu documents, %s", documents->count,
                  bel_bytes_text(documents->size_bytes, size));
    return NULL;
}

// --- train --------------------------------------------------------------------------------------

bel_status *bel_verb_tokens_train(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    const char *out = bel_options_string(options, "out");
    int64_t size = bel_options_int(options, "vocabulary");
    bel_documents documents = {0};
    bel_tokenizer *tokenizer = NULL;
    if (out == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--out is needed: the file for the tokenizer, such as "
                                             "tokenizer.json");
    }
    bel_team *team = tokens_team(options);
    bel_status *status = tokens_open(options, &documents);
    if (status == NULL) status = bel_documents_train(&documents, size, team, &tokenizer);
    if (status == NULL) status = bel_tokenizer_save(tokenizer, out);
    if (status == NULL && bel_tokenizer_size(tokenizer) < size)
        bel_log_write(BEL_LOG_WARN, "only %lld of %lld tokens: no other pair occurs twice",
                      (long long)bel_tokenizer_size(tokenizer), (long long)size);
    if (status == NULL) {
        char *line = bel_strf("tokenizer %s\nvocabulary %lld\n", out,
                              (long long)bel_tokenizer_size(tokenizer));
        status = bel_results_write(line);
        bel_free(line);
    }
    bel_tokenizer_destroy(tokenizer);
    bel_documents_close(&documents);
    bel_team_destroy(team);
    return status;
}

// --- encode -------------------------------------------------------------------------------------

// Prints a line for each end of a document.
static bel_status *print_tokens(const bel_token_list *list, int64_t end)
{
    bel_str text = {0};
    bel_status *status = NULL;
    for (size_t i = 0; i < list->count && status == NULL; i++) {
        bool ends = list->items[i] == end || i + 1 == list->count;
        bel_str_printf(&text, "%d%s", list->items[i], ends ? "\n" : " ");
        if (text.length < 65536 && i + 1 < list->count) continue;
        status = bel_results_write(text.text);
        text.length = 0;
    }
    bel_str_deinit(&text);
    return status;
}

static bel_status *encode(const bel_options *options, const bel_documents *documents,
                          const bel_tokenizer *tokenizer, bel_token_list *list)
{
    const char *out = bel_options_string(options, "out");
    bool narrow = bel_tokenizer_size(tokenizer) <= 65536;
    bel_team *team = tokens_team(options);
    bel_status *status =
        bel_documents_encode(documents, 0, documents->count, tokenizer, team, list);
    bel_team_destroy(team);
    BEL_TRY(status);
    if (out == NULL) return print_tokens(list, bel_tokenizer_end(tokenizer));
    BEL_TRY(bel_token_block_write(out, list, narrow));
    char *line = bel_strf("tokens %zu\nfile %s\n%s", list->count, out,
                          narrow ? "" : "flags --input_format tokens --wide_tokens\n");
    status = bel_results_write(line);
    bel_free(line);
    return status;
}

bel_status *bel_verb_tokens_encode(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    bel_documents documents = {0};
    bel_tokenizer *tokenizer = NULL;
    bel_token_list list = {0};
    bel_status *status = bel_tokenizer_open(bel_options_string(options, "tokenizer"), &tokenizer);
    if (status == NULL) status = tokens_open(options, &documents);
    if (status == NULL) status = encode(options, &documents, tokenizer, &list);
    bel_free(list.items);
    bel_documents_close(&documents);
    bel_tokenizer_destroy(tokenizer);
    return status;
}

// --- decode -------------------------------------------------------------------------------------

// Writes the texts of a file's tokens; documents follow each other as they did.
static bel_status *decode(const bel_tokenizer *tokenizer, const char *path, bool wide)
{
    bel_file_view view;
    bel_token_block block;
    BEL_TRY(bel_file_view_open(path, &view));
    bel_status *status = bel_token_block_find(&view, path, wide, &block);
    for (int64_t i = 0; status == NULL && i < block.count; i++) {
        size_t size;
        int64_t token = bel_token_block_at(&block, i);
        const char *bytes = bel_tokenizer_bytes(tokenizer, token, &size);
        if (token >= bel_tokenizer_size(tokenizer)) {
            status = BEL_ERR(
                BEL_DATA_LOSS,
                "%s: token %lld: expected a number below %lld, got %lld; hint: another "
                "--tokenizer made the file",
                path, (long long)i, (long long)bel_tokenizer_size(tokenizer), (long long)token);
        } else if (size > 0) {
            status = bel_results_write_bytes(bytes, size);
        }
    }
    bel_file_view_close(&view);
    if (status == NULL) status = bel_results_flush();
    return status;
}

bel_status *bel_verb_tokens_decode(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // stays 0
    size_t count;
    const char *const *paths = bel_options_arguments(options, &count);
    bel_tokenizer *tokenizer;
    if (count == 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "expected files with tokens, got none");
    BEL_TRY(bel_tokenizer_open(bel_options_string(options, "tokenizer"), &tokenizer));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++)
        status = decode(tokenizer, paths[i], bel_options_bool(options, "wide_tokens"));
    bel_tokenizer_destroy(tokenizer);
    return status;
}
