/* SPDX-License-Identifier: MIT */
#include "agent/launch/notice.h"

#include <errno.h>

#include "agent/host/notices.h"
#include "agent/launch/launcher_private.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"

static int make_file(const struct launcher *launcher, const struct spool_id *id)
{
    struct launch_spec spec;
    struct error ignored;
    _cleanup_close_ int dirfd = launcher_open_entry(launcher, id);
    int r = dirfd < 0 ? dirfd : file_read_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, NULL);
    if (r < 0)
        return r;
    r = notices_make(launcher->run_dir, id, spec.uid, spec.gid, launcher->users.is_root, &ignored);
    record_clear(&launch_spec_record, &spec);
    return r;
}

int notice_add(
    const struct launcher *launcher, const struct spool_id *id, const char *subject, const char *text)
{
    _cleanup_free_ char *path = notices_path(launcher->run_dir, id);
    int64_t now_ms = clock_wall_ms();
    int r = notices_add(path, now_ms, subject, text);
    if (r == -ENOENT && (r = make_file(launcher, id)) == 0)
        r = notices_add(path, now_ms, subject, text);
    return r;
}
