// Writing of objects in one request, with conditions. A store that ignores a condition would let
// two owners think that they hold a lease. So the first condition in a bucket is preceded by a
// trial with an object of a random name, unless the server is Amazon's or Google's.
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/number.h"
#include "store/crypto.h"
#include "store/object.h"

static const uint64_t put_most_bytes = 5ull << 30; // Amazon's limit

// A refused condition may be the effect of an earlier try of this call, whose answer was lost: then
// the object has these bytes.
static bel_status *is_ours(const bel_object *object, const bel_http_body *body, bool *out_ours,
                           bel_store_info *out_info)
{
    size_t size = 0;
    *out_ours = false;
    if (body->data == NULL && body->size > 0) return NULL; // a file is written without conditions
    char *copy = bel_xmalloc((size_t)body->size + 1);
    bel_store_info info;
    bel_status *status =
        bel_object_read(object, NULL, 0, (size_t)body->size + 1, copy, &size, &info, NULL);
    if (status == NULL && size == body->size && memcmp(copy, body->data, size) == 0) {
        *out_ours = true;
        *out_info = info;
    }
    bel_free(copy);
    return status;
}

static bel_status *condition_failed(const bel_object *object, const bel_store_condition *condition)
{
    return BEL_ERR(BEL_FAILED_PRECONDITION, "%s: expected %s, got %s", object->url.shown,
                   condition->absent ? "no such object" : "the object with the tag it had",
                   condition->absent ? "one that exists" : "another");
}

static bel_status *put(const bel_object *object, const bel_http_body *body,
                       const bel_store_condition *condition, bel_store_info *out_info,
                       bool *out_refused)
{
    static const int outcomes[] = {404, 412, 0};
    bel_headers headers = {0};
    bool conditional = condition != NULL && (condition->absent || condition->tag != NULL);
    if (conditional)
        bel_object_add_condition(object->url.scheme, condition->absent ? NULL : condition->tag,
                                 &headers);
    bel_store_call call = {.url = &object->url,
                           .place = object->place,
                           .action = BEL_STORE_WRITES,
                           .method = "PUT",
                           .headers = &headers,
                           .body = *body,
                           .is_summed = true,
                           .most = 1 << 16,
                           .is_single = conditional,
                           .accepted = conditional ? outcomes : NULL};
    bel_http_answer answer;
    bel_status *status = bel_store_send(&call, &answer);
    bel_headers_deinit(&headers);
    BEL_TRY(status);
    bel_store_problem problem;
    bel_store_problem_read(&answer, &problem);
    *out_refused = answer.status == 412 || answer.status == 404;
    if (strcmp(problem.code, "NoSuchBucket") == 0)
        status = bel_store_error(&call, &answer, &problem);
    out_info->size_bytes = body->size;
    bel_object_tag(object->url.scheme, &answer.headers, out_info->tag);
    bel_http_answer_deinit(&answer);
    bool ours = false;
    if (status == NULL && *out_refused && call.tries > 1)
        status = is_ours(object, body, &ours, out_info);
    if (ours) *out_refused = false;
    return status;
}

bel_status *bel_object_put(const bel_object *object, const bel_http_body *body,
                           const bel_store_condition *condition, bel_store_info *out_info)
{
    bel_store_info info;
    bool refused;
    char text[32];
    if (body->size > put_most_bytes)
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "%s: expected at most 5 GiB for an object of one part, got %s",
                       object->url.shown, bel_bytes_text(body->size, text));
    BEL_TRY(put(object, body, condition, &info, &refused));
    if (refused) return condition_failed(object, condition);
    if (info.tag[0] == '\0' && out_info != NULL) BEL_TRY(bel_object_stat(object, &info, NULL));
    if (out_info != NULL) *out_info = info;
    return NULL;
}

// --- Conditions

// Writes an object, and writes it again under a condition that does not hold. *out_obeyed: the
// store refused the second write.
static bel_status *try_condition(const bel_object *trial, bool absent, bool *out_obeyed)
{
    const bel_http_body first = {.data = "belfry", .size = 6};
    const bel_http_body second = {.data = "belfry\n", .size = 7};
    bel_store_condition condition = {.absent = absent};
    if (!absent)
        condition.tag =
            trial->url.scheme == BEL_STORE_GS ? "1" : "00000000000000000000000000000000";
    bel_store_info info;
    BEL_TRY(bel_object_put(trial, &first, NULL, NULL));
    bel_status *status = put(trial, &second, &condition, &info, out_obeyed);
    if (bel_status_code(status) != BEL_UNIMPLEMENTED) return status;
    bel_status_ignore(status); // the store knows that it cannot
    *out_obeyed = false;
    return NULL;
}

// Tries a condition with an object of a random name in the same folder.
static bel_status *try_beside(const bel_object *object, bool absent, bool *out_obeyed)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return BEL_ERR(BEL_UNAVAILABLE, "the system has no random numbers");
    const char *slash = strrchr(object->url.key, '/');
    int folder = slash != NULL ? (int)(slash + 1 - object->url.key) : 0;
    bel_object trial = *object;
    trial.url.key =
        bel_strf("%.*s.belfry-trial-%016llx", folder, object->url.key, (unsigned long long)number);
    trial.url.shown = bel_strf("%s://%s/%s", object->url.scheme == BEL_STORE_S3 ? "s3" : "gs",
                               object->url.bucket, trial.url.key);
    bel_status *status = try_condition(&trial, absent, out_obeyed);
    bel_status_ignore(bel_store_remove(trial.url.shown)); // a left object of 6 bytes does no harm
    bel_free(trial.url.key);
    bel_free(trial.url.shown);
    return status;
}

bel_status *bel_object_check_condition(const bel_object *object,
                                       const bel_store_condition *condition)
{
    bel_place_fact fact = condition->absent ? BEL_PLACE_KNOWS_ABSENT : BEL_PLACE_KNOWS_TAGS;
    bel_place_answer known =
        bel_place_is_original(object->place) ? BEL_PLACE_YES : bel_place_ask(object->place, fact);
    if (known == BEL_PLACE_UNKNOWN) {
        bool obeyed = false;
        BEL_TRY_CTX(try_beside(object, condition->absent, &obeyed), "trial of a condition");
        known = obeyed ? BEL_PLACE_YES : BEL_PLACE_NO;
        bel_place_learn(object->place, fact, known);
    }
    if (known == BEL_PLACE_YES) return NULL;
    bool google = object->url.scheme == BEL_STORE_GS;
    return BEL_ERR(BEL_UNIMPLEMENTED,
                   "%s: the store does not know conditions on writes (%s), so two writers could "
                   "both think that they were first",
                   object->url.shown,
                   google              ? "x-goog-if-generation-match"
                   : condition->absent ? "If-None-Match"
                                       : "If-Match");
}

bel_status *bel_store_write(const char *url, const void *data, size_t size,
                            const bel_store_condition *condition, bel_store_info *out_info)
{
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    bool conditional = condition != NULL && (condition->absent || condition->tag != NULL);
    bel_http_body body = {.data = size > 0 ? data : NULL, .size = size};
    bel_status *status = bel_object_check_writable(&object);
    if (status == NULL && conditional) status = bel_object_check_condition(&object, condition);
    if (status == NULL) status = bel_object_put(&object, &body, condition, out_info);
    bel_object_close(&object);
    return status;
}
