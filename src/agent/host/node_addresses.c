/* SPDX-License-Identifier: MIT */
#include "agent/host/node_addresses.h"

#include <string.h>

#include "agent/host/persist.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/address.h"
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

void node_addresses_hear(const char *state_dir, uint16_t id, const void *message)
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
