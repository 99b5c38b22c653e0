// Processor features from the auxiliary vector, which lists what an aarch64 processor has beyond
// the first version: programs there may not ask the processor itself. Other processors are asked
// directly (isa.c, hash.c). A feature that is wrongly missing only costs speed: callers have a
// plain version with the same bits.
#include "base/linux_processor.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"

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

void bel_linux_processor_name(char *out_name, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    bel_status_ignore(bel_file_read("/proc/cpuinfo", &text, &length)); // then it has no name
    const char *line = text == NULL ? NULL : strstr(text, "\nmodel name");
    const char *name = line == NULL ? NULL : strchr(line, ':');
    if (name != NULL) name += 1 + strspn(name + 1, " \t");
    bel_snprintf(out_name, size, "%.*s", name != NULL ? (int)strcspn(name, "\n") : INT_MAX,
                 name != NULL ? name : "unknown processor");
    bel_free(text);
}
