/* SPDX-License-Identifier: MIT */
#include "cli/submit/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/image.h"

/* The path of an image file is relative to the current directory, wherever the job starts. */
static char *absolute_name(const char *name)
{
    bool is_path = strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0;
    bool is_file = image_is_sif(name) && strstr(name, "://") == NULL;
    if (name[0] == '/' || (!is_path && !is_file))
        return xstrdup(name);
    _cleanup_free_ char *here = getcwd(NULL, 0);
    return here == NULL ? xstrdup(name) : xasprintf("%s/%s", here, name);
}

int image_set_name(struct image_options *options, const char *name, struct error *err)
{
    _cleanup_free_ char *whole = absolute_name(name);
    int r = image_check_name(name, err);
    if (r == 0)
        r = image_check_name(whole, err);
    if (r < 0)
        return error_wrap(err, "--image");
    free(options->name);
    options->name = take_ptr(whole);
    return 0;
}

int image_add_mount(struct image_options *options, const char *text, struct error *err)
{
    struct image_mount mount = { 0 };
    int r = image_mount_parse(text, &mount, err);
    if (r < 0)
        return error_wrap(err, "--image-mount");
    image_mount_clear(&mount);
    strings_add(&options->mounts, text);
    return 0;
}

int image_set_runtime(struct image_options *options, const char *runtime, struct error *err)
{
    int r = image_check_runtime(runtime, err);
    if (r < 0)
        return error_wrap(err, "--image-runtime");
    options->runtime = runtime;
    return 0;
}

int image_add(const struct image_options *options, json_t *request, struct error *err)
{
    if (options->name == NULL && options->mounts.count == 0)
        return 0;
    if (options->name == NULL)
        return error_set(err, -EINVAL, "--image-mount requires --image");
    json_t *mounts = json_array(), *name = json_string(options->name);
    for (size_t i = 0; i < options->mounts.count && mounts != NULL; i++)
        if (json_array_append_new(mounts, json_string(options->mounts.items[i])) < 0) {
            json_decref(mounts);
            mounts = NULL;
        }
    if (name == NULL || mounts == NULL) {
        json_decref(name);
        json_decref(mounts);
        return error_set(
            err, -EINVAL, "%s: the value is not UTF-8 text", name == NULL ? "--image" : "--image-mount");
    }
    (void)json_object_set_new(request, "image", name);
    (void)json_object_set_new(request, "image_mounts", mounts);
    if (options->runtime != NULL)
        (void)json_object_set_new(request, "image_runtime", json_string(options->runtime));
    return 0;
}

void image_options_clear(struct image_options *options)
{
    free(options->name);
    strings_clear(&options->mounts);
    *options = (struct image_options){ 0 };
}
