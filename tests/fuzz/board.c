// Fuzz target for board.json of a job, which `jobs top` reads from a folder that others may write.
// The board is shown in all three ways, and its JSON is read again.
#include "monitoring/board.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_board *board;
    if (!fuzz_is_good(bel_board_parse((const char *)data, size, "board.json", &board))) return 0;
    bel_str shown = {0}, json = {0};
    bel_board_write_table(board, &shown);
    bel_board_write_metrics(board, &shown);
    bel_board_write_json(board, &json);
    bel_board_destroy(board);
    fuzz_expect(fuzz_is_good(bel_board_parse(json.text, json.length, "again", &board)),
                "a board that was written is read");
    bel_board_destroy(board);
    bel_str_deinit(&shown);
    bel_str_deinit(&json);
    return 0;
}
