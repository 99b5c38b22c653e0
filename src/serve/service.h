// The part of a server that its protocols share: models, admission, memory of requests, metrics and
// the access log.
//
//     bel_service_call call = {.service = service, .remote = …, .method = …, .path = …};
//     bel_service_begin(&call);
//     status = bel_service_authorize(&call, authorization);
//     if (status == NULL) status = bel_service_acquire(&call, &choice);
//     if (status == NULL) status = bel_service_infer(&call, read_run_and_write, user);
//     bel_service_end(&call, code, bytes_out);
#ifndef BELFRY_SERVE_SERVICE_H
#define BELFRY_SERVE_SERVICE_H

#include "serve/infer.h"
#include "serve/models.h"

typedef struct bel_service bel_service;

typedef struct bel_service_config {
    int slots, queue;       // runs at a time, as in the models; requests beside them
    int max_batch;          // most examples of a run of several requests
    int delay_us;           // most time that a request waits for others
    int max_examples;       // most examples of a request
    size_t most_body;       // bytes of a request
    int wait_ms;            // most time that a request waits for a slot
    const char *access_log; // file; NULL: none
    const char *token_file; // whose line requests show; NULL: none
} bel_service_config;

// The models must outlive it, and no more are added. Errors of files.
bel_status *bel_service_create(const bel_service_config *config, bel_models *models,
                               bel_service **out_service) BEL_MUST_USE;
void bel_service_destroy(bel_service *service); // no call is in progress; accepts NULL

bel_models *bel_service_models(const bel_service *service);

// Readiness ends with bel_service_stop.
bool bel_service_is_ready(const bel_service *service);
void bel_service_stop(bel_service *service);

// Ends the wait of requests for a slot, also of later ones: they get UNAVAILABLE.
void bel_service_give_up(bel_service *service);

// Opens the access log and reads the token again. If one of them fails, the old one stays in use,
// which is logged.
void bel_service_reopen(bel_service *service);

// Writes the metrics.
void bel_service_write_metrics(const bel_service *service, bel_str *out);

// Request in progress. The protocol sets the first fields, which must live until its end.
typedef struct bel_service_call {
    bel_service *service;
    const char *remote, *method, *path;
    size_t bytes_in;
    int64_t deadline_ns; // the client's; 0: none

    int64_t begun_ns;
    bel_model *model;    // NULL: none
    bel_served *version; // NULL: none
    bool is_inference;
    int64_t arrived_ns, taken_ns, computed_ns; // times of its run; 0: it has not run
} bel_service_call;

void bel_service_begin(bel_service_call *call);

// Compares the value of the header Authorization, which may be NULL, with the token.
// UNAUTHENTICATED: it is another one.
bel_status *bel_service_authorize(const bel_service_call *call,
                                  const char *authorization) BEL_MUST_USE;

// Model and version of a request. Texts need not end with a zero byte.
typedef struct bel_service_choice {
    const char *model;
    size_t model_length;
    int64_t number;    // -1: the newest; -2: invalid
    const char *label; // instead of a number; NULL: none
    size_t label_length;
    bool is_inference; // shares of labels may choose the version
    const char *id;    // the request's, which chooses the share; NULL: none
    bool awaits_id;    // the id is not read yet
} bel_service_choice;

// Takes a version of a model until the call's end. If only the request's id can choose it, and is
// not read yet, there is no version yet: the function is called again. NOT_FOUND: there is no such
// model, label or version.
bel_status *bel_service_acquire(bel_service_call *call,
                                const bel_service_choice *choice) BEL_MUST_USE;

// Admits the call and calls `work` with an infer of its version, if it has one. `work` reads the
// inputs, runs, and writes the outputs.
typedef bel_status *bel_service_work(void *user, bel_infer *infer);
bel_status *bel_service_infer(bel_service_call *call, bel_service_work *work,
                              void *user) BEL_MUST_USE;

// Ends the call: metrics and the access log get it. Returns the status's code in HTTP, which
// metrics have for every protocol.
int bel_service_code(const bel_status *status);
void bel_service_end(bel_service_call *call, int code, size_t bytes_out);

// Counts a request that was refused before it was read.
void bel_service_refused(bel_service *service, int code);

#endif
