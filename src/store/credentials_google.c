// Credentials for gs URLs: see credentials.h.
#include "base/alloc.h"
#include "store/credentials.h"
#include "store/profile.h"

bel_status *bel_credentials_load_google(bel_credentials **out_credentials)
{
    *out_credentials = NULL;
    return NULL;
}
