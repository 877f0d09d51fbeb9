/* SPDX-License-Identifier: MIT */
/*
 * Each dial is a thread that ends by itself, after DIAL_MS at the latest, and notifies the loop with an
 * eventfd. The caller does not wait for a dropped dial: its result is discarded when it arrives, or when the
 * program ends.
 */
#include "agent/uplink/dial.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "wire/tls/dial.h"

#define DIAL_MS 10000

struct dial {
    SSL_CTX *context;
    struct address address;
    const char *purpose;
    dialled_fn *on_dialled; // NULL: dropped
    void *arg;
    pthread_t thread;
    int event_fd;
    struct event *event;
    /* Owned by the thread until it has reported. */
    SSL *ssl;
    int fd;
    struct error err;
};

static void dial_free(struct dial *dial)
{
    event_free(dial->event);
    closep(&dial->event_fd);
    SSL_free(dial->ssl);
    closep(&dial->fd);
    SSL_CTX_free(dial->context);
    address_clear(&dial->address);
    free(dial);
}

static void *run(void *arg)
{
    struct dial *dial = arg;
    (void)tls_dial(dial->context, &dial->address, dial->purpose, clock_boot_ms() + DIAL_MS, &dial->ssl,
        &dial->fd, &dial->err);
    (void)eventfd_write(dial->event_fd, 1);
    return NULL;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    struct dial *dial = arg;
    (void)pthread_join(dial->thread, NULL);
    if (dial->on_dialled != NULL)
        dial->on_dialled(dial->arg, take_ptr(dial->ssl), take_fd(&dial->fd), &dial->err);
    dial_free(dial);
}

int dial_start(struct event_base *base, SSL_CTX *context, const struct address *address, const char *purpose,
    dialled_fn *on_dialled, void *arg, struct dial **ret)
{
    struct dial *dial = xcalloc(1, sizeof(*dial));
    *dial = (struct dial){ .purpose = purpose, .on_dialled = on_dialled, .arg = arg, .fd = -1 };
    (void)SSL_CTX_up_ref(context);
    dial->context = context;
    dial->address = (struct address){ xstrdup(address->host), xstrdup(address->port) };
    dial->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    dial->event = event_new(base, dial->event_fd, EV_READ, on_event, dial);
    if (dial->event == NULL)
        abort(); // memory
    if (dial->event_fd < 0 || event_add(dial->event, NULL) < 0 ||
        pthread_create(&dial->thread, NULL, run, dial) != 0) {
        dial_free(dial);
        return -EAGAIN;
    }
    *ret = dial;
    return 0;
}

void dial_forget(struct dial *dial)
{
    if (dial != NULL)
        dial->on_dialled = NULL;
}
