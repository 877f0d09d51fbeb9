/* SPDX-License-Identifier: MIT */
/*
 * Answers are cached in a table with one slot per hash of the query: a new answer replaces the old one
 * in its slot. An expired answer is requested again, and still used while the database does not
 * respond. While a query hangs in the thread, further ones are queued for it and answered immediately
 * from the cache, so a hanging database costs its caller DIRECTORY_WAIT_MS once, and not once per
 * query.
 */
#include "wire/directory.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"

#define PLACES       1024U // answers kept
#define NOTED_MAX    64U   // queries that wait for the thread
#define FOUND_MS     60000
#define MISSING_MS   2000 // for a user who is being created
#define BUFFER_SIZE  16384
#define GROUPS_FIRST 64
#define GROUPS_MOST  65536 // groups of one user: the maximum of Linux

struct place {
    char *key; // NULL: nothing is there
    struct directory_entry entry;
    bool is_found;
    int64_t until_ms;
};

struct question {
    enum directory_kind kind;
    uint32_t number;
    char *name;
    char *key;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t asked, answered;
    bool is_started, is_working;
    struct question noted[NOTED_MAX]; // oldest first
    size_t n_noted;
    struct place places[PLACES];
} directory = { .mutex = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER };

void directory_entry_clear(struct directory_entry *entry)
{
    free(entry->name);
    free(entry->home);
    free(entry->groups);
    *entry = (struct directory_entry){ 0 };
}

/* --- asking --- */

static void list_groups(struct directory_entry *entry)
{
    for (int size = GROUPS_FIRST; size <= GROUPS_MOST;) {
        int count = size;
        entry->groups = xreallocarray(entry->groups, (size_t)size, sizeof(*entry->groups));
        if (getgrouplist(entry->name, entry->gid, entry->groups, &count) >= 0) {
            entry->n_groups = (size_t)count;
            return;
        }
        size = count > size ? count : size * 2;
    }
}

static bool look_up_group(const struct question *question, struct directory_entry *ret)
{
    struct group group, *found = NULL;
    char text[BUFFER_SIZE];
    int r = question->kind == DIRECTORY_GROUP
                ? getgrgid_r(question->number, &group, text, sizeof(text), &found)
                : getgrnam_r(question->name, &group, text, sizeof(text), &found);
    if (r != 0 || found == NULL)
        return false;
    *ret = (struct directory_entry){
        .id = found->gr_gid, .gid = found->gr_gid, .name = xstrdup(found->gr_name)
    };
    return true;
}

static bool look_up(const struct question *question, struct directory_entry *ret)
{
    struct passwd user, *found = NULL;
    char text[BUFFER_SIZE];
    if (question->kind == DIRECTORY_GROUP || question->kind == DIRECTORY_GROUP_NAMED)
        return look_up_group(question, ret);
    int r = question->kind == DIRECTORY_USER_NAMED
                ? getpwnam_r(question->name, &user, text, sizeof(text), &found)
                : getpwuid_r(question->number, &user, text, sizeof(text), &found);
    if (r != 0 || found == NULL)
        return false;
    *ret = (struct directory_entry){ .id = found->pw_uid,
        .gid = found->pw_gid,
        .name = xstrdup(found->pw_name),
        .home = xstrdup(found->pw_dir) };
    if (question->kind == DIRECTORY_MEMBER)
        list_groups(ret);
    return true;
}

static void question_clear(struct question *question)
{
    free(question->name);
    free(question->key);
}

/* --- cached answers, under the mutex --- */

