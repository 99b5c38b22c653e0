// Contexts of tokens. All files form one sequence of tokens; record i has the tokens from i ·
// context on, and as labels those one place later. So a record is found by arithmetic, and every
// token is a label once in an epoch, except the first one and those after the last context.
//
// Token files stay mapped. Those of large objects are read while they are copied: then a tag stands
// for the bytes of each, and tokens are compared with the vocabulary when they are read. Texts are
// tokenized by the first process of a host that opens them, into a file of the host's cache, two
// bytes a token if the vocabulary allows it. All processes map that file, and so do later jobs with
// the same texts and tokenizer. Contexts that are held out are neighbors, because a text continues
// in the next context.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "input/files/file_view.h"
#include "input/files/number_list.h"
#include "input/files/paths.h"
#include "input/source/source.h"
#include "input/table/holdout.h"
#include "tokens/block.h"
#include "tokens/documents.h"

enum { MOST_THREADS = 16 };

// Consecutive tokens: of a file, or of all texts.
typedef struct token_part {
    const char *path;
    bel_file_view view; // the file, or the tokens of texts
    bel_token_block block;
} token_part;

typedef struct token_source {
    bel_source base;
    bel_arena *arena;
    const bel_tokenizer *tokenizer; // NULL: unknown
    token_part *parts;
    int64_t *first; // [part_count], number of each part's first token
    int part_count;
    bool texts;         // the tokens are those of texts, which are not read again
    int64_t vocabulary; // limit of the tokens; 0: unknown
    uint64_t tokenizer_hash;
    int64_t token_count, context;
    int64_t gap_first, gap_count; // contexts that are not read: records from gap_first on skip them
    float *byte_counts;           // by token; NULL without a tokenizer
    int64_t byte_count_size;      // tokens from here on stand for no bytes: a padded vocabulary
    bel_source_field fields[3];
} token_source;

// --- Tokens by number ---------------------------------------------------------------------------

// The token of a part that is outside of the vocabulary, among `count` from `first` on.
static bel_status *check_tokens(const token_part *part, int64_t first, int64_t count,
                                int64_t vocabulary)
{
    int64_t bad = -1;
    for (int64_t i = first; i < first + count && vocabulary > 0 && bad < 0; i++)
        if (bel_token_block_at(&part->block, i) >= vocabulary) bad = i;
    if (bad < 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: token %lld: expected a number below %lld, the size of the vocabulary, got "
                   "%lld; hint: another --tokenizer or --vocabulary made the file",
                   part->path, (long long)bad, (long long)vocabulary,
                   (long long)bel_token_block_at(&part->block, bad));
}

static uint64_t token_offset(const token_part *part, int64_t token)
{
    return (uint64_t)((const char *)part->block.tokens - part->view.data) +
           (uint64_t)token * (uint64_t)part->block.width;
}

// Waits for tokens of a part, and checks those that opening has not read.
static bel_status *need_tokens(const token_source *source, const token_part *part, int64_t first,
                               int64_t count)
{
    if (part->view.partial == NULL) return NULL;
    BEL_TRY(bel_file_view_need(&part->view, token_offset(part, first),
                               (uint64_t)(count * part->block.width)));
    return check_tokens(part, first, count, source->vocabulary);
}

// Reads `count` tokens from number `from` on.
static bel_status *copy_tokens(const token_source *source, int64_t from, int64_t count,
                               int64_t *out)
{
    size_t part = bel_last_at_most(source->first, (size_t)source->part_count, from);
    for (int64_t done = 0; done < count; part++) {
        const token_part *its = &source->parts[part];
        int64_t at = from + done - source->first[part], most = its->block.count - at;
        if (most > count - done) most = count - done;
        BEL_TRY(need_tokens(source, its, at, most));
        for (int64_t i = 0; i < most; i++)
            out[done + i] = bel_token_block_at(&its->block, at + i);
        done += most;
    }
    return NULL;
}

static int64_t first_token(const token_source *source, int64_t record)
{
    return (record < source->gap_first ? record : record + source->gap_count) * source->context;
}

