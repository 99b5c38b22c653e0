// Download of an object to a file: ranges of one state of the object, several at once. Pieces are
// gathered and written as they arrive. The checksum is computed in order meanwhile, of the file's
// bytes, and compared at the end: only then has the file its name.
#include "store/download.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_disk.h"
#include "base/str.h"
#include "store/crypto.h"
#include "store/object.h"
#include "store/window.h"

enum { RANGE_BYTES = BEL_DOWNLOAD_RANGE_BYTES, WIDTH = 8, GATHERED_BYTES = 512 << 10 };

typedef struct download {
    const bel_object *object;
    const char *path; // names the file in errors
    int descriptor;
    bel_store_info info;
    bel_object_sums sums;
    bel_digest *digest; // NULL: there is no MD5 to compare
    uint32_t crc32c;
    uint64_t crc64;
    char *piece; // for checksums
} download;

static bel_status *write_bytes(const bel_file_range *range, uint64_t at, const void *data,
                               size_t size)
{
    int problem = bel_fault_write_fails() ? ENOSPC : 0;
    for (size_t done = 0; done < size && problem == 0;) {
        ssize_t wrote = pwrite(range->descriptor, (const char *)data + done, size - done,
                               (off_t)(range->offset + at + done));
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            problem = errno;
    }
    return problem == 0 ? NULL : bel_file_error(problem, "write", range->path);
}

static bel_status *write_gathered(bel_file_range *range)
{
    size_t size = range->size;
    range->size = 0;
    return size > 0 ? write_bytes(range, range->at, range->gathered, size) : NULL;
}

bel_status *bel_file_range_take(void *taker, uint64_t at, const void *data, size_t size)
{
    bel_file_range *range = taker;
    const char *from = data;
    if (at == 0) range->size = 0; // a try failed
    while (size > 0) {
        size_t room = GATHERED_BYTES - range->size, piece = size < room ? size : room;
        if (range->size == 0) range->at = at;
        range->gathered =
            bel_xgrow(range->gathered, &range->capacity, range->size + piece, sizeof *from);
        memcpy(range->gathered + range->size, from, piece);
        range->size += piece;
        from += piece;
        at += piece;
        size -= piece;
        if (range->size == GATHERED_BYTES) BEL_TRY(write_gathered(range));
    }
    return NULL;
}

bel_status *bel_file_range_end(bel_file_range *range, bel_status *status)
{
    if (status == NULL) status = write_gathered(range);
    bel_free(range->gathered);
    range->gathered = NULL;
    range->size = range->capacity = 0;
    return status;
}

// Adds a range of the file to the checksums that there are.
static bel_status *sum_range(download *d, uint64_t offset, uint64_t size)
{
    enum { PIECE = 1 << 18 };
    bool some = d->digest != NULL || d->sums.has_crc32c || d->sums.has_crc64;
    const bel_http_body file = {.file = d->descriptor, .offset = offset, .size = size};
    if (d->piece == NULL && some) d->piece = bel_xmalloc(PIECE);
    for (uint64_t at = 0; some && at < size; at += PIECE) {
        size_t piece = size - at < PIECE ? (size_t)(size - at) : PIECE;
        bel_status *status = bel_http_body_read(&file, at, d->piece, piece);
        if (status != NULL) return bel_status_wrap(status, __FILE__, __LINE__, "%s", d->path);
        if (d->digest != NULL) bel_digest_update(d->digest, d->piece, piece);
        if (d->sums.has_crc32c) d->crc32c = bel_crc32c(d->crc32c, d->piece, piece);
        if (d->sums.has_crc64) d->crc64 = bel_crc64_nvme(d->crc64, d->piece, piece);
    }
    return NULL;
}

static bel_status *check_length(const download *d)
{
    struct stat info;
    if (fstat(d->descriptor, &info) != 0) return bel_file_error(errno, "stat", d->path);
    if ((uint64_t)info.st_size == d->info.size_bytes) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: GET: expected a copy of %llu bytes, got %lld",
                   d->object->url.shown, (unsigned long long)d->info.size_bytes,
                   (long long)info.st_size);
}

static bel_status *read_range(download *d, uint64_t offset, size_t size)
{
    size_t got;
    bel_file_range range = {.descriptor = d->descriptor, .offset = offset, .path = d->path};
    bel_status *status = bel_object_read_pieces(d->object, d->info.tag, offset, size,
                                                bel_file_range_take, &range, &got, NULL, NULL);
    BEL_TRY(bel_file_range_end(&range, status));
    return got == size ? NULL : bel_object_changed(d->object);
}

// Part i is the range after the first one. Returns its size.
static size_t find_part(const download *d, size_t index, uint64_t *out_offset)
{
    *out_offset = (uint64_t)(index + 1) * RANGE_BYTES;
    uint64_t left = d->info.size_bytes - *out_offset;
    return left < RANGE_BYTES ? (size_t)left : RANGE_BYTES;
}

static bel_status *serve(void *context, size_t index)
{
    uint64_t offset;
    size_t size = find_part(context, index, &offset);
    return read_range(context, offset, size);
}

static bel_status *take(void *context, size_t index)
{
    uint64_t offset;
    size_t size = find_part(context, index, &offset);
    return sum_range(context, offset, size);
}

// Reads the object as one, from a server without ranges.
static bel_status *read_as_one(download *d)
{
    BEL_TRY(read_range(d, 0, (size_t)d->info.size_bytes));
    BEL_TRY(bel_file_cut(d->path, d->descriptor, d->info.size_bytes));
    return sum_range(d, 0, d->info.size_bytes);
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
    bel_file_range range = {.descriptor = d->descriptor, .path = d->path};
    bel_status *status = bel_object_read_pieces(d->object, tag, 0, RANGE_BYTES, bel_file_range_take,
                                                &range, &got, &d->info, &d->sums);
    BEL_TRY(bel_file_range_end(&range, status));
    BEL_TRY(bel_file_cut(d->path, d->descriptor, got)); // an earlier try may have written more
    if (got < d->info.size_bytes && d->sums.md5[0] == '\0' && !d->sums.has_crc32c) ask_for_sums(d);
    if (d->sums.md5[0] != '\0') d->digest = bel_digest_create(BEL_DIGEST_MD5);
    if (got < d->info.size_bytes &&
        bel_place_ask(d->object->place, BEL_PLACE_SERVES_RANGES) == BEL_PLACE_NO)
        return read_as_one(d);
    if (got < d->info.size_bytes)
        BEL_TRY(bel_linux_reserve(d->path, d->descriptor, d->info.size_bytes));
    BEL_TRY(sum_range(d, 0, got));
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

// Frees blocks after the end: a killed process, or an earlier try of a longer object, had reserved
// them.
static bel_status *free_rest(const download *d)
{
    int result;
    do {
        result = ftruncate(d->descriptor, (off_t)d->info.size_bytes);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? NULL : bel_file_error(errno, "cut", d->path);
}

static bel_status *download_once(const bel_object *object, const char *tag, const char *path,
                                 int descriptor, bel_store_info *out_info)
{
    download d = {.object = object, .path = path, .descriptor = descriptor};
    BEL_TRY(bel_file_cut(path, descriptor, 0));
    bel_status *status = read_ranges(&d, tag);
    if (status == NULL) status = compare(&d);
    if (status == NULL) status = check_length(&d);
    if (status == NULL) status = free_rest(&d);
    if (d.digest != NULL) {
        char unused[BEL_HEX_BYTES];
        bel_digest_finish_hex(d.digest, unused);
    }
    bel_free(d.piece);
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
