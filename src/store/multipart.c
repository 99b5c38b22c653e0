// Uploads of files and copies of objects, in parts above a size. Several parts are in transfer at
// once; a failed part is repeated. The store makes the object when all parts are there.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "store/crypto.h"
#include "store/object.h"
#include "store/window.h"
#include "store/xml.h"

// A part of 16 MiB takes a second on most links, so a repeated one costs little.
enum { PART_BYTES = 16 << 20, COPY_PART_BYTES = 512 << 20, WIDTH = 16 };
static const uint64_t object_most_bytes = 5ull << 40;

// S3 takes parts from 5 MiB to 5 GiB, and at most 10,000 of them.
static uint64_t parts_most(void)
{
    return bel_fault_is(BEL_FAULT_SMALL_OBJECTS) ? 2 : 10000;
}

// S3's limit for an object that is copied in one request.
static uint64_t single_copy_bytes(void)
{
    return bel_fault_is(BEL_FAULT_SMALL_OBJECTS) ? 8ull << 20 : 5ull << 30;
}

// An upload in parts, of a file or of another object.
typedef struct multipart {
    const bel_object *object;
    int file;                 // -1: a copy
    const bel_object *source; // for a copy
    const char *source_tag;
    uint64_t size, part_bytes;
    size_t count;
    char *id;
    char **tags; // one for each part
} multipart;

typedef struct found {
    const char *path;
    char *text;
} found;

static void visit(void *context, const char *path, const char *text)
{
    found *f = context;
    if (f->text == NULL && strcmp(path, f->path) == 0) f->text = bel_xstrdup(text);
}

// Reads one element of an answer.
static bel_status *find_text(const bel_store_call *call, const bel_http_answer *answer,
                             const char *path, char **out_text)
{
    found f = {.path = path};
    bel_status *status = bel_xml_read(answer->text.text, answer->text.length, visit, &f);
    if (status == NULL && f.text == NULL) status = BEL_ERR(BEL_DATA_LOSS, "expected %s", path);
    if (status != NULL) {
        bel_free(f.text);
        return bel_store_no_store(call, status);
    }
    *out_text = f.text;
    return NULL;
}

static bel_store_call make_call(const multipart *m, const char *method, const char *query)
{
    return (bel_store_call){.url = &m->object->url,
                            .place = m->object->place,
                            .action = BEL_STORE_WRITES,
                            .method = method,
                            .query = query,
                            .most = 1 << 20};
}

static bel_status *begin_upload(multipart *m)
{
    bel_store_call call = make_call(m, "POST", "uploads=");
    bel_http_answer answer;
    BEL_TRY(bel_store_send(&call, &answer));
    bel_status *status =
        find_text(&call, &answer, "InitiateMultipartUploadResult/UploadId", &m->id);
    bel_http_answer_deinit(&answer);
    return status;
}

// --- Copies

static void add_source(const bel_object *source, bel_headers *headers)
{
    bool google = source->url.scheme == BEL_STORE_GS;
    bel_str name = {0};
    bel_str_puts(&name, "/");
    bel_url_encode(&name, source->url.bucket, true);
    bel_str_puts(&name, "/");
    bel_url_encode(&name, source->url.key, true);
    bel_headers_add(headers, google ? "x-goog-copy-source" : "x-amz-copy-source", "%s", name.text);
    bel_str_deinit(&name);
}

static bel_status *copy_at_once(const bel_object *from, const bel_object *to)
{
    bel_headers headers = {0};
    add_source(from, &headers); // the store copies one state of the object
    multipart m = {.object = to};
    bel_store_call call = make_call(&m, "PUT", NULL);
    call.headers = &headers;
    call.is_slow = call.may_have_error = true;
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_headers_deinit(&headers);
    if (status == NULL) bel_http_answer_deinit(&answer);
    return status;
}

// --- Parts

static bel_status *send_part(const multipart *m, bel_store_call *call, uint64_t offset,
                             uint64_t size, bel_http_answer *out_answer)
{
    bel_headers headers = {0};
    if (m->source != NULL) {
        add_source(m->source, &headers);
        if (m->source_tag[0] != '\0')
            bel_headers_add(&headers, "x-amz-copy-source-if-match", "\"%s\"", m->source_tag);
        bel_headers_add(&headers, "x-amz-copy-source-range", "bytes=%llu-%llu",
                        (unsigned long long)offset, (unsigned long long)(offset + size - 1));
        call->headers = &headers;
        call->is_slow = call->may_have_error = true;
    } else {
        call->body = (bel_http_body){.file = m->file, .offset = offset, .size = size};
        call->is_summed = true;
    }
    bel_status *status = bel_store_send(call, out_answer);
    bel_headers_deinit(&headers);
    return status;
}