static bel_status *tokens_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    const token_source *source = (const token_source *)base;
    int64_t from = first_token(source, number);
    int64_t *labels = bel_sink_place(sink, base, 1, 0);
    BEL_TRY(copy_tokens(source, from, source->context, bel_sink_place(sink, base, 0, 0)));
    BEL_TRY(copy_tokens(source, from + 1, source->context, labels));
    if (source->byte_counts == NULL) return NULL;
    float *bytes = bel_sink_place(sink, base, 2, 0);
    *bytes = 0;
    for (int64_t i = 0; i < source->context; i++)
        if (labels[i] < source->byte_count_size) *bytes += source->byte_counts[labels[i]];
    return NULL;
}

static void tokens_want(const bel_source *base, struct bel_cursor *cursor, bel_position position)
{
    (void)cursor;
    const token_source *source = (const token_source *)base;
    int64_t from = first_token(source, position.number), count = source->context + 1;
    size_t part = bel_last_at_most(source->first, (size_t)source->part_count, from);
    for (int64_t done = 0; done < count; part++) {
        const token_part *its = &source->parts[part];
        int64_t at = from + done - source->first[part], most = its->block.count - at;
        if (most > count - done) most = count - done;
        bel_file_view_want(&its->view, token_offset(its, at), (uint64_t)(most * its->block.width));
        done += most;
    }
}

static void tokens_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const token_source *source = (const token_source *)base;
    int64_t from = first_token(source, number);
    size_t part = bel_last_at_most(source->first, (size_t)source->part_count, from);
    bel_str_printf(out_text, "%s: token %lld", source->parts[part].path,
                   (long long)(from - source->first[part]));
}

static bel_status *tokens_check(const bel_source *base, int64_t block)
{
    const token_source *source = (const token_source *)base;
    if (source->texts) return NULL;
    int end, first = bel_file_view_turn(block, source->part_count, &end);
    for (int i = first; i < end; i++)
        BEL_TRY(bel_file_view_check(&source->parts[i].view, source->parts[i].path));
    return NULL;
}

static bel_status *tokens_finish(const bel_source *base, int64_t deadline_ns, bool *out_compared)
{
    const token_source *source = (const token_source *)base;
    for (int i = 0; i < source->part_count; i++) {
        bool compared;
        BEL_TRY(bel_file_view_finish(&source->parts[i].view, deadline_ns, &compared));
        *out_compared = *out_compared && compared;
    }
    return NULL;
}

static void tokens_describe(const bel_source *base, bel_str *out_text)
{
    const token_source *source = (const token_source *)base;
    bel_str_printf(out_text, "context=%lld;skip=%lld+%lld;tokenizer=%016llx;",
                   (long long)source->context, (long long)source->gap_first,
                   (long long)source->gap_count, (unsigned long long)source->tokenizer_hash);
}

