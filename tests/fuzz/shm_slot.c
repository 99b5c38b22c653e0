// Fuzz target for a slot of another process's ring and a payload in its region, as a lane over
// shared memory reads them. An accepted payload is inside the region, so all of it can be read.
#include <string.h>

#include "fuzz/fuzz.h"
#include "transport/shm/ring.h"

enum { REGION_BYTES = 4096 };

static volatile uint8_t heard;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bel_shm_region *region; // for all inputs: nothing is written there
    if (region == NULL) {
        bool made = fuzz_is_good(bel_shm_region_create("belfry-fuzz", REGION_BYTES, &region));
        fuzz_expect(made, "a region");
    }
    fuzz_input input = {data, size};
    bool has_region = fuzz_take(&input, 1) % 2 == 0;
    uint64_t number = fuzz_take(&input, 1);
    bel_shm_slot slot = {0};
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, sizeof slot, &count);
    if (count > 0) memcpy(&slot, bytes, count);
    bel_frame frame;
    if (!fuzz_is_good(bel_shm_slot_read(&slot, number, has_region ? region : NULL, &frame)))
        return 0;
    const uint8_t *payload = slot.place == BEL_SHM_PLACE_SLOT ? slot.small : frame.payload;
    for (size_t i = 0; i < frame.payload_bytes; i++)
        heard = payload[i];
    fuzz_expect(frame.kind >= 1 && frame.kind <= BEL_FRAME_LAST_KIND, "a kind of the users'");
    return 0;
}
