// A record costs two fetches: its place in the index, then its bytes.
#include "input/files/fetch_ahead.h"

void bel_ahead_fetch_record(const bel_offset_list *starts, size_t index, int step, const char *data,
                            size_t size)
{
    bool last = index + 1 == starts->count;
    if (step == 1) {
        bel_offset_list_fetch(starts, index);
        if (!last) bel_offset_list_fetch(starts, index + 1); // mostly in the same line
        return;
    }
    size_t from = (size_t)bel_offset_list_at(starts, index);
    size_t to = last ? size : (size_t)bel_offset_list_at(starts, index + 1);
    bel_ahead_fetch(data + from, to - from);
}
