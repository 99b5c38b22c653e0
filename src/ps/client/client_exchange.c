// Exchanges of collectives with shard 0, in pieces. The pieces of one call are under way together.
// The worker waits for all answers, so at the next call its room is free again. Any other answer is
// skipped: the request may be a replaced worker's.
#include <string.h>

#include "ps/client/client_inner.h"

char *bel_client_exchange_room(const bel_client *client)
{
    const bel_client_config *config = &client->config;
    return (char *)config->row_buffer +
           bel_row_buffer_exchange(config->layout, config->assignment, config->worker);
}

// Returns the piece that a frame answers, or NULL.
static bel_client_piece *awaited_piece(const bel_client *client, const bel_frame *frame)
{
    const bel_exchanged_frame said = bel_exchanged_frame_read(frame);
    const exchange_view *view = &client->exchange;
    if (said.version != view->step || said.exchange != view->exchange) return NULL;
    for (int i = 0; i < view->count; i++) {
        bel_client_piece *piece = &view->pieces[i];
        if (said.part != piece->part || said.piece != piece->piece) continue;
        return said.at == piece->answer_at && frame->payload_bytes == piece->answer_bytes ? piece
                                                                                          : NULL;
    }
    return NULL;
}

// The payload is in the shard's memory, or where bel_client_place_exchanged had it put.
void bel_client_take_exchanged(bel_client *client, const bel_frame *frame)
{
    bel_client_piece *piece = awaited_piece(client, frame);
    if (piece != NULL && piece->answer == NULL) piece->answer = frame->payload;
}

// Runs on the lane's thread; the data that it reads was written before the piece was sent. NULL
// without a room.
void *bel_client_place_exchanged(const bel_client *client, const bel_frame *frame)
{
    const bel_client_config *config = &client->config;
    const bel_client_piece *piece = awaited_piece(client, frame);
    if (piece == NULL || config->answer_room == NULL) return NULL;
    return (char *)config->answer_room +
           bel_row_buffer_exchange_answers(config->layout, config->assignment, config->worker) +
           piece->answer_at;
}

static bool lacks_answers(const bel_client *client, int64_t step, int shard)
{
    (void)step;
    for (int i = 0; shard == 0 && i < client->exchange.count; i++)
        if (client->exchange.pieces[i].answer == NULL) return true;
    return false;
}

static bel_status *answers_are_there(bel_client *client, int64_t step, bool *out_there)
{
    bel_client_drain(client);
    *out_there = !lacks_answers(client, step, 0);
    return NULL;
}

bel_status *bel_client_exchange(bel_client *client, int64_t step, int exchange,
                                bel_client_piece *pieces, int count)
{
    static const bel_client_awaited answers = {"values of other replicas at step",
                                               answers_are_there, lacks_answers};
    bel_status *status = NULL;
    client->exchange = (exchange_view){step, exchange, pieces, count};
    for (int i = 0; i < count && status == NULL; i++) {
        const bel_client_piece *piece = &pieces[i];
        const bel_exchange_frame said = {.version = step,
                                         .exchange = exchange,
                                         .part = piece->part,
                                         .piece = piece->piece,
                                         .at = piece->at,
                                         .answer_at = piece->answer_at};
        const char *payload = bel_client_exchange_room(client) + piece->at;
        status = bel_client_send(client, 0, bel_exchange_frame_write(said, payload, piece->bytes));
    }
    if (status == NULL) status = bel_client_wait_until(client, step, &answers);
    client->exchange.count = 0; // the caller's memory, also after an error
    return status;
}

bel_status *bel_client_no_exchange(bel_client *client, int64_t step)
{
    const bel_exchange_frame said = {.version = step, .exchange = -1};
    return bel_client_send(client, 0, bel_exchange_frame_write(said, NULL, 0));
}
