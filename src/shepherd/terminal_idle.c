/* SPDX-License-Identifier: MIT */
/*
 * The file contains one number, written and read as a whole: the boot clock in ms, or SEEN_HELD while the job
 * is suspended. It is on a tmpfs, so a write for every piece of output costs less than the output itself.
 */
#include "shepherd/terminal_idle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/spool.h"

#define SEEN_HELD INT64_MAX

/* False if it was never written, or was written incompletely. */
static bool read_seen(int fd, int64_t *ret_ms)
{
    return pread(fd, ret_ms, sizeof(*ret_ms), 0) == (ssize_t)sizeof(*ret_ms);
}

static void write_seen(int fd, int64_t seen_ms)
{
    (void)!pwrite(fd, &seen_ms, sizeof(seen_ms), 0);
}

static int64_t warning_ms(int64_t limit_ms)
{
    return limit_ms / 2 < TERMINAL_WARNING_MAX_MS ? limit_ms / 2 : TERMINAL_WARNING_MAX_MS;
}

/* --- the watching shepherd --- */

void terminal_idle_open(struct terminal_idle *idle, const struct launch_spec *spec, int spool_fd)
{
    *idle = (struct terminal_idle){ .spool_fd = spool_fd, .timer_fd = -1 };
    if (spec->is_tty && !spec->is_exec_step)
        idle->limit_ms = launch_ask(spec)->tty_idle_ms;
}

void terminal_idle_close(struct terminal_idle *idle)
{
    closep(&idle->timer_fd);
}

static void arm(struct terminal_idle *idle, int64_t at_ms)
{
    struct itimerspec when = { .it_value = { .tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 } };
    if (idle->timer_fd < 0)
        idle->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    (void)timerfd_settime(idle->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int open_seen(const struct terminal_idle *idle)
{
    return openat(idle->spool_fd, SPOOL_TTY_SEEN, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

bool terminal_idle_is_over(struct terminal_idle *idle)
{
    int64_t seen_ms = 0;
    terminal_idle_close(idle);
    if (idle->limit_ms == 0 || idle->is_held)
        return false;
    _cleanup_close_ int fd = open_seen(idle);
    if (!read_seen(fd, &seen_ms))
        return false;
    if (seen_ms == SEEN_HELD) { // from a shepherd that died before the job was continued
        seen_ms = clock_boot_ms();
        write_seen(fd, seen_ms);
    }
    if (clock_boot_ms() - seen_ms >= idle->limit_ms)
        return true;
    arm(idle, seen_ms + idle->limit_ms);
    return false;
}

void terminal_idle_hold(struct terminal_idle *idle, bool is_held)
{
    if (idle->limit_ms == 0)
        return;
    idle->is_held = is_held;
    _cleanup_close_ int fd = open_seen(idle);
    write_seen(fd, is_held ? SEEN_HELD : clock_boot_ms());
    (void)terminal_idle_is_over(idle);
}

/* --- T --- */

int terminal_idle_make(void)
{
    int fd = open(SPOOL_TTY_SEEN, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    write_seen(fd, clock_boot_ms());
    return fd;
}

void terminal_warning_open(struct terminal_warning *warning, const struct launch_spec *spec, int seen_fd)
{
    *warning = (struct terminal_warning){ .seen_fd = seen_fd };
    if (seen_fd >= 0)
        warning->limit_ms = launch_ask(spec)->tty_idle_ms;
    terminal_warning_byte(warning);
}

void terminal_warning_byte(struct terminal_warning *warning)
{
    int64_t now_ms = clock_boot_ms();
    if (warning->limit_ms == 0)
        return;
    write_seen(warning->seen_fd, now_ms);
    warning->due_ms = now_ms + warning->limit_ms - warning_ms(warning->limit_ms);
}

int64_t terminal_warning_wait(const struct terminal_warning *warning)
{
    if (warning->limit_ms == 0 || warning->due_ms == INT64_MAX)
        return -1;
    int64_t left_ms = warning->due_ms - clock_boot_ms();
    return left_ms > 0 ? left_ms : 0;
}

bool terminal_warning_is_due(struct terminal_warning *warning, char *text, size_t size)
{
    int64_t now_ms = clock_boot_ms(), before_ms = warning_ms(warning->limit_ms), seen_ms = now_ms;
    char idle[32], left[32];
    if (warning->limit_ms == 0 || warning->due_ms > now_ms)
        return false;
    (void)read_seen(warning->seen_fd, &seen_ms);
    if (seen_ms == SEEN_HELD) {
        warning->due_ms = now_ms + before_ms;
        return false;
    }
    warning->due_ms = seen_ms + warning->limit_ms - before_ms;
    if (warning->due_ms > now_ms)
        return false;
    int64_t left_ms = seen_ms + warning->limit_ms - now_ms;
    warning->due_ms = INT64_MAX;
    format_duration(now_ms - seen_ms, idle, sizeof(idle));
    format_duration(left_ms > 0 ? left_ms : 0, left, sizeof(left));
    (void)snprintf(text, size,
        "\r\n[mgpu: this terminal was unused for %s; the job ends in %s unless you press a key]\r\n", idle,
        left);
    return true;
}
