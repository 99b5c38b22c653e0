// Checks of an object store: whether this host may do what a job does there. A model folder is
// written, so an object of this process is written, read, listed and removed beside its place. A
// place of data is only listed, or read.
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "doctor/doctor.h"
#include "store/store.h"

enum { PATIENCE_SECS = 10 };

typedef struct store_check {
    bel_doctor *doctor;
    bel_status *status;  // the first error
    int64_t began_ns;    // when the present request began
    double milliseconds; // sum of all requests
    int requests;
} store_check;

static void begin(store_check *c)
{
    c->began_ns = bel_clock_ns();
}

static void note(store_check *c, bel_status *status)
{
    c->milliseconds += (double)(bel_clock_ns() - c->began_ns) * 1e-6;
    c->requests++;
    if (c->status == NULL)
        c->status = status;
    else
        bel_status_ignore(status); // the first one is reported
}

static void report(store_check *c, const char *url, const char *done)
{
    if (c->status != NULL) {
        bel_doctor_report(c->doctor, BEL_DOCTOR_FAIL, "store", bel_status_message(c->status),
                          "see docs/stores.md for credentials and permissions");
        bel_status_destroy(c->status);
        return;
    }
    char *text = bel_strf("%s: %s, %.0f ms a request", url, done, c->milliseconds / c->requests);
    bel_doctor_report(c->doctor, BEL_DOCTOR_OK, "store", text, NULL);
    bel_free(text);
}

static void list(store_check *c, const char *prefix, size_t *out_count)
{
    bel_store_entry *entries = NULL;
    *out_count = 0;
    begin(c);
    bel_status *status = bel_store_list(prefix, false, &entries, out_count);
    if (status == NULL) bel_store_entries_free(entries, *out_count);
    note(c, status);
}

void bel_doctor_check_store(bel_doctor *doctor, const char *url)
{
    static const char content[] = "belfry doctor";
    store_check c = {.doctor = doctor};
    char got[sizeof content];
    size_t size = 0, count;
    double before = bel_store_set_patience(PATIENCE_SECS);
    char *prefix = bel_strf("%s%sbelfry-doctor-%lld", url, url[strlen(url) - 1] == '/' ? "" : "/",
                            (long long)getpid());
    begin(&c);
    note(&c, bel_store_write(prefix, content, sizeof content, NULL, NULL));
    if (c.status == NULL) {
        begin(&c);
        note(&c, bel_store_read(prefix, NULL, 0, sizeof got, got, &size, NULL));
        if (c.status == NULL && (size != sizeof content || memcmp(got, content, size) != 0))
            c.status = BEL_ERR(BEL_DATA_LOSS, "%s: other bytes came back", prefix);
        list(&c, prefix, &count);
        begin(&c);
        const bel_store_condition absent = {.absent = true};
        bel_status *conditional = bel_store_write(prefix, content, sizeof content, &absent, NULL);
        bool obeys = bel_status_code(conditional) == BEL_FAILED_PRECONDITION;
        bel_status_ignore(conditional); // an error is expected
        if (!obeys) {
            bel_doctor_report(doctor, BEL_DOCTOR_WARN, "store",
                              "the store has no conditional writes: a job's lease is weaker",
                              "let only one job train in a model folder");
        }
        begin(&c);
        note(&c, bel_store_remove(prefix));
    }
    (void)bel_store_set_patience(before);
    report(&c, url, "an object was written, read, listed and removed");
    bel_free(prefix);
}

void bel_doctor_check_data(bel_doctor *doctor, const char *url)
{
    store_check c = {.doctor = doctor};
    size_t count = 0;
    double before = bel_store_set_patience(PATIENCE_SECS);
    bool web = strncmp(url, "http", 4) == 0;
    char first[1];
    size_t got;
    if (!web) list(&c, url, &count);
    if (!web && c.status == NULL && count == 0)
        c.status = BEL_ERR(BEL_NOT_FOUND, "%s: no object begins with that", url);
    if (web) {
        begin(&c);
        note(&c, bel_store_read(url, NULL, 0, sizeof first, first, &got, NULL));
    }
    (void)bel_store_set_patience(before);
    report(&c, url, web ? "it can be read" : "it can be listed");
}
