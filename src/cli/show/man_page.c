/* SPDX-License-Identifier: MIT */
/*
 * man is called twice: first to find the page, so that its error about a missing page is not shown. An action
 * has no page of its own; the page of its verb is shown.
 */
#include "cli/show/man_page.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

#define STATUS_NOT_FOUND 127

/* The exit status of man, or STATUS_NOT_FOUND if it could not be executed. */
static int run_man(char *const argv[], bool is_silent)
{
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    int status = 0;
    (void)posix_spawn_file_actions_init(&files);
    for (int fd = STDOUT_FILENO; is_silent && fd <= STDERR_FILENO; fd++)
        (void)posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&pid, "man", &files, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    if (r != 0)
        return STATUS_NOT_FOUND;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return STATUS_NOT_FOUND;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

bool man_page_show(const struct command *command)
{
    _cleanup_free_ char *page = xasprintf("mgpu-%s", command->name);
    char man[] = "man", where[] = "-w", section[] = "1";
    const char *pager = getenv("MGPU_PAGER");
    if (isatty(STDOUT_FILENO) != 1 || command->is_hidden || strchr(command->name, ' ') != NULL ||
        run_man((char *[]){ man, where, section, page, NULL }, true) != 0)
        return false;
    if (pager != NULL && pager[0] != '\0' && setenv("MANPAGER", pager, 1) < 0)
        return false;
    return run_man((char *[]){ man, section, page, NULL }, false) != STATUS_NOT_FOUND;
}
