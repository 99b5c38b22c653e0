// Texts stay in their mapped files; those of JSONL are copied without their escapes. The team takes
// documents one by one, so the tokens of one document are computed by one thread. So the result
// does not depend on the number of threads, which checkpoints rely on.
#include "tokens/documents.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "input/files/paths.h"
#include "tokens/split.h"

static void add(bel_documents *documents, const char *text, size_t size, const char *path,
                int64_t line)
{
    documents->items = bel_xgrow(documents->items, &documents->capacity, documents->count + 1,
                                 sizeof *documents->items);
    documents->items[documents->count++] = (bel_document){text, size, path, line};
}

static bel_status *add_line(bel_documents *documents, const char *text, size_t size,
                            const char *path, int64_t line, const char *key)
{
    bel_json *json;
    const char *found;
    char *place = bel_strf("%s:%lld", path, (long long)line);
    bel_status *status = bel_json_parse(text, size, place, &json);
    bel_free(place);
    BEL_TRY(status);
    if (bel_json_string(bel_json_root(json), key, &found)) {
        add(documents, bel_arena_strdup(documents->arena, found), strlen(found), path, line);
    } else {
        status = BEL_ERR(BEL_DATA_LOSS, "%s:%lld: expected an object with a text \"%s\"", path,
                         (long long)line, key);
    }
    bel_json_destroy(json);
    return status;
}

// Empty lines are no documents.
static bel_status *add_lines(bel_documents *documents, const char *at, size_t size_bytes,
                             const char *path, const char *key)
{
    const char *end = at + size_bytes;
    for (int64_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop == NULL ? end : stop) - at), used = size;
        while (used > 0 && (at[used - 1] == '\r' || at[used - 1] == ' '))
            used--;
        if (used > 0) BEL_TRY(add_line(documents, at, used, path, line, key));
        at += size + 1;
    }
    return NULL;
}

bel_status *bel_documents_open(bel_documents *documents, const char *const *paths, int path_count,
                               const char *key)
{
    int count, marked = 0, binary = 0;
    const char *first_binary = NULL;
    documents->arena = bel_arena_create();
    BEL_TRY(bel_paths_expand(documents->arena, paths, path_count, &documents->paths, &count));
    documents->views = bel_arena_alloc(documents->arena, (size_t)count * sizeof(bel_file_view));
    while (documents->file_count < count) {
        const char *path = documents->paths[documents->file_count];
        bel_file_view *view = &documents->views[documents->file_count];
        BEL_TRY(bel_file_view_open(path, view));
        documents->file_count++;
        size_t mark = bel_utf8_mark_bytes(view->data, view->size), size = view->size - mark;
        const char *text = (const char *)view->data + mark;
        documents->size_bytes += size;
        documents->content = bel_hash64_more(documents->content, text, size);
        marked += mark > 0;
        if (key != NULL) {
            BEL_TRY(add_lines(documents, text, size, path, key));
        } else {
            add(documents, text, size, path, 0);
            if (size > 0 && memchr(text, '\0', size) != NULL && binary++ == 0) first_binary = path;
        }
    }
    if (marked > 0)
        bel_log_write(BEL_LOG_INFO,
                      "a byte order mark at the beginning of %d of %d files is left out", marked,
                      count);
    if (binary > 0)
        bel_log_write(
            BEL_LOG_WARN,
            "%d of %d files have zero bytes, as texts do not: %s%s; their tokens are used "
            "all the same",
            binary, count, first_binary, binary > 1 ? " and others" : "");
    return NULL;
}

void bel_documents_close(bel_documents *documents)
{
    for (int i = 0; i < documents->file_count; i++)
        bel_file_view_close(&documents->views[i]);
    bel_free(documents->items);
    bel_arena_destroy(documents->arena);
    *documents = (bel_documents){0};
}

bel_status *bel_documents_check(const bel_documents *documents, int64_t block)
{
    int end, first = bel_file_view_turn(block, documents->file_count, &end);
    for (int i = first; i < end; i++)
        BEL_TRY(bel_file_view_check(&documents->views[i], documents->paths[i]));
    return NULL;
}

// Puts the place of a document before an error about it.
static bel_status *at_document(bel_status *status, const bel_document *document)
{
    if (status == NULL || document->line == 0)
        return bel_status_wrap(status, __FILE__, __LINE__, "%s", document->path);
    return bel_status_wrap(status, __FILE__, __LINE__, "%s:%lld", document->path,
                           (long long)document->line);
}

