// Fuzz target for the stream of a lane over gRPC after its hello. The bytes come in pieces, as a
// network splits them, with each piece's length before it in the input. Payloads go to a place of
// 64 bytes, or are refused. Complete frames are taken and read.
#include <pthread.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "transport/streams/stream_lane_inner.h"

enum { CAPACITY = 8, PLACE_BYTES = 64 };

static void *place(void *context, const bel_frame *frame)
{
    return frame->payload_bytes <= PLACE_BYTES ? context : NULL;
}

static volatile uint8_t heard;
static void take_frames(bel_stream_lane *lane, uint64_t *count)
{
    bel_frame frame;
    while (bel_frame_queue_take(lane->in, &frame)) {
        fuzz_expect(frame.kind >= 1 && frame.kind <= BEL_FRAME_LAST_KIND, "a kind of the users'");
        fuzz_expect(frame.payload_bytes <= PLACE_BYTES, "a payload that has a place");
        for (size_t i = 0; i < frame.payload_bytes; i++)
            heard = ((const uint8_t *)frame.payload)[i];
        ++*count;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t room[PLACE_BYTES];
    bel_stream_lane lane = {.config = {.capacity = CAPACITY, .place = place, .place_context = room},
                            .in = bel_frame_queue_create(CAPACITY, NULL),
                            .mutex = PTHREAD_MUTEX_INITIALIZER,
                            .answered = true,
                            .generation = 1,
                            .sent = 3};
    bel_attachment attachment = {.lane = &lane};
    lane.current = &attachment;
    fuzz_input input = {data, size};
    bool good = true;
    uint64_t taken = 0;
    while (good && input.left > 0) {
        size_t wanted = (size_t)fuzz_take(&input, 1), count;
        const uint8_t *piece = fuzz_take_bytes(&input, wanted, &count);
        good = fuzz_is_good(bel_stream_lane_received(&attachment, piece, count));
        take_frames(&lane, &taken);
    }
    fuzz_expect(taken == lane.received, "every frame once");
    fuzz_expect(lane.acked <= lane.sent, "no more taken than was sent");
    bel_frame_queue_destroy(lane.in);
    return 0;
}
