// List of an endpoint's streams, for which the endpoint's end waits. A stream adds and removes
// itself, so neither needs to know the other's work. The links are part of the stream. The list
// belongs to the endpoint, under its mutex, and each removal wakes the thread that waits for the
// end.
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
