/* SPDX-License-Identifier: MIT */
/*
 * The image has no driver. Podman mounts that of the machine where there is a CDI description of it; without
 * one the kit mounts the folder of the driver's libraries, as a user would. Apptainer brings it by --nv, and
 * takes the folder of files itself as an image. Podman's images go to a storage in the kit's folder, so that
 * the user's own has none more than before.
 */
#include "lab/kit/image.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "lab/kit/child.h"
#include "lab/kit/image_root.h"
#include "lab/kit/instance.h"
#include "lab/kit/probe.h"

#define PODMAN       "podman"
#define NAME         "localhost/mgpu-kit:1"
#define STORAGE      "CONTAINERS_STORAGE_CONF"
#define ENGINE       "CONTAINERS_CONF"
#define RUNTIME_MS   60000
#define LINE         300U
#define CDI_FILE_MAX ((size_t)8 << 20)
#define WORDS        12U

/* Whether podman has a description of the driver. */
static bool has_description(void)
{
    static const char *const patterns[] = { "/etc/cdi/*", "/var/run/cdi/*" };
    bool is_found = false;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && !is_found; k++) {
            _cleanup_buffer_ struct buffer text = { 0 };
            is_found = file_read(AT_FDCWD, found.gl_pathv[k], CDI_FILE_MAX, &text) == 0 &&
                       strstr(buffer_text(&text), gpu_vendor_of(GPU_VENDOR_NVIDIA)->cdi) != NULL;
        }
        globfree(&found);
    }
    return is_found;
}

/* Runs a program of the machine; false after result_skip() with its last words. */
static bool run_quietly(struct kit *kit, const char *const *argv, const char *what, struct result *result)
{
    _cleanup_output_ struct child_output output = { 0 };
    char line[LINE];
    int r = child_run(argv, kit_left_ms(kit, RUNTIME_MS), &output);
    if (r == 0 && output.status == 0)
        return true;
    text_last_line(output.err, line, sizeof(line));
    result_skip(result, "%s %s: %s", argv[0], what, r < 0 ? strerror(-r) : line);
    return false;
}

/* A storage of the kit's own. The driver vfs needs nothing of the file system below it. */
static int write_storage(const struct kit *kit, struct image *image, struct error *err)
{
    _cleanup_free_ char *file = xasprintf("%s/storage.conf", kit->work);
    _cleanup_free_ char *text = xasprintf("[storage]\ndriver = \"vfs\"\ngraphroot = \"%s/store\"\n"
                                          "rootless_storage_path = \"%s/store\"\nrunroot = \"%s/pod\"\n",
        kit->work, kit->work, kit->work);
    int r = file_write(AT_FDCWD, file, text, strlen(text), false);
    if (r < 0)
        return error_set_errno(err, r, "cannot write %s", file);
    (void)setenv(STORAGE, file, 1);
    image->storage = xasprintf(STORAGE "=%s", file);
    if (getenv(ENGINE) != NULL)
        image->own = xasprintf(ENGINE "=%s", getenv(ENGINE));
    return 0;
}

static bool make_podman(struct kit *kit, const char *root, struct image *image, struct result *result)
{
    struct error err = { 0 };
    _cleanup_free_ char *file = xasprintf("%s/Containerfile", kit->work), *program = probe_program(kit);
    static const char text[] = "FROM scratch\nCOPY . /\n";
    int r = write_storage(kit, image, &err);
    if (r == 0 && (r = file_write(AT_FDCWD, file, text, strlen(text), false)) < 0)
        (void)error_set_errno(&err, r, "cannot write %s", file);
    if (r < 0) {
        result_skip(result, "%s", err.message);
        return false;
    }
    const char *const build[] = { PODMAN, "build", "--quiet", "--network=host", "--isolation=chroot", "--tag",
        NAME, "--file", file, root, NULL };
    const char *const try[] = { PODMAN, "run", "--rm", "--cgroups=disabled", "--network=host", "--ipc=host",
        "--ulimit=host", "--security-opt=label=disable", "--log-driver=none", NAME, program, "--version",
        NULL };
    image->name = xstrdup(NAME);
    return run_quietly(kit, build, "makes no image", result) &&
           run_quietly(kit, try, "starts no container here, also without mgpu", result);
}

