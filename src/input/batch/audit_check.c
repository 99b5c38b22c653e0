// Checker of notes. First each note that counts is stored by its block; the checkpoint's segments
// give the blocks that must exist. Then the positions of all blocks are sorted by epoch and number,
// so that repeated ones are neighbors. The sort takes 24 bytes per record that was read.
#include "input/batch/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "input/batch/audit_format.h"
#include "input/files/file_view.h"

// A position that was read, and its block.
typedef struct sighting {
    int64_t epoch, number, block;
} sighting;

typedef struct checking {
    const bel_audit_scope *scope;
    uint64_t *seen; // per block: hash of its note, 0: none
    int64_t block_count;
    int64_t block_end;
    sighting *sightings;
    size_t count, capacity;
    bel_audit_result result;
    bool strangers; // there are notes of another input
} checking;

// --- Which blocks count --------------------------------------------------------------------------

static const bel_input_segment *segment_of(const bel_audit_scope *scope, int64_t step)
{
    int found = 0;
    for (int i = 1; i < scope->segment_count; i++)
        if (scope->segments[i].first_step <= step) found = i;
    return &scope->segments[found];
}

// End of the blocks of the scope's steps.
static int64_t blocks_of(const bel_audit_scope *scope)
{
    if (scope->step == 0) return 0;
    const bel_input_segment *last = segment_of(scope, scope->step - 1);
    return bel_input_segment_block(last, scope->step, 0);
}

static bool audit_check_counts(const bel_audit_scope *scope, const bel_audit_note_header *note)
{
    if (note->step < 0 || note->step >= scope->step || note->replica < 0) return false;
    const bel_input_segment *segment = segment_of(scope, note->step);
    return note->replica < segment->replica_count &&
           bel_input_segment_block(segment, note->step, note->replica) == note->block;
}

// --- Reading notes -------------------------------------------------------------------------------

static bel_status *take_note(checking *c, const char *path, const bel_audit_note_header *note,
                             const char *pairs, uint64_t hash)
{
    bool is_there = note->block >= 0 && note->block < c->block_count;
    if (!is_there || !audit_check_counts(c->scope, note)) {
        c->result.not_counted++;
        return NULL;
    }
    uint64_t *seen = &c->seen[note->block];
    if (*seen != 0) {
        c->result.not_counted++;
        if (*seen == hash) return NULL;
        return BEL_ERR(
            BEL_DATA_LOSS,
            "%s: step %lld, replica %lld: block %lld was read before, with other records", path,
            (long long)note->step, (long long)note->replica, (long long)note->block);
    }
    *seen = hash;
    c->result.blocks++;
    for (int64_t i = 0; i < note->position_count; i++) {
        sighting one = {.block = note->block};
        memcpy(&one.epoch, pairs + 16 * i, sizeof one.epoch);
        memcpy(&one.number, pairs + 16 * i + 8, sizeof one.number);
        c->sightings = bel_xgrow(c->sightings, &c->capacity, c->count + 1, sizeof one);
        c->sightings[c->count++] = one;
    }
    return NULL;
}

// Reads all complete notes of a file.
static bel_status *read_notes(checking *c, const char *path, const char *at, const char *end)
{
    bel_audit_note_header note;
    uint64_t hash;
    while ((size_t)(end - at) >= sizeof note + sizeof hash) {
        memcpy(&note, at, sizeof note);
        uint64_t left = (uint64_t)(end - at) - sizeof note - sizeof hash;
        if (note.position_count < 0 || (uint64_t)note.position_count > left / 16) return NULL;
        size_t size = sizeof note + 16 * (size_t)note.position_count;
        memcpy(&hash, at + size, sizeof hash);
        if (hash != bel_hash64(at, size)) return NULL;
        BEL_TRY(take_note(c, path, &note, at + sizeof note, hash));
        at += size + sizeof hash;
    }
    return NULL;
}

static bel_status *read_file(checking *c, const char *path)
{
    bel_file_view view;
    BEL_TRY(bel_file_view_open(path, &view));
    bel_audit_header header;
    bel_status *status = NULL;
    bool whole =
        view.size >= sizeof header && memcmp(view.data, BEL_AUDIT_MAGIC, sizeof header.magic) == 0;
    if (whole) memcpy(&header, view.data, sizeof header);
    if (whole && header.fingerprint != c->scope->fingerprint) {
        c->strangers = true;
    } else if (whole) {
        c->result.epoch_records = header.epoch_records;
        c->block_end = header.block_end;
        status = read_notes(c, path, view.data + sizeof header, view.data + view.size);
    }
    bel_file_view_close(&view);
    return status;
}

