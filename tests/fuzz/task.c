// Fuzz target for BELFRY_TASK and TF_CONFIG, as the first byte says. An accepted BELFRY_TASK is
// written again, and read to the same text.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "launch/task/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    bel_task *task = NULL;
    char *text = bel_xstrndup((const char *)data + 1, size - 1);
    bool is_own = data[0] % 2 == 0;
    bool good = fuzz_is_good(
        bel_task_parse(is_own ? text : NULL, is_own ? NULL : text, "0123456789", true, &task));
    if (good && is_own && task != NULL) {
        bel_str first = {0}, second = {0};
        bel_task_write(task, &first);
        bel_task_destroy(task);
        task = NULL;
        good = fuzz_is_good(bel_task_parse(first.text, NULL, NULL, true, &task)) && task != NULL;
        fuzz_expect(good, "a task that was written is read");
        bel_task_write(task, &second);
        fuzz_expect(strcmp(first.text, second.text) == 0, "the same task, written again");
        bel_str_deinit(&first);
        bel_str_deinit(&second);
    }
    if (good) bel_task_destroy(task);
    bel_free(text);
    return 0;
}
