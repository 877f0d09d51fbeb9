/* SPDX-License-Identifier: MIT */
#include "agent/host/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "wire/message.h"

#define WORD_MAX      256U // bytes of a word before it is escaped
#define ANCESTORS_MAX 128U
#define STATUS_SIZE   4096U

/* Reads a file of the process, cut at the size; 0 bytes if it cannot be read. */
static size_t read_of(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The first number behind "\nKEY:" of its status. */
static bool read_number(const char *status, const char *key, uint32_t *ret)
{
    char *end = NULL;
    const char *line = strstr(status, key);
    if (line == NULL)
        return false;
    *ret = (uint32_t)strtoul(line + strlen(key), &end, 10);
    return end != line + strlen(key);
}

bool process_facts_owner(pid_t pid, uint32_t *ret_uid, uint32_t *ret_gid)
{
    char status[STATUS_SIZE];
    return read_of(pid, "status", status, sizeof(status)) > 0 && read_number(status, "\nUid:\t", ret_uid) &&
           read_number(status, "\nGid:\t", ret_gid);
}

bool process_facts_is_below(pid_t pid, pid_t ancestor)
{
    char status[STATUS_SIZE];
    uint32_t parent;
    for (unsigned i = 0; pid > 0 && i < ANCESTORS_MAX; i++) {
        if (pid == ancestor)
            return true;
        if (read_of(pid, "status", status, sizeof(status)) == 0 || !read_number(status, "\nPPid:\t", &parent))
            return false;
        pid = (pid_t)parent;
    }
    return false;
}

/* Its arguments; a process without any (it can overwrite them) is identified by its name. */
static void read_command(pid_t pid, struct strings *ret)
{
    char text[PROCESS_WORDS_MAX / 4]; // escaping makes the text longer
    size_t length = read_of(pid, "cmdline", text, sizeof(text));
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        strings_take(ret, text_escape(text + at, WORD_MAX));
    if (ret->count > 0 && ret->items[0][0] != '\0')
        return;
    strings_clear(ret);
    length = read_of(pid, "comm", text, 64);
    text[strcspn(text, "\n")] = '\0';
    strings_take(ret, text_escape(length > 0 ? text : "?", WORD_MAX));
}

static int no_process(pid_t pid, struct error *err)
{
    (void)error_set(err, -ESRCH, "there is no process %d", (int)pid);
    return error_hint(err, "use the pid shown by ps on the node, not the one inside a container");
}

int process_facts_read(pid_t pid, uint64_t start, struct process_facts *ret, struct error *err)
{
    struct process_facts facts = { .pid = pid, .start = process_start_time(pid) };
    if (facts.start == 0)
        return no_process(pid, err);
    if (start != 0 && start != facts.start)
        return error_set(
            err, -ESRCH, "process %d has ended, and its number belongs to another process", (int)pid);
    _cleanup_close_ int pidfd = process_open(pid, facts.start);
    if (pidfd == -EINVAL)
        return error_set(err, -EINVAL, "%d is a thread, not a process", (int)pid);
    if (pidfd == -ESRCH)
        return no_process(pid, err);
    if (pidfd < 0)
        return error_set_errno(err, pidfd, "cannot open process %d", (int)pid);
    read_command(pid, &facts.command);
    if (!process_facts_owner(pid, &facts.uid, &facts.gid) || process_signal(pidfd, 0) == -ESRCH) {
        process_facts_clear(&facts);
        return no_process(pid, err);
    }
    *ret = facts;
    return 0;
}

void process_facts_clear(struct process_facts *facts)
{
    strings_clear(&facts->command);
}
