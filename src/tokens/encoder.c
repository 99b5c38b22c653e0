// Byte pair encoding (Sennrich et al. 2016): the best merge of a piece is made, at its leftmost
// place, until no pair of neighbors is a merge. A heap has the merges that are possible, best
// first, and a list links the symbols that are left, so a piece of n bytes takes n log n steps. A
// piece of words recurs often: the tokens of pieces up to a length are kept in a table, which is
// full at some size and then stays as it is. It changes no token.
#include "tokens/encoder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "tokens/split.h"

enum { MOST_KEPT = 1 << 16, MOST_KEPT_BYTES = 48 };

typedef struct encoder_symbol {
    int token;
    int before, after; // neighbors; -1: none; `token` -1: merged into its left one
} encoder_symbol;

typedef struct encoder_chance {
    int rank; // the merge's number, the lowest first
    int at;   // left symbol
    int right_token;
} encoder_chance;

typedef struct encoder_kept {
    char bytes[MOST_KEPT_BYTES];
    uint32_t size;
    uint32_t first, count; // among `kept_tokens`
} encoder_kept;

struct bel_encoder {
    const bel_tokenizer *tokenizer;
    encoder_symbol *symbols;
    size_t symbol_capacity;
    encoder_chance *heap;
    size_t heap_count, heap_capacity;
    bel_index by_piece;
    encoder_kept *kept;
    size_t kept_count, kept_capacity;
    bel_token_list kept_tokens;
};

void bel_token_list_add(bel_token_list *list, int token)
{
    if (list->count == list->capacity)
        list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = token;
}

bel_encoder *bel_encoder_create(const bel_tokenizer *tokenizer)
{
    bel_encoder *encoder = bel_xcalloc(1, sizeof *encoder);
    encoder->tokenizer = tokenizer;
    return encoder;
}

void bel_encoder_destroy(bel_encoder *encoder)
{
    if (encoder == NULL) return;
    bel_free(encoder->symbols);
    bel_free(encoder->heap);
    bel_index_deinit(&encoder->by_piece);
    bel_free(encoder->kept);
    bel_free(encoder->kept_tokens.items);
    bel_free(encoder);
}

// --- The heap -----------------------------------------------------------------------------------

static bool is_better(const encoder_chance *a, const encoder_chance *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->at < b->at);
}

static void heap_swap(encoder_chance *a, encoder_chance *b)
{
    encoder_chance c = *a;
    *a = *b;
    *b = c;
}

