/* SPDX-License-Identifier: MIT */
/*
 * What the machine itself costs, measured without any of mgpu: the floor under every figure of bench/run.
 *
 *   floor jobs N WIDTH FILE
 *
 * runs N times /bin/true by fork, exec and wait, WIDTH at a time, with one record each in FILE, made durable
 * in groups; prints seconds.
 *
 *   floor each N FILE|- COMMAND...
 *
 * runs N times the command, one after the other, each followed by one record and fdatasync in FILE unless it
 * is "-"; prints the microseconds of each.
 *
 *   floor stamp FILE [MS]
 *
 * sleeps MS milliseconds, and appends the time of its first and of its last instruction, in nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RECORD_BYTES 200

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void start(char *const *command)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid > 0)
        return;
    int null = open("/dev/null", O_RDWR);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)execvp(command[0], command);
    _exit(127);
}

static void record(int fd, size_t count)
{
    static char bytes[RECORD_BYTES];
    for (size_t i = 0; i < count; i++)
        if (write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
            fail("write");
    if (count > 0 && fdatasync(fd) < 0)
        fail("fdatasync");
}

static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        fail(path);
    return fd;
}

static void run_jobs(size_t n, size_t width, const char *path)
{
    static char program[] = "/bin/true";
    char *const command[] = { program, NULL };
    int fd = open_file(path);
    size_t started = 0, ended = 0, running = 0;
    uint64_t begin = now_ns();
    while (ended < n) {
        while (running < width && started < n) {
            start(command);
            started++;
            running++;
        }
        /* Everything that has ended by now shares one flush. */
        size_t group = 0;
        for (int flags = 0; waitpid(-1, NULL, flags) > 0; flags = WNOHANG)
            group++;
        record(fd, group);
        ended += group;
        running -= group;
    }
    (void)printf("%.6f\n", (double)(now_ns() - begin) / 1e9);
}

static void run_each(size_t n, const char *path, char *const *command)
{
    int fd = strcmp(path, "-") == 0 ? -1 : open_file(path);
    for (size_t i = 0; i < n; i++) {
        int status = 0;
        uint64_t begin = now_ns();
        start(command);
        if (waitpid(-1, &status, 0) < 0 || status != 0)
            fail(command[0]);
        if (fd >= 0)
            record(fd, 1);
        (void)printf("%.1f\n", (double)(now_ns() - begin) / 1e3);
    }
}

static void stamp(uint64_t begin, const char *path, unsigned long ms)
{
    char text[64];
    const struct timespec pause = { .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };
    (void)nanosleep(&pause, NULL);
    int fd = open_file(path);
    int n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n", begin, now_ns());
    if (write(fd, text, (size_t)n) != n)
        fail("write");
}

int main(int argc, char **argv)
{
    uint64_t begin = now_ns();
    if (argc == 5 && strcmp(argv[1], "jobs") == 0)
        run_jobs(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), argv[4]);
    else if (argc >= 5 && strcmp(argv[1], "each") == 0)
        run_each(strtoul(argv[2], NULL, 10), argv[3], argv + 4);
    else if ((argc == 3 || argc == 4) && strcmp(argv[1], "stamp") == 0)
        stamp(begin, argv[2], argc == 4 ? strtoul(argv[3], NULL, 10) : 0);
    else
        return 2;
    return 0;
}
