// Features and name of the processor, as the kernel reports them.
#ifndef BELFRY_BASE_LINUX_PROCESSOR_H
#define BELFRY_BASE_LINUX_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

// Returns true on aarch64 with instructions for CRC-32C, which its first version may lack; else
// false.
bool bel_linux_has_arm_crc32(void);

// Writes the processor's model name, "AMD EPYC 7B13"; "unknown processor" if the kernel has none.
void bel_linux_processor_name(char *out_name, size_t size);

#endif
