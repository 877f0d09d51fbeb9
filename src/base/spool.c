/* SPDX-License-Identifier: MIT */
#include "base/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

static const char *const verdict_words[] = { [VERDICT_GO] = "go\n", [VERDICT_NOGO] = "nogo\n" };

void spool_name(const struct spool_id *id, char name[SPOOL_NAME_SIZE])
{
    (void)snprintf(name, SPOOL_NAME_SIZE, "%" PRIu64 ".%u.%u.%u", id->job, id->attempt, id->step, id->task);
}

/* The number at *text, which is moved behind it and behind the dot that must follow. */
static uint64_t take_number(const char **text, char closing)
{
    char *end = NULL;
    uint64_t number = strtoull(*text, &end, 10);
    *text = *end == closing && closing != '\0' ? end + 1 : end;
    return number;
}

bool spool_parse_name(const char *name, struct spool_id *ret_id)
{
    const char *at = name;
    struct spool_id id = { .job = take_number(&at, '.') };
    id.attempt = (uint32_t)take_number(&at, '.');
    id.step = (uint32_t)take_number(&at, '.');
    id.task = (uint32_t)take_number(&at, '\0');
    /* What is not exactly what we would write is nobody's name: signs, blanks, zeros in front, overflow. */
    char again[SPOOL_NAME_SIZE];
    spool_name(&id, again);
    if (strcmp(name, again) != 0)
        return false;
    *ret_id = id;
    return true;
}

int spool_verdict(int dirfd)
{
    _cleanup_close_ int fd = openat(dirfd, SPOOL_VERDICT, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? VERDICT_NONE : -errno;
    char word[8] = "";
    if (read(fd, word, sizeof(word) - 1) < 0)
        return -errno;
    if (strcmp(word, verdict_words[VERDICT_GO]) == 0)
        return VERDICT_GO;
    return strcmp(word, verdict_words[VERDICT_NOGO]) == 0 ? VERDICT_NOGO : -EBADMSG;
}

int spool_settle(int dirfd, enum spool_verdict wanted)
{
    /* An unnamed file cannot be left behind, and is complete before link(2) gives it its name. */
    char path[64];
    _cleanup_close_ int fd = openat(dirfd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, verdict_words[wanted], strlen(verdict_words[wanted]));
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, dirfd, SPOOL_VERDICT, AT_SYMLINK_FOLLOW) == 0)
        return (int)wanted;
    return errno == EEXIST ? spool_verdict(dirfd) : -errno;
}

bool spool_is_alive(int dirfd)
{
    _cleanup_close_ int fd = openat(dirfd, SPOOL_LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && is_file_locked(fd);
}

int spool_remove(int spoolfd, const char *name)
{
    static const char *const files[] = { SPOOL_LOCK, SPOOL_SPEC, SPOOL_VERDICT, SPOOL_STARTED, SPOOL_STATUS,
        SPOOL_EXIT, SPOOL_CTL, SPOOL_USAGE, SPOOL_LEASE, SPOOL_TTY, SPOOL_TERMS, SPOOL_READY, SPOOL_RENEWED };
    _cleanup_close_ int dirfd = openat(spoolfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dirfd < 0)
        return errno == ENOENT ? 0 : -errno;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        (void)unlinkat(dirfd, files[i], 0);
    if (unlinkat(spoolfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY)
        return -errno;
    /* Somebody died between writing a file and giving it its name. */
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char temporary[SPOOL_NAME_SIZE];
        (void)snprintf(temporary, sizeof(temporary), "%s.tmp", files[i]);
        (void)unlinkat(dirfd, temporary, 0);
    }
    return unlinkat(spoolfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}
