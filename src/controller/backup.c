/* SPDX-License-Identifier: MIT */
/*
 * The file belongs to the user who makes the backup, which is root for mgpud's user; the store belongs to
 * mgpud's user. Bytes therefore pass through a file in the store's directory that is created as its owner,
 * and are copied to or from PATH over a descriptor opened before. A restore leaves the old store in place
 * until the new one is complete and checked.
 */
#include "controller/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "controller/privileges.h"
#include "controller/slow_work.h"
#include "store/store_backup.h"
#include "store/store_progress.h"

#define DATABASE   "mgpu.db"
#define TLS        "tls"
#define SETTINGS   "settings"
#define PASSING    "backup-in-progress.db" // in the store's directory
#define ASIDE      "replaced"
#define ASIDES_MAX 1000
#define FILES_MAX  128U
#define FILE_MAX   (1U << 20)
#define COPY_BYTES 65536
#define MAGIC      "SQLite format 3" // a backup is a database; including the NUL at its end

static const char *const keys[] = { "authority.key", "authority.crt", "server.key", "server.crt" };

struct collected {
    struct store_backup_file files[FILES_MAX];
    size_t count;
};

static void collected_clear(struct collected *collected)
{
    for (size_t i = 0; i < collected->count; i++) {
        free((void *)(uintptr_t)collected->files[i].name);
        free((void *)(uintptr_t)collected->files[i].bytes);
    }
}

/* A missing file is skipped: a cluster of one machine has no keys. */
static int collect(struct collected *collected, const char *path, const char *name, struct error *err)
{
    struct buffer bytes = { 0 };
    int r = file_read(AT_FDCWD, path, FILE_MAX, &bytes);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set_errno(err, r, "cannot read %s", path);
    if (collected->count == FILES_MAX)
        return error_set(err, -E2BIG, "there are more than %u files of settings", FILES_MAX);
    collected->files[collected->count++] =
        (struct store_backup_file){ xstrdup(name), bytes.bytes, bytes.length };
    return 0;
}

static int collect_settings(
    const struct controller_options *options, struct collected *collected, struct error *err)
{
    for (size_t i = 0; i < options->n_files; i++) {
        _cleanup_free_ char *name = xasprintf(SETTINGS "%s", options->files[i]);
        int r = collect(collected, options->files[i], name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int collect_keys(const char *dir, struct collected *collected, struct error *err)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/" TLS "/%s", dir, keys[i]);
        _cleanup_free_ char *name = xasprintf(TLS "/%s", keys[i]);
        int r = collect(collected, path, name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Temporarily: mgpud's user may not have the rights for the steps that follow, and root must not leave files
 * of its own. */
static int become_owner(struct user_ids owner, struct error *err)
{
    if (geteuid() != 0 || owner.uid == 0)
        return 0;
    if (setegid(owner.gid) < 0 || seteuid(owner.uid) < 0)
        return error_set_errno(err, -errno, "cannot become uid %u", (unsigned)owner.uid);
    return 0;
}

static void become_again(uid_t uid, gid_t gid)
{
    if (geteuid() != uid && (seteuid(uid) < 0 || setegid(gid) < 0))
        abort(); // root may
}

static void report_progress(void *work, const char *what, uint64_t done, uint64_t total)
{
    slow_work_step(work, what, done, total);
}

static int copy_bytes(int from, int to, struct slow_work *work, const char *what)
{
    _cleanup_free_ char *bytes = xcalloc(1, COPY_BYTES);
    struct stat st = { 0 };
    uint64_t done = 0;
    ssize_t n;
    if (fstat(from, &st) < 0)
        return -errno;
    while ((n = read(from, bytes, COPY_BYTES)) > 0) {
        int r = write_all(to, bytes, (size_t)n);
        if (r < 0)
            return r;
        done += (uint64_t)n;
        slow_work_step(work, what, done, (uint64_t)st.st_size);
    }
    return n < 0 || fsync(to) < 0 ? -errno : 0;
}

static int make_passing(const char *path, struct error *err)
{
    (void)unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? error_set_errno(err, -errno, "cannot create %s", path) : fd;
}

static int write_as_owner(const char *dir, struct collected *collected, int out, struct error *err)
{
    struct slow_work work;
    const struct store_progress progress = { report_progress, &work };
    _cleanup_free_ char *passing = xasprintf("%s/" PASSING, dir);
    _cleanup_close_ int fd = -1;
    int r = collect_keys(dir, collected, err);
    if (r == 0)
        r = fd = make_passing(passing, err);
    if (r < 0)
        return r;
    slow_work_begin(&work, SLOW_WORK_PERSON, NULL);
    r = store_backup_write(dir, passing, collected->files, collected->count, &progress, err);
    if (r == 0) {
        r = copy_bytes(fd, out, &work, "writing the backup");
        if (r < 0)
            (void)error_set_errno(err, r, "cannot write the backup");
    }
    slow_work_end(&work);
    (void)unlink(passing);
    return r;
}

static int sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *parent = slash == NULL   ? xstrdup(".")
                                  : slash == path ? xstrdup("/")
                                                  : xstrndup(path, (size_t)(slash - path));
    _cleanup_close_ int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int refuse_file(const char *path, int error, struct error *err)
{
    int r = error_set_errno(err, error, "cannot create %s", path);
    return r == -EEXIST
               ? error_hint(err, "a backup replaces no file: use a new name, such as one with the date")
               : r;
}

int backup_write(const struct controller_options *options, const char *path, struct error *err)
{
    _cleanup_free_ char *dir = xasprintf("%s/store", options->state_dir);
    _cleanup_(collected_clear) struct collected collected = { 0 };
    struct stat store;
    if (stat(dir, &store) < 0)
        return error_set_errno(err, -errno, "cannot find the store %s", dir);
    int r = collect_settings(options, &collected, err);
    if (r < 0)
        return r;
    _cleanup_close_ int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0)
        return refuse_file(path, -errno, err);
    uid_t uid = geteuid();
    gid_t gid = getegid();
    r = become_owner((struct user_ids){ .uid = store.st_uid, .gid = store.st_gid }, err);
    if (r == 0)
        r = write_as_owner(dir, &collected, out, err);
    become_again(uid, gid);
    if (r == 0 && (r = sync_parent(path)) < 0)
        (void)error_set_errno(err, r, "cannot sync the directory of %s", path);
    if (r < 0)
        (void)unlink(path);
    return r;
}

/* --- restore --- */

struct restoring {
    const char *dir;   // of the store
    char *tls;         // a new directory in it
    char *settings;    // the same
    bool has_settings; // some differ from the current ones
};

static bool is_key(const char *name)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(name, keys[i]) == 0)
            return true;
    return false;
}

static int write_file(
    const char *dir, const char *name, const struct store_backup_file *file, struct error *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s", dir);
    _cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int r = fd < 0 ? -errno : file_write(fd, name, file->bytes, file->length, true);
    return r < 0 ? error_set_errno(err, r, "cannot write %s/%s", dir, name) : 0;
}

static bool is_same_here(const char *path, const struct store_backup_file *file)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    return file_read(AT_FDCWD, path, FILE_MAX, &bytes) == 0 && bytes.length == file->length &&
           (file->length == 0 || memcmp(bytes.bytes, file->bytes, file->length) == 0);
}

