/* SPDX-License-Identifier: MIT */
/* Names come from /proc/PID/stat. A process can choose its own, so they are only displayed. */
#include "shepherd/processes/roll.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define NAME_SIZE 16 // as TASK_COMM_LEN
#define SEPARATOR ", "
#define MORE      "..."

/* False if the process is gone, or has ended and waits only to be reaped. */
static bool read_name(pid_t pid, char name[NAME_SIZE], pid_t *ret_session)
{
    int session = 0;
    char path[64], stat[128];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
    stat[n > 0 ? n : 0] = '\0';
    const char *begin = strchr(stat, '('), *end = strrchr(stat, ')');
    if (begin == NULL || end == NULL || end <= begin || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X')
        return false;
    (void)sscanf(end + 4, "%*d %*d %d", &session); // NOLINT(cert-err34-c): 0 if the text is cut
    *ret_session = session;
    (void)snprintf(name, NAME_SIZE, "%.*s", (int)(end - begin - 1), begin + 1);
    for (char *p = name; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~' || *p == ',')
            *p = '?';
    return true;
}

static bool has_name(const struct roll *roll, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = roll->names; *p != '\0';) {
        size_t own = strcspn(p, ",");
        if (own == length && strncmp(p, name, own) == 0)
            return true;
        p += own;
        p += strspn(p, SEPARATOR);
    }
    return false;
}

/* True for mgpu's own clean-up processes, which are not part of the job. */
static bool is_of_tidy(pid_t session)
{
    char name[NAME_SIZE];
    pid_t above;
    return session > 0 && read_name(session, name, &above) && strcmp(name, ROLL_TIDY) == 0;
}

void roll_add(struct roll *roll, pid_t pid)
{
    char name[NAME_SIZE];
    pid_t session;
    size_t used = strlen(roll->names);
    if (!read_name(pid, name, &session) || is_of_tidy(session))
        return;
    roll->count++;
    if (name[0] == '\0' || has_name(roll, name) || has_name(roll, MORE))
        return;
    bool has_room = used + strlen(SEPARATOR) + strlen(name) + strlen(SEPARATOR MORE) < sizeof(roll->names);
    (void)snprintf(roll->names + used, sizeof(roll->names) - used, "%s%s", used > 0 ? SEPARATOR : "",
        has_room ? name : MORE);
}

void roll_format(const struct roll *roll, char *text, size_t size)
{
    (void)snprintf(text, size, "%u process%s%s%s%s", roll->count, roll->count == 1 ? "" : "es",
        roll->names[0] != '\0' ? " (" : "", roll->names, roll->names[0] != '\0' ? ")" : "");
}
