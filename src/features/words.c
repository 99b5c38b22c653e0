// Words of a text and their ids. A text is copied once, with its words in lower case and exactly
// one space between two of them. An n-gram is then a contiguous piece of that copy, from the first
// letter of its first word to the last of its last, and hashed in place.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"
#include "base/str.h"
#include "belfry/features.h"
#include "features/record_file.h"

enum { MAX_NGRAMS = 8 };

// Words of a text, with one space between two.
typedef struct word_list {
    char *text;
    size_t *begins, *ends; // [count]
    int64_t count;
} word_list;

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

static void words_init(word_list *words, const char *text, size_t length, bool keep_case)
{
    size_t most = length / 2 + 1, used = 0;
    words->text = bel_xmalloc(length + 1);
    words->begins = bel_xmalloc(most * sizeof *words->begins);
    words->ends = bel_xmalloc(most * sizeof *words->ends);
    words->count = 0;
    for (size_t i = 0; i < length;) {
        if (!is_letter((unsigned char)text[i])) {
            i++;
            continue;
        }
        if (words->count > 0) words->text[used++] = ' ';
        words->begins[words->count] = used;
        for (; i < length && is_letter((unsigned char)text[i]); i++) {
            char c = text[i];
            if (!keep_case && c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
            words->text[used++] = c;
        }
        words->ends[words->count++] = used;
    }
}

static void words_deinit(word_list *words)
{
    bel_free(words->text);
    bel_free(words->begins);
    bel_free(words->ends);
}

static int64_t at_least(int64_t value, int64_t least)
{
    return value < least ? least : value;
}

// Number of n-grams of all lengths for a number of words.
static int64_t count_ids(int64_t word_count, const bel_words_options *options)
{
    int64_t count = 0, ngrams = options->ngrams == 0 ? 1 : options->ngrams;
    for (int64_t n = 1; n <= ngrams; n++)
        count += at_least(word_count - n + 1, 0);
    return options->max_count > 0 && count > options->max_count ? options->max_count : count;
}

static uint64_t name_seed(const bel_words_options *options)
{
    const char *name = options->hash_name;
    if (name == NULL) name = options->field == NULL ? "ids" : options->field;
    return bel_hash_name_seed(name);
}

static void write_ids(const word_list *words, uint64_t seed, int64_t *out, int64_t count)
{
    int64_t written = 0;
    for (int64_t n = 1; written < count; n++) {
        for (int64_t i = 0; i + n <= words->count && written < count; i++) {
            size_t begin = words->begins[i], end = words->ends[i + n - 1];
            out[written++] = bel_hash_name(words->text + begin, end - begin, seed);
        }
    }
}

int64_t bel_word_ids(const char *text, size_t length, const bel_words_options *given,
                     int64_t *out_ids, int64_t capacity)
{
    bel_words_options options;
    bel_status *status = bel_sized_take(&options, sizeof options, given, "bel_words_options");
    if (status != NULL) {
        bel_status_ignore(status); // the caller sees -1
        return -1;
    }
    word_list words;
    words_init(&words, text, length, options.keep_case);
    int64_t count = count_ids(words.count, &options);
    write_ids(&words, name_seed(&options), out_ids, count < capacity ? count : capacity);
    words_deinit(&words);
    return count;
}

// --- The map -------------------------------------------------------------------------------------

typedef struct words_map {
    bel_words_options options; // owns its texts
    char *text_field, *field, *hash_name;
    bel_status *wrong;
} words_map;

static bel_status *check_options(const bel_words_options *options)
{
    if (options->ngrams < 0 || options->ngrams > MAX_NGRAMS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "words: expected ngrams in 0..%d, got %lld",
                       MAX_NGRAMS, (long long)options->ngrams);
    }
    if (options->max_count < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "words: expected a max_count of 0 (all) or more, got %lld",
                       (long long)options->max_count);
    }
    return NULL;
}

static bel_status *map_record(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const words_map *map = user;
    if (map->wrong != NULL) {
        return BEL_ERR(bel_status_code(map->wrong), "%s", bel_status_message(map->wrong));
    }
    const bel_tensor *text = bel_record_get(record, map->text_field);
    if (text == NULL || text->dtype != BEL_DTYPE_STRING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a text field \"%s\", got %s",
                       map->text_field,
                       text == NULL ? "no such field" : bel_dtype_name(text->dtype));
    }
    word_list words;
    words_init(&words, text->data, (size_t)text->shape.dims[0], map->options.keep_case);
    int64_t count = count_ids(words.count, &map->options);
    int64_t *ids = bel_record_add(record, map->field, BEL_DTYPE_I64, &BEL_SHAPE(count));
    if (ids != NULL) write_ids(&words, name_seed(&map->options), ids, count);
    words_deinit(&words);
    return NULL; // the record has an error of bel_record_add
}

static void words_destroy(void *user)
{
    words_map *map = user;
    bel_status_destroy(map->wrong);
    bel_free(map->text_field);
    bel_free(map->field);
    bel_free(map->hash_name);
    bel_free(map);
}

void bel_dataset_map_words(bel_dataset *dataset, const bel_words_options *given)
{
    words_map *map = bel_xcalloc(1, sizeof *map);
    bel_words_options *options = &map->options;
    map->wrong = bel_sized_take(options, sizeof *options, given, "bel_words_options");
    map->text_field = bel_xstrdup(options->text_field == NULL ? "text" : options->text_field);
    map->field = bel_xstrdup(options->field == NULL ? "ids" : options->field);
    map->hash_name = bel_xstrdup(options->hash_name == NULL ? map->field : options->hash_name);
    options->text_field = map->text_field;
    options->field = map->field;
    options->hash_name = map->hash_name;
    if (map->wrong == NULL) map->wrong = check_options(options);
    char *identity = bel_strf("words 1 %s %s %s ngrams=%lld most=%lld case=%d", map->text_field,
                              map->field, map->hash_name, (long long)options->ngrams,
                              (long long)options->max_count, options->keep_case);
    bel_dataset_map_owned(dataset, map_record, map, words_destroy, identity,
                          (const char *const[]){map->text_field, NULL});
    bel_free(identity);
}
