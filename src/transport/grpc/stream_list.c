// The streams of an endpoint, as a list that the endpoint's end waits for: a stream puts itself
// in and takes itself out, so that neither has to know what the other one does. The links are
// part of the stream. The list is the endpoint's, under its mutex, and each removal wakes the
// thread that waits for the end.
#include "transport/grpc/endpoint_inner.h"

void bel_endpoint_add(bel_endpoint *endpoint, bel_stream_links *links)
{
    pthread_mutex_lock(&endpoint->mutex);
    links->next = endpoint->streams;
    if (links->next != NULL) links->next->previous = links;
    endpoint->streams = links;
    pthread_mutex_unlock(&endpoint->mutex);
}

void bel_endpoint_remove(bel_endpoint *endpoint, bel_stream_links *links)
{
    pthread_mutex_lock(&endpoint->mutex);
    if (links->next != NULL) links->next->previous = links->previous;
    if (links->previous != NULL) {
        links->previous->next = links->next;
    } else {
        endpoint->streams = links->next;
    }
    pthread_cond_broadcast(&endpoint->cond);
    pthread_mutex_unlock(&endpoint->mutex);
}
