// Fuzz target for the XML answers of stores: the reader, and the error that is read from one.
#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "store/request.h"
#include "store/xml.h"

static void visit(void *context, const char *path, const char *text)
{
    int depth = 1;
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/';
    fuzz_expect(depth <= BEL_XML_DEPTH && path[0] != '\0', "a path within the bounds");
    *(size_t *)context += strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t total = 0;
    const char *text = (const char *)data;
    if (fuzz_is_good(bel_xml_read(text, size, visit, &total)))
        fuzz_expect(total <= size, "texts no longer than the input");
    bel_http_answer answer = {.status = 403};
    bel_str_append(&answer.text, text, size);
    bel_store_problem problem;
    bel_store_problem_read(&answer, &problem);
    fuzz_expect(strlen(problem.code) < sizeof problem.code, "a code within its bounds");
    bel_http_answer_deinit(&answer);
    return 0;
}
