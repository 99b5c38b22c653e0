// Places of buckets: see place.h. They are in one list that only grows, as a process uses few, so a
// place stays valid without a count of its users. A request gets a copy: another thread may learn
// the bucket's region meanwhile.
#include "store/place.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "store/profile.h"
#include "store/store.h"

struct bel_place {
    bel_place *next;
    bel_store_scheme scheme;
    char *bucket;
    bool is_original;
    bool is_usual;   // Amazon's usual server of the region, and not one that the user has set
    bool is_virtual; // the bucket is in the host's name
    bel_profile_addressing style;
    char *origin, *path, *region;
    double offset_secs, skew_secs;
    bel_place_answer answers[BEL_PLACE_FACTS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bel_place *places;

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), least = strlen(end);
    return length >= least && strcasecmp(text + length - least, end) == 0;
}

static bool is_amazon(const char *host)
{
    return ends_with(host, ".amazonaws.com") || ends_with(host, ".amazonaws.com.cn");
}

// Puts the bucket into the host's name, or the path. Certificates of Amazon are for one label.
static void place_bucket(bel_place *p)
{
    char *origin = p->origin, *path = p->path;
    bool suits = is_amazon(bel_url_host(origin)) && strchr(p->bucket, '.') == NULL &&
                 strchr(p->bucket, '_') == NULL;
    p->is_virtual = p->scheme == BEL_STORE_S3 &&
                    (p->style == BEL_ADDRESSING_AUTO ? suits : p->style == BEL_ADDRESSING_VIRTUAL);
    if (p->is_virtual) {
        int scheme = (int)(bel_url_host(origin) - origin);
        p->origin = bel_strf("%.*s%s.%s", scheme, origin, p->bucket, bel_url_host(origin));
        bel_free(origin);
    } else {
        p->path = bel_strf("%s/%s", path, p->bucket);
        bel_free(path);
    }
}

static bel_status *find_amazon(bel_place *p)
{
    bel_profiles files;
    bel_profiles_read(&files);
    bel_status *status = bel_profile_region(&files, &p->region);
    if (status == NULL) status = bel_profile_endpoint(&files, "S3", true, &p->origin, &p->path);
    if (status == NULL) status = bel_profile_check(&files);
    if (status == NULL) status = bel_profile_style(&files, &p->style);
    bel_profiles_deinit(&files);
    BEL_TRY(status);
    p->is_usual = p->origin == NULL;
    if (p->is_usual) {
        p->origin = bel_profile_amazon("s3", p->region);
        p->path = bel_xstrdup("");
    }
    p->is_original = is_amazon(bel_url_host(p->origin));
    place_bucket(p);
    return NULL;
}

static bel_status *find_google(bel_place *p)
{
    const char *emulator = bel_store_env("STORAGE_EMULATOR_HOST");
    char *url = emulator == NULL                  ? bel_xstrdup("https://storage.googleapis.com")
                : strstr(emulator, "://") != NULL ? bel_xstrdup(emulator)
                                                  : bel_strf("http://%s", emulator);
    p->region = bel_xstrdup("auto");
    bel_status *status = bel_url_split_endpoint(url, "STORAGE_EMULATOR_HOST", &p->origin, &p->path);
    bel_free(url);
    BEL_TRY(status);
    p->is_original = emulator == NULL;
    place_bucket(p);
    return NULL;
}

static void place_destroy(bel_place *p)
{
    bel_free(p->bucket);
    bel_free(p->origin);
    bel_free(p->path);
    bel_free(p->region);
    bel_free(p);
}

static bel_status *place_create(const bel_store_url *url, bel_place **out_place)
{
    bel_place *p = bel_xcalloc(1, sizeof *p);
    p->scheme = url->scheme;
    p->bucket = bel_xstrdup(url->bucket);
    bel_status *status = NULL;
    if (url->scheme == BEL_STORE_WEB) {
        p->origin = bel_xstrdup(url->bucket);
        p->path = bel_xstrdup("");
        p->region = bel_xstrdup("");
    } else {
        status = url->scheme == BEL_STORE_S3 ? find_amazon(p) : find_google(p);
    }
    if (status == NULL)
        *out_place = p;
    else
        place_destroy(p);
    return status;
}

static bel_place *find_place(const bel_store_url *url) // under the mutex
{
    for (bel_place *p = places; p != NULL; p = p->next)
        if (p->scheme == url->scheme && strcmp(p->bucket, url->bucket) == 0) return p;
    return NULL;
}

