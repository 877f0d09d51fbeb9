/* SPDX-License-Identifier: MIT */
#include "agent/host/node_addresses.h"

#include <string.h>
#include <strings.h>

#include "agent/host/persist.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/message.h"

static char *load(int dirfd)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(dirfd, NODE_ADDRESSES_FILE, CONTROLLERS_MAX, &text) < 0)
        return NULL;
    char *line = buffer_text(&text);
    return xstrndup(line, strcspn(line, "\n"));
}

int node_addresses_save(const char *state_dir, const char *text, struct error *err)
{
    struct address addresses[ADDRESSES_MAX];
    size_t count = 0;
    int r = address_parse_list(text, NODES_PORT, addresses, &count, err);
    if (r < 0)
        return r;
    address_clear_list(addresses, count);
    _cleanup_close_ int dirfd = persist_open(state_dir, err);
    if (dirfd < 0)
        return dirfd;
    _cleanup_free_ char *known = load(dirfd), *line = xasprintf("%s\n", text);
    if (known != NULL && strcmp(known, text) == 0)
        return 0;
    r = file_write(dirfd, NODE_ADDRESSES_FILE, line, strlen(line), true);
    return r < 0 ? error_set_errno(err, r, "cannot write %s/node/" NODE_ADDRESSES_FILE, state_dir) : 0;
}

char *node_addresses_load(const char *state_dir)
{
    _cleanup_close_ int dirfd = persist_open(state_dir, NULL);
    return dirfd < 0 ? NULL : load(dirfd);
}

static bool is_in(const struct address *addresses, size_t count, const struct address *one)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(addresses[i].host, one->host) == 0 && strcmp(addresses[i].port, one->port) == 0)
            return true;
    return false;
}

static void add_new(struct address addresses[ADDRESSES_MAX], size_t *count, struct address *one)
{
    if (*count < ADDRESSES_MAX && !is_in(addresses, *count, one))
        addresses[(*count)++] = *one;
    else
        address_clear(one);
}

int node_addresses_join(const char *learnt, const char *given, struct address ret[ADDRESSES_MAX],
    size_t *ret_count, struct error *err)
{
    struct address first[ADDRESSES_MAX], then[ADDRESSES_MAX];
    size_t n_first = 0, n_then = 0, count = 0;
    int r = learnt != NULL ? address_parse_list(learnt, NODES_PORT, first, &n_first, err) : 0;
    if (r == 0)
        r = address_parse_list(given, NODES_PORT, then, &n_then, err);
    if (r < 0) {
        address_clear_list(first, n_first);
        return r;
    }
    for (size_t i = 0; i < n_first; i++)
        add_new(ret, &count, &first[i]);
    for (size_t i = 0; i < n_then; i++)
        add_new(ret, &count, &then[i]);
    *ret_count = count;
    return 0;
}

void node_addresses_message(const char *state_dir, uint16_t id, const void *message)
{
    const struct message_welcome *welcome = message;
    const struct message_heartbeat *ack = message;
    struct error err = { 0 };
    const char *list = id == MESSAGE_WELCOME         ? welcome->controllers
                       : id == MESSAGE_HEARTBEAT_ACK ? ack->controllers
                                                     : NULL;
    if (list != NULL && node_addresses_save(state_dir, list, &err) < 0)
        log_warning("the addresses of the controllers are not kept: %s", err.message);
}
