// Learns merges: the pair of neighbors that occurs most often becomes a token, again and again
// (Sennrich et al. 2016, algorithm 1). If several occur equally often, the one with the lower
// tokens is taken, as in Hugging Face's trainer. Pieces that occur often are merged once: a word is
// a piece with its count. A pair knows the words that had it, so a merge changes only those. Counts
// are sums over words, which makes them, and so the result, independent of the order of the words
// and of the threads that counted them.
//
// A heap has a pair for each count that it had; one whose count has changed since is dropped, as
// its newer place is in the heap, too.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tokens/documents.h"
#include "tokens/split.h"

typedef struct train_word {
    const char *text;
    uint32_t size;
    int64_t count;
    int *tokens; // while merging
    int token_count;
} train_word;

// Different pieces with their counts.
typedef struct train_words {
    train_word *items;
    size_t count, capacity;
    bel_index index;
} train_words;

typedef struct train_pair {
    int left, right;
    int64_t count;
    int64_t placed; // count at which the heap got it last
    int *words;     // words that had it at some time, perhaps repeated
    size_t word_count, word_capacity;
} train_pair;

typedef struct train_place {
    int64_t count;
    int pair;
} train_place;

typedef struct training {
    bel_tokenizer *tokenizer;
    train_words words;
    train_pair *pairs;
    size_t pair_count, pair_capacity;
    bel_index index;
    train_place *heap;
    size_t heap_count, heap_capacity;
    int *changed; // pairs whose count a merge has changed
    size_t changed_count, changed_capacity;
} training;

// --- Words --------------------------------------------------------------------------------------

static void count_word(train_words *words, const char *text, size_t size, int64_t count)
{
    size_t at = 0;
    uint64_t hash = bel_hash64(text, size);
    for (int n; (n = bel_index_next(&words->index, hash, &at)) >= 0;) {
        train_word *word = &words->items[n];
        if (word->size != size || memcmp(word->text, text, size) != 0) continue;
        word->count += count;
        return;
    }
    words->items =
        bel_xgrow(words->items, &words->capacity, words->count + 1, sizeof *words->items);
    bel_index_put(&words->index, hash, (int)words->count);
    words->items[words->count++] = (train_word){text, (uint32_t)size, count, NULL, 0};
}

typedef struct train_counting {
    const bel_documents *documents;
    size_t tiles;
    train_words *parts; // by tile
} train_counting;

// Pieces of more than MOST bytes, such as long lines of one character, are cut: they would be
// words that occur once.
static void count_tile(void *argument, int64_t tile)
{
    enum { MOST = 256 };
    train_counting *job = argument;
    for (size_t d = (size_t)tile; d < job->documents->count; d += job->tiles) {
        const bel_document *document = &job->documents->items[d];
        for (size_t at = 0; at < document->size;) {
            size_t size = bel_text_piece(document->text + at, document->size - at);
            if (size > MOST) size = MOST;
            count_word(&job->parts[tile], document->text + at, size, 1);
            at += size;
        }
    }
}

static void count_words(const bel_documents *documents, bel_team *team, train_words *out_words)
{
    size_t tiles = (size_t)bel_team_size(team);
    train_words *parts = bel_xcalloc(tiles, sizeof *parts);
    train_counting job = {documents, tiles, parts};
    bel_team_run(team, count_tile, &job, (int64_t)tiles);
    for (size_t p = 0; p < tiles; p++) {
        for (size_t w = 0; w < parts[p].count; w++)
            count_word(out_words, parts[p].items[w].text, parts[p].items[w].size,
                       parts[p].items[w].count);
        bel_free(parts[p].items);
        bel_index_deinit(&parts[p].index);
    }
    bel_free(parts);
}

// --- Pairs --------------------------------------------------------------------------------------

static bool is_better(const training *t, const train_place *a, const train_place *b)
{
    const train_pair *p = &t->pairs[a->pair], *q = &t->pairs[b->pair];
    if (a->count != b->count) return a->count > b->count;
    return p->left < q->left || (p->left == q->left && p->right < q->right);
}

static void swap_places(train_place *a, train_place *b)
{
    train_place c = *a;
    *a = *b;
    *b = c;
}

