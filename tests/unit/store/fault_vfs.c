/* SPDX-License-Identifier: MIT */
/*
 * Each file keeps the old bytes of the writes since its last sync. A power cut puts some of them back, whole
 * or from a sector boundary on, latest first: a disk may keep any part of what it was not told to keep.
 */
#include "fault_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SECTOR 512

struct unsynced {
    struct unsynced *older;
    sqlite3_int64 offset;
    int length;
    uint8_t bytes[]; // before the write; zeros beyond the end of the file
};

struct fault_file {
    sqlite3_file base; // first: SQLite's view of it
    struct fault_file *next;
    struct unsynced *unsynced;
    sqlite3_file *real; // behind this struct
};

static struct {
    pthread_mutex_t mutex;
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    struct fault_file *files;
    enum fault fault;
    unsigned countdown, seed;
    bool has_fired;
} shim = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static unsigned next_random(void)
{
    shim.seed = shim.seed * 1103515245U + 12345U;
    return shim.seed >> 16;
}

static void forget(struct fault_file *file)
{
    while (file->unsynced != NULL) {
        struct unsynced *write = file->unsynced;
        file->unsynced = write->older;
        free(write);
    }
}

static void remember(struct fault_file *file, sqlite3_int64 offset, int length)
{
    struct unsynced *write = xcalloc(1, sizeof(*write) + (size_t)length);
    write->offset = offset;
    write->length = length;
    /* A read beyond the end gives zeros and an error that does not matter here. */
    (void)file->real->pMethods->xRead(file->real, write->bytes, length, offset);
    write->older = file->unsynced;
    file->unsynced = write;
}

static void cut_power(void)
{
    for (struct fault_file *file = shim.files; file != NULL; file = file->next) {
        for (struct unsynced *write = file->unsynced; write != NULL; write = write->older) {
            unsigned choice = next_random() % 3; // kept, lost, torn
            int from =
                choice == 2 ? (int)(next_random() % ((unsigned)write->length / SECTOR + 1)) * SECTOR : 0;
            if (choice != 0 && from < write->length)
                (void)file->real->pMethods->xWrite(
                    file->real, write->bytes + from, write->length - from, write->offset + from);
        }
        forget(file);
    }
}

/* What becomes of this change: SQLITE_OK, or the error it gives. Called with the mutex held. */
static int judge(bool is_write)
{
    bool is_first = false;
    if (shim.fault == FAULT_NONE || shim.fault == FAULT_UNREADABLE)
        return SQLITE_OK;
    if (!shim.has_fired) {
        if (shim.countdown > 1)
            shim.countdown--;
        else if (is_write || shim.fault != FAULT_FULL)
            shim.countdown = 0;
        if (shim.countdown > 0)
            return SQLITE_OK;
        shim.has_fired = is_first = true;
    }
    switch (shim.fault) {
    case FAULT_READ_ONLY: errno = EROFS; return is_write ? SQLITE_IOERR_WRITE : SQLITE_IOERR_FSYNC;
    case FAULT_EIO:
        errno = EIO;
        return is_first ? (is_write ? SQLITE_IOERR_WRITE : SQLITE_IOERR_FSYNC) : SQLITE_OK;
    case FAULT_FULL: return is_first ? SQLITE_FULL : SQLITE_OK;
    case FAULT_FULL_ALWAYS: return is_write ? SQLITE_FULL : SQLITE_OK;
    case FAULT_POWER_CUT:
        if (is_first)
            cut_power();
        return SQLITE_IOERR;
    default: return SQLITE_IOERR;
    }
}

static int on_write(sqlite3_file *base, const void *bytes, int length, sqlite3_int64 offset)
{
    struct fault_file *file = (struct fault_file *)base;
    (void)pthread_mutex_lock(&shim.mutex);
    bool had_fired = shim.has_fired;
    int rc = judge(true);
    if (rc == SQLITE_OK) {
        if (shim.fault == FAULT_POWER_CUT)
            remember(file, offset, length);
        rc = file->real->pMethods->xWrite(file->real, bytes, length, offset);
    } else if (shim.fault == FAULT_TORN && !had_fired) {
        (void)file->real->pMethods->xWrite(file->real, bytes, length / 2, offset);
    }
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc;
}

static int on_sync(sqlite3_file *base, int flags)
{
    struct fault_file *file = (struct fault_file *)base;
    (void)pthread_mutex_lock(&shim.mutex);
    int rc = judge(false);
    if (rc == SQLITE_OK)
        forget(file);
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc == SQLITE_OK ? file->real->pMethods->xSync(file->real, flags) : rc;
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct fault_file *file = (struct fault_file *)base;
    (void)pthread_mutex_lock(&shim.mutex);
    int rc = judge(false);
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc == SQLITE_OK ? file->real->pMethods->xTruncate(file->real, size) : rc;
}

