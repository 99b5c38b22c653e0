// Control messages as literals: BEL_TEST_KIND(Snapshot, snapshot, .step = 15) is an argument for
// bel_mailbox_send. It lives as long as the block.
#ifndef BELFRY_TESTS_SUPPORT_MESSAGE_H
#define BELFRY_TESTS_SUPPORT_MESSAGE_H

#include "wire/message.h"

#define BEL_TEST_KIND(Type, name, ...)                                                             \
    (&(Bel__##Type){.base = {.descriptor = &bel__##name##__descriptor}, __VA_ARGS__}.base)

#endif