static bool make_apptainer(struct kit *kit, const char *root, struct image *image, struct result *result)
{
    _cleanup_free_ char *program = probe_program(kit);
    const char *const try[] = { image->runtime, "exec", root, program, "--version", NULL };
    image->name = xstrdup(root);
    return run_quietly(kit, try, "starts no container here, also without mgpu", result);
}

/* The driver inside, which a description or an option of the runtime brings otherwise. */
static void mount_driver(const struct kit *kit, struct image *image)
{
    const char *slash = kit->nvml_library != NULL ? strrchr(kit->nvml_library, '/') : NULL;
    if (strcmp(image->runtime, PODMAN) != 0 || slash == NULL || has_description())
        return;
    _cleanup_free_ char *folder = xstrndup(kit->nvml_library, (size_t)(slash - kit->nvml_library));
    image->mount = xasprintf("%s:%s:ro", folder, folder);
    image->library = xasprintf("%s/libcuda.so.1", folder);
    image->nvml_library = xstrdup(kit->nvml_library);
}

bool image_make(struct kit *kit, const char *runtime, struct image *ret, struct result *result)
{
    const char *const version[] = { runtime, "--version", NULL };
    _cleanup_free_ char *root = xasprintf("%s/root", kit->work), *program = probe_program(kit);
    _cleanup_output_ struct child_output output = { 0 };
    struct error err = { 0 };
    char line[LINE];
    *ret = (struct image){ .runtime = runtime };
    if (child_run(version, kit_left_ms(kit, RUNTIME_MS), &output) < 0) {
        result_skip(result, "%s is not installed", runtime);
        return false;
    }
    text_last_line(output.out, line, sizeof(line));
    result_fact(result, "runtime", json_string(line));
    if (geteuid() == 0 && !instance_is_root(kit->instance)) {
        result_skip(result, "jobs run as the user nobody here, who has no containers");
        return false;
    }
    if (access(root, F_OK) < 0 && image_root_make(root, program, &err) < 0) {
        result_skip(result, "%s", err.message);
        return false;
    }
    mount_driver(kit, ret);
    return strcmp(runtime, PODMAN) == 0 ? make_podman(kit, root, ret, result)
                                        : make_apptainer(kit, root, ret, result);
}

void image_clear(struct image *image)
{
    free(image->name);
    free(image->mount);
    free(image->storage);
    free(image->own);
    free(image->library);
    free(image->nvml_library);
    *image = (struct image){ 0 };
}

void image_leave(struct kit *kit, const struct image *image)
{
    static const char *const migrate[] = { PODMAN, "system", "migrate", NULL };
    _cleanup_output_ struct child_output output = { 0 };
    if (strcmp(image->runtime, PODMAN) == 0 && geteuid() != 0)
        (void)child_run(migrate, kit_left_ms(kit, RUNTIME_MS), &output);
}

static size_t add_pair(const char **words, size_t n, const char *option, const char *value)
{
    if (value == NULL || n + 2 >= IMAGE_OPTIONS)
        return n;
    words[n++] = option;
    words[n++] = value;
    return n;
}

void image_options(const struct image *image, const char *const *more, const char *options[IMAGE_OPTIONS])
{
    size_t n = add_pair(options, 0, "-G", KIT_GPU);
    n = add_pair(options, n, "--image", image->name);
    n = add_pair(options, n, "--image-runtime", image->runtime);
    n = add_pair(options, n, "--image-mount", image->mount);
    n = add_pair(options, n, "-e", image->storage);
    n = add_pair(options, n, "-e", image->own);
    while (*more != NULL && n < IMAGE_OPTIONS - 1)
        options[n++] = *more++;
    options[n] = NULL;
}

void image_arguments(
    const struct image *image, const char *const *arguments, const char *words[IMAGE_OPTIONS])
{
    size_t n = 0;
    while (*arguments != NULL && n < WORDS)
        words[n++] = *arguments++;
    n = add_pair(words, n, "--cuda-library", image->library);
    n = add_pair(words, n, "--nvml-library", image->nvml_library);
    words[n] = NULL;
}
