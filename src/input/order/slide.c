// The buffer is filled, then repeatedly gives a random record and takes the next one of the stream,
// until the stream ends and the buffer is empty. So the record at position p comes out at p -
// buffer_size + 1 at the earliest, and most likely soon after p. Draw i of an epoch uses the random
// number of counter (epoch, i).
#include "input/order/slide.h"

#include "base/alloc.h"
#include "base/rng.h"

// Random integer, 0 <= result < count.
static int64_t draw_below(bel_rng_key key, int64_t epoch, int64_t draw, int64_t count)
{
    uint32_t words[4];
    bel_rng_block(key, (uint64_t)epoch, (uint64_t)draw, words);
    uint64_t bits = (uint64_t)words[1] << 32 | words[0];
    int64_t drawn = (int64_t)((double)(bits >> 11) * 0x1p-53 * (double)count);
    return drawn < count ? drawn : count - 1;
}

bel_status *bel_slide_make(const void *context, int64_t epoch, bel_number_list *out_positions)
{
    const bel_slide *slide = context;
    bel_rng_key key = bel_rng_key_make(slide->seed, "shuffle_sliding", (uint64_t)slide->order);
    int64_t live = slide->count < slide->buffer_size ? slide->count : slide->buffer_size;
    size_t bytes = (size_t)(live > 0 ? live : 1) * sizeof(int64_t);
    void *memory;
    BEL_TRY(bel_pages_create(bytes, false, "a buffer to shuffle in", &memory));
    int64_t *buffer = memory, next = live;
    for (int64_t i = 0; i < live; i++)
        buffer[i] = i;
    bel_status *status = NULL;
    for (int64_t draw = 0; draw < slide->count && status == NULL; draw++) {
        int64_t place = draw_below(key, epoch, draw, live);
        status = bel_number_list_append(out_positions, buffer[place]);
        buffer[place] = next < slide->count ? next++ : buffer[--live];
    }
    bel_pages_destroy(memory, bytes);
    return status;
}
