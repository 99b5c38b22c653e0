// Errors of stores: a problem is read from an answer, and becomes a status that names the URL, the
// code, the request's id and a hint.
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "store/request.h"
#include "store/xml.h"

// Copies the first text of its kind.
static void copy_text(char *out, size_t size, const char *text)
{
    if (out[0] != '\0') return;
    bel_snprintf(out, size, "%s", text);
    for (char *c = out; *c != '\0'; c++) // a message is one line
        if ((unsigned char)*c < ' ') *c = ' ';
}

static void visit(void *context, const char *path, const char *text)
{
    bel_store_problem *p = context;
    const char *name = strrchr(path, '/');
    if (strncmp(path, "Error", 5) != 0 || name == NULL) return;
    name++;
    if (strcmp(name, "Code") == 0) copy_text(p->code, sizeof p->code, text);
    if (strcmp(name, "Message") == 0) copy_text(p->message, sizeof p->message, text);
    if (strcmp(name, "RequestId") == 0) copy_text(p->request, sizeof p->request, text);
    if (strcmp(name, "Region") == 0) copy_text(p->region, sizeof p->region, text);
    if (strcmp(name, "Endpoint") == 0) copy_text(p->endpoint, sizeof p->endpoint, text);
}

// Host of the header Location.
static void read_location(const bel_http_answer *answer, bel_store_problem *p)
{
    const char *location = bel_headers_find(&answer->headers, "location");
    const char *host = location != NULL ? strstr(location, "://") : NULL;
    if (host == NULL) return;
    size_t length = strcspn(host + 3, "/?#");
    if (length < sizeof p->endpoint)
        bel_snprintf(p->endpoint, sizeof p->endpoint, "%.*s", (int)length, host + 3);
}

void bel_store_problem_read(const bel_http_answer *answer, bel_store_problem *out_problem)
{
    static const char *const ids[] = {"x-amz-request-id", "x-guploader-uploadid", "x-trans-id"};
    *out_problem = (bel_store_problem){0};
    for (int i = 0; i < 3; i++) {
        const char *id = bel_headers_find(&answer->headers, ids[i]);
        if (id != NULL) copy_text(out_problem->request, sizeof out_problem->request, id);
    }
    const char *region = bel_headers_find(&answer->headers, "x-amz-bucket-region");
    if (region != NULL) copy_text(out_problem->region, sizeof out_problem->region, region);
    if (answer->status / 100 == 3) read_location(answer, out_problem);
    if (answer->text.length == 0) return;
    // A page of a proxy, for example, is no XML; then the status says all that is known.
    bel_status_ignore(bel_xml_read(answer->text.text, answer->text.length, visit, out_problem));
}

static const struct {
    const char *amazon, *google;
} permissions[BEL_STORE_ACTIONS] = {
    [BEL_STORE_READS] = {"s3:GetObject", "storage.objects.get"},
    [BEL_STORE_LISTS] = {"s3:ListBucket", "storage.objects.list"},
    [BEL_STORE_WRITES] = {"s3:PutObject",
                          "storage.objects.create and storage.objects.delete, which replaces"},
    [BEL_STORE_REMOVES] = {"s3:DeleteObject", "storage.objects.delete"},
    [BEL_STORE_ABORTS] = {"s3:AbortMultipartUpload", "storage.multipartUploads.abort"},
    [BEL_STORE_LISTS_UPLOADS] = {"s3:ListBucketMultipartUploads", "storage.multipartUploads.list"},
};

// Codes of stores, with the kind of error and the hint.
static const struct {
    const char *code;
    bel_code kind;
    const char *hint;
} codes[] = {
    {"NoSuchBucket", BEL_NOT_FOUND, "no such bucket; is its name correct, and the endpoint?"},
    {"NoSuchKey", BEL_NOT_FOUND, NULL},
    {"InvalidAccessKeyId", BEL_PERMISSION_DENIED,
     "the store does not know the key's id; are the credentials for this endpoint?"},
    {"SignatureDoesNotMatch", BEL_PERMISSION_DENIED,
     "the secret does not belong to the key's id, or a proxy changes requests"},
    {"ExpiredToken", BEL_PERMISSION_DENIED, "the credentials have expired; get new ones"},
    {"InvalidToken", BEL_PERMISSION_DENIED,
     "the session token is invalid; it must come from the same answer as its key"},
    {"RequestTimeTooSkewed", BEL_PERMISSION_DENIED, "set this machine's clock"},
    {"AuthorizationHeaderMalformed", BEL_PERMISSION_DENIED,
     "set AWS_REGION to the bucket's region"},
    {"PermanentRedirect", BEL_PERMISSION_DENIED,
     "set AWS_REGION to the bucket's region, or AWS_ENDPOINT_URL to its server"},
    {"AllAccessDisabled", BEL_PERMISSION_DENIED, NULL},
    {"InvalidObjectState", BEL_FAILED_PRECONDITION,
     "the object is archived; restore it before you read it"},
    {"EntityTooLarge", BEL_RESOURCE_EXHAUSTED, "the object is larger than the store allows"},
    {"QuotaExceeded", BEL_RESOURCE_EXHAUSTED, "the store's quota is used up"},
    {"XMinioStorageFull", BEL_RESOURCE_EXHAUSTED, "the store's disks are full"},
    {"InvalidBucketName", BEL_INVALID_ARGUMENT, NULL},
    {"KeyTooLongError", BEL_INVALID_ARGUMENT, NULL},
    {"NotImplemented", BEL_UNIMPLEMENTED, NULL},
    {"MethodNotAllowed", BEL_UNIMPLEMENTED, "the server does not accept this kind of request"},
};