static bel_status *serve(void *context, size_t index)
{
    multipart *m = context;
    uint64_t offset = index * m->part_bytes, left = m->size - offset;
    uint64_t size = left < m->part_bytes ? left : m->part_bytes;
    bel_str query = {0};
    bel_str_printf(&query, "partNumber=%zu&uploadId=", index + 1);
    bel_url_encode(&query, m->id, false);
    bel_store_call call = make_call(m, "PUT", query.text);
    bel_http_answer answer;
    bel_status *status = send_part(m, &call, offset, size, &answer);
    if (status == NULL) {
        const char *tag = bel_headers_find(&answer.headers, "etag");
        if (m->source != NULL)
            status = find_text(&call, &answer, "CopyPartResult/ETag", &m->tags[index]);
        else if (tag != NULL)
            m->tags[index] = bel_xstrdup(tag);
        else
            status = bel_store_no_store(&call, BEL_ERR(BEL_DATA_LOSS, "a part has no ETag"));
        bel_http_answer_deinit(&answer);
    }
    bel_str_deinit(&query);
    return status;
}

// --- End

// Removes the parts. An error is only logged: the transfer's is the one to report.
static void abort_upload(const multipart *m)
{
    enum { ABORT_SECS = 10 };
    static const int accepted[] = {404, 0};
    bel_str query = {0};
    bel_str_puts(&query, "uploadId=");
    bel_url_encode(&query, m->id, false);
    bel_store_call call = make_call(m, "DELETE", query.text);
    call.action = BEL_STORE_ABORTS;
    call.accepted = accepted;
    double before = bel_store_set_patience(ABORT_SECS);
    if (before < ABORT_SECS) bel_store_set_patience(before);
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_store_set_patience(before);
    if (status == NULL) {
        bel_http_answer_deinit(&answer);
    } else {
        bel_log_write(BEL_LOG_WARN, "parts of an upload may stay in the store: %s",
                      bel_status_message(status));
        bel_status_destroy(status);
    }
    bel_str_deinit(&query);
}

static char *list_parts(const multipart *m)
{
    bel_str text = {0};
    bel_str_puts(&text, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < m->count; i++)
        bel_str_printf(&text, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
                       m->tags[i]);
    bel_str_puts(&text, "</CompleteMultipartUpload>");
    return text.text;
}

// The store knows no such upload after a repeated request: the first may have completed it.
static bel_status *check_completed(const multipart *m, bel_status *otherwise,
                                   bel_store_info *out_info)
{
    bel_status *status = bel_object_stat(m->object, out_info, NULL);
    const char *dash = status == NULL ? strrchr(out_info->tag, '-') : NULL;
    int64_t parts = (int64_t)m->count;
    bool same = status == NULL && out_info->size_bytes == m->size &&
                (dash == NULL ||
                 (bel_parse_i64(dash + 1, strlen(dash + 1), &parts) && parts == (int64_t)m->count));
    bel_status_ignore(status); // then the upload's error is the one to report
    if (!same) return otherwise;
    bel_status_ignore(otherwise); // the upload is complete
    return NULL;
}

static bel_status *complete_upload(const multipart *m, bel_store_info *out_info)
{
    static const int accepted[] = {404, 0};
    char *body = list_parts(m), *tag = NULL;
    bel_str query = {0};
    bel_str_puts(&query, "uploadId=");
    bel_url_encode(&query, m->id, false);
    bel_store_call call = make_call(m, "POST", query.text);
    bel_http_answer answer;
    call.body = (bel_http_body){.data = body, .size = strlen(body)};
    call.is_single = call.is_slow = call.may_have_error = true;
    call.accepted = accepted;
    call.is_summed = true;
    bel_status *status = bel_store_send(&call, &answer);
    if (status == NULL && answer.status == 404) {
        bel_store_problem problem;
        bel_store_problem_read(&answer, &problem);
        status = bel_store_error(&call, &answer, &problem);
        bel_http_answer_deinit(&answer);
        if (call.tries > 1) status = check_completed(m, status, out_info);
    } else if (status == NULL) {
        *out_info = (bel_store_info){.size_bytes = m->size};
        bel_object_tag(m->object->url.scheme, &answer.headers, out_info->tag);
        bool known = out_info->tag[0] != '\0';
        if (!known) status = find_text(&call, &answer, "CompleteMultipartUploadResult/ETag", &tag);
        bel_http_answer_deinit(&answer);
        bel_headers headers = {0};
        if (tag != NULL) {
            bel_headers_add(&headers, "etag", "%s", tag);
            bel_object_tag(m->object->url.scheme, &headers, out_info->tag);
            bel_headers_deinit(&headers);
        }
    }
    bel_free(tag);
    bel_free(body);
    bel_str_deinit(&query);
    return status;
}

