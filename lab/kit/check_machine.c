/* SPDX-License-Identifier: MIT */
/* What kind of machine this is, and how its driver is installed: facts, of which none is wrong. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "lab/kit/kit.h"

#define FILE_MAX   ((size_t)64 << 10)
#define VALUE_MAX  200
#define NODES_MAX  64U
#define MODE_BITS  07777U
#define KIB_TO_MIB 1024

/* The file as one line; "" if it cannot be read. The caller frees it. */
static char *read_text(const char *path)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0)
        return xstrdup("");
    char *all = buffer_take(&text);
    all[strcspn(all, "\n")] = '\0';
    return all;
}

/* The value of "LABEL: value" or "LABEL value" in a file. The caller frees it. */
static char *read_value(const char *path, const char *label)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0)
        return xstrdup("");
    char *rest = buffer_text(&text);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strncmp(line, label, strlen(label)) != 0)
            continue;
        line += strlen(label);
        line += strspn(line, ": \t");
        return xstrndup(line, VALUE_MAX);
    }
    return xstrdup("");
}

static void add_text(struct result *result, const char *name, char *value)
{
    result_fact(result, name, json_string(value));
    free(value);
}

/* How far control groups can be used: the mounts, and whether this process may make a group in its own. */
static void add_cgroup(struct result *result)
{
    _cleanup_free_ char *group = read_value("/proc/self/cgroup", "0::");
    struct stat unified;
    bool is_v2 = stat("/sys/fs/cgroup/cgroup.controllers", &unified) == 0;
    _cleanup_free_ char *folder = xasprintf("/sys/fs/cgroup%s", is_v2 ? group : "");
    _cleanup_free_ char *probe = xasprintf("%s/mgpu-kit.%d", folder, (int)getpid());
    bool may_make = mkdir(probe, S_IRWXU) == 0;
    result_fact(result, "cgroup", json_string(is_v2 ? "v2" : "v1 or none"));
    result_fact(result, "cgroup_writable", json_boolean(may_make));
    result_fact(result, "cgroup_refusal", may_make ? json_null() : json_string(strerror(errno)));
    if (may_make)
        (void)rmdir(probe);
    add_text(result, "cgroup_controllers", read_text("/sys/fs/cgroup/cgroup.controllers"));
}

static const char *container_of(void)
{
    if (access("/.dockerenv", F_OK) == 0)
        return "docker";
    if (access("/run/.containerenv", F_OK) == 0)
        return "podman";
    return getenv("KUBERNETES_SERVICE_HOST") != NULL ? "kubernetes"
           : getenv("container") != NULL             ? "some"
                                                     : "none that is known";
}

static void check_machine(struct kit *kit, struct result *result)
{
    struct utsname name;
    if (uname(&name) == 0) {
        result_fact(result, "kernel", json_string(name.release));
        result_fact(result, "architecture", json_string(name.machine));
    }
    result_fact(result, "glibc", json_string(gnu_get_libc_version()));
    add_text(result, "system", read_value("/etc/os-release", "PRETTY_NAME="));
    add_text(result, "cpu", read_value("/proc/cpuinfo", "model name"));
    result_fact(result, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    _cleanup_free_ char *memory = read_value("/proc/meminfo", "MemTotal");
    result_fact(result, "memory_mib", json_integer(strtoll(memory, NULL, 10) / KIB_TO_MIB));
    result_fact(result, "uid", json_integer(geteuid()));
    result_fact(result, "container", json_string(container_of()));
    add_text(result, "first_process", read_text("/proc/1/comm"));
    add_text(result, "capabilities", read_value("/proc/self/status", "CapEff"));
    add_text(result, "seccomp", read_value("/proc/self/status", "Seccomp"));
    add_text(result, "no_new_privileges", read_value("/proc/self/status", "NoNewPrivs"));
    add_cgroup(result);
    result_pass(result, "Linux %s, glibc %s, %s, container: %s", name.release, gnu_get_libc_version(),
        geteuid() == 0 ? "root" : "an ordinary user", container_of());
}

/* Device nodes with their numbers and modes: "/dev/nvidia0 195:0 0666". */
static json_t *list_nodes(void)
{
    static const char *const patterns[] = { "/dev/nvidia*", "/dev/nvidia-caps/*",
        "/dev/nvidia-caps-imex-channels/*", "/dev/dri/renderD*" };
    json_t *nodes = json_array();
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found;
        struct stat status;
        if (glob(patterns[i], 0, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && k < NODES_MAX; k++) {
            if (stat(found.gl_pathv[k], &status) < 0 || !S_ISCHR(status.st_mode))
                continue;
            _cleanup_free_ char *line = xasprintf("%s %u:%u %04o", found.gl_pathv[k], major(status.st_rdev),
                minor(status.st_rdev), (unsigned int)(status.st_mode & MODE_BITS));
            (void)json_array_append_new(nodes, json_string(line));
        }
        globfree(&found);
    }
    return nodes;
}

/* Lines of a file that begin, after blanks and a number, with "nvidia". */
static json_t *list_lines(const char *path)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    json_t *lines = json_array();
    if (file_read(AT_FDCWD, path, FILE_MAX * 4, &text) < 0)
        return lines;
    char *rest = buffer_text(&text);
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        const char *word = line;
        while (isspace((unsigned char)*word) || isdigit((unsigned char)*word))
            word++;
        if (strncmp(word, "nvidia", strlen("nvidia")) == 0 && json_array_size(lines) < NODES_MAX)
            (void)json_array_append_new(lines, json_string(line));
    }
    return lines;
}

static void check_driver(struct kit *kit, struct result *result)
{
    char *version = read_text("/proc/driver/nvidia/version");
    json_t *nodes = list_nodes();
    bool has_control = access("/dev/nvidiactl", F_OK) == 0;
    result_fact(result, "modules", list_lines("/proc/modules"));
    result_fact(result, "majors", list_lines("/proc/devices"));
    result_fact(result, "has_uvm", json_boolean(access("/dev/nvidia-uvm", F_OK) == 0));
    result_fact(result, "has_wsl", json_boolean(access("/dev/dxg", F_OK) == 0));
    add_text(result, "modify_device_files", read_value("/proc/driver/nvidia/params", "ModifyDeviceFiles"));
    if (version[0] != '\0')
        result_pass(result, "%s", version);
    else if (has_control)
        result_pass(result, "device nodes without /proc/driver/nvidia (%zu nodes)", json_array_size(nodes));
    else
        result_skip(
            result, "there is no NVIDIA driver: neither /proc/driver/nvidia nor /dev/nvidiactl exists");
    result_fact(result, "nodes", nodes);
    add_text(result, "version", version);
}

const struct check kit_machine_checks[] = {
    { "machine", "the machine", 0, NEED_NOTHING, check_machine, RANK_FIRST },
    { "driver", "the driver as the kernel has it", 0, NEED_NOTHING, check_driver, RANK_FIRST },
    { 0 },
};
