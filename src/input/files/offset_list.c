// Offset list in groups, which fill one after another. An offset that is 2^16 or more above its
// group's first one turns the whole list into 8 bytes an offset: records of two thousand bytes and
// more are few for their file's size. The memory is pages, since its size is proportional to the
// data. The list doubles its pages and copies them, so a caller that knows the number of offsets
// reserves room.
#include "input/files/offset_list.h"

#include <string.h>

#include "base/alloc.h"

// Grows the pages to at least `count` offsets in the list's present form, and keeps its content.
static bel_status *offset_list_grow(bel_offset_list *list, size_t count)
{
    size_t unit = list->wide != NULL ? sizeof *list->wide : sizeof *list->groups, bytes;
    size_t units = list->wide != NULL ? count : count / BEL_OFFSETS_A_GROUP + 1;
    if (!bel_size_mul(units, unit, &bytes))
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "too many records: %zu", count);
    if (bytes <= list->bytes) return NULL;
    void *old = list->wide != NULL ? (void *)list->wide : list->groups, *pages;
    BEL_TRY(bel_pages_create(bytes, false, "the record index", &pages));
    if (list->bytes > 0) memcpy(pages, old, list->bytes);
    bel_pages_destroy(old, list->bytes);
    if (list->wide != NULL) {
        list->wide = pages;
    } else {
        list->groups = pages;
    }
    list->bytes = bytes;
    return NULL;
}

bel_status *bel_offset_list_reserve(bel_offset_list *list, size_t count)
{
    return offset_list_grow(list, count);
}

static bel_status *offset_list_widen(bel_offset_list *list, size_t room)
{
    size_t bytes;
    void *pages;
    if (!bel_size_mul(room, sizeof *list->wide, &bytes))
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "too many records: %zu", room);
    BEL_TRY(bel_pages_create(bytes, false, "the record index", &pages));
    int64_t *wide = pages;
    for (size_t i = 0; i < list->count; i++)
        wide[i] = bel_offset_list_at(list, i);
    bel_pages_destroy(list->groups, list->bytes);
    *list = (bel_offset_list){.wide = wide, .count = list->count, .bytes = bytes};
    return NULL;
}

// Appends offsets to groups until one does not fit. Returns the number of appended offsets.
static size_t offset_list_fill(bel_offset_list *list, const int64_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t place = (list->count + i) % BEL_OFFSETS_A_GROUP;
        bel_offset_group *group = &list->groups[(list->count + i) / BEL_OFFSETS_A_GROUP];
        if (place == 0) group->first = offsets[i];
        if (offsets[i] - group->first > UINT16_MAX) return i;
        group->above[place] = (uint16_t)(offsets[i] - group->first);
    }
    return count;
}

bel_status *bel_offset_list_append(bel_offset_list *list, const int64_t *offsets, size_t count)
{
    enum { LEAST = 1024 };
    if (count == 0) return NULL;
    size_t needed = list->count + count, old = list->count;
    size_t unit = list->wide != NULL ? sizeof *list->wide : 1;
    size_t room = list->wide != NULL ? list->bytes / unit
                                     : list->bytes / sizeof *list->groups * BEL_OFFSETS_A_GROUP;
    if (needed > room) {
        size_t twice = 2 * room > LEAST ? 2 * room : LEAST;
        BEL_TRY(offset_list_grow(list, needed > twice ? needed : twice));
    }
    size_t filled = list->wide != NULL ? 0 : offset_list_fill(list, offsets, count);
    if (filled < count && list->wide == NULL) {
        list->count += filled;
        bel_status *status = offset_list_widen(list, needed + needed / 2);
        list->count = old;
        BEL_TRY(status);
    }
    if (list->wide != NULL)
        memcpy(&list->wide[old + filled], offsets + filled, (count - filled) * sizeof *offsets);
    list->count = needed;
    return NULL;
}

void bel_offset_list_drop(bel_offset_list *list, size_t count)
{
    size_t left = list->count - count,
           groups = (left + BEL_OFFSETS_A_GROUP - 1) / BEL_OFFSETS_A_GROUP;
    if (left > 0 && list->wide != NULL) {
        memmove(list->wide, list->wide + count, left * sizeof *list->wide);
    } else if (left > 0) {
        memmove(list->groups, list->groups + count / BEL_OFFSETS_A_GROUP,
                groups * sizeof *list->groups);
    }
    list->count = left;
}

void bel_offset_list_shift(bel_offset_list *list, int64_t less)
{
    for (size_t i = 0; list->wide != NULL && i < list->count; i++)
        list->wide[i] -= less;
    for (size_t i = 0; list->wide == NULL && i < list->count; i += BEL_OFFSETS_A_GROUP)
        list->groups[i / BEL_OFFSETS_A_GROUP].first -= less;
}

void bel_offset_list_deinit(bel_offset_list *list)
{
    bel_pages_destroy(list->groups, list->wide == NULL ? list->bytes : 0);
    bel_pages_destroy(list->wide, list->wide != NULL ? list->bytes : 0);
    *list = (bel_offset_list){0};
}

size_t bel_offset_list_last_at_most(const bel_offset_list *list, int64_t offset)
{
    size_t last = 0, behind = list->count;
    while (behind - last > 1) {
        size_t middle = last + (behind - last) / 2;
        if (bel_offset_list_at(list, middle) <= offset) {
            last = middle;
        } else {
            behind = middle;
        }
    }
    return last;
}