static int on_close(sqlite3_file *base)
{
    struct fault_file *file = (struct fault_file *)base;
    (void)pthread_mutex_lock(&shim.mutex);
    struct fault_file **link = &shim.files;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    forget(file);
    (void)pthread_mutex_unlock(&shim.mutex);
    return file->real->pMethods->xClose(file->real);
}

#define REAL(base) (((struct fault_file *)(base))->real)

static int on_read(sqlite3_file *base, void *bytes, int length, sqlite3_int64 offset)
{
    (void)pthread_mutex_lock(&shim.mutex);
    bool is_failed = shim.fault == FAULT_UNREADABLE && (shim.countdown <= 1 || shim.countdown-- == 0);
    shim.has_fired = shim.has_fired || is_failed;
    (void)pthread_mutex_unlock(&shim.mutex);
    if (is_failed)
        errno = EIO;
    return is_failed ? SQLITE_IOERR_READ : REAL(base)->pMethods->xRead(REAL(base), bytes, length, offset);
}

static int on_size(sqlite3_file *base, sqlite3_int64 *size)
{
    return REAL(base)->pMethods->xFileSize(REAL(base), size);
}

static int on_lock(sqlite3_file *base, int level)
{
    return REAL(base)->pMethods->xLock(REAL(base), level);
}

static int on_unlock(sqlite3_file *base, int level)
{
    return REAL(base)->pMethods->xUnlock(REAL(base), level);
}

static int on_check_lock(sqlite3_file *base, int *result)
{
    return REAL(base)->pMethods->xCheckReservedLock(REAL(base), result);
}

static int on_control(sqlite3_file *base, int operation, void *arg)
{
    return REAL(base)->pMethods->xFileControl(REAL(base), operation, arg);
}

static int on_sector_size(sqlite3_file *base)
{
    return REAL(base)->pMethods->xSectorSize(REAL(base));
}

static int on_characteristics(sqlite3_file *base)
{
    return REAL(base)->pMethods->xDeviceCharacteristics(REAL(base));
}

static int on_shm_map(sqlite3_file *base, int page, int size, int extend, void volatile **memory)
{
    return REAL(base)->pMethods->xShmMap(REAL(base), page, size, extend, memory);
}

static int on_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    return REAL(base)->pMethods->xShmLock(REAL(base), offset, n, flags);
}

static void on_shm_barrier(sqlite3_file *base)
{
    REAL(base)->pMethods->xShmBarrier(REAL(base));
}

static int on_shm_unmap(sqlite3_file *base, int remove)
{
    return REAL(base)->pMethods->xShmUnmap(REAL(base), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
    struct fault_file *file = (struct fault_file *)base;
    memset(file, 0, sizeof(*file));
    file->real = (sqlite3_file *)(file + 1);
    int rc = shim.real->xOpen(shim.real, name, file->real, flags, ret_flags);
    if (file->real->pMethods == NULL)
        return rc;
    file->base.pMethods = &methods;
    (void)pthread_mutex_lock(&shim.mutex);
    file->next = shim.files;
    shim.files = file;
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc;
}

static int on_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    (void)pthread_mutex_lock(&shim.mutex);
    int rc = judge(false);
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc == SQLITE_OK ? shim.real->xDelete(shim.real, name, sync_dir) : rc;
}

void fault_vfs_install(void)
{
    shim.real = sqlite3_vfs_find(NULL);
    shim.vfs = *shim.real;
    shim.vfs.zName = "fault";
    shim.vfs.szOsFile = (int)sizeof(struct fault_file) + shim.real->szOsFile;
    shim.vfs.xOpen = on_open;
    shim.vfs.xDelete = on_delete;
    (void)sqlite3_vfs_register(&shim.vfs, 1);
}

void fault_vfs_arm(enum fault fault, unsigned countdown, unsigned seed)
{
    (void)pthread_mutex_lock(&shim.mutex);
    shim.fault = fault;
    shim.countdown = countdown;
    shim.seed = seed;
    shim.has_fired = false;
    (void)pthread_mutex_unlock(&shim.mutex);
}

bool fault_vfs_disarm(void)
{
    (void)pthread_mutex_lock(&shim.mutex);
    bool has_fired = shim.has_fired;
    shim.fault = FAULT_NONE;
    shim.has_fired = false;
    (void)pthread_mutex_unlock(&shim.mutex);
    return has_fired;
}