static void tokens_destroy(bel_source *base)
{
    token_source *source = (token_source *)base;
    for (int i = 0; i < source->part_count; i++)
        bel_file_view_close(&source->parts[i].view);
    bel_free(source->byte_counts);
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind tokens_kind = {
    .name = "tokens",
    .check = tokens_check,
    .finish = tokens_finish,
    .read = tokens_read,
    .want = tokens_want,
    .origin = tokens_origin,
    .describe = tokens_describe,
    .destroy = tokens_destroy,
};

// --- Token files --------------------------------------------------------------------------------

static bel_status *open_parts(token_source *source, const bel_token_options *options)
{
    const char *const *paths;
    int count;
    source->vocabulary = options->vocabulary;
    if (source->vocabulary == 0 && options->tokenizer != NULL)
        source->vocabulary = bel_tokenizer_size(options->tokenizer);
    BEL_TRY(bel_paths_expand(source->arena, options->paths, options->path_count, &paths, &count));
    source->parts = bel_arena_alloc(source->arena, (size_t)count * sizeof *source->parts);
    source->first = bel_arena_alloc(source->arena, (size_t)count * sizeof *source->first);
    while (source->part_count < count) {
        int p = source->part_count;
        token_part *part = &source->parts[p];
        part->path = paths[p];
        source->first[p] = source->token_count;
        BEL_TRY(bel_file_view_open_partial(part->path, &part->view));
        source->part_count++;
        BEL_TRY(bel_token_block_find(&part->view, part->path, options->wide, &part->block));
        source->base.may_lack = source->base.may_lack || part->view.partial != NULL;
        if (part->view.partial == NULL)
            BEL_TRY(check_tokens(part, 0, part->block.count, source->vocabulary));
        source->token_count += part->block.count;
        source->base.size_bytes += part->view.size;
        source->base.content = bel_file_view_content(&part->view, source->base.content);
    }
    return NULL;
}

// --- Texts --------------------------------------------------------------------------------------

typedef struct tokenizing {
    const bel_documents *documents;
    const bel_tokenizer *tokenizer;
    int width; // bytes of a token
    bool made; // by this call
} tokenizing;

// End of a file of the cache: its other bytes are compared with it, as any program may have changed
// the file since.
typedef struct token_trailer {
    uint64_t bytes; // the tokens' before it
    uint64_t hash;  // lower half of bel_hash128_of
} token_trailer;

static bel_status *write_bytes(const char *path, int descriptor, const char *bytes, size_t size)
{
    if (bel_fault_write_fails()) return bel_file_error(ENOSPC, "write", path);
    while (size > 0) {
        ssize_t wrote = write(descriptor, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return bel_file_error(errno, "write", path);
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return NULL;
}

// Packs the tokens in place, as the numbers get no wider.
static void pack_list(const tokenizing *t, bel_token_list *list)
{
    char *bytes = (char *)list->items;
    for (size_t i = 0; i < list->count && t->width == 2; i++) {
        uint16_t token = (uint16_t)list->items[i];
        memcpy(bytes + i * sizeof token, &token, sizeof token);
    }
}

// Writes the tokens in pieces of documents. So a process that waits sees the file grow.
static bel_status *tokenize(void *user, const char *path, int descriptor)
{
    enum { PIECE_BYTES = 16 << 20 };
    tokenizing *t = user;
    const bel_documents *documents = t->documents;
    int cores = bel_available_cores();
    bel_token_list list = {0};
    bel_team *team = bel_team_create_some(cores < MOST_THREADS ? cores : MOST_THREADS);
    bel_hasher *hasher = bel_hasher_create();
    token_trailer trailer = {0};
    bel_status *status = NULL;
    t->made = true;
    for (size_t first = 0, end; first < documents->count && status == NULL; first = end) {
        size_t bytes = 0;
        for (end = first; end < documents->count && bytes < PIECE_BYTES; end++)
            bytes += documents->items[end].size;
        list.count = 0;
        status = bel_documents_encode(documents, first, end - first, t->tokenizer, team, &list);
        if (status != NULL) break;
        pack_list(t, &list);
        bel_hasher_update(hasher, list.items, list.count * (size_t)t->width);
        trailer.bytes += list.count * (uint64_t)t->width;
        status =
            write_bytes(path, descriptor, (const char *)list.items, list.count * (size_t)t->width);
    }
    trailer.hash = bel_hasher_finish(hasher).low;
    if (status == NULL)
        status = write_bytes(path, descriptor, (const char *)&trailer, sizeof trailer);
    bel_hasher_destroy(hasher);
    bel_free(list.items);
    bel_team_destroy(team);
    return status;
}

// The name of the tokens: a hash of the tokenizer and of all documents with their borders.
static void name_tokens(const tokenizing *t, char out_name[33])
{
    static const char version[] = "belfry tokens 2\n";
    bel_str tokenizer = {0};
    bel_hasher *hasher = bel_hasher_create();
    bel_tokenizer_write(t->tokenizer, &tokenizer);
    bel_hasher_update(hasher, version, sizeof version);
    bel_hasher_update(hasher, tokenizer.text, tokenizer.length);
    for (size_t d = 0; d < t->documents->count; d++) {
        const bel_document *document = &t->documents->items[d];
        uint64_t size = document->size;
        bel_hasher_update(hasher, &size, sizeof size);
        bel_hasher_update(hasher, document->text, document->size);
    }
    bel_hash128_text(bel_hasher_finish(hasher), out_name);
    bel_hasher_destroy(hasher);
    bel_str_deinit(&tokenizer);
}

// Returns true if the file is as it was made; *out_bytes are those of its tokens.
static bool is_whole(const bel_file_view *view, int width, size_t *out_bytes)
{
    token_trailer trailer;
    if (view->size < sizeof trailer) return false;
    size_t bytes = view->size - sizeof trailer;
    memcpy(&trailer, view->data + bytes, sizeof trailer);
    *out_bytes = bytes;
    return trailer.bytes == bytes && bytes % (size_t)width == 0 &&
           trailer.hash == bel_hash128_of(view->data, bytes, 0).low;
}

// Opens the tokens of the cache. A file that was damaged since is made anew.
static bel_status *open_kept(const bel_cache_request *request, int width, bel_file_view *view,
                             size_t *out_bytes)
{
    BEL_TRY(bel_file_view_open_made(request, view));
    if (is_whole(view, width, out_bytes)) return NULL;
    bel_log_write(BEL_LOG_WARN,
                  "%s: its tokens that this host has kept in %s are damaged, and are made anew",
                  request->source, view->mapped_instead.path);
    (void)unlink(view->mapped_instead.path); // processes that map it keep what they have
    bel_file_view_close(view);
    BEL_TRY(bel_file_view_open_made(request, view));
    if (is_whole(view, width, out_bytes)) return NULL;
    bel_status *status = BEL_ERR(BEL_DATA_LOSS, "%s: %s does not keep what is written to it",
                                 request->source, view->mapped_instead.path);
    bel_file_view_close(view);
    return status;
}

static bel_status *open_tokenized(token_source *source, const bel_documents *documents)
{
    enum { PATIENCE_SECS = 900 }; // for one document of gigabytes
    bool narrow = bel_tokenizer_size(source->tokenizer) <= 65536;
    tokenizing t = {documents, source->tokenizer, narrow ? 2 : 4, false};
    char name[33], size[32];
    token_part *part = source->parts;
    name_tokens(&t, name);
    const bel_cache_request request = {
        .name = name,
        .source = part->path,
        .doing = "being tokenized",
        .size_bytes =
            (documents->size_bytes + documents->count) * (uint64_t)t.width + sizeof(token_trailer),
        .patience_secs = PATIENCE_SECS,
        .make = tokenize,
        .user = &t,
    };
    size_t bytes = 0;
    BEL_TRY(open_kept(&request, t.width, &part->view, &bytes));
    source->part_count = 1;
    source->token_count = (int64_t)(bytes / (size_t)t.width);
    part->block = (bel_token_block){part->view.data, t.width, source->token_count};
    source->base.size_bytes = documents->size_bytes;
    source->base.content = bel_hash64_more(documents->content, part->view.data, bytes);
    bel_log_write(BEL_LOG_INFO, "%s%s: %zu document%s, %s, %lld tokens%s", part->path,
                  documents->file_count > 1 ? ", …" : "", documents->count,
                  documents->count == 1 ? "" : "s", bel_bytes_text(documents->size_bytes, size),
                  (long long)source->token_count, t.made ? "" : ", which this host has kept");
    return check_tokens(part, 0, part->block.count, bel_tokenizer_size(source->tokenizer));
}

static bel_status *open_texts(token_source *source, const bel_token_options *options)
{
    const char *key = options->format == BEL_TOKENS_JSONL ? options->key : NULL;
    bel_documents documents = {0};
    bel_status *status = bel_documents_open(&documents, options->paths, options->path_count, key);
    source->texts = true;
    source->parts = bel_arena_alloc(source->arena, sizeof *source->parts);
    source->first = bel_arena_alloc(source->arena, sizeof *source->first);
    source->parts[0] = (token_part){.block = {NULL, 2, 0}};
    source->first[0] = 0;
    if (status == NULL) {
        source->parts[0].path = bel_arena_strdup(source->arena, documents.paths[0]);
        status = open_tokenized(source, &documents);
    }
    bel_documents_close(&documents);
    return status;
}

// --- Opening ------------------------------------------------------------------------------------

// Chooses the contexts that are read of `all`: a gap, or only what would be the gap.
static bel_status *hold_out(token_source *source, const bel_holdout *holdout, int64_t all)
{
    int64_t first = 0, count = 0;
    if (holdout->fold_count > 0) {
        first = all * holdout->fold / holdout->fold_count;
        count = all * (holdout->fold + 1) / holdout->fold_count - first;
    } else if (holdout->share > 0) {
        count = (int64_t)((double)all * holdout->share + 0.5);
        first = all - count;
    }
    bool some = holdout->fold_count > 0 || holdout->share > 0;
    source->base.record_count = some && holdout->held ? count : all - count;
    source->gap_first = holdout->held ? 0 : first;
    source->gap_count = some && holdout->held ? first : count;
    if (source->base.record_count > 0 && (!some || count > 0)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: of %lld contexts %lld are held out; expected some on both sides",
                   source->parts[0].path, (long long)all, (long long)count);
}

static void set_fields(token_source *source)
{
    static const char *const names[] = {BEL_TOKENS_FIELD, BEL_LABEL_FIELD};
    for (int f = 0; f < 2; f++)
        source->fields[f] = (bel_source_field){
            .name = names[f], .dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(source->context)};
    source->fields[2] = (bel_source_field){
        .name = BEL_TOKEN_BYTES_FIELD, .dtype = BEL_DTYPE_F32, .shape = bel_shape_scalar()};
    source->base.kind = &tokens_kind;
    source->base.fields = source->fields;
    source->base.field_count = source->tokenizer != NULL ? 3 : 2;
}

static void count_bytes(token_source *source)
{
    int64_t size = bel_tokenizer_size(source->tokenizer);
    source->byte_count_size = size;
    source->byte_counts = bel_xcalloc((size_t)size, sizeof *source->byte_counts);
    for (int64_t t = 0; t < size; t++) {
        size_t bytes;
        const char *its = bel_tokenizer_bytes(source->tokenizer, t, &bytes);
        source->byte_counts[t] = (float)bytes;
        source->tokenizer_hash = bel_hash64_more(source->tokenizer_hash, its, bytes);
    }
}

static bel_status *open_tokens(token_source *source, const bel_token_options *options)
{
    BEL_TRY((options->format == BEL_TOKENS_IDS ? open_parts : open_texts)(source, options));
    int64_t all = (source->token_count - 1) / source->context;
    if (source->token_count < source->context + 1) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected at least %lld tokens, a context and its last label, got %lld; "
                       "hint: a longer text, or a smaller --context of the training",
                       source->part_count > 0 ? source->parts[0].path : options->paths[0],
                       (long long)source->context + 1, (long long)source->token_count);
    }
    int64_t rest = source->token_count - 1 - all * source->context;
    if (rest > 0)
        bel_log_write(BEL_LOG_INFO, "%s: the last %lld tokens are not read: they fill no context",
                      source->parts[0].path, (long long)rest);
    return hold_out(source, &options->holdout, all);
}

bel_status *bel_source_open_tokens(const bel_token_options *options, bel_source **out_source)
{
    token_source *source = bel_xcalloc(1, sizeof *source);
    source->arena = bel_arena_create();
    source->tokenizer = options->tokenizer;
    source->context = options->context;
    if (source->tokenizer != NULL) count_bytes(source);
    set_fields(source);
    bel_status *status = open_tokens(source, options);
    if (status != NULL) {
        tokens_destroy(&source->base);
        return status;
    }
    *out_source = &source->base;
    return NULL;
}
