/* SPDX-License-Identifier: MIT */
#include "base/daemon.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"

#define OOM_SCORE      (-900)
#define OOM_SCORE_TEXT "-900"

void daemon_clean_environment(void)
{
    static const char *const kept[] = { "HOME", "LANG", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "NOTIFY_SOCKET",
        "JOURNAL_STREAM", "TZ", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
        "LD_LIBRARY_PATH", NULL };
    _cleanup_strings_ struct strings saved = { 0 };
    for (size_t i = 0; kept[i] != NULL; i++) {
        const char *value = getenv(kept[i]);
        /* A library path is harmless without root, and a way to become root with it. */
        bool is_unsafe = geteuid() == 0 && strcmp(kept[i], "LD_LIBRARY_PATH") == 0;
        if (value != NULL && !is_unsafe)
            strings_set_env(&saved, kept[i], value);
    }
    (void)clearenv();
    (void)setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    for (size_t i = 0; kept[i] != NULL; i++) {
        const char *value = strings_get_env(&saved, kept[i]);
        if (value != NULL)
            (void)setenv(kept[i], value, 1);
    }
}

void daemon_spare_from_oom(void)
{
    char score[16] = "";
    _cleanup_close_ int fd = geteuid() == 0 ? open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0 && read(fd, score, sizeof(score) - 1) > 0 && strtol(score, NULL, 10) > OOM_SCORE)
        (void)!pwrite(fd, OOM_SCORE_TEXT, strlen(OOM_SCORE_TEXT), 0);
}

void daemon_notify(const char *assignments)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)sendto(fd, assignments, strlen(assignments), MSG_NOSIGNAL, (struct sockaddr *)&address, length);
}

void daemon_notify_ready(const char *status)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", status);
    daemon_notify(text);
}
