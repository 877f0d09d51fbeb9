/* SPDX-License-Identifier: MIT */
#include "cli/term/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

bool browser_is_over_ssh(void)
{
    return getenv("SSH_CONNECTION") != NULL;
}

bool browser_is_here(void)
{
    bool has_desktop = getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
    return has_desktop && !browser_is_over_ssh();
}

/* SSH_CONNECTION contains this machine's address as seen by the client. */
void browser_print_tunnel(unsigned port)
{
    _cleanup_free_ char *words = xstrdup(getenv("SSH_CONNECTION"));
    const struct passwd *self = getpwuid(getuid());
    char *rest = NULL, *server = words != NULL ? strtok_r(words, " ", &rest) : NULL;
    for (int i = 0; i < 2 && server != NULL; i++)
        server = strtok_r(NULL, " ", &rest);
    (void)fprintf(stderr, "  first, on your own machine: ssh -L %u:127.0.0.1:%u %s@%s\n", port, port,
        self != NULL ? self->pw_name : "USER", server != NULL ? server : "HOST");
}

/* Creates a file that only this user can read, in a directory that is removed at logout. -errno. */
static int write_leading_file(const char *folder, const char *file, const char *address)
{
    _cleanup_close_ int dirfd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    _cleanup_free_ char *text =
        xasprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", address);
    return file_write(dirfd, file, text, strlen(text), false);
}

void browser_open(const char *file, const char *address)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (folder == NULL || write_leading_file(folder, file, address) < 0)
        return;
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, file);
    (void)fflush(NULL);
    (void)execlp("xdg-open", "xdg-open", path, (char *)NULL);
}

/* Forks twice, because the browser may run for any length of time. */
void browser_start(const char *file, const char *address)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            sigset_t none;
            (void)sigemptyset(&none);
            (void)sigprocmask(SIG_SETMASK, &none, NULL);
            (void)setsid();
            browser_open(file, address);
        }
        _exit(127);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
}
