/* SPDX-License-Identifier: MIT */
#include "compat/personalities/srun_server.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/api/loopback.h"
#include "cli/options/talk.h"

#define CONNECT_MS 10000

/* A server without root is only queried for numbers of GPUs: its owner gains no rights. */
static void print_owner(struct call *call, uid_t owner)
{
    if (client_trusts(owner) || call->is_quiet || call->is_owner_shown)
        return;
    const struct passwd *user = getpwuid(owner);
    _cleanup_free_ char *name = user != NULL ? xstrdup(user->pw_name) : xasprintf("uid %u", (unsigned)owner);
    call->is_owner_shown = true;
    talk_line(
        "the server belongs to %s: it grants GPUs, and cannot prevent other programs from using them", name);
}

/* Only for this machine, where the process is. */
static int connect_url(struct call *call, const char *url, struct http_client **ret, struct error *err)
{
    uid_t owner;
    int r = loopback_connect(url, CONNECT_MS, ret, &owner, err);
    if (r == 0)
        print_owner(call, owner);
    if (r < 0) {
        (void)error_wrap(err, SRUN_URL_VARIABLE " %.200s", url);
        (void)error_recode(err, r);
    }
    if (r == -EHOSTDOWN)
        return error_hint(err, "start it with run_server, or set its address in " SRUN_URL_VARIABLE);
    return r;
}

int srun_server_connect(struct call *call, struct http_client **ret, struct error *err)
{
    const char *url = getenv(SRUN_URL_VARIABLE);
    if (url != NULL && url[0] != '\0')
        return connect_url(call, url, ret, err);
    int r = client_connect(&call->client, ret, err);
    bool is_of_other = r == -EPERM; // which is acceptable for a grant
    if ((r != -EHOSTDOWN && !is_of_other) || call->client.asked_path != NULL)
        return r;
    *err = (struct error){ 0 };
    return connect_url(call, "http://127.0.0.1:" SRUN_PORT, ret, err);
}
