/* SPDX-License-Identifier: MIT */
/* A file in the kit's folder says that the nodes may be locked: the process that waits for the checks sees it
 * too. */
#include "lab/kit/locked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "lab/kit/child.h"

#define LOCK_MS 20000

static char *mark_of(const struct kit *kit)
{
    return xasprintf("%s/locked", kit->work);
}

static int run(const struct kit *kit, const char *verb, struct error *err)
{
    _cleanup_free_ char *program = xasprintf("%s/mgpu", kit->programs),
                        *state = xasprintf("%s/state", kit->work);
    const char *const argv[] = { program, "gpu", verb, "--state-dir", state, NULL };
    _cleanup_output_ struct child_output output = { 0 };
    char line[256];
    int r = child_run(argv, LOCK_MS, &output);
    if (r < 0 || output.status == 0)
        return r < 0 ? error_set_errno(err, r, "cannot run %s", program) : 0;
    text_last_line(output.err, line, sizeof(line));
    return error_set(err, -EIO, "mgpu gpu %s: %s", verb, line);
}

int locked_begin(struct kit *kit, struct error *err)
{
    _cleanup_free_ char *mark = mark_of(kit);
    _cleanup_close_ int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? error_set_errno(err, -errno, "cannot make %s", mark) : run(kit, "lock", err);
}

int locked_end(struct kit *kit, struct error *err)
{
    _cleanup_free_ char *mark = mark_of(kit);
    if (access(mark, F_OK) < 0)
        return 0;
    int r = run(kit, "unlock", err);
    if (r == 0)
        (void)unlink(mark);
    return r;
}
