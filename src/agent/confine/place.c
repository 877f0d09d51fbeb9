/* SPDX-License-Identifier: MIT */
#include "agent/confine/place.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/confine/cgroup_clear.h"
#include "agent/confine/v2.h"
#include "agent/host/scope.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"

#define CGROUP_MAX  65536U   // bytes of /proc/PID/cgroup
#define OF_INSTANCE "/mgpu." // begins the name of an instance's cgroup
#define TOP         "/"

/* The cgroup v2 of a process, or NULL. The caller frees it. */
static char *cgroup_of(const char *path)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, path, CGROUP_MAX, &text) < 0)
        return NULL;
    for (char *line = buffer_text(&text); line != NULL && *line != '\0';) {
        char *end = strchrnul(line, '\n');
        if (strncmp(line, "0::/", 4) == 0)
            return xstrndup(line + 3, (size_t)(end - line) - 3);
        line = *end == '\n' ? end + 1 : end;
    }
    return NULL;
}

void place_facts_read(const char *mount, struct place_facts *ret)
{
    *ret = (struct place_facts){
        .mount = mount,
        .own = cgroup_of("/proc/self/cgroup"),
        .first = cgroup_of("/proc/1/cgroup"),
        .is_root = geteuid() == 0,
        .is_systemd = access(SCOPE_MANAGER, F_OK) == 0,
    };
}

void place_facts_clear(struct place_facts *facts)
{
    free(take_ptr(facts->own));
    free(take_ptr(facts->first));
}

static char *directory_of(const struct place_facts *facts, const char *cgroup)
{
    return xasprintf("%s%s", facts->mount, text_equal(cgroup, TOP) ? "" : cgroup);
}

static bool is_at_or_below(const char *cgroup, const char *other)
{
    size_t length = text_equal(other, TOP) ? 0 : strlen(other);
    return strncmp(cgroup, other, length) == 0 && (cgroup[length] == '/' || cgroup[length] == '\0');
}

/* A hierarchy in which no limit could be set because v1 has all controllers is no reason to choose another
 * cgroup. */
static bool has_limits(const struct place_facts *facts, const char *cgroup)
{
    static const char *const controllers[] = { "memory", "pids", "cpu" };
    _cleanup_free_ char *dir = directory_of(facts, cgroup);
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
        if (v2_has_controller(dir, controllers[i]))
            return true;
    return false;
}

/* The scope of this agent that contains our own cgroup, or NULL. The caller frees it. */
static char *own_scope(const struct place_facts *facts)
{
    const char *begin = strstr(facts->own, "/" SCOPE_PREFIX);
    const char *end = begin == NULL ? NULL : strchrnul(begin + 1, '/');
    size_t suffix = strlen(SCOPE_SUFFIX);
    bool is_scope =
        begin != NULL && (size_t)(end - begin) > suffix && strncmp(end - suffix, SCOPE_SUFFIX, suffix) == 0;
    return is_scope ? xstrndup(facts->own, (size_t)(end - facts->own)) : NULL;
}

/*
 * In a container without a cgroup namespace, all its processes are below the cgroup of its process 1, and
 * cgroups above it belong to the machine. Elsewhere the cgroup of process 1 is the top, or a separate one.
 */
static char *top(const struct place_facts *facts)
{
    if (facts->is_systemd || !facts->is_root || facts->first == NULL)
        return NULL;
    return xstrdup(is_at_or_below(facts->own, facts->first) ? facts->first : TOP);
}

/* A place that contains processes of its own cannot be used. */
static bool is_clear(const struct place_facts *facts, const char *cgroup)
{
    _cleanup_free_ char *dir = directory_of(facts, cgroup);
    return !v2_has_processes(dir) || cgroup_clear(dir) == 0;
}

char *place_choose(const struct place_facts *facts)
{
    if (facts->own == NULL)
        return NULL;
    _cleanup_free_ char *own_dir = directory_of(facts, facts->own);
    bool is_in_job = strstr(facts->own, OF_INSTANCE) != NULL;
    if (is_in_job || !v2_has_processes(own_dir))
        return xstrdup(facts->own);
    _cleanup_free_ char *place = own_scope(facts);
    if (place == NULL)
        place = top(facts);
    bool is_better = place != NULL && has_limits(facts, place) && is_clear(facts, place);
    return is_better ? take_ptr(place) : xstrdup(facts->own);
}
