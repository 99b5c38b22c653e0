// Processor features that the kernel reports.
#ifndef BELFRY_BASE_LINUX_PROCESSOR_H
#define BELFRY_BASE_LINUX_PROCESSOR_H

#include <stdbool.h>

// Returns true on aarch64 with instructions for CRC-32C, which its first version may lack; else
// false.
bool bel_linux_has_arm_crc32(void);

#endif
