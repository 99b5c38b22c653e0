// Names of roles, by their numbers in messages. The numbers must not change: another order would be
// another protocol. No range is checked here; code that gets a role from a message checks it first
// (master/members/join.c).
#include "wire/role.h"
#include "base/number.h"

const char *bel_role_name(bel_role role)
{
    static const char *const names[] = {"master", "worker", "ps", "evaluator"};
    return names[role];
}

const char *bel_role_text(bel_role role, int index, char text[32])
{
    bel_snprintf(text, 32, role == BEL_ROLE_MASTER ? "%s" : "%s %d", bel_role_name(role), index);
    return text;
}
