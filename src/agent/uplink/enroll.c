/* SPDX-License-Identifier: MIT */
#include "agent/uplink/enroll.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/node_addresses.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "wire/message.h"
#include "wire/tls/context.h"
#include "wire/tls/join_talk.h"

#define ENROLL_MS       30000
#define TICKET_LINE_MAX 1024

int enroll_read_ticket(const char *path, struct join_ticket *ret, struct error *err)
{
    char line[TICKET_LINE_MAX + 1] = "";
    bool is_stdin = strcmp(path, "-") == 0;
    _cleanup_close_ int file = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (!is_stdin && file < 0)
        return error_set_errno(err, -errno, "cannot open %s", path);
    size_t length = 0;
    ssize_t n = 1;
    while (n > 0 && length < TICKET_LINE_MAX && memchr(line, '\n', length) == NULL) {
        n = read(is_stdin ? STDIN_FILENO : file, line + length, TICKET_LINE_MAX - length);
        length += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return error_set_errno(err, -errno, "cannot read %s", is_stdin ? "standard input" : path);
    line[strcspn(line, "\r\n")] = '\0';
    int r = join_ticket_read(line, ret, err);
    OPENSSL_cleanse(line, sizeof(line));
    return r;
}

static int keep(struct node_home *home, const struct address *address, const struct join_ticket *ticket,
    const struct message_joined *joined, const char *name, struct error *err)
{
    _cleanup_certificate_ X509 *certificate = NULL;
    int r = tls_certificate_parse(joined->certificate != NULL ? joined->certificate : "", &certificate, err);
    if (r < 0)
        return r;
    r = node_home_save(home, certificate, address, ticket->token.pin, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *where = address_text(address);
    log_info("this machine is now node %s of %s (%s)", name,
        joined->controller != NULL ? joined->controller : "?", where);
    return 0;
}

static int enroll_at(struct node_home *home, const struct address *address, const struct join_ticket *ticket,
    const char *name, struct error *err)
{
    _cleanup_free_ char *version = xstrdup(MGPU_VERSION);
    char secret[2 * JOIN_SECRET_SIZE + 1];
    struct join_talk talk;
    int r = join_talk_open(address, ticket->token.pin, clock_boot_ms() + ENROLL_MS, &talk, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *request = tls_request_text(home->key, name), *node = xstrdup(name);
    join_talk_secret(&ticket->token, secret);
    struct message_join join = {
        .protocol = LINK_PROTOCOL,
        .version = version,
        .node = node,
        .token = ticket->token.id,
        .secret = secret,
        .request = request,
    };
    struct message_joined joined = { 0 };
    r = join_talk_ask(&talk, &message_join_record, &join, &message_joined_record, &joined, err);
    OPENSSL_cleanse(secret, sizeof(secret));
    join_talk_close(&talk);
    if (r == 0)
        r = keep(home, address, ticket, &joined, name, err);
    record_clear(&message_joined_record, &joined);
    return r;
}

/* Only the leader of several controllers listens for nodes. */
int enroll(struct node_home *home, const char *state_dir, const struct join_ticket *ticket, const char *name,
    struct error *err)
{
    struct address addresses[ADDRESSES_MAX];
    size_t count = 0;
    int r = address_parse_list(ticket->all, NODES_PORT, addresses, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = enroll_at(home, &addresses[i], ticket, name, err);
        bool is_away = r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ETIMEDOUT || r == -ECONNRESET;
        if (r == 0 && count > 1)
            r = node_addresses_save(state_dir, ticket->all, err);
        if (r == 0 || !is_away)
            break;
        r = i + 1 < count ? 0 : r;
    }
    address_clear_list(addresses, count);
    return r;
}
