/* SPDX-License-Identifier: MIT */
/*
 * No registry is asked and no shell is needed: the loader itself says which libraries a program has (what
 * ldd(1) prints), and these are copied. libc is that of the machine, as the driver's libraries need it.
 */
#include "lab/kit/image_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "lab/kit/child.h"

#define TRACE    "LD_TRACE_LOADED_OBJECTS"
#define TRACE_MS 20000
#define MODE     0755
#define CHUNK    ((size_t)1 << 24)

/* With bin, as some runtimes look for a PATH. */
static const char *const folders[] = { "bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr", "var", NULL };

static int copy_bytes(int from, int to)
{
    ssize_t n = 0;
    do
        n = sendfile(to, from, NULL, CHUNK);
    while (n > 0);
    return n < 0 ? -errno : 0;
}

/* Copies `path` to the same path below `root`. */
static int copy_file(const char *root, const char *path, struct error *err)
{
    _cleanup_free_ char *copy = xasprintf("%s%s", root, path), *folder = xstrdup(copy);
    *strrchr(folder, '/') = '\0';
    int r = make_directories(folder, MODE);
    if (r < 0)
        return error_set_errno(err, r, "cannot make %s", folder);
    _cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_set_errno(err, -errno, "cannot read %s", path);
    _cleanup_close_ int to = open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (to < 0)
        return error_set_errno(err, -errno, "cannot make %s", copy);
    r = copy_bytes(from, to);
    return r < 0 ? error_set_errno(err, r, "cannot write %s", copy) : 0;
}

/* The path in a line of the loader: "libm.so.6 => /lib/libm.so.6 (0x7f)" or "/lib64/ld.so (0x7f)". NULL: it
 * has none, as that of the kernel's own object. */
static const char *path_of(char *line)
{
    char *path = strchr(line, '/'), *end = path != NULL ? strstr(path, " (0x") : NULL;
    if (end == NULL)
        return NULL;
    *end = '\0';
    return path;
}

static int copy_libraries(const char *root, const char *program, struct error *err)
{
    const char *const argv[] = { program, NULL };
    _cleanup_output_ struct child_output output = { 0 };
    (void)setenv(TRACE, "1", 1);
    int r = child_run(argv, TRACE_MS, &output);
    (void)unsetenv(TRACE);
    if (r < 0 || output.status != 0)
        return error_set(err, -EIO, "the loader does not say which libraries %s has", program);
    char *rest = output.out;
    for (char *line = strsep(&rest, "\n"); line != NULL && r == 0; line = strsep(&rest, "\n")) {
        const char *path = path_of(line);
        r = path != NULL ? copy_file(root, path, err) : 0;
    }
    return r;
}

int image_root_make(const char *root, const char *program, struct error *err)
{
    int r = mkdir(root, MODE) < 0 ? -errno : 0;
    for (const char *const *name = folders; r == 0 && *name != NULL; name++) {
        _cleanup_free_ char *folder = xasprintf("%s/%s", root, *name);
        r = mkdir(folder, MODE) < 0 ? -errno : 0;
    }
    if (r < 0)
        return error_set_errno(err, r, "cannot make %s", root);
    r = copy_file(root, program, err);
    return r < 0 ? r : copy_libraries(root, program, err);
}