bel_status *bel_place_get(const bel_store_url *url, bel_place **out_place)
{
    pthread_mutex_lock(&mutex);
    bel_place *p = find_place(url);
    bel_status *status = NULL;
    if (p == NULL) {
        status = place_create(url, &p);
        if (status == NULL) {
            p->next = places;
            places = p;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (status == NULL) *out_place = p;
    return status;
}

void bel_place_view_init(bel_place_view *view, bel_place *place)
{
    pthread_mutex_lock(&mutex);
    *view = (bel_place_view){.origin = bel_xstrdup(place->origin),
                             .host = bel_xstrdup(bel_url_host(place->origin)),
                             .path = bel_xstrdup(place->path),
                             .region = bel_xstrdup(place->region),
                             .skew_secs = place->skew_secs};
    pthread_mutex_unlock(&mutex);
}

void bel_place_view_deinit(bel_place_view *view)
{
    bel_free(view->origin);
    bel_free(view->host);
    bel_free(view->path);
    bel_free(view->region);
    *view = (bel_place_view){0};
}

bool bel_place_is_original(bel_place *place)
{
    return place->is_original;
}

// The host without its port, up to `*length`.
static void name_of(const char *host, size_t *length)
{
    const char *close = host[0] == '[' ? strchr(host, ']') : NULL; // an IPv6 address
    *length = close != NULL ? (size_t)(close + 1 - host) : strcspn(host, ":");
}

// True if a request that is signed for the place may go to `host`.
static bool may_go_to(const bel_place *p, const char *host)
{
    size_t a, b;
    const char *now = bel_url_host(p->origin);
    name_of(now, &a);
    name_of(host, &b);
    if (a == b && strncasecmp(now, host, a) == 0) return true;
    return p->is_original && is_amazon(host);
}

bool bel_place_move(bel_place *place, const char *region, const char *host)
{
    if (region != NULL && !bel_url_is_name(region, "-_")) region = NULL;
    if (host != NULL && !bel_url_is_name(host, "-.:[]")) host = NULL;
    pthread_mutex_lock(&mutex);
    bool moved = region != NULL && strcmp(region, place->region) != 0;
    if (moved) {
        bel_free(place->region);
        place->region = bel_xstrdup(region);
        if (place->is_usual) {
            bel_free(place->origin);
            bel_free(place->path);
            place->origin = bel_profile_amazon("s3", region);
            place->path = bel_xstrdup("");
            place_bucket(place);
        }
    } else if (host != NULL && strcmp(host, bel_url_host(place->origin)) != 0 &&
               may_go_to(place, host)) {
        int scheme = (int)(bel_url_host(place->origin) - place->origin);
        char *origin = bel_strf("%.*s%s", scheme, place->origin, host);
        bel_free(place->origin);
        bel_url_cut_usual_port(origin);
        place->origin = origin;
        moved = true;
    }
    pthread_mutex_unlock(&mutex);
    return moved;
}

void bel_place_set_clock(bel_place *place, double offset_secs, bool is_refused)
{
    pthread_mutex_lock(&mutex);
    place->offset_secs = offset_secs;
    if (is_refused) place->skew_secs = offset_secs;
    pthread_mutex_unlock(&mutex);
}

double bel_store_clock_offset_secs(const char *url)
{
    bel_store_url parts;
    bel_status *status = bel_store_url_init(&parts, url);
    if (status != NULL) {
        bel_status_ignore(status); // a URL that names no store has no clock
        return 0;
    }
    pthread_mutex_lock(&mutex);
    bel_place *place = find_place(&parts);
    double offset = place != NULL ? place->offset_secs : 0;
    pthread_mutex_unlock(&mutex);
    bel_store_url_deinit(&parts);
    return offset;
}

bel_place_answer bel_place_ask(bel_place *place, bel_place_fact fact)
{
    pthread_mutex_lock(&mutex);
    bel_place_answer answer = place->answers[fact];
    pthread_mutex_unlock(&mutex);
    return answer;
}

bel_place_answer bel_place_learn(bel_place *place, bel_place_fact fact, bel_place_answer answer)
{
    pthread_mutex_lock(&mutex);
    bel_place_answer before = place->answers[fact];
    place->answers[fact] = answer;
    pthread_mutex_unlock(&mutex);
    return before;
}
