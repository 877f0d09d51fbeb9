/* SPDX-License-Identifier: MIT */
/* A second mgpud that answers on this machine, for example that of all users beside the user's own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system_mgpud.h"
#include "cli/api/client.h"

/* One path may be a link to the other. */
static bool is_same_place(const char *a, const char *b)
{
    struct stat first, second;
    return strcmp(a, b) == 0 || (stat(a, &first) == 0 && stat(b, &second) == 0 &&
                                    first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

char *client_other(const struct client *client)
{
    _cleanup_strings_ struct strings places = { 0 };
    if (client->path == NULL || client->host != NULL || client->asked_path != NULL)
        return NULL;
    client_places(client, &places);
    for (size_t i = 0; i < places.count; i++)
        if (!is_same_place(places.items[i], client->path) && is_socket_answered(places.items[i]))
            return xstrdup(places.items[i]);
    return NULL;
}

int client_hint_other(const struct client *client, struct error *err)
{
    _cleanup_free_ char *other = client_other(client);
    if (err == NULL || other == NULL)
        return err != NULL ? err->code : 0;
    _cleanup_free_ char *before = xstrdup(err->hint);
    return error_hint(err, "%s%sasked the mgpud at %s; another one answers at %s (--socket)", before,
        before[0] != '\0' ? "; " : "", client->path, other);
}

void client_report_other(const struct client *client)
{
    _cleanup_free_ char *other = client->is_quiet || isatty(STDERR_FILENO) == 0 ? NULL : client_other(client);
    if (other != NULL)
        (void)fprintf(stderr, "%s: asking the mgpud at %s; another one answers at %s (--socket)\n",
            program_invocation_short_name, client->path, other);
}
