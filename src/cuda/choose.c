// GPUs of towers: see choose.h. Towers take GPUs in order; with shared GPUs they start again at the
// first. So a tower's GPU follows only from its index, the same after a restart. A condition that
// would make a tower compute differently than requested is an error here, before it starts.
#include "cuda/choose.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "cuda/cuda.h"
#include "runtime/device.h"

// GPUs that may be used, in order.
typedef struct card_list {
    int cards[BEL_CUDA_MOST_CARDS];
    int count;
} card_list;

static bel_status *choose_malformed(const char *list)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "gpus: expected a list such as 0,2, got \"%s\"", list);
}

static bel_status *read_list(const char *list, int present, card_list *out)
{
    const char *at = list;
    out->count = 0;
    for (;;) {
        char *end;
        long card = strtol(at, &end, 10);
        bool number = end != at && *at >= '0' && *at <= '9';
        if (!number || (*end != ',' && *end != '\0') || out->count == BEL_CUDA_MOST_CARDS)
            return choose_malformed(list);
        if (card >= present)
            return BEL_ERR(BEL_OUT_OF_RANGE, "GPU %ld of the list %s is not there: there are %d",
                           card, list, present);
        for (int i = 0; i < out->count; i++)
            if (out->cards[i] == (int)card) return choose_malformed(list);
        out->cards[out->count++] = (int)card;
        if (*end == '\0') return NULL;
        at = end + 1;
    }
}

bel_status *bel_cards_check_list(const char *list)
{
    card_list cards;
    return read_list(list, INT_MAX, &cards);
}

static bel_status *list_cards(const char *list, card_list *out)
{
    int present;
    BEL_TRY(bel_cuda_count(&present));
    if (list != NULL && list[0] != '\0') return read_list(list, present, out);
    out->count = present < BEL_CUDA_MOST_CARDS ? present : BEL_CUDA_MOST_CARDS;
    for (int i = 0; i < out->count; i++)
        out->cards[i] = i;
    return NULL;
}

int bel_cards_count(const char *list)
{
    card_list cards;
    bel_status *status = list_cards(list, &cards);
    int count = status == NULL ? cards.count : 0;
    bel_status_ignore(status); // bel_cards_choose reports it
    return count;
}

static bool is_restricted(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible != NULL && visible[0] != '\0';
}

static bel_status *too_few(int towers, int before, int cards)
{
    char others[64] = "";
    if (before > 0)
        bel_snprintf(others, sizeof others, ", after %d of other workers on this host", before);
    return BEL_ERR(BEL_OUT_OF_RANGE,
                   "too few GPUs: there are %d, for %d tower%s%s; hint: a smaller num_gpus, "
                   "virtual_devices, with which towers share GPUs, or device cpu",
                   cards, towers, towers == 1 ? "" : "s", others);
}

// On a GPU without this rounding, a library would silently use another one.
static bel_status *check_math(int index, bel_gpu_math math)
{
    enum { OLDEST = 8 };
    bel_cuda_card card;
    if (math != BEL_GPU_MATH_TF32 && math != BEL_GPU_MATH_BF16) return NULL;
    BEL_TRY(bel_cuda_card_at(index, &card));
    if (card.major >= OLDEST) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "GPU %d, %s, has compute capability %d.%d, and tf32 and bf16 take %d.0; hint: "
                   "gpu_math f32 or exact",
                   index, card.name, card.major, card.minor, OLDEST);
}

static atomic_bool were_refused;

bool bel_cards_were_refused(void)
{
    return atomic_load(&were_refused);
}

// Notes that a choice could not be met.
static bel_status *choose_refuse(bel_status *status)
{
    atomic_store(&were_refused, true);
    return status;
}

static void say_none(bel_status *status)
{
    static atomic_bool said; // once for all towers of a process
    if (!atomic_exchange(&said, true)) {
        bel_log_write(BEL_LOG_INFO, "no GPU is used, as %s: towers share the processor",
                      bel_status_message(status));
    }
    bel_status_ignore(status); // said
}

static void say_place(const bel_card_choice *choice, int card)
{
    static atomic_bool said; // for the first towers only
    if (!atomic_exchange(&said, true))
        bel_log_write(BEL_LOG_INFO,
                      "place %d of %d trainings side by side: its GPUs are those from cuda:%d on",
                      choice->place, choice->places, card);
}

// NOT_FOUND: there are no GPUs.
static bel_status *choose(const bel_card_choice *choice, int towers, bel_device **out_devices)
{
    card_list list;
    if (bel_cuda_has_lost_card()) // memory may still be pinned that was unmapped
        return BEL_ERR(BEL_INTERNAL,
                       "a GPU of this process is lost: %s; hint: start the process anew",
                       bel_cuda_why_lost());
    BEL_TRY(list_cards(choice->list, &list));
    if (choice->math != BEL_GPU_MATH_EXACT) BEL_TRY(bel_cuda_open_fast(NULL));
    int first = choice->before;
    bool own = choice->own && is_restricted();
    if (own && first + towers > list.count && towers <= list.count) {
        static atomic_bool said;
        first = 0;
        bool once = !atomic_exchange(&said, true);
        bel_log_write(once ? BEL_LOG_INFO : BEL_LOG_DEBUG,
                      "CUDA_VISIBLE_DEVICES leaves %d of the GPUs, which counts as a choice for "
                      "this process only: it starts with the first of them",
                      list.count);
    }
    if (first + towers > list.count && !choice->shared) return too_few(towers, first, list.count);
    if (choice->places > 1) {
        first += (int)((int64_t)list.count * choice->place / choice->places);
        say_place(choice, list.cards[first % list.count]);
    }
    for (int t = 0; t < towers; t++) {
        int card = list.cards[(first + t) % list.count];
        BEL_TRY(check_math(card, choice->math));
        BEL_TRY(bel_cuda_device_get(card, &out_devices[t]));
        atomic_store(&out_devices[t]->memory_limit, choice->memory_limit);
        atomic_store(&out_devices[t]->patience_ns, (long long)(choice->patience_secs * 1e9));
    }
    return NULL;
}

bel_status *bel_cards_choose(const bel_card_choice *choice, int towers, bel_device **out_devices)
{
    memset(out_devices, 0, (size_t)towers * sizeof *out_devices);
    if (!choice->wanted || towers == 0) return NULL;
    bel_status *status = choose(choice, towers, out_devices);
    if (status == NULL) return NULL;
    bel_code code = bel_status_code(status);
    bool none = code == BEL_NOT_FOUND;
    if (none && choice->needed) {
        const char *who = choice->math != BEL_GPU_MATH_EXACT ? "gpu_math" : "device cuda";
        return choose_refuse(bel_status_wrap(status, __FILE__, __LINE__, "%s asks for GPUs", who));
    }
    if (!none && !(choice->optional && code == BEL_FAILED_PRECONDITION))
        return choose_refuse(status);
    memset(out_devices, 0, (size_t)towers * sizeof *out_devices);
    say_none(status);
    return NULL;
}

void bel_cards_say_whether(const bel_card_choice *choice)
{
    card_list list;
    if (!choice->wanted) return;
    bel_status *status = list_cards(choice->list, &list);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        say_none(status);
    } else {
        bel_status_ignore(status); // bel_cards_choose reports it
    }
}