static bel_code kind_of_status(int status)
{
    switch (status) {
    case 400: return BEL_INVALID_ARGUMENT;
    case 401:
    case 403: return BEL_PERMISSION_DENIED;
    case 404:
    case 410: return BEL_NOT_FOUND;
    case 405:
    case 501: return BEL_UNIMPLEMENTED;
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504: return BEL_UNAVAILABLE;
    case 413:
    case 507: return BEL_RESOURCE_EXHAUSTED;
    case 416: return BEL_OUT_OF_RANGE;
    default: return BEL_FAILED_PRECONDITION;
    }
}

// Hint for a refused request.
static void put_permission(const bel_store_call *call, bel_str *out)
{
    bool google = call->url->scheme == BEL_STORE_GS;
    if (call->url->scheme == BEL_STORE_WEB) {
        bel_str_puts(out, "; hint: the web server asks for a permission");
        return;
    }
    bel_str_printf(out, "; hint: the credentials need %s for this %s",
                   google ? permissions[call->action].google : permissions[call->action].amazon,
                   call->is_of_bucket ? "bucket" : "object");
    if (call->action == BEL_STORE_READS && !google)
        bel_str_puts(out, " (without s3:ListBucket, an absent object is refused like this, too)");
}

bel_status *bel_store_error(const bel_store_call *call, const bel_http_answer *answer,
                            const bel_store_problem *problem)
{
    bel_code kind = kind_of_status(answer->status);
    const char *hint = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(problem->code, codes[i].code) != 0) continue;
        kind = codes[i].kind;
        hint = codes[i].hint;
    }
    if (problem->code[0] == '\0' && answer->status / 100 == 3)
        hint = "the server names another place; is the endpoint correct, and the region?";
    bool unmarked = problem->code[0] == '\0' && problem->request[0] == '\0';
    if (unmarked && answer->status == 404 && call->url->scheme != BEL_STORE_WEB)
        hint = "the answer has no request's id; is the server a store (AWS_ENDPOINT_URL, "
               "STORAGE_EMULATOR_HOST)?";
    bel_str text = {0};
    bel_str_printf(&text, "%s", problem->code[0] != '\0' ? problem->code : "");
    if (text.length == 0 && answer->status == 404)
        bel_str_puts(&text, call->url->scheme == BEL_STORE_WEB ? "no such page"
                                                               : "no such object or bucket");
    bel_str_printf(&text, "%s(HTTP %d", text.length > 0 ? " " : "", answer->status);
    if (problem->request[0] != '\0') bel_str_printf(&text, ", request %s", problem->request);
    bel_str_puts(&text, ")");
    if (problem->message[0] != '\0') bel_str_printf(&text, ": %s", problem->message);
    bool denied = kind == BEL_PERMISSION_DENIED && call->url->scheme != BEL_STORE_WEB;
    if (denied && call->source != NULL)
        bel_str_printf(&text, " (credentials from %s)", call->source);
    if (denied && call->source == NULL) bel_str_puts(&text, " (the request was anonymous)");
    if (hint != NULL)
        bel_str_printf(&text, "; hint: %s", hint);
    else if (kind == BEL_PERMISSION_DENIED)
        put_permission(call, &text);
    bel_status *status = BEL_ERR(kind, "%s: %s: %s", call->url->shown, call->method, text.text);
    bel_str_deinit(&text);
    return status;
}

bel_status *bel_store_no_store(const bel_store_call *call, bel_status *cause)
{
    bool google = call->url->scheme == BEL_STORE_GS;
    bel_place_view place;
    bel_place_view_init(&place, call->place);
    bel_status *status = BEL_ERR(
        BEL_FAILED_PRECONDITION,
        "%s: %s: the answer of %s is not that of a store (%s); hint: is the endpoint correct (%s)?",
        call->url->shown, call->method, place.origin, bel_status_message(cause),
        google ? "STORAGE_EMULATOR_HOST" : "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url");
    bel_place_view_deinit(&place);
    bel_status_destroy(cause);
    return status;
}
