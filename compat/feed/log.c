/* SPDX-License-Identifier: MIT */
#include "compat/feed/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"

#define LINE_MAX_BYTES 4096

int feed_log_open(struct feed_log *log, bool is_quiet, struct error *err)
{
    *log = (struct feed_log){ .fd = open(FEED_LOG_FILE,
                                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644),
        .is_quiet = is_quiet };
    if (log->fd < 0) {
        talk_line("no log: cannot open " FEED_LOG_FILE ": %s", strerror(errno));
        return 0;
    }
    int r = lock_file(log->fd);
    if (r < 0) {
        (void)error_set_errno(err, r, "cannot lock " FEED_LOG_FILE);
        if (r == -EAGAIN)
            (void)error_set(err, r, "another scheduler is running in this directory");
        feed_log_close(log);
    }
    return r;
}

static struct tm local_now(void)
{
    time_t now = time(NULL);
    struct tm parts = { 0 };
    (void)localtime_r(&now, &parts);
    return parts;
}

void feed_log_stamp(char text[FEED_STAMP_SIZE])
{
    struct tm now = local_now();
    text[strftime(text, FEED_STAMP_SIZE, "%Y%m%d_%H%M%S", &now)] = '\0';
}

static void write_line(int fd, const char *line)
{
    char at[FEED_STAMP_SIZE];
    struct tm now = local_now();
    if (fd < 0)
        return;
    at[strftime(at, sizeof(at), "%Y-%m-%d %H:%M:%S", &now)] = '\0';
    _cleanup_free_ char *whole = xasprintf("%s %s\n", at, line);
    (void)write_all(fd, whole, strlen(whole));
}

void feed_log_say(const struct feed_log *log, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    _cleanup_free_ char *shown = text_escape(line, sizeof(line));
    write_line(log->fd, shown);
    if (!log->is_quiet)
        write_line(STDOUT_FILENO, shown);
}

void feed_log_keep(const struct feed_log *log, const struct error *err)
{
    _cleanup_free_ char *shown = text_escape(err->message, sizeof(err->message));
    _cleanup_free_ char *line = xasprintf("problem: %s", shown);
    write_line(log->fd, line);
}

void feed_log_problem(const struct feed_log *log, const struct error *err)
{
    feed_log_keep(log, err);
    talk_error("start", err);
}

int feed_log_folder(const char *path, struct error *err)
{
    struct stat status;
    bool is_made = mkdir(path, 0755) == 0;
    if (!is_made && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s", path);
    if (is_made)
        (void)chmod(path, 0755);
    if (lstat(path, &status) < 0)
        return error_set_errno(err, -errno, "cannot inspect %s", path);
    if (!S_ISDIR(status.st_mode))
        return error_set(err, -EPERM, "%s is not a directory", path);
    if (status.st_uid != geteuid())
        return error_set(err, -EPERM, "%s belongs to another user", path);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(err, -EPERM, "other users can write to %s", path);
    return 0;
}

void feed_log_close(struct feed_log *log)
{
    if (log->fd >= 0)
        (void)close(log->fd);
    log->fd = -1;
}
