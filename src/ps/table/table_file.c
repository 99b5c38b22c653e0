// Segments of cells over pread and pwrite. A cell is a record and its end: the row's number, and a
// checksum over both. So a cell that has another row's record by now, or that the disk has damaged,
// is never taken for the right one.
//
// Reads of near cells are one read of the bytes from the first to the last. In a batch those in the
// system's cache come first; for the others the system is asked to read ahead, which it does for
// all of them at once, and then they are read in the order of the file.
#include "ps/table/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_file.h"
#include "base/str.h"

enum {
    READ_BYTES = 64 << 10, // most bytes of a read of several cells
    GAP_BYTES = 4096,      // least distance of cells that are not read together
    MOST_TIDIED = 4,       // segments emptied at once …
    MOST_CLOSE = 64,       // … and close to the limit of cells
    SPARE = 16,            // segments without a record, below which the limit is close
};

typedef struct cell_end {
    uint32_t row, checksum;
} cell_end;

struct bel_table_file {
    char *folder;
    int descriptor;
    size_t record_bytes, stride; // bytes of a cell
    int64_t cells;               // a segment's
    int64_t most_segments;
    int64_t count;  // records
    uint32_t *live; // by segment: records
    size_t live_capacity;
    int64_t segments; // the file's
    uint32_t *unused; // segments without a record, but for the open one
    size_t unused_capacity;
    int64_t unused_count;
    int64_t open, filled; // the segment that is being filled, -1 before the first, and its cells
    char *buffer;         // for writing: a segment
    char *tidied;         // for emptying: a segment, and its records
    uint32_t *rows, *from, *to;
    const float **records;
};

static size_t segment_bytes(const bel_table_file *file)
{
    return (size_t)file->cells * file->stride;
}

static bel_status *cannot_create(const char *folder)
{
    return bel_file_error(errno, "create a file of rows (table_disk) in", folder);
}

// Creates the file under a name that no other process uses, and removes the name.
static bel_status *create_and_unlink(const char *folder, int *out_descriptor)
{
    char *path = bel_strf("%s/belfry-rows-XXXXXX", folder);
    bel_status *status = NULL;
    *out_descriptor = mkstemp(path);
    if (*out_descriptor < 0) status = cannot_create(folder);
    if (status == NULL) (void)fcntl(*out_descriptor, F_SETFD, FD_CLOEXEC);
    if (status == NULL && unlink(path) != 0) {
        status = bel_file_error(errno, "remove the name of the file of rows", path);
        (void)close(*out_descriptor);
    }
    bel_free(path);
    return status;
}

// Some file systems have no files that never had a name.
static bel_status *create_unnamed(const char *folder, int *out_descriptor)
{
    *out_descriptor = bel_linux_unnamed_open(folder);
    if (*out_descriptor >= 0) return NULL;
    bool lacks = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
    return lacks ? create_and_unlink(folder, out_descriptor) : cannot_create(folder);
}

bel_status *bel_table_file_create(const char *folder, size_t record_bytes, size_t bytes,
                                  int64_t most_cells, bel_table_file **out_file)
{
    int descriptor;
    BEL_TRY(create_unnamed(folder, &descriptor));
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM); // no reading ahead unless asked for
    bel_table_file *file = bel_xcalloc(1, sizeof *file);
    file->folder = bel_xstrdup(folder);
    file->descriptor = descriptor;
    file->record_bytes = record_bytes;
    file->stride = record_bytes + sizeof(cell_end);
    file->cells = (int64_t)(bytes / file->stride) + 1;
    file->most_segments = most_cells / file->cells;
    file->open = -1;
    *out_file = file;
    return NULL;
}

void bel_table_file_destroy(bel_table_file *file)
{
    if (file == NULL) return;
    (void)close(file->descriptor);
    bel_pages_destroy(file->buffer, segment_bytes(file));
    bel_pages_destroy(file->tidied, segment_bytes(file));
    bel_free(file->live);
    bel_free(file->unused);
    bel_free(file->rows);
    bel_free(file->from);
    bel_free(file->to);
    bel_free(file->records);
    bel_free(file->folder);
    bel_free(file);
}

