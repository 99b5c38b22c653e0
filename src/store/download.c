// Download of an object to a file: ranges of one state of the object, several at once. The threads
// that read ranges also write them. The checksum is computed in order meanwhile, and compared at
// the end: only then has the file its name.
#include "store/download.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "store/crypto.h"
#include "store/object.h"
#include "store/window.h"

enum { RANGE_BYTES = BEL_DOWNLOAD_RANGE_BYTES, WIDTH = 8 };

typedef struct download {
    const bel_object *object;
    const char *path; // names the file in errors
    int descriptor;
    bel_store_info info;
    bel_object_sums sums;
    bel_digest *digest; // NULL: there is no MD5 to compare
    uint32_t crc32c;
    uint64_t crc64;
    char *buffers[WIDTH];
    size_t sizes[WIDTH];
} download;

static bel_status *write_piece(const download *d, uint64_t offset, const char *data, size_t size)
{
    if (bel_fault_write_fails()) return bel_file_error(ENOSPC, "write", d->path);
    while (size > 0) {
        ssize_t wrote = pwrite(d->descriptor, data, size, (off_t)offset);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return bel_file_error(errno, "write", d->path);
        data += wrote;
        size -= (size_t)wrote;
        offset += (uint64_t)wrote;
    }
    return NULL;
}

static void sum_piece(download *d, const char *data, size_t size)
{
    if (d->digest != NULL) bel_digest_update(d->digest, data, size);
    if (d->sums.has_crc32c) d->crc32c = bel_crc32c(d->crc32c, data, size);
    if (d->sums.has_crc64) d->crc64 = bel_crc64_nvme(d->crc64, data, size);
}

// Part i is the range after the first one.
static bel_status *serve(void *context, size_t index)
{
    download *d = context;
    uint64_t offset = (uint64_t)(index + 1) * RANGE_BYTES, left = d->info.size_bytes - offset;
    size_t size = left < RANGE_BYTES ? (size_t)left : RANGE_BYTES, place = index % WIDTH;
    if (d->buffers[place] == NULL) d->buffers[place] = bel_xmalloc(RANGE_BYTES);
    BEL_TRY(bel_object_read(d->object, d->info.tag, offset, size, d->buffers[place],
                            &d->sizes[place], NULL, NULL));
    if (d->sizes[place] != size) return bel_object_changed(d->object);
    return write_piece(d, offset, d->buffers[place], size);
}

static bel_status *take(void *context, size_t index)
{
    download *d = context;
    sum_piece(d, d->buffers[index % WIDTH], d->sizes[index % WIDTH]);
    return NULL;
}

// Reads the object as one, from a server without ranges.
static bel_status *read_as_one(download *d)
{
    enum { MOST_BYTES = 1 << 30 };
    size_t size = (size_t)d->info.size_bytes, got;
    if (d->info.size_bytes > MOST_BYTES) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "%s: expected at most %d bytes from a server without ranges, got %llu",
                       d->object->url.shown, MOST_BYTES, (unsigned long long)d->info.size_bytes);
    }
    char *data = bel_xmalloc(size);
    bel_status *status = bel_object_read(d->object, d->info.tag, 0, size, data, &got, NULL, NULL);
    if (status == NULL && got < size) status = bel_object_changed(d->object);
    if (status == NULL) status = write_piece(d, 0, data, size);
    if (status == NULL) sum_piece(d, data, size);
    bel_free(data);
    return status;
}

// Asks S3 for the checksum of an object of many parts, which an answer with a range does not have.
static void ask_for_sums(download *d)
{
    if (d->object->url.scheme != BEL_STORE_S3) return;
    bel_store_info info = {0};
    bel_object_sums sums;
    bel_status *status = bel_object_stat(d->object, &info, &sums);
    if (status == NULL && strcmp(info.tag, d->info.tag) == 0) d->sums = sums;
    bel_status_ignore(status); // then only lengths and tags are compared
}

static bel_status *read_ranges(download *d, const char *tag)
{
    size_t got;
    d->buffers[0] = bel_xmalloc(RANGE_BYTES);
    BEL_TRY(
        bel_object_read(d->object, tag, 0, RANGE_BYTES, d->buffers[0], &got, &d->info, &d->sums));
    if (got < d->info.size_bytes && d->sums.md5[0] == '\0' && !d->sums.has_crc32c) ask_for_sums(d);
    if (d->sums.md5[0] != '\0') d->digest = bel_digest_create(BEL_DIGEST_MD5);
    if (got < d->info.size_bytes &&
        bel_place_ask(d->object->place, BEL_PLACE_SERVES_RANGES) == BEL_PLACE_NO)
        return read_as_one(d);
    BEL_TRY(write_piece(d, 0, d->buffers[0], got));
    sum_piece(d, d->buffers[0], got);
    uint64_t rest = d->info.size_bytes - got;
    return bel_window_run((size_t)((rest + RANGE_BYTES - 1) / RANGE_BYTES), WIDTH, serve, take, d);
}

static bel_status *compare(download *d)
{
    char md5[BEL_HEX_BYTES];
    bool good = (!d->sums.has_crc32c || d->sums.crc32c == d->crc32c) &&
                (!d->sums.has_crc64 || d->sums.crc64 == d->crc64);
    if (d->digest != NULL) {
        bel_digest_finish_hex(d->digest, md5);
        good = good && strcmp(md5, d->sums.md5) == 0;
        d->digest = NULL;
    }
    if (good) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: GET: the bytes do not match their checksum",
                   d->object->url.shown);
}

static bel_status *download_once(const bel_object *object, const char *tag, const char *path,
                                 int descriptor, bel_store_info *out_info)
{
    download d = {.object = object, .path = path, .descriptor = descriptor};
    if (ftruncate(descriptor, 0) != 0) return bel_file_error(errno, "empty", path);
    bel_status *status = read_ranges(&d, tag);
    if (status == NULL) status = compare(&d);
    if (d.digest != NULL) {
        char unused[BEL_HEX_BYTES];
        bel_digest_finish_hex(d.digest, unused);
    }
    for (int i = 0; i < WIDTH; i++)
        bel_free(d.buffers[i]);
    if (status == NULL && out_info != NULL) *out_info = d.info;
    return status;
}

bel_status *bel_download_to(const char *url, const char *tag, const char *path, int descriptor,
                            bel_store_info *out_info)
{
    enum { TRIES = 3 };
    bel_object object;
    BEL_TRY(bel_object_open(&object, url, false));
    bel_status *status = download_once(&object, tag, path, descriptor, out_info);
    for (int i = 1; i < TRIES && bel_status_code(status) == BEL_DATA_LOSS; i++) {
        bel_status_ignore(status); // the next try reports it
        status = download_once(&object, tag, path, descriptor, out_info);
    }
    bel_object_close(&object);
    return status;
}

bel_status *bel_store_download(const char *url, const char *path, bel_store_info *out_info)
{
    char *beside = bel_strf("%s.tmp-%lld", path, (long long)getpid());
    int descriptor = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    bel_status *status = descriptor < 0 ? bel_file_error(errno, "create", beside) : NULL;
    if (status == NULL) status = bel_download_to(url, NULL, path, descriptor, out_info);
    if (status == NULL && fsync(descriptor) != 0) status = bel_file_error(errno, "sync", beside);
    if (status == NULL) status = bel_file_rename(beside, path);
    if (status != NULL && descriptor >= 0) (void)unlink(beside);
    if (descriptor >= 0) close(descriptor);
    bel_free(beside);
    return status;
}