static struct place *place_of(const char *key)
{
    uint32_t hash = 2166136261U;
    for (const char *p = key; *p != '\0'; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619U;
    return &directory.places[hash % PLACES];
}

static bool is_known(const struct place *place, const char *key)
{
    return place->key != NULL && strcmp(place->key, key) == 0;
}

static bool is_fresh(const struct place *place, const char *key)
{
    return is_known(place, key) && clock_boot_ms() < place->until_ms;
}

/* Takes ownership of entry and key. */
static void keep(char *key, bool is_found, const struct directory_entry *entry)
{
    struct place *place = place_of(key);
    free(place->key);
    directory_entry_clear(&place->entry);
    *place = (struct place){ .key = key,
        .entry = *entry,
        .is_found = is_found,
        .until_ms = clock_boot_ms() + (is_found ? FOUND_MS : MISSING_MS) };
}

static void *work(void *arg)
{
    (void)pthread_mutex_lock(&directory.mutex);
    while (true) {
        while (directory.n_noted == 0)
            (void)pthread_cond_wait(&directory.asked, &directory.mutex);
        struct question question = directory.noted[0];
        directory.n_noted--;
        memmove(directory.noted, directory.noted + 1, directory.n_noted * sizeof(question));
        directory.is_working = true;
        (void)pthread_mutex_unlock(&directory.mutex);
        struct directory_entry entry = { 0 };
        bool is_found = look_up(&question, &entry);
        (void)pthread_mutex_lock(&directory.mutex);
        directory.is_working = false;
        keep(take_ptr(question.key), is_found, &entry);
        question_clear(&question);
        (void)pthread_cond_broadcast(&directory.answered);
    }
    return NULL;
}

static void note(const struct question *question)
{
    for (size_t i = 0; i < directory.n_noted; i++)
        if (strcmp(directory.noted[i].key, question->key) == 0)
            return;
    if (directory.n_noted == NOTED_MAX)
        return;
    struct question *noted = &directory.noted[directory.n_noted++];
    *noted = *question;
    noted->key = xstrdup(question->key);
    noted->name = question->name != NULL ? xstrdup(question->name) : NULL;
    (void)pthread_cond_signal(&directory.asked);
}

/* An answer from files that have changed since is requested again. */
static void expire_changed(void)
{
    static const char *const paths[] = { "/etc/passwd", "/etc/group" };
    static struct timespec seen[2]; // a file is replaced, or written: either changes this
    bool is_changed = false;
    for (size_t i = 0; i < 2; i++) {
        struct stat file = { 0 };
        (void)stat(paths[i], &file);
        is_changed =
            is_changed || file.st_ctim.tv_sec != seen[i].tv_sec || file.st_ctim.tv_nsec != seen[i].tv_nsec;
        seen[i] = file.st_ctim;
    }
    for (size_t i = 0; is_changed && i < PLACES; i++)
        directory.places[i].until_ms = 0;
}

static void await(const struct place *place, const char *key)
{
    struct timespec end;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += DIRECTORY_WAIT_MS / 1000;
    while (!is_fresh(place, key))
        if (pthread_cond_timedwait(&directory.answered, &directory.mutex, &end) == ETIMEDOUT)
            return;
}

static void copy(const struct directory_entry *from, struct directory_entry *to)
{
    *to = *from;
    to->name = xstrdup(from->name);
    to->home = from->home != NULL ? xstrdup(from->home) : NULL;
    to->groups = NULL;
    if (from->n_groups > 0) {
        to->groups = xcalloc(from->n_groups, sizeof(*to->groups));
        memcpy(to->groups, from->groups, from->n_groups * sizeof(*to->groups));
    }
}

static int find_known(const struct question *question, struct directory_entry *ret)
{
    const struct place *place = place_of(question->key);
    int r = -EAGAIN;
    (void)pthread_mutex_lock(&directory.mutex);
    expire_changed();
    if (!is_fresh(place, question->key)) {
        bool is_idle = !directory.is_working && directory.n_noted == 0;
        note(question);
        if (is_idle)
            await(place, question->key);
    }
    if (is_known(place, question->key))
        r = place->is_found ? 0 : -ENOENT;
    if (r == 0)
        copy(&place->entry, ret);
    (void)pthread_mutex_unlock(&directory.mutex);
    return r;
}

int directory_find(enum directory_kind kind, uint32_t number, const char *name, struct directory_entry *ret)
{
    bool is_by_name = kind == DIRECTORY_USER_NAMED || kind == DIRECTORY_GROUP_NAMED;
    _cleanup_(question_clear) struct question question = {
        .kind = kind, .number = number, .name = is_by_name ? xstrdup(name) : NULL
    };
    question.key =
        is_by_name ? xasprintf("%d %s", (int)kind, name) : xasprintf("%d %" PRIu32, (int)kind, number);
    int r;
    if (directory.is_started)
        r = find_known(&question, ret);
    else
        r = look_up(&question, ret) ? 0 : -ENOENT;
    return r;
}

void directory_start(void)
{
    pthread_t thread;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (directory.is_started)
        return;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&directory.answered, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    directory.is_started = pthread_create(&thread, NULL, work, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (directory.is_started)
        (void)pthread_detach(thread);
}
