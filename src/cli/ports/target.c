/* SPDX-License-Identifier: MIT */
#include "cli/ports/target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/memory.h"
#include "base/parse.h"

static int read_end(
    const char *text, const char *what, bool is_local, struct endpoint *ret, struct error *err)
{
    int64_t port;
    if (text[0] == '/') {
        if (strlen(text) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
            return error_set(err, -EINVAL, "the path of a socket has at most %zu bytes: '%.60s'",
                sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1, text);
        ret->path = xstrdup(text);
        return 0;
    }
    int r = parse_integer(text, what, is_local ? 0 : 1, UINT16_MAX, &port, err);
    if (r < 0)
        return error_hint(
            err, "PORT is a TCP port such as 8888, or the path of a unix socket: 9000:/run/app.sock");
    ret->port = (uint16_t)port;
    return 0;
}

int target_parse(const char *word, struct target *ret, struct error *err)
{
    const char *colon = strchr(word, ':');
    _cleanup_free_ char *local = colon != NULL ? xstrndup(word, (size_t)(colon - word)) : xstrdup(word);
    const char *remote = colon != NULL ? colon + 1 : word;
    _cleanup_(target_clear) struct target target = { 0 };
    if (colon == NULL && word[0] == '/') {
        (void)error_set(err, -EINVAL, "no local port for %.60s", word);
        return error_hint(err, "for example 9000:%.60s, or 0:%.60s for any free port", word, word);
    }
    int r = read_end(local, "the local port", true, &target.local, err);
    if (r == 0)
        r = read_end(remote, "the port of the job", false, &target.remote, err);
    if (r < 0)
        return r;
    *ret = target;
    target = (struct target){ 0 };
    return 0;
}

void target_clear(struct target *target)
{
    free(target->local.path);
    free(target->remote.path);
    *target = (struct target){ 0 };
}

char *target_local_name(const struct target *target)
{
    const struct endpoint *local = &target->local;
    return local->path != NULL ? xstrdup(local->path) : xasprintf("127.0.0.1:%u", local->port);
}

char *target_remote_name(const struct target *target)
{
    const struct endpoint *remote = &target->remote;
    return remote->path != NULL ? xstrdup(remote->path) : xasprintf("port %u", remote->port);
}
