// Fuzz target for lines of a role's log, as a supervisor reads them from a program's output:
// Belfry's JSON, and any other text. All become lines for people and JSON.
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "launch/task/role_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    bel_role_line line;
    bel_str text = {0}, json = {0};
    bel_json *parsed;
    bel_role_line_init(&line, bytes, size);
    bel_role_line_write(&line, "worker 1", &text);
    bel_role_line_write_json(&line, bytes, size, "worker 1", &json);
    fuzz_expect(text.length > 0 && text.text[text.length - 1] == '\n', "a line");
    fuzz_expect(fuzz_is_good(bel_json_parse(json.text, json.length, "line", &parsed)),
                "a line of JSON");
    bel_json_destroy(parsed);
    bel_str_deinit(&text);
    bel_str_deinit(&json);
    bel_role_line_deinit(&line);
    return 0;
}
