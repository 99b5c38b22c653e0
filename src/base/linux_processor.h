// What the kernel says of the processor.
#ifndef BELFRY_BASE_LINUX_PROCESSOR_H
#define BELFRY_BASE_LINUX_PROCESSOR_H

#include <stdbool.h>

// True on aarch64 with instructions for CRC-32C, which its first version may lack. Elsewhere false.
bool bel_linux_has_arm_crc32(void);

#endif
