// Stub for a build without libcurl's headers, instead of http_curl.c.
#include "store/http.h"

bel_status *bel_http_send(const bel_http_request *request, bel_http_answer *out_answer)
{
    (void)request, (void)out_answer;
    return BEL_ERR(BEL_UNIMPLEMENTED,
                   "this Belfry was built without libcurl's headers, so it opens no URLs; hint: "
                   "install libcurl4-openssl-dev and build again");
}