bel_status *bel_table_file_clear(bel_table_file *file)
{
    file->count = file->segments = file->unused_count = file->filled = 0;
    file->open = -1;
    if (ftruncate(file->descriptor, 0) == 0) return NULL;
    return bel_file_error(errno, "truncate the file of rows in", file->folder);
}

int64_t bel_table_file_segment(const bel_table_file *file)
{
    return file->cells;
}

int64_t bel_table_file_count(const bel_table_file *file)
{
    return file->count;
}

int64_t bel_table_file_bytes(const bel_table_file *file)
{
    return file->segments * (int64_t)segment_bytes(file);
}

static int64_t offset_of(const bel_table_file *file, int64_t cell)
{
    return cell * (int64_t)file->stride;
}

bel_status *bel_table_file_damage(const bel_table_file *file, uint32_t cell)
{
    return BEL_ERR(BEL_DATA_LOSS,
                   "the file of rows in %s has another record at byte %lld than was written there",
                   file->folder, (long long)offset_of(file, cell));
}

// --- Writing -------------------------------------------------------------------------------------

// Memory for a segment, at the first use.
static bel_status *reserve_buffer(const bel_table_file *file, char **buffer)
{
    void *memory;
    if (*buffer != NULL) return NULL;
    BEL_TRY(bel_pages_create(segment_bytes(file), false, "rows for the disk", &memory));
    *buffer = memory;
    return NULL;
}

static void note_unused(bel_table_file *file, int64_t segment)
{
    file->unused = bel_xgrow(file->unused, &file->unused_capacity, (size_t)file->unused_count + 1,
                             sizeof *file->unused);
    file->unused[file->unused_count++] = (uint32_t)segment;
}

// Opens a segment without records, if the open one is full.
static bel_status *open_segment(bel_table_file *file)
{
    if (file->open >= 0 && file->filled < file->cells) return NULL;
    if (file->open >= 0 && file->live[file->open] == 0) note_unused(file, file->open);
    file->open = -1;
    if (file->unused_count > 0) {
        file->open = file->unused[--file->unused_count];
    } else if (file->segments == file->most_segments) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "the file of rows in %s has %lld rows, expected room for more: it has %lld "
                       "places, few of which are free; hint: use more shards",
                       file->folder, (long long)file->count,
                       (long long)(file->most_segments * file->cells));
    } else {
        file->live = bel_xgrow(file->live, &file->live_capacity, (size_t)file->segments + 1,
                               sizeof *file->live);
        file->open = file->segments++;
    }
    file->live[file->open] = 0;
    file->filled = 0;
    return NULL;
}

static bel_status *write_bytes(const bel_table_file *file, const char *bytes, size_t size,
                               int64_t offset)
{
    if (bel_fault_write_fails())
        return bel_file_error(ENOSPC, "write the file of rows in", file->folder);
    while (size > 0) {
        ssize_t wrote = pwrite(file->descriptor, bytes, size, (off_t)offset);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
            return bel_file_error(wrote < 0 ? errno : ENOSPC, "write the file of rows in",
                                  file->folder);
        bytes += wrote;
        size -= (size_t)wrote;
        offset += wrote;
    }
    return NULL;
}

static uint32_t checksum_of(const bel_table_file *file, uint32_t row, const void *record)
{
    return bel_crc32c(row, record, file->record_bytes);
}

static void write_cell(const bel_table_file *file, uint32_t row, const float *record, char *out)
{
    const cell_end end = {.row = row, .checksum = checksum_of(file, row, record)};
    memcpy(out, record, file->record_bytes);
    memcpy(out + file->record_bytes, &end, sizeof end);
}