/* Names come from the file: only names that a backup contains are accepted, and none is opened for writing as
 * a path. */
static int take_file(void *arg, const struct store_backup_file *file, struct error *err)
{
    struct restoring *restoring = arg;
    if (strncmp(file->name, TLS "/", strlen(TLS "/")) == 0 && is_key(file->name + strlen(TLS "/")))
        return write_file(restoring->tls, file->name + strlen(TLS "/"), file, err);
    const char *path = file->name + strlen(SETTINGS);
    if (strncmp(file->name, SETTINGS "/", strlen(SETTINGS "/")) != 0 || strlen(path) > 200)
        return error_set(err, -EBADMSG, "the backup contains an unexpected file: %.60s", file->name);
    if (is_same_here(path, file))
        return 0;
    _cleanup_free_ char *flat = xstrdup(path + 1);
    for (char *p = flat; *p != '\0'; p++)
        *p = *p == '/' || (unsigned char)*p < ' ' ? '_' : *p;
    restoring->has_settings = true;
    return write_file(restoring->settings, flat[0] == '.' ? "_" : flat, file, err);
}

/* Creates the first of replaced.1, replaced.2 and so on that does not exist. */
static char *make_aside(const char *dir, struct error *err)
{
    for (int i = 1; i < ASIDES_MAX; i++) {
        _cleanup_free_ char *path = xasprintf("%s/" ASIDE ".%d", dir, i);
        if (mkdir(path, 0700) == 0)
            return take_ptr(path);
        if (errno != EEXIST) {
            (void)error_set_errno(err, -errno, "cannot create %s", path);
            return NULL;
        }
    }
    (void)error_set(err, -EEXIST, "there are too many directories %s/" ASIDE ".N", dir);
    return NULL;
}

static int move(const char *from_dir, const char *from, const char *to_dir, const char *to, struct error *err)
{
    _cleanup_free_ char *old = xasprintf("%s/%s", from_dir, from), *new = xasprintf("%s/%s", to_dir, to);
    if (rename(old, new) < 0 && errno != ENOENT)
        return error_set_errno(err, -errno, "cannot move %s to %s", old, new);
    return 0;
}