static void push(training *t, int pair)
{
    bool placed = t->pairs[pair].placed == t->pairs[pair].count;
    t->pairs[pair].placed = t->pairs[pair].count;
    if (placed || t->pairs[pair].count < 2) return;
    t->heap = bel_xgrow(t->heap, &t->heap_capacity, t->heap_count + 1, sizeof *t->heap);
    size_t at = t->heap_count++;
    t->heap[at] = (train_place){t->pairs[pair].count, pair};
    for (; at > 0 && is_better(t, &t->heap[at], &t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap_places(&t->heap[at], &t->heap[(at - 1) / 2]);
}

// Returns the best pair and removes it; -1: none occurs twice.
static int pop(training *t)
{
    while (t->heap_count > 0) {
        train_place best = t->heap[0];
        t->heap[0] = t->heap[--t->heap_count];
        for (size_t at = 0;;) {
            size_t least = at, left = 2 * at + 1;
            for (size_t child = left; child <= left + 1 && child < t->heap_count; child++)
                if (is_better(t, &t->heap[child], &t->heap[least])) least = child;
            if (least == at) break;
            swap_places(&t->heap[at], &t->heap[least]);
            at = least;
        }
        if (t->pairs[best.pair].count == best.count) return best.pair;
    }
    return -1;
}

// Adds to the count of a pair, and notes that it is in a word if the count rises.
static void count_pair(training *t, int left, int right, int64_t count, int word)
{
    size_t at = 0;
    uint64_t key[2] = {(uint64_t)(uint32_t)left, (uint64_t)(uint32_t)right};
    uint64_t hash = bel_hash64(key, sizeof key);
    int n;
    while ((n = bel_index_next(&t->index, hash, &at)) >= 0)
        if (t->pairs[n].left == left && t->pairs[n].right == right) break;
    if (n < 0) {
        n = (int)t->pair_count++;
        t->pairs = bel_xgrow(t->pairs, &t->pair_capacity, t->pair_count, sizeof *t->pairs);
        t->pairs[n] = (train_pair){.left = left, .right = right};
        bel_index_put(&t->index, hash, n);
    }
    train_pair *pair = &t->pairs[n];
    pair->count += count;
    t->changed =
        bel_xgrow(t->changed, &t->changed_capacity, t->changed_count + 1, sizeof *t->changed);
    t->changed[t->changed_count++] = n;
    if (count < 0) return;
    if (pair->word_count > 0 && pair->words[pair->word_count - 1] == word) return;
    pair->words =
        bel_xgrow(pair->words, &pair->word_capacity, pair->word_count + 1, sizeof *pair->words);
    pair->words[pair->word_count++] = word;
}

static void push_changed(training *t)
{
    for (size_t i = 0; i < t->changed_count; i++)
        push(t, t->changed[i]);
    t->changed_count = 0;
}

static void count_pairs_of(training *t, int word, int64_t count)
{
    const train_word *its = &t->words.items[word];
    for (int i = 0; i + 1 < its->token_count; i++)
        count_pair(t, its->tokens[i], its->tokens[i + 1], count, word);
}

// Merges a pair in a word: its pairs are taken off the counts, and those after the merge are added.
static void merge_in(training *t, int word, int left, int right, int result)
{
    train_word *its = &t->words.items[word];
    int found = 0;
    for (int i = 0; i + 1 < its->token_count; i++)
        found += its->tokens[i] == left && its->tokens[i + 1] == right;
    if (found == 0) return;
    count_pairs_of(t, word, -its->count);
    int kept = 0;
    for (int i = 0; i < its->token_count; kept++) {
        bool both =
            i + 1 < its->token_count && its->tokens[i] == left && its->tokens[i + 1] == right;
        its->tokens[kept] = both ? result : its->tokens[i];
        i += both ? 2 : 1;
    }
    its->token_count = kept;
    count_pairs_of(t, word, its->count);
}

// --- The tokenizer ------------------------------------------------------------------------------

static bel_status *add_token(training *t, const train_pair *pair, int *out_token)
{
    size_t left_size, right_size;
    const char *left = bel_tokenizer_bytes(t->tokenizer, pair->left, &left_size);
    const char *right = bel_tokenizer_bytes(t->tokenizer, pair->right, &right_size);
    char *joined = bel_xmalloc(left_size + right_size + 1);
    memcpy(joined, left, left_size);
    memcpy(joined + left_size, right, right_size);
    *out_token = bel_tokenizer_find(t->tokenizer, joined, left_size + right_size);
    bel_status *status = NULL;
    if (*out_token < 0) { // else two pairs make one token
        *out_token = (int)t->tokenizer->token_count;
        status = bel_tokenizer_set(t->tokenizer, *out_token, joined, left_size + right_size, false);
    }
    bel_free(joined);
    if (status != NULL) return status;
    return bel_tokenizer_add_merge(t->tokenizer, pair->left, pair->right);
}

static bel_status *learn(training *t, int64_t size)
{
    for (size_t w = 0; w < t->words.count; w++) {
        train_word *word = &t->words.items[w];
        word->tokens = bel_xcalloc(word->size, sizeof *word->tokens);
        word->token_count = (int)word->size;
        for (uint32_t i = 0; i < word->size; i++)
            word->tokens[i] = t->tokenizer->first[(unsigned char)word->text[i]];
        count_pairs_of(t, (int)w, word->count);
    }
    push_changed(t);
    while ((int64_t)t->tokenizer->token_count + 1 < size) {
        int best = pop(t), result;
        if (best < 0) return NULL;
        train_pair pair = t->pairs[best];
        BEL_TRY(add_token(t, &pair, &result));
        for (size_t w = 0; w < pair.word_count; w++)
            merge_in(t, pair.words[w], pair.left, pair.right, result);
        push_changed(t);
    }
    return NULL;
}

static void training_deinit(training *t)
{
    for (size_t w = 0; w < t->words.count; w++)
        bel_free(t->words.items[w].tokens);
    for (size_t p = 0; p < t->pair_count; p++)
        bel_free(t->pairs[p].words);
    bel_free(t->words.items);
    bel_index_deinit(&t->words.index);
    bel_free(t->pairs);
    bel_index_deinit(&t->index);
    bel_free(t->heap);
    bel_free(t->changed);
}

bel_status *bel_documents_train(const bel_documents *documents, int64_t size, bel_team *team,
                                bel_tokenizer **out_tokenizer)
{
    enum { LEAST = 257 };
    if (size < LEAST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "vocabulary: expected at least %d tokens, the bytes and the end, got %lld",
                       LEAST, (long long)size);
    }
    training t = {.tokenizer = bel_tokenizer_create(false, true)};
    bel_tokenizer_add_bytes(t.tokenizer);
    bel_status *status = bel_tokenizer_finish(t.tokenizer, "train");
    count_words(documents, team, &t.words);
    if (status == NULL) status = learn(&t, size);
    if (status == NULL) {
        t.tokenizer->end = (int)t.tokenizer->token_count;
        status = bel_tokenizer_set(t.tokenizer, t.tokenizer->end, BEL_END_OF_TEXT,
                                   strlen(BEL_END_OF_TEXT), true);
    }
    training_deinit(&t);
    if (status == NULL) {
        *out_tokenizer = t.tokenizer;
    } else {
        bel_tokenizer_destroy(t.tokenizer);
    }
    return status;
}
