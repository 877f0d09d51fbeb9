/* SPDX-License-Identifier: MIT */
/* mgpu-tls performs the steps and reports a line for each. The token is sent over the socket, where no other
 * user can see it. */
#include "cli/cluster/connectivity_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/api/remote.h"

#define HELPER_FD 3
#define FIELDS    4

static void report_line(char *line, doctor_step_fn *on_step, void *arg)
{
    char *fields[FIELDS] = { line, NULL, NULL, NULL };
    line[strcspn(line, "\n")] = '\0';
    for (size_t i = 1; i < FIELDS; i++) {
        char *tab = fields[i - 1] != NULL ? strchr(fields[i - 1], '\t') : NULL;
        if (tab == NULL)
            return;
        *tab = '\0';
        fields[i] = tab + 1;
    }
    on_step(arg, fields[0], fields[1], fields[2], fields[3]);
}

int doctor_walk(const char *where, doctor_step_fn *on_step, void *arg, struct error *err)
{
    int pair[2];
    char number[16], *line = NULL;
    size_t size = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    _cleanup_close_ int ours = pair[0], theirs = pair[1];
    (void)snprintf(number, sizeof(number), "%d", HELPER_FD);
    const char *const arguments[] = { "mgpu-tls", "--check", number, NULL };
    int r = remote_start(arguments, theirs, HELPER_FD, err);
    closep(&theirs);
    if (r == 0) {
        r = write_all(ours, where, strlen(where));
        (void)shutdown(ours, SHUT_WR);
    }
    FILE *in = r == 0 ? fdopen(ours, "r") : NULL;
    if (in == NULL)
        return r < 0 ? r : error_set_errno(err, -errno, "cannot read the output of mgpu-tls");
    ours = -1; // the stream owns it now
    while (getline(&line, &size, in) > 0)
        report_line(line, on_step, arg);
    free(line);
    (void)fclose(in);
    return 0;
}
