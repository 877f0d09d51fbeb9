/* SPDX-License-Identifier: MIT */
#include "agent/park/grant.h"

#include "agent/launch/early.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/spool.h"
#include "job/park.h"

static int read_entry(int dirfd, struct launch_park *ret)
{
    return dirfd < 0 ? dirfd : file_read_record(dirfd, SPOOL_PARK, &launch_park_record, ret, NULL);
}

bool grant_is_due(const struct launcher *launcher, const struct spool_id *id)
{
    struct launch_park entry = { 0 };
    _cleanup_close_ int dirfd = launcher_open_entry(launcher, id);
    bool is_due = read_entry(dirfd, &entry) == 0 && entry.is_early;
    record_clear(&launch_park_record, &entry);
    return is_due;
}

int grant_make(const struct launcher *launcher, const struct spool_id *id, uint32_t number, struct error *err)
{
    struct launch_park entry = { .number = number, .is_return = PARK_RETURN };
    _cleanup_close_ int dirfd = launcher_open_entry(launcher, id);
    int r = dirfd < 0 ? error_set_errno(err, dirfd, "its spool entry cannot be opened")
                      : launcher_grant(launcher, id, err);
    entry.is_early = r < 0;
    entry.granted_ms = r < 0 ? 0 : clock_boot_ms();
    enum park_outcome refusal = r == -ENOTRECOVERABLE ? PARK_LOST : PARK_REFUSED;
    entry.outcome = r < 0 ? refusal : PARK_DONE;
    entry.text = r < 0 ? err->message : NULL; // borrowed
    int written =
        dirfd < 0 ? dirfd : file_write_record(dirfd, SPOOL_PARK, &launch_park_record, &entry, false);
    if (r == 0 && written < 0)
        r = error_set_errno(err, written, "cannot write the spool file %s", SPOOL_PARK);
    return r;
}

int64_t grant_waited_ms(const struct launcher *launcher, const struct spool_id *id)
{
    struct launch_park entry = { 0 };
    _cleanup_close_ int dirfd = launcher_open_entry(launcher, id);
    int64_t asked_ms = dirfd >= 0 ? spool_read_asked(dirfd) : 0, waited_ms = 0;
    if (asked_ms > 0 && read_entry(dirfd, &entry) == 0 && entry.granted_ms > asked_ms)
        waited_ms = entry.granted_ms - asked_ms;
    record_clear(&launch_park_record, &entry);
    return waited_ms;
}
