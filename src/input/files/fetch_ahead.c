// Prefetching of a record's bytes: see fetch_ahead.h. A record costs two fetches, its place in the
// index and then its bytes, and the second needs the result of the first. So a caller takes the
// steps of one record at different times. Nothing here changes what is read.
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