// Fills the open segment, then the next one: each with one write.
bel_status *bel_table_file_append(bel_table_file *file, const uint32_t *rows,
                                  const float *const *records, int64_t n, uint32_t *out_cells)
{
    BEL_TRY(reserve_buffer(file, &file->buffer));
    for (int64_t i = 0; i < n;) {
        BEL_TRY(open_segment(file));
        int64_t room = file->cells - file->filled, some = n - i < room ? n - i : room;
        int64_t first = file->open * file->cells + file->filled;
        for (int64_t k = 0; k < some; k++) {
            write_cell(file, rows[i + k], records[i + k], file->buffer + (size_t)k * file->stride);
            out_cells[i + k] = (uint32_t)(first + k);
        }
        BEL_TRY(
            write_bytes(file, file->buffer, (size_t)some * file->stride, offset_of(file, first)));
        file->filled += some;
        file->live[file->open] += (uint32_t)some;
        file->count += some;
        i += some;
    }
    return NULL;
}

// The open segment stays in use.
void bel_table_file_drop(bel_table_file *file, uint32_t cell)
{
    int64_t segment = cell / file->cells;
    BEL_CHECK(segment < file->segments && file->live[segment] > 0);
    file->count--;
    if (--file->live[segment] == 0 && segment != file->open) note_unused(file, segment);
}

// --- Reading -------------------------------------------------------------------------------------

// Cells that are read together.
typedef struct span {
    int64_t first, end; // in the list of cells
} span;

static size_t span_bytes(const bel_table_file *file, const bel_keyed *cells, const span *s)
{
    return (size_t)(cells[s->end - 1].key - cells[s->first].key + 1) * file->stride;
}

static span next_span(const bel_table_file *file, const bel_keyed *cells, int64_t first, int64_t n)
{
    span s = {first, first + 1};
    int64_t most = READ_BYTES / (int64_t)file->stride, gap = GAP_BYTES / (int64_t)file->stride;
    while (s.end < n && cells[s.end].key - cells[first].key < most &&
           cells[s.end].key - cells[s.end - 1].key <= gap + 1)
        s.end++;
    return s;
}

static bel_status *read_bytes(const bel_table_file *file, char *bytes, size_t size, int64_t offset)
{
    while (size > 0) {
        ssize_t got = pread(file->descriptor, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bel_file_error(errno, "read the file of rows in", file->folder);
        if (got == 0) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "the file of rows in %s ends at byte %lld, expected a row", file->folder,
                           (long long)offset);
        }
        bytes += got;
        size -= (size_t)got;
        offset += got;
    }
    return NULL;
}

static bel_status *take_span(const bel_table_file *file, const bel_keyed *cells, const span *s,
                             const char *bytes, bel_table_file_take *take, void *context)
{
    for (int64_t i = s->first; i < s->end; i++) {
        const char *cell = bytes + (size_t)(cells[i].key - cells[s->first].key) * file->stride;
        cell_end end;
        memcpy(&end, cell + file->record_bytes, sizeof end);
        bool good = end.checksum == checksum_of(file, end.row, cell);
        BEL_TRY(take(context, cells[i].number, good ? end.row : BEL_TABLE_NOBODY,
                     (const float *)(const void *)cell));
    }
    return NULL;
}

// Passes on the spans that the system has in its cache, and asks it to read the others, which are
// moved to the front. Returns their number.
static bel_status *take_cached(const bel_table_file *file, const bel_keyed *cells, int64_t n,
                               span *out_rest, int64_t *out_count, char *bytes,
                               bel_table_file_take *take, void *context)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n;) {
        span s = next_span(file, cells, i, n);
        size_t size = span_bytes(file, cells, &s);
        int64_t offset = offset_of(file, cells[s.first].key);
        if (bel_linux_read_cached(file->descriptor, bytes, size, offset)) {
            BEL_TRY(take_span(file, cells, &s, bytes, take, context));
        } else {
            (void)posix_fadvise(file->descriptor, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
            out_rest[count++] = s;
        }
        i = s.end;
    }
    *out_count = count;
    return NULL;
}

