/* SPDX-License-Identifier: MIT */
#include "agent/host/scope.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/spawn.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"

#define RUNNER     "/usr/bin/systemd-run"
#define LINGERING  "/var/lib/systemd/linger"
#define ENTERED    "MGPU_SCOPE" // environment variable: this is the second execution
#define TRY_MS     5000         // time for systemd to answer
#define CGROUP_MAX 65536U

/* True if our cgroup v2 is a scope, such as that of a session, tmux or `su`, and not one of mgpu's or below
 * one. Units of services are left to whoever wrote them. */
static bool is_in_session(void)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, "/proc/self/cgroup", CGROUP_MAX, &text) < 0)
        return false;
    char *line = strstr(buffer_text(&text), "0::/");
    if (line == NULL || strstr(line, "/" SCOPE_PREFIX) != NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    size_t length = strlen(line), suffix = strlen(SCOPE_SUFFIX);
    return length > suffix && strcmp(line + length - suffix, SCOPE_SUFFIX) == 0;
}

/* True if systemd keeps processes of this user running when the user is not logged in. */
static bool is_lingering(void)
{
    const struct passwd *user = getpwuid(geteuid());
    _cleanup_free_ char *path = user == NULL ? NULL : xasprintf(LINGERING "/%s", user->pw_name);
    return path != NULL && access(path, F_OK) == 0 && getenv("XDG_RUNTIME_DIR") != NULL;
}

static void add_words(struct strings *command, const char *name, bool is_root)
{
    static const char *const words[] = { "--scope", "--quiet", "--collect", "--property=Delegate=yes",
        "--property=TasksMax=infinity", "--description=mgpu-agent and its jobs" };
    _cleanup_free_ char *unit = xasprintf("--unit=" SCOPE_PREFIX "%s%d" SCOPE_SUFFIX, name, (int)getpid());
    strings_add(command, RUNNER);
    if (!is_root)
        strings_add(command, "--user");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        strings_add(command, words[i]);
    strings_add(command, unit);
    strings_add(command, "--");
}

/* Once this program has become systemd-run, a refusal would end it, so permission is first tested with
 * another process. */
static bool is_granted(bool is_root)
{
    _cleanup_strings_ struct strings command = { 0 };
    _cleanup_close_ int pidfd = -1;
    pid_t pid = 0;
    int status = 0;
    add_words(&command, "try-", is_root);
    strings_add(&command, "/bin/true");
    if (spawn_program(RUNNER, command.items, environ, -1, &pid, &pidfd) < 0)
        return false;
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    if (poll(&end, 1, TRY_MS) != 1)
        (void)kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void scope_enter(char **argv)
{
    bool is_root = geteuid() == 0, is_second = getenv(ENTERED) != NULL;
    char program[PATH_MAX] = "";
    (void)unsetenv(ENTERED);
    if (is_second || access(SCOPE_MANAGER, F_OK) < 0 || access(RUNNER, X_OK) < 0 || !is_in_session() ||
        (!is_root && !is_lingering()))
        return;
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0 || access(program, X_OK) < 0 ||
        !is_granted(is_root))
        return;
    _cleanup_strings_ struct strings command = { 0 };
    add_words(&command, "", is_root);
    strings_add(&command, program);
    for (char **word = argv + 1; *word != NULL; word++)
        strings_add(&command, *word);
    (void)setenv(ENTERED, "yes", 1);
    (void)execv(RUNNER, command.items);
    (void)unsetenv(ENTERED);
}
