// Choice of GPUs for towers (cuda/choose.h), with libraries that are too old for fast arithmetic.
// label: native
#include "cuda/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "runtime/device.h"
#include "support/bel_test.h"
#include "support/cards.h"

enum { TOWERS = 3 };

// Expects this code, and each tower's GPU number; -1: the processor.
static void choose(bel_card_choice choice, bel_code code, const int *cards)
{
    bel_device *devices[TOWERS];
    choice.wanted = true;
    bel_status *status = bel_cards_choose(&choice, TOWERS, devices);
    assert_int_equal(bel_status_code(status), code);
    bel_status_destroy(status);
    for (int t = 0; cards != NULL && t < TOWERS; t++)
        assert_int_equal(devices[t] != NULL ? devices[t]->number : -1, cards[t]);
}

static void test_places(void **state)
{
    (void)state;
    choose((bel_card_choice){.before = 1}, BEL_OK, (const int[]){1, 2, 3});
    choose((bel_card_choice){.list = "3,1,0"}, BEL_OK, (const int[]){3, 1, 0});
    choose((bel_card_choice){.list = "2", .shared = true}, BEL_OK, (const int[]){2, 2, 2});
    choose((bel_card_choice){.before = 2}, BEL_OUT_OF_RANGE, NULL);
    // Trainings side by side take consecutive GPUs and wrap around.
    choose((bel_card_choice){.place = 1, .places = 2}, BEL_OK, (const int[]){2, 3, 0});
    choose((bel_card_choice){.before = 1, .place = 2, .places = 3}, BEL_OK, (const int[]){3, 0, 1});
    choose((bel_card_choice){.list = "3,1,0", .place = 1, .places = 3}, BEL_OK,
           (const int[]){1, 0, 3});
    choose((bel_card_choice){.place = 7, .places = 8}, BEL_OK, (const int[]){3, 0, 1});
    choose((bel_card_choice){.before = 2, .place = 1, .places = 2}, BEL_OUT_OF_RANGE, NULL);
    assert_int_equal(bel_cards_count("3,1,0"), 3);
    assert_int_equal(bel_cards_count("3,1,4"), 0);
    choose((bel_card_choice){.list = "0,4,1"}, BEL_OUT_OF_RANGE, NULL);
    choose((bel_card_choice){.list = "0,1,1"}, BEL_INVALID_ARGUMENT, NULL);
    choose((bel_card_choice){.before = 2, .own = true}, BEL_OUT_OF_RANGE, NULL);
    assert_true(bel_cards_were_refused());
    setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7", 1);
    choose((bel_card_choice){.before = 2}, BEL_OUT_OF_RANGE, NULL);
    choose((bel_card_choice){.before = 2, .own = true}, BEL_OK, (const int[]){0, 1, 2});
    unsetenv("CUDA_VISIBLE_DEVICES");
}

// A training insists on the requested arithmetic. An evaluation in a job's master falls back to the
// processor.
static void test_that_cannot_be_used(void **state)
{
    (void)state;
    bel_card_choice choice = {.math = BEL_GPU_MATH_TF32};
    choose(choice, BEL_FAILED_PRECONDITION, NULL);
    choice.needed = true;
    choose(choice, BEL_FAILED_PRECONDITION, NULL);
    choice.needed = false;
    choice.optional = true;
    choose(choice, BEL_OK, (const int[]){-1, -1, -1});
}

// Must run last: a process that lost a GPU uses no GPU any more.
static void test_behind_a_lost_one(void **state)
{
    (void)state;
    bel_device *devices[1];
    const bel_card_choice choice = {.wanted = true};
    bel_cuda_note_lost(NULL, "a context is of no use");
    bel_cuda_note_lost("cuda:1", "it hangs"); // more specific
    bel_cuda_note_lost("cuda:2", "so does this");
    bel_status *status = bel_cards_choose(&choice, 1, devices);
    assert_int_equal(bel_status_code(status), BEL_INTERNAL);
    assert_non_null(strstr(bel_status_message(status), "cuda:1: it hangs"));
    bel_status_destroy(status);
}

int main(void)
{
    if (!bel_cuda_is_built()) {
        fprintf(stderr, "this Belfry was built without CUDA\n");
        return 77;
    }
    bel_use_cards();
    setenv("CUDA_DOUBLE_DEVICES", "4", 1);
    setenv("CUDA_DOUBLE_OLD_LIBRARIES", "1", 1);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_that_cannot_be_used),
        cmocka_unit_test(test_behind_a_lost_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
