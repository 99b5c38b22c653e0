// Fuzz target for control messages: protobuf of members to the master and back. An accepted message
// has a kind with a name, and can be written again. (The result is not compared: protobuf-c keeps
// unknown fields, and writes some of them in another form.)
#include "wire/message.h"
#include "base/alloc.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bel__Message *message;
    if (!fuzz_is_good(bel_message_read(data, size, &message))) return 0;
    fuzz_expect(bel_message_kind_name(message)[0] != '\0', "a kind that has a name");
    // The used member of a message's union is a pointer to a struct of protobuf-c.
    enum { LENGTH = 4 };
    size_t bytes;
    uint8_t *again = bel_message_write(message->generation, &message->ping->base, &bytes);
    bel_message_destroy(message);
    bool good = fuzz_is_good(bel_message_read(again + LENGTH, bytes - LENGTH, &message));
    if (good) bel_message_destroy(message);
    bel_free(again);
    return 0;
}
