/* SPDX-License-Identifier: MIT */
/* Any bytes as mgpud's configuration file: refused with a sentence that names the line, or settings that can
 * be listed, compared and taken down. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "controller/config/settings.h"
#include "fuzz.h"

static void see(void *arg, const struct setting *setting)
{
    if (setting->key == NULL || setting->origin == NULL)
        abort();
}

static void see_change(void *arg, const struct setting *setting, const char *before, const char *after)
{
    see(arg, setting);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct controller_options options, usual;
    struct error err = { 0 };
    char path[64];
    int fd = memfd_create("mgpu.yaml", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, bytes, length) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (settings_default(&options, true, &err) < 0 || settings_default(&usual, true, &err) < 0)
        abort();
    if (config_read(path, &options, &err) < 0) {
        if (err.message[0] == '\0')
            abort();
    } else {
        settings_visit(&options, see, NULL);
        settings_compare(&usual, &options, see_change, NULL);
    }
    settings_clear(&options);
    settings_clear(&usual);
    (void)close(fd);
    return 0;
}
