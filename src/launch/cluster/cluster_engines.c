// Engine sections of cluster.yaml: `slurm` and `kubernetes`. Their names and words go into batch
// scripts and manifests. So a value that could have another meaning there is refused here, with its
// position in the file.
#include <string.h>

#include "base/alloc.h"
#include "launch/cluster/cluster_reader.h"

// One sbatch argument each, as in #SBATCH lines.
static bel_status *read_options(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_slurm *slurm = place;
    if (node->kind != BEL_YAML_SEQUENCE) {
        return bel_cluster_expected(yaml, node, "a list of options of sbatch, such as --qos=high");
    }
    slurm->options = bel_xcalloc(node->count + 1, sizeof *slurm->options);
    for (size_t i = 0; i < node->count; i++) {
        const char *text = "";
        BEL_TRY(bel_cluster_text(yaml, node->values[i], &text));
        if (text[0] != '-' || strpbrk(text, " \t\n\"'\\#") != NULL) {
            return bel_cluster_expected(yaml, node->values[i],
                                        "an option of sbatch without spaces and quotes");
        }
        slurm->options[slurm->option_count++] = bel_xstrdup(text);
    }
    return NULL;
}

static const bel_cluster_key slurm_keys[] = {
    {.name = "partition",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster_slurm, partition)},
    {.name = "account", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster_slurm, account)},
    {.name = "minutes",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_slurm, minutes),
     .low = 2, // one minute is for saving
     .high = BEL_CLUSTER_MOST_SECONDS / 60},
    {.name = "gpus", .kind = BEL_CLUSTER_SWITCH, .offset = offsetof(bel_cluster_slurm, gpus)},
    {.name = "options", .kind = BEL_CLUSTER_OTHER, .read = read_options},
};

static bool is_word(const char *text)
{
    return text == NULL || strpbrk(text, " \t\n\"'\\#") == NULL;
}

bel_status *bel_cluster_read_slurm(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_slurm *slurm = place;
    BEL_TRY(bel_cluster_read_mapping(yaml, node, slurm_keys,
                                     sizeof slurm_keys / sizeof slurm_keys[0], place));
    if (is_word(slurm->partition) && is_word(slurm->account)) return NULL;
    return bel_yaml_error(yaml, node,
                          "expected a partition and an account without spaces and quotes");
}

// Reads jobset or tfjob.
static bel_status *read_kind(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    const char *text = "";
    BEL_TRY(bel_cluster_text(yaml, node, &text));
    *(bool *)place = strcmp(text, "tfjob") == 0;
    if (strcmp(text, "jobset") == 0 || strcmp(text, "tfjob") == 0) return NULL;
    return bel_cluster_expected(yaml, node, "jobset or tfjob");
}

static const bel_cluster_key kubernetes_keys[] = {
    {.name = "image", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster_kubernetes, image)},
    {.name = "namespace",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster_kubernetes, name_space)},
    {.name = "kind",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster_kubernetes, tfjob),
     .read = read_kind},
    {.name = "volume_claim",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster_kubernetes, volume_claim)},
    {.name = "mount", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster_kubernetes, mount)},
    {.name = "user",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_kubernetes, user),
     .low = 1,
     .high = INT32_MAX - 1},
    {.name = "gpus", .kind = BEL_CLUSTER_SWITCH, .offset = offsetof(bel_cluster_kubernetes, gpus)},
    {.name = "secret",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster_kubernetes, secret)},
    {.name = "service_account",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster_kubernetes, service_account)},
};

// RFC 1123 labels, as in Kubernetes: lowercase letters, digits and dashes, no dash at either end.
bool bel_is_dns_label(const char *text, size_t length)
{
    enum { LONGEST = 63 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    bool good = length > 0 && length <= LONGEST && text[0] != '-' && text[length - 1] != '-';
    return good && strspn(text, letters) >= length;
}

// Labels separated by dots.
static bool is_dns_name(const char *text)
{
    enum { LONGEST = 253 };
    if (strlen(text) > LONGEST) return false;
    for (;;) {
        size_t length = strcspn(text, ".");
        if (!bel_is_dns_label(text, length)) return false;
        if (text[length] == '\0') return true;
        text += length + 1;
    }
}

// An absolute path of plain names; not the root itself, as images fill it.
static bool is_mount(const char *path)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    size_t length = strlen(path);
    return path[0] == '/' && length > 1 && path[length - 1] != '/' &&
           path[strspn(path, letters)] == '\0' && strstr(path, "//") == NULL &&
           strstr(path, "/.") == NULL;
}

// REGISTRY/NAME:TAG; the nodes interpret it.
static bool is_image(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    return text[strspn(text, letters)] == '\0';
}

bel_status *bel_cluster_read_kubernetes(const bel_yaml *yaml, const bel_yaml_node *node,
                                        void *place)
{
    static const char name[] = "small letters, digits, - and ., no - or . at an end";
    bel_cluster_kubernetes *k = place;
    BEL_TRY(bel_cluster_read_mapping(yaml, node, kubernetes_keys,
                                     sizeof kubernetes_keys / sizeof kubernetes_keys[0], place));
    const struct {
        const char *key;
        bool good;
        const char *expected;
    } rules[] = {
        {"image", k->image == NULL || is_image(k->image), "the name of an image"},
        {"namespace", bel_is_dns_label(k->name_space, strlen(k->name_space)),
         "small letters, digits and -, no - at an end, at most 63"},
        {"volume_claim", k->volume_claim == NULL || is_dns_name(k->volume_claim), name},
        {"mount", is_mount(k->mount), "a path from the root, such as /models"},
        {"secret", k->secret == NULL || is_dns_name(k->secret), name},
        {"service_account", k->service_account == NULL || is_dns_name(k->service_account), name},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].good) continue;
        return bel_cluster_expected(yaml, bel_cluster_place(node, rules[i].key, node),
                                    rules[i].expected);
    }
    return NULL;
}
