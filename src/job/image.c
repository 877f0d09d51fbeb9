/* SPDX-License-Identifier: MIT */
#include "job/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool has_control(const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return true;
    return false;
}

int image_check_name(const char *name, struct error *err)
{
    if (name[0] == '\0')
        return error_set(err, -EINVAL, "the image name is empty");
    if (strlen(name) > IMAGE_NAME_MAX)
        return error_set(
            err, -E2BIG, "the image name has %zu bytes; at most %u", strlen(name), IMAGE_NAME_MAX);
    if (name[0] == '-')
        return error_set(err, -EINVAL, "'%.60s' is not an image: it begins with a dash", name);
    if (has_control(name) || strchr(name, ' ') != NULL)
        return error_set(err, -EINVAL, "the image name contains a space or a control character");
    return 0;
}

int image_check_runtime(const char *runtime, struct error *err)
{
    if (strcmp(runtime, IMAGE_PODMAN) == 0 || strcmp(runtime, IMAGE_APPTAINER) == 0)
        return 0;
    return error_set(err, -EINVAL, "'%.60s' is neither " IMAGE_PODMAN " nor " IMAGE_APPTAINER, runtime);
}

static int refuse(const char *text, const char *why, struct error *err)
{
    (void)error_set(err, -EINVAL, "the mount '%.80s' %s", text, why);
    return error_hint(err, "write SRC, SRC:DST or SRC:DST:ro with absolute paths: /data/set:/data:ro");
}

int image_mount_parse(const char *text, struct image_mount *ret, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    const char *source = strsep(&rest, ":"), *target = strsep(&rest, ":"), *mode = strsep(&rest, ":");
    if (rest != NULL)
        return refuse(text, "has more than three parts", err);
    if (has_control(text) || strchr(text, ',') != NULL)
        return refuse(text, "contains a comma or a control character", err);
    if (mode != NULL && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
        return refuse(text, "does not end in ro or rw", err);
    if (source[0] != '/' || (target != NULL && target[0] != '/'))
        return refuse(text, "has a relative path", err);
    if (target != NULL && target[strspn(target, "/")] == '\0')
        return refuse(text, "would hide the root of the image", err);
    ret->source = xstrdup(source);
    ret->target = xstrdup(target != NULL ? target : source);
    ret->is_read_only = mode != NULL && strcmp(mode, "ro") == 0;
    return 0;
}

void image_mount_clear(struct image_mount *mount)
{
    free(mount->source);
    free(mount->target);
    *mount = (struct image_mount){ 0 };
}

bool image_is_sif(const char *name)
{
    static const char *const suffixes[] = { ".sif", ".simg", ".sqsh" };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (length > strlen(suffixes[i]) && strcmp(name + length - strlen(suffixes[i]), suffixes[i]) == 0)
            return true;
    return false;
}
