/* SPDX-License-Identifier: MIT */
/*
 * The directory is either complete or does not exist: it is created under another name and renamed. If two
 * processes do this at once, the first wins.
 */
#include "cli/ports/ssh_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define KEY_MAX  16384U // bytes of a key file
#define USER_KEY "id_ed25519"
#define HOST_KEY "host_ed25519"
#define HOSTS    "known_hosts"

static char *config_folder(void)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu", base);
    return home != NULL && home[0] == '/' ? xasprintf("%s/.config/mgpu", home) : NULL;
}

static int make_key(const char *folder, const char *name, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    int status = 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("ssh-keygen", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "mgpu", "-f", path,
            (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return error_set_errno(err, -errno, "cannot run ssh-keygen");
    if (status == 0)
        return 0;
    (void)error_set(err, -EIO, "ssh-keygen could not make the key %s", path);
    return WEXITSTATUS(status) == 127
               ? error_hint(err, "ssh-keygen is part of OpenSSH (Debian: openssh-client)")
               : err->code;
}

static int read_key(const char *folder, const char *name, char **ret, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    _cleanup_buffer_ struct buffer text = { 0 };
    int r = file_read(AT_FDCWD, path, KEY_MAX, &text);
    if (r < 0)
        return error_set_errno(err, r, "cannot read %s", path);
    *ret = buffer_take(&text);
    return 0;
}

/* All jobs are the same host to ssh: the key is the caller's. */
static int write_known_hosts(const char *folder, struct error *err)
{
    _cleanup_free_ char *key = NULL;
    int r = read_key(folder, HOST_KEY ".pub", &key, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *line = xasprintf(SSH_KEYS_HOST_ALIAS " %s", key);
    _cleanup_close_ int dirfd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = dirfd < 0 ? -errno : file_write(dirfd, HOSTS, line, strlen(line), false);
    return r < 0 ? error_set_errno(err, r, "cannot write %s/" HOSTS, folder) : 0;
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = { USER_KEY, USER_KEY ".pub", HOST_KEY, HOST_KEY ".pub", HOSTS };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static int make_folder(const char *config, const char *folder, struct error *err)
{
    _cleanup_free_ char *made = xasprintf("%s/.ssh-XXXXXX", config);
    _cleanup_free_ char *parent = xstrndup(config, (size_t)(strrchr(config, '/') - config));
    (void)mkdir(parent, 0700);
    if (mkdir(config, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s", config);
    if (mkdtemp(made) == NULL)
        return error_set_errno(err, -errno, "cannot create a folder in %s", config);
    int r = make_key(made, USER_KEY, err);
    if (r == 0)
        r = make_key(made, HOST_KEY, err);
    if (r == 0)
        r = write_known_hosts(made, err);
    if (r == 0 && rename(made, folder) < 0 && errno != ENOTEMPTY && errno != EEXIST)
        r = error_set_errno(err, -errno, "cannot create %s", folder);
    remove_folder(made);
    return r;
}

int ssh_keys_load(struct ssh_keys *ret, struct error *err)
{
    _cleanup_(ssh_keys_clear) struct ssh_keys keys = { 0 };
    _cleanup_free_ char *config = config_folder();
    if (config == NULL)
        return error_set(
            err, -ENOENT, "neither HOME nor XDG_CONFIG_HOME is set, so the keys cannot be stored");
    keys.folder = xasprintf("%s/ssh", config);
    int r = access(keys.folder, F_OK) == 0 ? 0 : make_folder(config, keys.folder, err);
    if (r == 0)
        r = read_key(keys.folder, HOST_KEY, &keys.host_key, err);
    if (r == 0)
        r = read_key(keys.folder, USER_KEY ".pub", &keys.user_key, err);
    if (r < 0)
        return r;
    *ret = keys;
    keys = (struct ssh_keys){ 0 };
    return 0;
}

void ssh_keys_clear(struct ssh_keys *keys)
{
    free(keys->folder);
    free(keys->host_key);
    free(keys->user_key);
    *keys = (struct ssh_keys){ 0 };
}
