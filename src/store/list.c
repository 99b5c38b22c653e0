// Listings: pages of at most 1,000 keys, in the version 2 of S3, which Google's store knows, too.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "store/credentials.h"
#include "store/object.h"
#include "store/xml.h"

enum { PAGE_MOST_BYTES = 16 << 20 };

typedef struct listing {
    const bel_object *object;
    bool deep;
    size_t folder; // bytes of the prefix up to its last slash
    bel_store_entry *entries;
    size_t count, capacity;
    // the page
    bool is_encoded, is_truncated, is_list;
    bel_store_entry next;
    char *token;
} listing;

static void set_text(char **to, const char *text)
{
    bel_free(*to);
    *to = bel_xstrdup(text);
}

static int64_t nanoseconds_of(const char *text)
{
    double secs = bel_credentials_time(text);
    return secs > 0 && secs < 9e9 ? (int64_t)secs * 1000000000 : 0;
}

// Ends the entry `next` at the end of its element.
static void push(listing *l, bool is_folder)
{
    char *key = l->next.name;
    l->next.name = NULL;
    bel_store_entry entry = {.info = l->next.info};
    l->next = (bel_store_entry){0};
    if (key == NULL) return;
    if (l->is_encoded) bel_url_decode(key, true);
    size_t length = strlen(key);
    bool marker = !is_folder && length > 0 && key[length - 1] == '/' && entry.info.size_bytes == 0;
    if (!marker && length > l->folder) {
        entry.name = bel_xstrdup(key + l->folder);
        l->entries = bel_xgrow(l->entries, &l->capacity, l->count + 1, sizeof *l->entries);
        l->entries[l->count++] = entry;
    }
    bel_free(key);
}

static void set_tag(listing *l, const char *name, const char *text)
{
    char *tag = l->next.info.tag;
    bool generation = strcmp(name, "Generation") == 0;
    if (l->object->url.scheme == BEL_STORE_GS && !generation && tag[0] != '\0') return;
    size_t length = strlen(text);
    bool quoted = length >= 2 && text[0] == '"' && text[length - 1] == '"';
    bel_snprintf(tag, BEL_STORE_TAG_BYTES, "%.*s", (int)(quoted ? length - 2 : length),
                 quoted ? text + 1 : text);
}

static void visit(void *context, const char *path, const char *text)
{
    listing *l = context;
    const char *slash = strchr(path, '/');
    if (slash == NULL) {
        l->is_list = strcmp(path, "ListBucketResult") == 0;
        return;
    }
    const char *name = slash + 1;
    bool is_google = l->object->url.scheme == BEL_STORE_GS;
    int64_t size;
    if (strcmp(name, "Contents/Key") == 0 || strcmp(name, "CommonPrefixes/Prefix") == 0)
        set_text(&l->next.name, text);
    else if (strcmp(name, "Contents/Size") == 0 && bel_parse_i64(text, strlen(text), &size) &&
             size >= 0)
        l->next.info.size_bytes = (uint64_t)size;
    else if (strcmp(name, "Contents/LastModified") == 0)
        l->next.info.modified_ns = nanoseconds_of(text);
    else if (strcmp(name, "Contents/ETag") == 0 ||
             (is_google && strcmp(name, "Contents/Generation") == 0))
        set_tag(l, name + strlen("Contents/"), text);
    else if (strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0)
        push(l, name[1] == 'o' && name[3] == 'm');
    else if (strcmp(name, "IsTruncated") == 0)
        l->is_truncated = strcmp(text, "true") == 0;
    else if (strcmp(name, "NextContinuationToken") == 0)
        set_text(&l->token, text);
}

// The element EncodingType may follow the keys.
static void visit_encoding(void *context, const char *path, const char *text)
{
    listing *l = context;
    if (strcmp(path, "ListBucketResult/EncodingType") == 0)
        l->is_encoded = strcmp(text, "url") == 0;
}

static char *make_query(const listing *l)
{
    bel_str query = {0};
    if (l->token != NULL) {
        bel_str_puts(&query, "continuation-token=");
        bel_url_encode(&query, l->token, false);
        bel_str_puts(&query, "&");
    }
    if (!l->deep) bel_str_puts(&query, "delimiter=%2F&");
    bel_str_puts(&query, "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    bel_url_encode(&query, l->object->url.key, false);
    return query.text;
}

static bel_status *read_page(listing *l)
{
    char *query = make_query(l);
    bel_store_call call = {.url = &l->object->url,
                           .place = l->object->place,
                           .action = BEL_STORE_LISTS,
                           .method = "GET",
                           .query = query,
                           .is_of_bucket = true,
                           .most = PAGE_MOST_BYTES};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    char *before = l->token;
    l->token = NULL;
    l->is_encoded = l->is_truncated = l->is_list = false;
    if (status == NULL) {
        const bel_str *text = &answer.text;
        status = bel_xml_read(text->text, text->length, visit_encoding, l);
        if (status == NULL) status = bel_xml_read(text->text, text->length, visit, l);
        if (status == NULL && !l->is_list)
            status = BEL_ERR(BEL_DATA_LOSS, "expected a ListBucketResult");
        if (status == NULL && l->is_truncated && l->token == NULL)
            status = BEL_ERR(BEL_DATA_LOSS, "a page has no token of the next one");
        if (status == NULL && l->is_truncated && before != NULL && strcmp(before, l->token) == 0)
            status = BEL_ERR(BEL_DATA_LOSS, "a page names itself as the next one");
        if (status != NULL) status = bel_store_no_store(&call, status);
        bel_http_answer_deinit(&answer);
    }
    bel_free(before);
    bel_free(query);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const bel_store_entry *)a)->name, ((const bel_store_entry *)b)->name);
}

// Sorts the entries. A store may repeat a folder on several pages.
static void sort_entries(listing *l)
{
    if (l->count > 1) qsort(l->entries, l->count, sizeof *l->entries, compare_entries);
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (kept > 0 && strcmp(l->entries[kept - 1].name, l->entries[i].name) == 0)
            bel_free(l->entries[i].name);
        else
            l->entries[kept++] = l->entries[i];
    }
    l->count = kept;
}

bel_status *bel_store_list(const char *prefix, bool deep, bel_store_entry **out_entries,
                           size_t *out_count)
{
    bel_object object;
    BEL_TRY(bel_object_open(&object, prefix, true));
    const char *slash = strrchr(object.url.key, '/');
    listing l = {.object = &object,
                 .deep = deep,
                 .folder = slash != NULL ? (size_t)(slash + 1 - object.url.key) : 0};
    bel_status *status = NULL;
    if (object.url.scheme == BEL_STORE_WEB)
        status = BEL_ERR(BEL_UNIMPLEMENTED,
                         "%s: a web server lists no files; hint: name each file, or use s3:// or "
                         "gs://",
                         object.url.shown);
    do {
        if (status == NULL) status = read_page(&l);
    } while (status == NULL && l.is_truncated);
    bel_free(l.next.name);
    bel_free(l.token);
    bel_object_close(&object);
    if (status != NULL) {
        bel_store_entries_free(l.entries, l.count);
        return status;
    }
    sort_entries(&l);
    *out_entries = l.entries;
    *out_count = l.count;
    return NULL;
}

void bel_store_entries_free(bel_store_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bel_free(entries[i].name);
    bel_free(entries);
}
