// The auxiliary vector, which says what an aarch64 processor has beyond the first version:
// programs may not ask the processor itself there. Other processors are asked directly (isa.c,
// hash.c). A part that is said to be missing only costs speed: whoever asks has a plain way with
// the same bits.
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
