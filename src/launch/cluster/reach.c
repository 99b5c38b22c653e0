// Helpers of the engines that reach hosts by a command (reach.h): the hosts, the words of a
// command, and its output for --dry_run. Words are quoted so that a remote shell reads each as one
// word; nothing here starts a shell.
#include "launch/cluster/reach.h"

#include <string.h>

#include "base/alloc.h"
#include "base/linux_host.h"
#include "base/str.h"

void bel_reach_words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        bel_free(words[i]);
    bel_free(words);
}

void bel_reach_words_take(bel_reach_words *words, char *text)
{
    words->items =
        bel_xgrow(words->items, &words->capacity, words->count + 2, sizeof *words->items);
    words->items[words->count++] = text;
    words->items[words->count] = NULL;
}

void bel_reach_words_add(bel_reach_words *words, const char *text)
{
    bel_reach_words_take(words, bel_xstrdup(text));
}

bool bel_reach_is_flag(const char *argument, const char *name, const char **out_value)
{
    if (strncmp(argument, "--", 2) != 0) return false;
    const char *flag = argument + 2;
    size_t length = strcspn(flag, "=");
    if (length != strlen(name)) return false;
    for (size_t i = 0; i < length; i++)
        if ((flag[i] == '-' ? '_' : flag[i]) != name[i]) return false;
    *out_value = flag[length] == '=' ? flag + length + 1 : NULL;
    return true;
}

void bel_reach_quote(const char *text, bel_str *out)
{
    bel_str_puts(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            bel_str_puts(out, "'\\''");
        } else {
            bel_str_append(out, text, 1);
        }
    }
    bel_str_puts(out, "'");
}

const char **bel_reach_hosts(const bel_cluster *cluster, size_t *out_count)
{
    size_t most = 0, count = 0;
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        most += cluster->roles[r].host_count;
    const char **hosts = bel_xcalloc(most + 1, sizeof *hosts);
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        for (size_t i = 0; i < cluster->roles[r].host_count; i++) {
            const char *host = cluster->roles[r].hosts[i];
            bool known = bel_linux_host_is_here(host);
            for (size_t k = 0; k < count && !known; k++)
                known = strcmp(hosts[k], host) == 0;
            if (!known) hosts[count++] = host;
        }
    }
    *out_count = count;
    return hosts;
}

bel_status *bel_reach_check(const bel_cluster *cluster, const char *name)
{
    size_t count;
    const bel_cluster_role *master = &cluster->roles[BEL_ROLE_MASTER];
    if (master->host_count > 0 && !bel_linux_host_is_here(master->hosts[0])) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: with %s the master runs on the host of the submission, and its host "
                       "is %s; leave it out, or submit the job there",
                       cluster->source, name, master->hosts[0]);
    }
    bel_free(bel_reach_hosts(cluster, &count));
    if (count > 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected hosts of workers or parameter servers other than this one, which "
                   "%s reaches; hint: workers: {count: 2, hosts: [a, b]}",
                   cluster->source, name);
}

char *bel_reach_peer(const char *host)
{
    const char *user = strrchr(host, '@');
    const char *name = user != NULL ? user + 1 : host;
    bool colons = strchr(name, ':') != NULL;                                  // IPv6
    return bel_strf("%s%s%s:22", colons ? "[" : "", name, colons ? "]" : ""); // any port works
}

void bel_reach_show(const bel_reach *reach, const char *job, const bel_plan *plan, bel_str *out)
{
    bel_str_printf(out, "here, detached: belfry supervise %s\n", job);
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *p = &plan->processes[i];
        const bel_task task = {.role = p->role, .index = p->index};
        char **words = reach->words(reach, &task), name[32];
        if (words == NULL) continue;
        bel_str_printf(out, "%s:", bel_role_text(p->role, p->index, name));
        for (size_t k = 0; words[k] != NULL; k++) {
            bel_str_puts(out, " ");
            bool plain = strpbrk(words[k], " \"'$") == NULL;
            if (plain) {
                bel_str_puts(out, words[k]);
            } else {
                bel_reach_quote(words[k], out);
            }
        }
        bel_str_puts(out, "\n");
        bel_reach_words_free(words);
    }
}
