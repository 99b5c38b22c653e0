// The size depends on the data, so the memory consists of pages, and failure is a status, while
// small allocations end the process. The list doubles by copying: for a moment old and new memory
// exist, three times the old size. Offsets of rows and filters' lists are made once at opening and
// only read afterwards.
#include "input/files/number_list.h"

#include <string.h>

#include "base/alloc.h"

static bel_status *number_list_grow(bel_number_list *list)
{
    size_t capacity = list->capacity > 0 ? list->capacity * 2 : 1024;
    size_t bytes;
    if (!bel_size_mul(capacity, sizeof *list->items, &bytes)) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "too many records: %zu", list->count);
    }
    void *items;
    BEL_TRY(bel_pages_create(bytes, false, "the record index", &items));
    if (list->count > 0) memcpy(items, list->items, list->count * sizeof *list->items);
    bel_pages_destroy(list->items, list->capacity * sizeof *list->items);
    list->items = items;
    list->capacity = capacity;
    return NULL;
}

bel_status *bel_number_list_append(bel_number_list *list, int64_t number)
{
    if (list->count == list->capacity) BEL_TRY(number_list_grow(list));
    list->items[list->count++] = number;
    return NULL;
}

void bel_number_list_deinit(bel_number_list *list)
{
    bel_pages_destroy(list->items, list->capacity * sizeof *list->items);
    *list = (bel_number_list){0};
}

size_t bel_last_at_most(const int64_t *numbers, size_t count, int64_t number)
{
    size_t last = 0, behind = count;
    while (behind - last > 1) {
        size_t middle = last + (behind - last) / 2;
        if (numbers[middle] <= number) {
            last = middle;
        } else {
            behind = middle;
        }
    }
    return last;
}
