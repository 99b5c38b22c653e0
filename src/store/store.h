// Object stores: the objects that s3://, gs://, http:// and https:// name, as whole files and
// ranges.
//
//   s3://BUCKET/KEY    Amazon S3, or a store with its interface at $AWS_ENDPOINT_URL: MinIO, Ceph,
//                      Swift, Cloudflare R2
//   gs://BUCKET/KEY    Google Cloud Storage (its XML interface), or $STORAGE_EMULATOR_HOST
//   http(s)://…        any web server, for reading only
//
// Every function blocks, may be called by any number of threads at once, and repeats a request that
// failed for a passing reason (429, 500, 502, 503, 504, a broken or stalled connection, a body that
// does not match its length or checksum). It waits between tries with jitter, at least for
// Retry-After, and at most until bel_store_patience_secs after the first failure. Errors name the
// URL, the store's code and request id, and a hint:
//   NOT_FOUND            no such object or bucket
//   PERMISSION_DENIED    credentials are absent, wrong or expired, or lack a permission, which is
//                        named
//   INVALID_ARGUMENT     the URL is malformed, or the scheme cannot be written
//   FAILED_PRECONDITION  a condition on the object's tag does not hold
//   UNIMPLEMENTED        the store does not know conditions; or this program has no libcurl
//   UNAVAILABLE          the store did not answer within the patience
//   DATA_LOSS            the bytes do not match their checksum, in every try
// Secrets never appear in errors or logs.
#ifndef BELFRY_STORE_STORE_H
#define BELFRY_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// True if `path` begins with one of the schemes above, in any case of letters.
bool bel_store_is_url(const char *path);

// Checks a URL without asking the store. INVALID_ARGUMENT: no bucket, a bucket's name that no store
// allows, a key above 1,024 bytes, that is no UTF-8, has a control character or a `..` between
// slashes, a query or a user in an s3 or gs URL.
bel_status *bel_store_check_url(const char *url) BEL_MUST_USE;

// Returns one line about the first object since the last call whose bytes did not match their
// checksum after this process had read some of them (partial.h); NULL: none. Free with bel_free.
// Thread-safe. Whose data they are only the reader knows (bel_input_damage).
char *bel_store_take_damage(void);

enum { BEL_STORE_TAG_BYTES = 128 };

// Identity of one state of an object: another content has another tag.
typedef struct bel_store_info {
    uint64_t size_bytes;
    char tag[BEL_STORE_TAG_BYTES]; // ETag or generation; for a web server without ETags
                                   // Last-Modified; "": the server reports none
    int64_t modified_ns;           // since 1970, by the store's clock; 0: unknown
} bel_store_info;

// Gets size and tag of an object.
bel_status *bel_store_stat(const char *url, bel_store_info *out_info) BEL_MUST_USE;

// Reads up to `size` bytes from `offset`; fewer only at the object's end. With `tag`, fails with
// DATA_LOSS if the object has another one now. *out_info (NULL: not wanted) is the object that was
// read, so that a first read needs no stat. OUT_OF_RANGE: the object ends before `offset`.
bel_status *bel_store_read(const char *url, const char *tag, uint64_t offset, size_t size,
                           void *out_data, size_t *out_got, bel_store_info *out_info) BEL_MUST_USE;

// Reads a whole object of at most `most` bytes, followed by one zero byte; free with bel_free.
// RESOURCE_EXHAUSTED: it is larger.
bel_status *bel_store_read_all(const char *url, uint64_t most, char **out_data,
                               size_t *out_size) BEL_MUST_USE;

// Object found by a listing.
typedef struct bel_store_entry {
    char *name; // the key after the prefix's last slash; ends with / for a folder
    bel_store_info info;
} bel_store_entry;

// Lists the objects whose URLs begin with `prefix`, sorted by bytes. Not `deep`: keys with a
// further slash appear once, as a folder. Folder markers (empty objects whose keys end with /) are
// left out. Free with bel_store_entries_free. UNIMPLEMENTED: http and https.
bel_status *bel_store_list(const char *prefix, bool deep, bel_store_entry **out_entries,
                           size_t *out_count) BEL_MUST_USE;
void bel_store_entries_free(bel_store_entry *entries, size_t count);

// Condition of a write.
typedef struct bel_store_condition {
    bool absent;     // no object of this name exists
    const char *tag; // the object has this tag; NULL: any
} bel_store_condition;

// Writes an object of `size` bytes, all or nothing. `condition` NULL: replaces any.
// *out_info may be NULL.
bel_status *bel_store_write(const char *url, const void *data, size_t size,
                            const bel_store_condition *condition,
                            bel_store_info *out_info) BEL_MUST_USE;

// Copies a local file to an object: in parts, several at once, above 16 MiB. Its bytes must not
// change meanwhile. If it fails, no part is left in the store, unless the store cannot be reached
// (bel_store_abort_uploads).
bel_status *bel_store_upload(const char *path, const char *url,
                             bel_store_info *out_info) BEL_MUST_USE;

// Copies an object to a local file: in ranges, several at once. The file appears when it is whole.
bel_status *bel_store_download(const char *url, const char *path,
                               bel_store_info *out_info) BEL_MUST_USE;

// Copies an object within a store, without its bytes coming here.
bel_status *bel_store_copy(const char *from, const char *to) BEL_MUST_USE;

// Removes an object; no error if it does not exist.
bel_status *bel_store_remove(const char *url) BEL_MUST_USE;

// Aborts unfinished multi-part uploads of objects whose URLs begin with `prefix`, which a killed
// process left.
bel_status *bel_store_abort_uploads(const char *prefix) BEL_MUST_USE;

// The store's clock minus this machine's, in seconds, by the last answer of that store.
double bel_store_clock_offset_secs(const char *url);

// Longest time from a request's first failure to its error; 120. A caller with a deadline lowers
// it for the calls of this thread, and restores it. Returns the previous value.
double bel_store_set_patience(double secs);

// Permission to change objects, for an owner who may lose them. Each request that writes or
// removes asks first, in each try and part, also on the threads of bel_store_begin that serve the
// call: so `ask` is called by any thread, and may wait for a while. An error of it ends the call.
// The request that follows may be silent for 20 s, in which its change may still happen. To remove
// the parts of a failed upload needs no permission, as no reader sees them.
typedef struct bel_store_permission {
    bel_status *(*ask)(void *context); // NULL: everything is allowed
    void *context;
} bel_store_permission;

// Sets the permission of this thread's calls. Returns the previous one.
bel_store_permission bel_store_set_permission(bel_store_permission permission);

// --- Many requests at once -----------------------------------------------------------------------

// Runs `work(context)` on one of the threads that serve transfers, BEL_STORE_TRANSFERS at a time in
// this process and of one priority; the others wait. The threads begin with the first call. `work`
// may call every function of this header except bel_store_upload and bel_store_download, and must
// not wait for other works.
enum { BEL_STORE_TRANSFERS = 64 };
typedef void bel_store_work(void *context);
void bel_store_begin(bel_store_work *work, void *context);

// The same before works that already wait, for bytes that a thread waits for.
void bel_store_begin_first(bel_store_work *work, void *context);

// The same with a low priority, for works that no thread waits for.
void bel_store_begin_low(bel_store_work *work, void *context);

// For a thread that sends while others compute: it, and the threads that serve its works, have a
// low priority from now on.
void bel_store_lower_priority(void);

#endif
