/* SPDX-License-Identifier: MIT */
#include "cli/term/standard.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void standard_descriptors_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int standard_output_end(int status)
{
    if (fflush(stdout) == 0 || status != 0)
        return status;
    perror("mgpu: cannot write the output");
    return 1;
}