/* From here on the old store is no longer in its place; another run can continue at any point. */
static int put_in_place(const struct restoring *restoring, struct error *err)
{
    static const char *const old[] = { DATABASE "-wal", DATABASE "-shm", DATABASE "-journal", DATABASE, TLS };
    const char *dir = restoring->dir;
    _cleanup_free_ char *aside = make_aside(dir, err);
    int r = aside != NULL ? 0 : err->code;
    for (size_t i = 0; r == 0 && i < sizeof(old) / sizeof(old[0]); i++)
        r = move(dir, old[i], aside, old[i], err);
    if (r == 0)
        r = move(dir, strrchr(restoring->tls, '/') + 1, dir, TLS, err);
    if (r == 0)
        r = move(dir, PASSING, dir, DATABASE, err);
    _cleanup_free_ char *database = xasprintf("%s/" DATABASE, dir);
    if (r == 0 && (r = sync_parent(database)) < 0)
        (void)error_set_errno(err, r, "cannot sync %s", dir);
    if (r == 0 && rmdir(aside) < 0) // it is empty if there was no store
        (void)printf("The previous store is in %s.\n", aside);
    return r;
}

static int restore_as_owner(struct restoring *restoring, int in, uint64_t *ret_jobs, struct error *err)
{
    _cleanup_free_ char *passing = xasprintf("%s/" PASSING, restoring->dir);
    _cleanup_close_ int fd = make_passing(passing, err);
    struct slow_work work;
    const struct store_progress progress = { report_progress, &work };
    if (fd < 0)
        return fd;
    slow_work_begin(&work, SLOW_WORK_PERSON, NULL);
    int r = copy_bytes(in, fd, &work, "reading the backup");
    if (r < 0)
        (void)error_set_errno(err, r, "cannot copy the backup to %s", passing);
    if (r == 0)
        r = store_backup_unpack(passing, take_file, restoring, &progress, ret_jobs, err);
    slow_work_end(&work);
    if (r == 0)
        return put_in_place(restoring, err);
    (void)unlink(passing);
    return r;
}

/* Any other file is refused before anything is created or copied. */
static int check_kind(int in, const char *path, struct error *err)
{
    char begin[sizeof(MAGIC)] = "";
    ssize_t n = pread(in, begin, sizeof(begin), 0);
    if (n < 0)
        return error_set_errno(err, -errno, "cannot read %s", path);
    if (n == (ssize_t)sizeof(begin) && memcmp(begin, MAGIC, sizeof(MAGIC)) == 0)
        return 0;
    return error_set(err, -EBADMSG, "'%s' is not a backup of mgpu", path);
}

/* Like a start of mgpud, including its lock. */
static int prepare_directories(const struct controller_options *options, bool is_root, const char *dir,
    struct user_ids *ret_user, int *ret_lock, struct error *err)
{
    struct user_ids self = { .uid = geteuid(), .gid = getegid() };
    _cleanup_free_ char *lock = xasprintf("%s/mgpud.lock", options->state_dir);
    int r = privileges_find_user(options->user, is_root, options->may_create_user, ret_user, err);
    if (r == 0)
        r = privileges_make_directory(options->state_dir, 0755, self, err);
    if (r == 0)
        r = privileges_make_directory(dir, 0700, *ret_user, err);
    if (r < 0)
        return r;
    r = lock_path(lock, ret_lock);
    if (r == -EAGAIN) {
        (void)error_set(err, -EBUSY, "mgpud is running with %s", options->state_dir);
        return error_hint(err, "stop it first: mgpud --stop, or systemctl stop mgpud; jobs are not affected");
    }
    return r < 0 ? error_set_errno(err, r, "cannot lock %s", lock) : 0;
}

int backup_restore(
    const struct controller_options *options, bool is_root, const char *path, struct error *err)
{
    _cleanup_free_ char *dir = xasprintf("%s/store", options->state_dir);
    _cleanup_close_ int in = open(path, O_RDONLY | O_CLOEXEC), lock = -1;
    struct user_ids user;
    uint64_t jobs = 0;
    if (in < 0)
        return error_set_errno(err, -errno, "cannot open %s", path);
    int r = check_kind(in, path, err);
    if (r == 0)
        r = prepare_directories(options, is_root, dir, &user, &lock, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *tls = xasprintf("%s/restored-" TLS, dir);
    _cleanup_free_ char *settings = xasprintf("%s/restored-" SETTINGS, dir);
    struct restoring restoring = { .dir = dir, .tls = tls, .settings = settings };
    uid_t uid = geteuid();
    gid_t gid = getegid();
    r = become_owner(user, err);
    if (r == 0)
        r = restore_as_owner(&restoring, in, &jobs, err);
    become_again(uid, gid);
    if (r < 0)
        return error_wrap(err, "'%s' is not restored", path);
    (void)printf(
        "%s is restored to %s: %llu job%s.\n", path, dir, (unsigned long long)jobs, jobs == 1 ? "" : "s");
    if (restoring.has_settings)
        (void)printf("Settings of the backup that differ from those here are in %s.\n", settings);
    (void)printf("Next: start mgpud. All nodes are drained: cancel queued jobs that have run since the\n"
                 "backup, then run mgpu node resume NAME for each node.\n");
    return 0;
}