static bel_status *fetch_spans(const bel_table_file *file, const bel_keyed *cells, int64_t n,
                               span *rest, char *bytes, bel_table_file_take *take, void *context)
{
    int64_t count;
    BEL_TRY(take_cached(file, cells, n, rest, &count, bytes, take, context));
    for (int64_t k = 0; k < count; k++) {
        BEL_TRY(read_bytes(file, bytes, span_bytes(file, cells, &rest[k]),
                           offset_of(file, cells[rest[k].first].key)));
        BEL_TRY(take_span(file, cells, &rest[k], bytes, take, context));
    }
    return NULL;
}

bel_status *bel_table_file_fetch(const bel_table_file *file, const bel_keyed *cells, int64_t n,
                                 bel_table_file_take *take, void *context)
{
    if (n == 0) return NULL;
    char *bytes = bel_xmalloc(file->stride > READ_BYTES ? file->stride : READ_BYTES);
    span *rest = bel_xcalloc((size_t)n, sizeof *rest);
    bel_status *status = fetch_spans(file, cells, n, rest, bytes, take, context);
    bel_free(rest);
    bel_free(bytes);
    return status;
}

// --- Tidying -------------------------------------------------------------------------------------

// More than half of the cells, and a few segments, have no record.
static bool is_untidy(const bel_table_file *file)
{
    int64_t cells = (file->segments - file->unused_count) * file->cells;
    return cells > 2 * file->count + MOST_TIDIED * file->cells;
}

// Few segments can be opened, and an eighth of the cells or more have no record.
static bool is_short(const bel_table_file *file)
{
    int64_t used = file->segments - file->unused_count;
    return file->most_segments - used < SPARE && used * file->cells > file->count / 7 * 8;
}

static int64_t emptiest(const bel_table_file *file)
{
    int64_t found = -1;
    for (int64_t s = 0; s < file->segments; s++)
        if (s != file->open && file->live[s] > 0 &&
            (found < 0 || file->live[s] < file->live[found]))
            found = s;
    return found;
}

static bel_status *reserve_tidied(bel_table_file *file)
{
    if (file->tidied != NULL) return NULL;
    size_t n = (size_t)file->cells;
    file->rows = bel_xcalloc(n, sizeof *file->rows);
    file->from = bel_xcalloc(n, sizeof *file->from);
    file->to = bel_xcalloc(n, sizeof *file->to);
    file->records = bel_xcalloc(n, sizeof *file->records);
    return reserve_buffer(file, &file->tidied);
}

static bel_status *empty_segment(bel_table_file *file, int64_t segment,
                                 const bel_table_file_owner *owner)
{
    BEL_TRY(reserve_tidied(file));
    int64_t first = segment * file->cells, n = 0;
    BEL_TRY(read_bytes(file, file->tidied, segment_bytes(file), offset_of(file, first)));
    for (int64_t i = 0; i < file->cells; i++) {
        const char *cell = file->tidied + (size_t)i * file->stride;
        cell_end end;
        memcpy(&end, cell + file->record_bytes, sizeof end);
        if (!owner->is_at(owner->context, end.row, (uint32_t)(first + i))) continue;
        if (end.checksum != checksum_of(file, end.row, cell))
            return bel_table_file_damage(file, (uint32_t)(first + i));
        file->rows[n] = end.row;
        file->from[n] = (uint32_t)(first + i);
        file->records[n++] = (const float *)(const void *)cell;
    }
    if (n != file->live[segment]) return bel_table_file_damage(file, (uint32_t)first);
    BEL_TRY(bel_table_file_append(file, file->rows, file->records, n, file->to));
    for (int64_t k = 0; k < n; k++) {
        owner->moved(owner->context, file->rows[k], file->to[k]);
        bel_table_file_drop(file, file->from[k]);
    }
    return NULL;
}

bel_status *bel_table_file_tidy(bel_table_file *file, const bel_table_file_owner *owner)
{
    for (int k = 0; (k < MOST_TIDIED && is_untidy(file)) || (k < MOST_CLOSE && is_short(file));
         k++) {
        int64_t segment = emptiest(file);
        if (segment < 0) return NULL;
        BEL_TRY(empty_segment(file, segment, owner));
    }
    return NULL;
}
