// Parts that the functions on objects share: preparation of calls, conditions, and the reading of
// answers.
#ifndef BELFRY_STORE_OBJECT_H
#define BELFRY_STORE_OBJECT_H

#include "store/request.h"
#include "store/store.h"

// Opened URL with its place. `text` must name an object, unless `may_be_bucket`.
typedef struct bel_object {
    bel_store_url url;
    bel_place *place;
} bel_object;
bel_status *bel_object_open(bel_object *object, const char *text, bool may_be_bucket) BEL_MUST_USE;
void bel_object_close(bel_object *object);

// UNIMPLEMENTED: a web server is only read.
bel_status *bel_object_check_writable(const bel_object *object) BEL_MUST_USE;

// The object's tag in an answer; "": it has none.
void bel_object_tag(bel_store_scheme scheme, const bel_headers *headers,
                    char out_tag[BEL_STORE_TAG_BYTES]);

// Adds the header for a condition: the object has this tag; NULL: there is no object.
void bel_object_add_condition(bel_store_scheme scheme, const char *tag, bel_headers *headers);

// Checksums of an entire object in an answer.
typedef struct bel_object_sums {
    char md5[33]; // hexadecimal; "": the tag is no MD5, as that of an object of many parts
    bool has_crc32c, has_crc64;
    uint32_t crc32c;
    uint64_t crc64; // CRC-64/NVME
} bel_object_sums;
void bel_object_sums_read(const bel_object *object, const bel_headers *headers,
                          bel_object_sums *out_sums);

// Stat of an opened object. With `out_sums` S3 is asked for the checksums that it keeps.
bel_status *bel_object_stat(const bel_object *object, bel_store_info *out_info,
                            bel_object_sums *out_sums) BEL_MUST_USE;

// Reads a range like bel_store_read, and gives its pieces to `take` as they arrive: they are still
// in the CPU caches. The caller compares checksums.
bel_status *bel_object_read_pieces(const bel_object *object, const char *tag, uint64_t offset,
                                   size_t size, bel_http_take *take, void *taker, size_t *out_got,
                                   bel_store_info *out_info,
                                   bel_object_sums *out_sums) BEL_MUST_USE;

// Reads a whole range of the state `tag` like the function above. *out_changed: the error is that
// the object has another state now.
bel_status *bel_object_read_state(const bel_object *object, const char *tag, uint64_t offset,
                                  size_t size, bel_http_take *take, void *taker,
                                  bool *out_changed) BEL_MUST_USE;

// Reads like bel_store_read; *out_sums may be NULL.
bel_status *bel_object_read(const bel_object *object, const char *tag, uint64_t offset, size_t size,
                            void *out_data, size_t *out_got, bel_store_info *out_info,
                            bel_object_sums *out_sums) BEL_MUST_USE;

// DATA_LOSS: the object has another tag than expected.
bel_status *bel_object_changed(const bel_object *object) BEL_MUST_USE;

// NULL: the store obeys conditions of this kind, which is tried once for each bucket with an object
// beside this one. UNIMPLEMENTED: it ignores them.
bel_status *bel_object_check_condition(const bel_object *object,
                                       const bel_store_condition *condition) BEL_MUST_USE;

// Writes an object in one request: memory, or a range of a file.
bel_status *bel_object_put(const bel_object *object, const bel_http_body *body,
                           const bel_store_condition *condition,
                           bel_store_info *out_info) BEL_MUST_USE;

#endif
