// Processor features from the auxiliary vector, which lists what an aarch64 processor has beyond
// the first version: programs there may not ask the processor itself. Other processors are asked
// directly (isa.c, hash.c). A feature that is wrongly missing only costs speed: callers have a
// plain version with the same bits.
#include "base/linux_processor.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

bool bel_linux_has_arm_crc32(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#else
bool bel_linux_has_arm_crc32(void)
{
    return false;
}
#endif
