/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the changes of an entry of the log, on a standby whose store is real: they are refused and
 * leave the store as it was, or applied, and then the store still opens.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "fuzz.h"
#include "store/store_replica.h"
#include "store/store_schema.h"

static char directory[] = "/dev/shm/mgpu-fuzz-XXXXXX"; // thousands of commits

static void remove_files(void)
{
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(directory);
}

/* One store for all inputs, and a new one after an input that it took: entries have to follow each other. */
static void begin(void)
{
    struct error err;
    static bool is_there;
    if (!is_there && (mkdtemp(directory) == NULL || atexit(remove_files) != 0))
        abort();
    is_there = true;
    if (store_replica_found(directory, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static bool is_founded;
    struct store_replica *replica = NULL;
    struct error err;
    if (!is_founded)
        begin();
    is_founded = true;
    if (store_replica_open(directory, &replica, &err) < 0)
        abort(); // whatever was applied before
    struct store_position before = store_replica_position(replica);
    const struct store_entry entry = {
        .before = before,
        .position = { before.number + 1, before.id + 1 },
        .schema = (uint32_t)store_schema_version(),
        .changes = bytes,
        .length = length,
    };
    int r = store_replica_apply(replica, &entry, &err);
    struct store_position after = store_replica_position(replica);
    if (r < 0 ? after.number != before.number : after.number != entry.position.number)
        abort();
    store_replica_close(replica);
    return 0;
}