static void heap_push(bel_encoder *encoder, encoder_chance chance)
{
    encoder->heap = bel_xgrow(encoder->heap, &encoder->heap_capacity, encoder->heap_count + 1,
                              sizeof *encoder->heap);
    size_t at = encoder->heap_count++;
    encoder->heap[at] = chance;
    for (; at > 0 && is_better(&encoder->heap[at], &encoder->heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap_swap(&encoder->heap[at], &encoder->heap[(at - 1) / 2]);
}

static encoder_chance heap_pop(bel_encoder *encoder)
{
    encoder_chance *heap = encoder->heap, best = heap[0];
    heap[0] = heap[--encoder->heap_count];
    for (size_t at = 0;;) {
        size_t least = at, left = 2 * at + 1;
        for (size_t child = left; child <= left + 1 && child < encoder->heap_count; child++)
            if (is_better(&heap[child], &heap[least])) least = child;
        if (least == at) return best;
        heap_swap(&heap[at], &heap[least]);
        at = least;
    }
}

// --- Pieces -------------------------------------------------------------------------------------

// Notes the merge of symbol `at` with its right neighbor, if there is one.
static void add_chance(bel_encoder *encoder, int at)
{
    int right = at < 0 ? -1 : encoder->symbols[at].after;
    if (right < 0) return;
    int right_token = encoder->symbols[right].token;
    int rank = bel_tokenizer_merge_of(encoder->tokenizer, encoder->symbols[at].token, right_token);
    if (rank >= 0) heap_push(encoder, (encoder_chance){rank, at, right_token});
}

static void merge_piece(bel_encoder *encoder, const char *text, size_t size, bel_token_list *list)
{
    const bel_tokenizer *tokenizer = encoder->tokenizer;
    encoder->symbols =
        bel_xgrow(encoder->symbols, &encoder->symbol_capacity, size, sizeof *encoder->symbols);
    encoder_symbol *symbols = encoder->symbols;
    for (size_t i = 0; i < size; i++)
        symbols[i] = (encoder_symbol){tokenizer->first[(unsigned char)text[i]], (int)i - 1,
                                      i + 1 < size ? (int)i + 1 : -1};
    for (size_t i = 0; i + 1 < size; i++)
        add_chance(encoder, (int)i);
    while (encoder->heap_count > 0) {
        encoder_chance best = heap_pop(encoder);
        const bel_merge *merge = &tokenizer->merges[best.rank];
        encoder_symbol *left = &symbols[best.at];
        // An earlier merge may have taken one of the two.
        if (left->token != merge->left || left->after < 0) continue;
        encoder_symbol *right = &symbols[left->after];
        if (right->token != best.right_token) continue;
        left->token = merge->result;
        right->token = -1;
        left->after = right->after;
        if (left->after >= 0) symbols[left->after].before = best.at;
        add_chance(encoder, left->before);
        add_chance(encoder, best.at);
    }
    for (int at = 0; at >= 0; at = symbols[at].after)
        bel_token_list_add(list, symbols[at].token);
}

static const encoder_kept *find_kept(const bel_encoder *encoder, const char *text, size_t size,
                                     uint64_t hash)
{
    size_t at = 0;
    for (int n; (n = bel_index_next(&encoder->by_piece, hash, &at)) >= 0;) {
        const encoder_kept *kept = &encoder->kept[n];
        if (kept->size == size && memcmp(kept->bytes, text, size) == 0) return kept;
    }
    return NULL;
}

static void encode_piece(bel_encoder *encoder, const char *text, size_t size, bel_token_list *list)
{
    if (size == 1) {
        bel_token_list_add(list, encoder->tokenizer->first[(unsigned char)text[0]]);
        return;
    }
    if (size > MOST_KEPT_BYTES) {
        merge_piece(encoder, text, size, list);
        return;
    }
    uint64_t hash = bel_hash64(text, size);
    const encoder_kept *kept = find_kept(encoder, text, size, hash);
    if (kept != NULL) {
        for (uint32_t i = 0; i < kept->count; i++)
            bel_token_list_add(list, encoder->kept_tokens.items[kept->first + i]);
        return;
    }
    size_t first = list->count, at = encoder->kept_count;
    merge_piece(encoder, text, size, list);
    if (at == MOST_KEPT) return;
    encoder->kept =
        bel_xgrow(encoder->kept, &encoder->kept_capacity, at + 1, sizeof *encoder->kept);
    encoder_kept *its = &encoder->kept[encoder->kept_count++];
    *its = (encoder_kept){.size = (uint32_t)size,
                          .first = (uint32_t)encoder->kept_tokens.count,
                          .count = (uint32_t)(list->count - first)};
    memcpy(its->bytes, text, size);
    for (size_t i = first; i < list->count; i++)
        bel_token_list_add(&encoder->kept_tokens, list->items[i]);
    bel_index_put(&encoder->by_piece, hash, (int)at);
}

static bel_status *encode_characters(const bel_tokenizer *tokenizer, const char *text, size_t size,
                                     size_t most, bel_token_list *list)
{
    for (size_t at = 0; at < size && list->count <= most;) {
        uint32_t character;
        size_t bytes = bel_text_character(text + at, size - at, &character);
        int token = bel_tokenizer_find(tokenizer, text + at, bytes);
        if (token < 0) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "byte %zu: the vocabulary lacks the character U+%04X; hint: a tokenizer "
                           "of bytes, such as --tokenizer bytes, has no such gaps",
                           at, (unsigned)character);
        }
        bel_token_list_add(list, token);
        at += bytes;
    }
    return NULL;
}

bel_status *bel_encoder_encode(bel_encoder *encoder, const char *text, size_t size, size_t most,
                               bel_token_list *out_list)
{
    const bel_tokenizer *tokenizer = encoder->tokenizer;
    if (tokenizer->by_character) return encode_characters(tokenizer, text, size, most, out_list);
    for (size_t at = 0; at < size && out_list->count <= most;) {
        size_t bytes = tokenizer->splits             ? bel_text_piece(text + at, size - at)
                       : tokenizer->merge_count == 0 ? 1
                                                     : size;
        if (bytes > INT32_MAX) {
            return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                           "byte %zu: expected pieces of at most %d bytes, got one of %zu", at,
                           INT32_MAX, bytes);
        }
        encode_piece(encoder, text + at, bytes, out_list);
        at += bytes;
    }
    return NULL;
}

bel_status *bel_tokenizer_encode(const bel_tokenizer *tokenizer, const char *text, size_t size,
                                 int64_t **out_tokens, size_t *out_count)
{
    bel_token_list list = {0};
    bel_encoder *encoder = bel_encoder_create(tokenizer);
    bel_status *status = bel_encoder_encode(encoder, text, size, SIZE_MAX, &list);
    bel_encoder_destroy(encoder);
    if (status == NULL) {
        *out_tokens = bel_xcalloc(list.count + 1, sizeof **out_tokens);
        *out_count = list.count;
        for (size_t i = 0; i < list.count; i++)
            (*out_tokens)[i] = list.items[i];
    }
    bel_free(list.items);
    return status;
}

void bel_tokens_free(int64_t *tokens)
{
    bel_free(tokens);
}