// --- Tokens -------------------------------------------------------------------------------------

// A tile encodes the documents from its number on in steps of the number of tiles: each tile has an
// encoder.
typedef struct encoding {
    const bel_document *documents;
    size_t count;
    const bel_tokenizer *tokenizer;
    size_t tiles;
    bel_token_list *lists; // by document
} encoding;

static bel_status *encode_tile(void *argument, int64_t tile)
{
    encoding *job = argument;
    bel_encoder *encoder = bel_encoder_create(job->tokenizer);
    bel_status *status = NULL;
    for (size_t d = (size_t)tile; d < job->count && status == NULL; d += job->tiles) {
        const bel_document *document = &job->documents[d];
        status =
            bel_encoder_encode(encoder, document->text, document->size, SIZE_MAX, &job->lists[d]);
        if (status != NULL) status = at_document(status, document);
        if (job->tokenizer->end >= 0) bel_token_list_add(&job->lists[d], job->tokenizer->end);
    }
    bel_encoder_destroy(encoder);
    return status;
}

bel_status *bel_documents_encode(const bel_documents *documents, size_t first, size_t count,
                                 const bel_tokenizer *tokenizer, bel_team *team,
                                 bel_token_list *out_list)
{
    size_t tiles = (size_t)bel_team_size(team), tokens = out_list->count;
    bel_token_list *lists = bel_xcalloc(count + 1, sizeof *lists);
    encoding job = {documents->items + first, count, tokenizer, tiles, lists};
    bel_status *status = bel_team_try(team, encode_tile, &job, (int64_t)tiles);
    for (size_t d = 0; d < count; d++)
        tokens += lists[d].count;
    if (status == NULL && tokens > 0)
        out_list->items =
            bel_xgrow(out_list->items, &out_list->capacity, tokens, sizeof *out_list->items);
    for (size_t d = 0; d < count; d++) {
        if (status == NULL && lists[d].count > 0) {
            memcpy(out_list->items + out_list->count, lists[d].items,
                   lists[d].count * sizeof *out_list->items);
            out_list->count += lists[d].count;
        }
        bel_free(lists[d].items);
    }
    bel_free(lists);
    return status;
}

// --- Characters ---------------------------------------------------------------------------------

enum { CHARACTERS = 0x110000 };

static bel_status *note_characters(const bel_document *document, unsigned char *seen)
{
    for (size_t at = 0; at < document->size;) {
        uint32_t character;
        size_t bytes = bel_text_character(document->text + at, document->size - at, &character);
        if (character == 0 || character == CHARACTERS) {
            return at_document(BEL_ERR(BEL_DATA_LOSS,
                                       "byte %zu: expected UTF-8 without zero bytes, got byte "
                                       "%02x; hint: --tokenizer bytes",
                                       at, (unsigned)(unsigned char)document->text[at]),
                               document);
        }
        seen[character] = (unsigned char)bytes;
        at += bytes;
    }
    return NULL;
}

static void put_utf8(uint32_t c, unsigned bytes, char out_text[4])
{
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (unsigned i = bytes; i-- > 1; c >>= 6)
        out_text[i] = (char)(0x80 | (c & 0x3F));
    out_text[0] = (char)(first[bytes] | c);
}

bel_status *bel_documents_characters(const bel_documents *documents, bel_tokenizer **out_tokenizer)
{
    unsigned char *seen = bel_xcalloc(CHARACTERS, 1);
    bel_status *status = NULL;
    for (size_t d = 0; d < documents->count && status == NULL; d++)
        status = note_characters(&documents->items[d], seen);
    bel_tokenizer *tokenizer = bel_tokenizer_create(true, false);
    int64_t number = 0;
    for (uint32_t c = 0; c < CHARACTERS && status == NULL; c++) {
        char text[4];
        if (seen[c] == 0) continue;
        put_utf8(c, seen[c], text);
        status = bel_tokenizer_set(tokenizer, number++, text, seen[c], false);
    }
    if (status == NULL)
        status =
            bel_tokenizer_set(tokenizer, number, BEL_END_OF_TEXT, strlen(BEL_END_OF_TEXT), true);
    tokenizer->end = (int)number;
    bel_free(seen);
    if (status == NULL) {
        *out_tokenizer = tokenizer;
    } else {
        bel_tokenizer_destroy(tokenizer);
    }
    return status;
}
