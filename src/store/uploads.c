// Unfinished uploads of killed processes: listed, and aborted.
#include <string.h>

#include "base/alloc.h"
#include "store/object.h"
#include "store/xml.h"

enum { PAGE_MOST_BYTES = 16 << 20 };

typedef struct upload {
    char *key, *id;
} upload;

typedef struct listing {
    const bel_object *object;
    upload *uploads;
    size_t count, capacity;
    bool is_encoded, is_truncated, is_list;
    char *key_marker, *id_marker;
} listing;

static void set_text(char **to, const char *text)
{
    bel_free(*to);
    *to = bel_xstrdup(text);
}

static void visit(void *context, const char *path, const char *text)
{
    listing *l = context;
    if (strcmp(path, "ListMultipartUploadsResult") == 0) l->is_list = true;
    const char *name = strchr(path, '/');
    if (name == NULL) return;
    name++;
    upload *last = &l->uploads[l->count]; // there is room for one more
    if (strcmp(name, "Upload/Key") == 0) set_text(&last->key, text);
    if (strcmp(name, "Upload/UploadId") == 0) set_text(&last->id, text);
    if (strcmp(name, "EncodingType") == 0) l->is_encoded = strcmp(text, "url") == 0;
    if (strcmp(name, "IsTruncated") == 0) l->is_truncated = strcmp(text, "true") == 0;
    if (strcmp(name, "NextKeyMarker") == 0) set_text(&l->key_marker, text);
    if (strcmp(name, "NextUploadIdMarker") == 0) set_text(&l->id_marker, text);
    if (strcmp(name, "Upload") == 0 && last->key != NULL && last->id != NULL) {
        l->uploads = bel_xgrow(l->uploads, &l->capacity, ++l->count + 1, sizeof *l->uploads);
        l->uploads[l->count] = (upload){0};
    }
}

static char *make_query(const listing *l)
{
    bel_str query = {0};
    bel_str_puts(&query, "encoding-type=url");
    if (l->key_marker != NULL) {
        bel_str_puts(&query, "&key-marker=");
        bel_url_encode(&query, l->key_marker, false);
    }
    bel_str_puts(&query, "&prefix=");
    bel_url_encode(&query, l->object->url.key, false);
    if (l->key_marker != NULL && l->id_marker != NULL) {
        bel_str_puts(&query, "&upload-id-marker=");
        bel_url_encode(&query, l->id_marker, false);
    }
    bel_str_puts(&query, "&uploads=");
    return query.text;
}

static bel_status *read_page(listing *l)
{
    char *query = make_query(l);
    size_t first = l->count;
    char *before = l->key_marker, *before_id = l->id_marker;
    bel_store_call call = {.url = &l->object->url,
                           .place = l->object->place,
                           .action = BEL_STORE_LISTS_UPLOADS,
                           .method = "GET",
                           .query = query,
                           .is_of_bucket = true,
                           .most = PAGE_MOST_BYTES};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_free(query);
    if (status != NULL) return status;
    l->key_marker = l->id_marker = NULL;
    l->is_encoded = l->is_truncated = l->is_list = false;
    status = bel_xml_read(answer.text.text, answer.text.length, visit, l);
    if (status == NULL && !l->is_list)
        status = BEL_ERR(BEL_DATA_LOSS, "expected a ListMultipartUploadsResult");
    if (status == NULL && l->is_truncated && l->count == first)
        status = BEL_ERR(BEL_DATA_LOSS, "a page that is not the last one has no uploads");
    for (size_t i = first; i < l->count && l->is_encoded; i++)
        bel_url_decode(l->uploads[i].key, true);
    if (l->is_encoded && l->key_marker != NULL) bel_url_decode(l->key_marker, true);
    bool same = before != NULL && l->key_marker != NULL && strcmp(before, l->key_marker) == 0 &&
                before_id != NULL && l->id_marker != NULL && strcmp(before_id, l->id_marker) == 0;
    if (status == NULL && l->is_truncated && (same || l->key_marker == NULL))
        status = BEL_ERR(BEL_DATA_LOSS, "a page does not name the next one");
    bel_free(before);
    bel_free(before_id);
    if (status != NULL) status = bel_store_no_store(&call, status);
    bel_http_answer_deinit(&answer);
    return status;
}

static bel_status *abort_one(const bel_object *bucket, const upload *u)
{
    static const int accepted[] = {404, 0};
    bel_store_url url = bucket->url;
    url.key = u->key;
    bel_str query = {0};
    bel_str_puts(&query, "uploadId=");
    bel_url_encode(&query, u->id, false);
    bel_store_call call = {.url = &url,
                           .place = bucket->place,
                           .action = BEL_STORE_ABORTS,
                           .method = "DELETE",
                           .query = query.text,
                           .accepted = accepted};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    if (status == NULL) bel_http_answer_deinit(&answer);
    bel_str_deinit(&query);
    return status;
}

bel_status *bel_store_abort_uploads(const char *prefix)
{
    bel_object object;
    BEL_TRY(bel_object_open(&object, prefix, true));
    listing l = {.object = &object, .uploads = bel_xcalloc(1, sizeof *l.uploads), .capacity = 1};
    bel_status *status = bel_object_check_writable(&object);
    do {
        if (status == NULL) status = read_page(&l);
    } while (status == NULL && l.is_truncated);
    // A store may list more than the prefix.
    size_t length = strlen(object.url.key);
    for (size_t i = 0; i < l.count && status == NULL; i++)
        if (strncmp(l.uploads[i].key, object.url.key, length) == 0)
            status = abort_one(&object, &l.uploads[i]);
    for (size_t i = 0; i <= l.count; i++) {
        bel_free(l.uploads[i].key);
        bel_free(l.uploads[i].id);
    }
    bel_free(l.uploads);
    bel_free(l.key_marker);
    bel_free(l.id_marker);
    bel_object_close(&object);
    return status;
}