static bel_status *read_folder(checking *c, const char *folder)
{
    char **names;
    size_t count;
    BEL_TRY(bel_dir_list(folder, &names, &count));
    bel_status *status = NULL;
    for (size_t i = 0; i < count && status == NULL; i++) {
        char *path = bel_path_join(folder, names[i]);
        status = read_file(c, path);
        bel_free(path);
    }
    bel_dir_names_free(names, count);
    return status;
}

// --- Findings ------------------------------------------------------------------------------------

// Checks that every block below the input's end was read.
static bel_status *check_blocks(const checking *c)
{
    const bel_audit_scope *scope = c->scope;
    for (int64_t step = 0; step < scope->step; step++) {
        const bel_input_segment *segment = segment_of(scope, step);
        for (int64_t replica = 0; replica < segment->replica_count; replica++) {
            int64_t block = bel_input_segment_block(segment, step, replica);
            if (block >= c->block_end || (block < c->block_count && c->seen[block] != 0)) continue;
            return BEL_ERR(
                BEL_DATA_LOSS,
                "step %lld, replica %lld: no worker noted that block %lld was read%s",
                (long long)step, (long long)replica, (long long)block,
                c->strangers ? "; there are notes of other data, or of another batch size" : "");
        }
    }
    return NULL;
}

static int compare_sightings(const void *a, const void *b)
{
    const sighting *x = a, *y = b;
    if (x->epoch != y->epoch) return x->epoch < y->epoch ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

// Checks the epoch that begins at *at, and sets *at to its end.
static bel_status *check_epoch(const checking *c, size_t *at, bel_audit_epoch *out_epoch)
{
    size_t first = *at;
    int64_t epoch = c->sightings[first].epoch, holes = 0;
    for (; *at < c->count && c->sightings[*at].epoch == epoch; ++*at) {
        const sighting *now = &c->sightings[*at], *before = now - 1;
        if (now->number < 0) {
            holes++;
        } else if (*at > first && before->number == now->number) {
            return BEL_ERR(BEL_DATA_LOSS,
                           "epoch %lld: record %lld was read twice, in blocks %lld and %lld",
                           (long long)epoch, (long long)now->number, (long long)before->block,
                           (long long)now->block);
        }
    }
    int64_t positions = (int64_t)(*at - first);
    *out_epoch = (bel_audit_epoch){.epoch = epoch,
                                   .records = positions - holes,
                                   .whole = positions == c->result.epoch_records};
    return NULL;
}

static bel_status *check_epochs(checking *c)
{
    bel_audit_result *result = &c->result;
    size_t capacity = 0;
    int64_t gap = -1; // the first incomplete epoch
    if (c->count > 0) qsort(c->sightings, c->count, sizeof *c->sightings, compare_sightings);
    for (size_t at = 0; at < c->count;) {
        result->epochs = bel_xgrow(result->epochs, &capacity, (size_t)result->epoch_count + 1,
                                   sizeof *result->epochs);
        bel_audit_epoch *epoch = &result->epochs[result->epoch_count];
        BEL_TRY(check_epoch(c, &at, epoch));
        if (epoch->whole && gap >= 0) {
            const bel_audit_epoch *short_one = &result->epochs[gap];
            return BEL_ERR(
                BEL_DATA_LOSS,
                "epoch %lld: expected %lld records, got %lld, though epoch %lld is whole",
                (long long)short_one->epoch, (long long)result->epoch_records,
                (long long)short_one->records, (long long)epoch->epoch);
        }
        if (!epoch->whole && gap < 0) gap = result->epoch_count;
        result->epoch_count++;
    }
    return NULL;
}

bel_status *bel_audit_check(const char *folder, const bel_audit_scope *scope,
                            bel_audit_result *out_result)
{
    if (!bel_file_exists(folder)) {
        return BEL_ERR(BEL_NOT_FOUND,
                       "there is no %s: nothing was noted; training does it with --audit_input",
                       folder);
    }
    checking c = {.scope = scope, .block_count = blocks_of(scope), .block_end = INT64_MAX};
    c.seen = bel_xcalloc((size_t)c.block_count, sizeof *c.seen);
    bel_status *status = read_folder(&c, folder);
    if (status == NULL) status = check_blocks(&c);
    if (status == NULL) status = check_epochs(&c);
    bel_free(c.seen);
    bel_free(c.sightings);
    if (status != NULL) {
        bel_audit_result_deinit(&c.result);
        return status;
    }
    *out_result = c.result;
    return NULL;
}

void bel_audit_result_deinit(bel_audit_result *result)
{
    bel_free(result->epochs);
    *result = (bel_audit_result){0};
}
