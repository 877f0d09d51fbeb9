/* SPDX-License-Identifier: MIT */
/* In a program that limits what it can change: on SIGRTMIN it tries to change files in $PROBE_INSIDE and
 * $PROBE_OUTSIDE and says in the file $PROBE_ANSWER which changes succeeded. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREATED = 1, MADE_DIRECTORY = 2, LINKED = 4, OPENED = 8, REMOVED = 16 };

struct place {
    char new[200], directory[200], link[200], old[200];
};

struct answer {
    _Atomic int inside, outside, count;
};

static struct place inside, outside;
static struct answer *answer;

const char *__asan_default_options(void); // of programs built with it, before which this library is loaded

const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0:detect_leaks=0";
}

static int opens(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static int try_in(const struct place *place)
{
    int done = opens(place->new, O_CREAT) ? CREATED : 0;
    done |= mkdir(place->directory, 0700) == 0 ? MADE_DIRECTORY : 0;
    done |= symlink("/", place->link) == 0 ? LINKED : 0;
    done |= opens(place->old, O_TRUNC) ? OPENED : 0;
    return done | (unlink(place->old) == 0 ? REMOVED : 0);
}

static void on_signal(int number)
{
    answer->inside = try_in(&inside);
    answer->outside = try_in(&outside);
    answer->count++;
}

static void name(struct place *place, const char *folder)
{
    (void)snprintf(place->new, sizeof(place->new), "%s/probe-new", folder);
    (void)snprintf(place->directory, sizeof(place->directory), "%s/probe-directory", folder);
    (void)snprintf(place->link, sizeof(place->link), "%s/probe-link", folder);
    (void)snprintf(place->old, sizeof(place->old), "%s/probe-old", folder);
}

__attribute__((constructor)) static void begin(void)
{
    const char *to = getenv("PROBE_ANSWER"), *in = getenv("PROBE_INSIDE"), *out = getenv("PROBE_OUTSIDE");
    int fd = to != NULL && in != NULL && out != NULL ? open(to, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (map == MAP_FAILED)
        return;
    answer = map;
    name(&inside, in);
    name(&outside, out);
    (void)signal(SIGRTMIN, on_signal);
}
