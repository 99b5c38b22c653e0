// Versions, seats, folder and settings, in this order. The seat is checked before the folder so
// that a replaced process learns it at once; only a member at the right seat gets time to see the
// folder. A higher incarnation takes the seat even while its predecessor is connected, as that one
// may hang; another connection of the same process takes it again. Only workers' settings are
// compared, since no other member builds the model. A value that the member does not send is a
// difference.
#include "master/members/join.h"

#include <string.h>

#include "base/str.h"
#include "belfry/estimator.h"
#include "checkpoint/setting_names.h"

static const char *find_value(char *const *names, char *const *values, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return values[i];
    return NULL;
}

static bel_status *differs(const Bel__Join *join, const char *name, const char *setting,
                           const char *there, const char *here)
{
    bel_str text = {0};
    bool is_data = strcmp(setting, BEL_SETTING_INPUT) == 0 && here != NULL && there != NULL;
    bel_setting_note_difference(&text, setting, here, there);
    bel_status *status = BEL_ERR(BEL_FAILED_PRECONDITION,
                                 "%s on %s runs with other settings than the master: %s there%s",
                                 name, join->host, text.text,
                                 is_data ? "; hint: a file or an object was replaced since the job "
                                           "began, or is not the same on that host"
                                         : "");
    bel_str_deinit(&text);
    return status;
}

// The first setting in which a member differs, including one that only one side has; NULL: none.
static bel_status *compare_settings(const bel_join_rules *rules, const Bel__Join *join,
                                    const char *name)
{
    if (join->role != BEL_ROLE_WORKER) return NULL; // only workers build the model
    const bel_join_graph *graph = &rules->graph;
    for (int i = 0; i < graph->setting_count; i++) {
        const char *value = NULL;
        for (size_t k = 0; k < join->n_settings && value == NULL; k++)
            if (strcmp(join->settings[k]->name, graph->names[i]) == 0)
                value = join->settings[k]->value;
        if (value != NULL && strcmp(value, graph->values[i]) == 0) continue;
        return differs(join, name, graph->names[i], value, graph->values[i]);
    }
    for (size_t k = 0; k < join->n_settings; k++) {
        const Bel__Setting *own = join->settings[k];
        const char *here = find_value(graph->names, graph->values, graph->setting_count, own->name);
        if (here == NULL) return differs(join, name, own->name, own->value, NULL);
    }
    return NULL;
}

// Compares collectives. A collective that only one worker makes, or omits, would otherwise be
// detected only by the stall clock.
static bel_status *compare_collectives(const bel_join_rules *rules, const Bel__Join *join,
                                       const char *name)
{
    const char *here = rules->graph.collectives, *there = join->collectives;
    int length_here, length_there, call = 0;
    if (join->role != BEL_ROLE_WORKER || strcmp(here, there) == 0) return NULL;
    for (;; call++) {
        length_here = (int)strcspn(here, "\n");
        length_there = (int)strcspn(there, "\n");
        bool same = length_here == length_there && strncmp(here, there, (size_t)length_here) == 0;
        if (!same || here[length_here] == '\0' || there[length_there] == '\0') break;
        here += length_here + 1;
        there += length_there + 1;
    }
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s on %s builds another graph than the master: collective %d is %.*s there and "
                   "%.*s here: all replicas must make the same collectives in the same order",
                   name, join->host, call, length_there > 0 ? length_there : 4,
                   length_there > 0 ? there : "none", length_here > 0 ? length_here : 4,
                   length_here > 0 ? here : "none");
}

static bel_status *compare_graphs(const bel_join_rules *rules, const Bel__Join *join,
                                  const char *name)
{
    if (rules->graph.collectives == NULL) return NULL; // nothing is left to train
    BEL_TRY(compare_settings(rules, join, name));
    return compare_collectives(rules, join, name);
}

// Checks the seat. It belongs to the highest incarnation; for the same one, to the process that has
// it.
static bel_status *check_seat(const bel_member_view *seat, bool connected, const Bel__Join *join,
                              const char *name)
{
    if (join->incarnation < seat->incarnation) {
        return BEL_ERR(BEL_ALREADY_EXISTS,
                       "%s on %s (pid %lld, incarnation %u) was replaced by incarnation %u", name,
                       join->host, (long long)join->pid, join->incarnation, seat->incarnation);
    }
    bool another = join->pid != seat->pid || join->incarnation != seat->incarnation ||
                   (seat->host != NULL && strcmp(join->host, seat->host) != 0);
    if (!connected || !another || join->incarnation > seat->incarnation) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "%s on %s (pid %lld) joins, but it is there already, on %s (pid %lld)", name,
                   join->host, (long long)join->pid, seat->host, (long long)seat->pid);
}

bel_status *bel_join_check(const bel_join_rules *rules, const Bel__Join *join,
                           const bel_member_view *seat, bool connected, bool *out_blind)
{
    *out_blind = false;
    char text[32];
    bool known_role = join->role >= 0 && join->role < BEL_ROLE_COUNT;
    const char *name =
        known_role ? bel_role_text((bel_role)join->role, join->index, text) : "a stranger";
    if (join->protocol != BEL_PROTOCOL_VERSION || strcmp(join->version, bel_version()) != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s runs belfry %s with protocol %d, the master %s with protocol %d; "
                       "hint: install the same version everywhere",
                       name, join->host, join->version, join->protocol, bel_version(),
                       BEL_PROTOCOL_VERSION);
    }
    if (seat == NULL) {
        return BEL_ERR(join->role == BEL_ROLE_WORKER ? BEL_OUT_OF_RANGE : BEL_FAILED_PRECONDITION,
                       "%s on %s is no member of this job: it has %d workers, %d parameter servers "
                       "and %d evaluators",
                       name, join->host, rules->counts[BEL_ROLE_WORKER], rules->counts[BEL_ROLE_PS],
                       rules->counts[BEL_ROLE_EVALUATOR]);
    }
    BEL_TRY(check_seat(seat, connected, join, name));
    if (strcmp(join->token, rules->token) != 0) {
        *out_blind = true;
        if (rules->may_be_blind) return compare_graphs(rules, join, name);
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s does not see the master's model_dir: %s; hint: all roles of one "
                       "host need one folder under the same name",
                       name, join->host,
                       join->token[0] == '\0' ? "job.token is missing there"
                                              : "job.token there is another");
    }
    return compare_graphs(rules, join, name);
}