// NULL: the file is as it was when it was opened.
static bel_status *check_file(const char *path, int file, const struct stat *before)
{
    struct stat now;
    if (fstat(file, &now) != 0) return bel_file_error(errno, "stat", path);
    if (now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
        return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "%s: the file changed while it was uploaded", path);
}

static bel_status *run_parts(multipart *m, uint64_t least_part, const char *path,
                             const struct stat *file_state, bel_store_info *out_info)
{
    uint64_t mega = 1 << 20;
    m->part_bytes = (m->size + parts_most() - 1) / parts_most();
    m->part_bytes = (m->part_bytes + mega - 1) / mega * mega;
    if (m->part_bytes < least_part) m->part_bytes = least_part;
    m->count = (size_t)((m->size + m->part_bytes - 1) / m->part_bytes);
    BEL_TRY(begin_upload(m));
    m->tags = bel_xcalloc(m->count, sizeof *m->tags);
    bel_store_info info;
    bel_status *status = bel_window_run(m->count, WIDTH, serve, NULL, m);
    if (status == NULL && path != NULL) status = check_file(path, m->file, file_state);
    if (status == NULL) status = complete_upload(m, &info);
    if (status != NULL) abort_upload(m);
    if (status == NULL && out_info != NULL) *out_info = info;
    for (size_t i = 0; i < m->count; i++)
        bel_free(m->tags[i]);
    bel_free(m->tags);
    bel_free(m->id);
    return status;
}

static bel_status *upload_file(const char *path, int file, const bel_object *object,
                               bel_store_info *out_info)
{
    struct stat state;
    char text[32];
    if (fstat(file, &state) != 0) return bel_file_error(errno, "stat", path);
    if (!S_ISREG(state.st_mode)) return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a file", path);
    uint64_t size = (uint64_t)state.st_size;
    if (size > object_most_bytes)
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: expected at most 5 TiB for an object, got %s",
                       path, bel_bytes_text(size, text));
    if (size > PART_BYTES) {
        multipart m = {.object = object, .file = file, .size = size};
        return run_parts(&m, PART_BYTES, path, &state, out_info);
    }
    bel_http_body body = {.file = file, .size = size};
    BEL_TRY(bel_object_put(object, &body, NULL, out_info));
    return check_file(path, file, &state);
}

bel_status *bel_store_upload(const char *path, const char *url, bel_store_info *out_info)
{
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    int file = -1;
    bel_status *status = bel_object_check_writable(&object);
    if (status == NULL) {
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) status = bel_file_error(errno, "open", path);
    }
    if (status == NULL) status = upload_file(path, file, &object, out_info);
    if (file >= 0) close(file);
    bel_object_close(&object);
    return status;
}

static bel_status *copy_object(const bel_object *from, const bel_object *to)
{
    bel_store_info info;
    if (from->url.scheme != to->url.scheme)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a URL in the same store as %s",
                       to->url.shown, from->url.shown);
    BEL_TRY(bel_object_check_writable(to));
    BEL_TRY(bel_object_stat(from, &info, NULL));
    if (info.size_bytes <= single_copy_bytes() || to->url.scheme == BEL_STORE_GS)
        return copy_at_once(from, to);
    multipart m = {
        .object = to, .file = -1, .source = from, .source_tag = info.tag, .size = info.size_bytes};
    bool small = bel_fault_is(BEL_FAULT_SMALL_OBJECTS);
    return run_parts(&m, small ? PART_BYTES : COPY_PART_BYTES, NULL, NULL, NULL);
}

bel_status *bel_store_copy(const char *from, const char *to)
{
    bel_object source, target;
    BEL_TRY(bel_object_open(&source, from, false));
    bel_status *status = bel_object_open(&target, to, false);
    if (status == NULL) {
        status = copy_object(&source, &target);
        bel_object_close(&target);
    }
    bel_object_close(&source);
    return status;
}
