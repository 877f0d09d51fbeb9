/* SPDX-License-Identifier: MIT */
/* Stands in front of libc: a wall clock that is off by as many seconds as /mnt/clock says. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

const char *__asan_default_options(void); // of programs built with it, before which this library is loaded

const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0:detect_leaks=0";
}

static long offset(void)
{
    long seconds = 0;
    FILE *file = fopen("/mnt/clock", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld", &seconds) != 1)
        seconds = 0;
    (void)fclose(file);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long r = syscall(SYS_clock_gettime, clock, ret);
    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret->tv_sec += offset();
    return (int)r;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return -1;
    *ret = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return -1;
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}
