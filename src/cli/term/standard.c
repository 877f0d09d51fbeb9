/* SPDX-License-Identifier: MIT */
#include "cli/term/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void standard_descriptors_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static struct {
    int64_t first, last;
    size_t count;
} submitted;

void standard_note_submitted(int64_t job)
{
    if (submitted.count++ == 0)
        submitted.first = job;
    submitted.last = job;
}

/* A user who believes that nothing was submitted would submit it again. */
static void print_submitted(void)
{
    if (submitted.count == 1)
        (void)fprintf(
            stderr, "%s: job %" PRId64 " was submitted\n", program_invocation_short_name, submitted.first);
    else if (submitted.count > 1)
        (void)fprintf(stderr, "%s: %zu jobs were submitted, from %" PRId64 " to %" PRId64 "\n",
            program_invocation_short_name, submitted.count, submitted.first, submitted.last);
}

int standard_output_end(int status)
{
    bool is_lost = fflush(stdout) != 0;
    int error = errno;
    if (!is_lost && ferror(stdout) == 0)
        return status;
    (void)fprintf(stderr, "%s: cannot write the output%s%s\n", program_invocation_short_name,
        is_lost ? ": " : "", is_lost ? strerror(error) : "");
    print_submitted();
    return status != 0 ? status : 1;
}
