/* SPDX-License-Identifier: MIT */
#include "base/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"

#define RENEWED_READS 100 // while it is being written

static const char *const verdict_words[] = { [VERDICT_GO] = "go\n", [VERDICT_NOGO] = "nogo\n" };

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

int spool_decide(int dirfd, enum spool_verdict wanted)
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

bool spool_read_terms(int dirfd, struct spool_terms *ret)
{
    struct spool_terms terms;
    _cleanup_close_ int fd = openat(dirfd, SPOOL_TERMS, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, &terms, sizeof(terms)) != (ssize_t)sizeof(terms) ||
        terms.magic != SPOOL_TERMS_MAGIC || terms.time_limit_ms < 0)
        return false;
    *ret = terms;
    return true;
}

int64_t spool_read_asked(int dirfd)
{
    struct spool_asked asked;
    _cleanup_close_ int fd = openat(dirfd, SPOOL_ASKED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, &asked, sizeof(asked)) != (ssize_t)sizeof(asked) ||
        asked.magic != SPOOL_ASKED_MAGIC || asked.boot_ms < 0)
        return 0;
    return asked.boot_ms;
}

static_assert(
    sizeof(struct spool_report) == 32 + SPOOL_STATUS_MAX + 8, "every byte is covered by the checksum");

static uint32_t report_crc(const struct spool_report *report)
{
    struct spool_report copy = *report;
    copy.crc = 0;
    return crc32c(0, &copy, sizeof(copy));
}

int spool_write_report(int fd, const struct spool_report *report)
{
    struct spool_report whole = *report;
    whole.magic = SPOOL_REPORT_MAGIC;
    whole.crc = report_crc(&whole);
    ssize_t n = pwrite(fd, &whole, sizeof(whole), 0);
    return n == (ssize_t)sizeof(whole) ? 0 : n < 0 ? -errno : -EIO;
}

bool spool_read_report(int dirfd, struct spool_report *ret)
{
    struct spool_report report;
    _cleanup_close_ int fd = openat(dirfd, SPOOL_REPORT, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || read(fd, &report, sizeof(report)) != (ssize_t)sizeof(report) ||
        report.magic != SPOOL_REPORT_MAGIC || report.crc != report_crc(&report))
        return false;
    report.status[sizeof(report.status) - 1] = '\0';
    *ret = report;
    return true;
}

static uint32_t renewed_crc(int64_t until_ms)
{
    uint32_t crc = crc32c(0, &until_ms, sizeof(until_ms));
    return crc != 0 ? crc : 1;
}

int spool_renew(int dirfd, int64_t until_ms)
{
    struct spool_renewed renewed = {
        .magic = SPOOL_RENEWED_MAGIC, .crc = renewed_crc(until_ms), .until_ms = until_ms
    };
    _cleanup_close_ int fd = openat(dirfd, SPOOL_RENEWED, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? file_write(dirfd, SPOOL_RENEWED, &renewed, sizeof(renewed), false) : -errno;
    ssize_t n = pwrite(fd, &renewed, sizeof(renewed), 0);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof(renewed) ? 0 : -ENOSPC;
}

bool spool_read_renewed(int dirfd, int64_t *ret_ms)
{
    struct spool_renewed renewed;
    _cleanup_close_ int fd = openat(dirfd, SPOOL_RENEWED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    for (int tries = 0; fd >= 0 && tries < RENEWED_READS; tries++) {
        if (pread(fd, &renewed, sizeof(renewed), 0) != (ssize_t)sizeof(renewed) ||
            renewed.magic != SPOOL_RENEWED_MAGIC)
            return false;
        if (renewed.crc != 0 && renewed.crc != renewed_crc(renewed.until_ms))
            continue; // it is being written
        *ret_ms = renewed.until_ms;
        return true;
    }
    return false;
}

bool spool_is_alive(int dirfd)
{
    _cleanup_close_ int fd = openat(dirfd, SPOOL_LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && is_file_locked(fd);
}

/* Of nearly every step, in order of removal: nothing starts without the spec, and the exit record outlives
 * the verdict. The shepherd waits for its removal, and is notified at SPOOL_CTL. */
static const char *const usual_files[] = { SPOOL_SPEC, SPOOL_VERDICT, SPOOL_EXIT, SPOOL_LOCK, SPOOL_STARTED,
    SPOOL_STATUS, SPOOL_READY, NULL };
static const char *const control_files[] = { SPOOL_CTL, NULL };
static const char *const further_files[] = { SPOOL_REPORT, SPOOL_USAGE, SPOOL_ADOPTED, SPOOL_TTY, SPOOL_TERMS,
    SPOOL_TTY_SEEN, SPOOL_RENEWED, SPOOL_STOP, SPOOL_PARK, SPOOL_PARK_LOCK, SPOOL_GRANT, SPOOL_ASKED, NULL };

static void unlink_all(int dirfd, const char *const *files, const char *suffix)
{
    for (; *files != NULL; files++) {
        char name[SPOOL_NAME_SIZE];
        (void)snprintf(name, sizeof(name), "%s%s", *files, suffix);
        (void)unlinkat(dirfd, name, 0);
    }
}

static int remove_directory(int spoolfd, const char *name)
{
    return unlinkat(spoolfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static void notify_removed(int fd, int dirfd)
{
    static const struct spool_command removed = { .magic = SPOOL_REMOVED_MAGIC, .grace_ms = -1 };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    /* By descriptor, because a run dir may have a longer name than a socket address can hold. */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SPOOL_CTL, dirfd);
    (void)sendto(fd, &removed, sizeof(removed), MSG_NOSIGNAL | MSG_DONTWAIT,
        (const struct sockaddr *)&address, sizeof(address));
}

int spool_remove(int spoolfd, const char *name)
{
    return spool_remove_and_notify(spoolfd, name, -1);
}

int spool_remove_and_notify(int spoolfd, const char *name, int fd)
{
    char pipe[sizeof(SPOOL_PIPES) + SPOOL_NAME_SIZE];
    (void)snprintf(pipe, sizeof(pipe), SPOOL_PIPES "/%.*s", SPOOL_NAME_SIZE - 1, name);
    (void)unlinkat(spoolfd, pipe, 0);
    _cleanup_close_ int dirfd = openat(spoolfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dirfd < 0)
        return errno == ENOENT ? 0 : -errno;
    unlink_all(dirfd, usual_files, "");
    if (fd >= 0)
        notify_removed(fd, dirfd);
    unlink_all(dirfd, control_files, "");
    int r = remove_directory(spoolfd, name);
    if (r == -ENOTEMPTY) {
        unlink_all(dirfd, further_files, "");
        r = remove_directory(spoolfd, name);
    }
    /* A process died between writing a file and giving it its name. */
    if (r == -ENOTEMPTY) {
        unlink_all(dirfd, usual_files, ".tmp");
        unlink_all(dirfd, further_files, ".tmp");
        r = remove_directory(spoolfd, name);
    }
    return r;
}
