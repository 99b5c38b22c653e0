// Control messages: protobuf of members to the master and back. One that is read has a kind with a
// name, and can be written again. (Whether that is read is no matter: protobuf-c keeps fields that
// nobody knows, and writes some of them otherwise than they came.)
#include "wire/message.h"
#include "base/alloc.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bel__Message *message;
    if (!fuzz_is_good(bel_message_read(data, size, &message))) return 0;
    fuzz_expect(bel_message_kind_name(message)[0] != '\0', "a kind that has a name");
    // The member of the union that a message has is a pointer to a struct of protobuf-c.
    enum { LENGTH = 4 };
    size_t bytes;
    uint8_t *again = bel_message_write(message->generation, &message->ping->base, &bytes);
    bel_message_destroy(message);
    bool good = fuzz_is_good(bel_message_read(again + LENGTH, bytes - LENGTH, &message));
    if (good) bel_message_destroy(message);
    bel_free(again);
    return 0;
}
