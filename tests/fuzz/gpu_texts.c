/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what a node reads about its GPUs, by the first byte of the input: 'a' files of the AMD driver,
 * which make a report that mgpud takes; 'p' a process on a GPU, whose name and command line are its user's
 * and decide nothing; 'l' the state of the lock, of which nothing is left out and which is written as it was
 * read; 't' what mgpu-gpu-test and the control daemon of MPS print.
 *
 * The parts of 'a' and 'p' end with a line "--". A part of 'a' begins with the name of its file.
 */
#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "agent/gpu/owner.h"
#include "agent/gpu/report.h"
#include "agent/gpu/rocm.h"
#include "agent/gpu/test_results.h"
#include "agent/mps/control.h"
#include "base/files.h"
#include "fuzz.h"
#include "gpulock/state.h"
#include "input.h"

#include "base/gpu_vendor.h"

#define PARTS_END "\n--\n"
#define PID       42
#define START     4711U
#define OWNER_UID 1001U
#define CGROUP    "/sys/fs/cgroup/init.scope/mgpu.0badcafe/j7.1/step0.0"
#define MARK      "/mgpu.0badcafe/j7.1/"
#define NAME_MAX_ 15 // bytes that the kernel keeps of the name of a process

static char root[64];

static void write_file(const char *name, const void *bytes, size_t length)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must_be(fd >= 0 && write_all(fd, bytes, length) == 0);
    (void)close(fd);
}

static void make_folder(const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", root, name);
    must_be(make_directories(path, 0700) == 0);
}

/* The next part; false: there is none. */
static bool take_part(struct input *input, const uint8_t **ret, size_t *ret_length)
{
    const uint8_t *from = input->bytes + input->at;
    size_t left = input->length - input->at;
    if (left == 0)
        return false;
    const uint8_t *end = memmem(from, left, PARTS_END, strlen(PARTS_END));
    *ret = from;
    *ret_length = end != NULL ? (size_t)(end - from) : left;
    input->at += *ret_length + (end != NULL ? strlen(PARTS_END) : 0);
    return true;
}

/* --- AMD --- */

#define DEVICE "devices/0000:03:00.0/"
#define NODE   "class/kfd/kfd/topology/nodes/1/"

/* A file, and what it contains when the input says nothing. */
static const struct {
    const char *name, *path, *text;
} files[] = {
    { "gpu_id", NODE "gpu_id", "51150\n" },
    { "properties", NODE "properties", "location_id 768\ndomain 0\n" },
    { "link", NODE "io_links/0/properties", "type 11\nnode_to 1\n" },
    { "vram", "class/kfd/kfd/proc/42/vram_51150", "1048576\n" },
    { "vendor", DEVICE "vendor", "0x1002\n" },
    { "device", DEVICE "device", "0x740c\n" },
    { "product_name", DEVICE "product_name", "" },
    { "unique_id", DEVICE "unique_id", "3f21a0c4d1b2e3f4\n" },
    { "total", DEVICE "mem_info_vram_total", "68702699520\n" },
    { "used", DEVICE "mem_info_vram_used", "1048576\n" },
    { "busy", DEVICE "gpu_busy_percent", "7\n" },
    { "ecc", DEVICE "ras/umc_err_count", "ue: 0\nce: 3\n" },
    { "partition", DEVICE "current_compute_partition", "SPX\n" },
    { "temperature", DEVICE "hwmon/hwmon3/temp1_input", "41000\n" },
    { "power", DEVICE "hwmon/hwmon3/power1_average", "90000000\n" },
    { "energy", DEVICE "hwmon/hwmon3/energy1_input", "12345678\n" },
    { "clock", DEVICE "hwmon/hwmon3/freq1_input", "1700000000\n" },
};

#define FILES (sizeof(files) / sizeof(files[0]))

/* ROCm's library would be read in a process of its own. */
struct rocm *rocm_start(const char *library, const char *const *addresses, size_t count)
{
    return NULL;
}

void rocm_fill(struct rocm *rocm, size_t i, struct gpu_state *gpu)
{
}

void rocm_remark(struct rocm *rocm, char *text, size_t size)
{
    text[0] = '\0';
}

void rocm_stop(struct rocm *rocm)
{
}

static void make_sysfs(void)
{
    static const char *const folders[] = { NODE "io_links/0", "class/kfd/kfd/proc/42", DEVICE "ras",
        DEVICE "hwmon/hwmon3", DEVICE "drm/renderD128", "class/drm/card0" };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        make_folder(folders[i]);
    _cleanup_free_ char *link = xasprintf("%s/class/drm/card0/device", root);
    must_be(symlink("../../../devices/0000:03:00.0", link) == 0);
}

static void write_amd_files(struct input *input)
{
    const uint8_t *part;
    size_t length;
    for (size_t i = 0; i < FILES; i++)
        write_file(files[i].path, files[i].text, strlen(files[i].text));
    while (take_part(input, &part, &length)) {
        const uint8_t *line_end = memchr(part, '\n', length);
        size_t name = line_end != NULL ? (size_t)(line_end - part) : length;
        for (size_t i = 0; i < FILES; i++)
            if (line_end != NULL && strlen(files[i].name) == name && memcmp(files[i].name, part, name) == 0)
                write_file(files[i].path, line_end + 1, length - name - 1);
    }
}

static void check_report(void *amd)
{
    struct gpu_state *gpus = xcalloc(gpu_amd.count(amd), sizeof(*gpus));
    struct gpu_report report = { .gpus = { gpus, gpu_amd.count(amd) } };
    struct error err = { 0 };
    for (size_t i = 0; i < report.gpus.count; i++) {
        gpu_amd.describe(amd, i, &gpus[i]);
        gpu_amd.sample(amd, i, &gpus[i]);
        must_be(gpus[i].memory_used_bytes <= gpus[i].memory_bytes && gpus[i].utilization_percent <= 100);
        must_be(gpus[i].temperature_c <= 200 && gpus[i].uuid != NULL && gpus[i].model != NULL);
        must_be(gpus[i].refusal == NULL || is_printable(gpus[i].refusal));
        must_be(is_printable(gpus[i].model));
    }
    must_be(record_check(&gpu_report_record, &report, &err) == 0);
    record_clear(&gpu_report_record, &report);
}

static void try_amd(struct input *input)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_AMD, .sysfs_root = root };
    struct error err = { 0 };
    void *amd = NULL;
    write_amd_files(input);
    if (gpu_amd.open(&spec, NULL, &amd, &err) < 0) {
        must_be(err.message[0] != '\0');
        return;
    }
    check_report(amd);
    gpu_amd.close(amd);
}

/* --- processes --- */

/* The name of a process, its command line and its cgroups. The first two are as the user likes. */
static struct gpu_process look(const char *name, const void *command, size_t length, const char *cgroups)
{
    const struct gpu_claim claim = { .job = 7, .attempt = 1, .cgroup = CGROUP };
    struct gpu_process process = { .pid = PID };
    struct gpu_state gpu = { .processes = { &process, 1 } };
    struct record_list gpus = { &gpu, 1 };
    struct error err = { 0 };
    char text[512];
    (void)snprintf(text, sizeof(text), "%d (%.*s) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 %u 0 0", PID,
        NAME_MAX_, name, START);
    write_file("proc/42/stat", text, strlen(text));
    write_file("proc/42/cmdline", command, length);
    write_file("proc/42/cgroup", cgroups, strlen(cgroups));
    _cleanup_free_ char *proc = xasprintf("%s/proc", root);
    struct gpu_owners *owners = gpu_owners_new(proc);
    gpu_owners_fill(owners, &gpus, &claim, 1);
    gpu_owners_free(owners);
    must_be(process.start == START && process.uid == OWNER_UID && process.command != NULL);
    must_be(process.job == 0 || (process.job == 7 && strstr(cgroups, MARK) != NULL));
    must_be(is_printable(process.command) && (process.container == NULL || is_printable(process.container)));
    must_be(record_check(&gpu_process_record, &process, &err) == 0);
    free(process.command);
    return process;
}

static void try_process(struct input *input)
{
    const uint8_t *parts[3] = { input->bytes, input->bytes, input->bytes };
    size_t lengths[3] = { 0 };
    for (size_t i = 0; i < 3; i++)
        (void)take_part(input, &parts[i], &lengths[i]);
    _cleanup_free_ char *name = xstrndup((const char *)parts[0], lengths[0]);
    _cleanup_free_ char *cgroups = xstrndup((const char *)parts[2], lengths[2]);
    struct gpu_process known = look("python", "python", 6, cgroups);
    struct gpu_process found = look(name, parts[1], lengths[1], cgroups);
    must_be(known.job == found.job && known.attempt == found.attempt);
    must_be(text_equal(known.container, found.container));
    free(known.container);
    free(found.container);
}

/* --- the lock --- */

static size_t count_lines(const uint8_t *bytes, size_t length)
{
    size_t count = 0;
    for (size_t at = 0; at < length;) {
        const uint8_t *end = memchr(bytes + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - bytes) - at : length - at;
        count += line > 0;
        at += line + 1;
    }
    return count;
}

static void check_same(const struct gpu_lock_state *a, const struct gpu_lock_state *b)
{
    must_be(a->phase == b->phase && a->gid == b->gid && a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct gpu_node_access *left = &a->nodes[i].before, *right = &b->nodes[i].before;
        must_be(strcmp(a->nodes[i].name, b->nodes[i].name) == 0);
        must_be(left->uid == right->uid && left->gid == right->gid && left->mode == right->mode);
        must_be(left->acl.length == right->acl.length);
        must_be(left->acl.length == 0 || memcmp(left->acl.bytes, right->acl.bytes, left->acl.length) == 0);
    }
}

static void try_lock(const uint8_t *bytes, size_t length)
{
    struct gpu_lock_state state = { 0 }, again = { 0 };
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/lock", root);
    write_file("lock", bytes, length);
    if (gpu_lock_state_read(path, &state, &err) < 0) {
        must_be(err.message[0] != '\0' && state.count == 0);
        return;
    }
    must_be(count_lines(bytes, length) == state.count + 1 && state.phase != GPU_LOCK_NONE);
    for (size_t i = 0; i < state.count; i++)
        must_be(state.nodes[i].name[0] != '/' && strstr(state.nodes[i].name, "..") == NULL);
    must_be(gpu_lock_state_write(path, &state, &err) == 0);
    must_be(gpu_lock_state_read(path, &again, &err) == 0);
    check_same(&state, &again);
    gpu_lock_state_clear(&state);
    gpu_lock_state_clear(&again);
}

/* --- programs --- */

static void try_results(const char *output)
{
    struct gpu_state gpu = { .uuid = xstrdup("GPU-1") };
    struct error err = { 0 };
    double number = 0;
    _cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct test_results *results = test_results_new(fd);
    if (test_results_number(output, "to_gpu_gb_per_s", &number))
        must_be(isfinite(number) && number >= 0);
    test_results_put(results, gpu.uuid, output, NULL, 1);
    test_results_put(results, gpu.uuid, NULL, output, 2);
    test_results_free(results);
    results = test_results_new(fd); // from the file
    test_results_show(results, &gpu);
    must_be(gpu.tests.count >= 2 && record_check(&gpu_state_record, &gpu, &err) == 0);
    const struct gpu_test *tests = gpu.tests.items;
    must_be(tests[0].error != NULL && is_printable(tests[0].error) && tests[0].wall_ms == 2);
    must_be(tests[1].error == NULL || tests[1].to_mb_s == 0);
    record_clear(&gpu_state_record, &gpu);
    test_results_free(results);
    (void)unlinkat(fd, "gpu-tests", 0);
}

static void try_control(const uint8_t *bytes, size_t length)
{
    int pair[2];
    struct error err = { 0 };
    int status = length > 0 ? bytes[0] << 8 : 0;
    length = length < 2000 ? length : 2000;
    must_be(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    must_be(length < 2 || send(pair[0], bytes + 1, length - 1, 0) == (ssize_t)length - 1);
    int r = mps_control_judge(status, pair[1], &err);
    must_be(r < 0 ? is_printable(err.message) && err.message[0] != '\0' : status == 0);
    _cleanup_free_ char *output = xcalloc(1, length + 1);
    for (size_t i = 1; i < length; i++)
        output[i - 1] = bytes[i] == 0 ? ' ' : (char)tolower(bytes[i]);
    must_be(r < 0 || (strstr(output, "error") == NULL && strstr(output, "not permitted") == NULL));
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* --- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    return remove(path);
}

static void remove_root(void)
{
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_root(void)
{
    (void)snprintf(root, sizeof(root), "/dev/shm/mgpu-fuzz-gpu-XXXXXX");
    must_be(mkdtemp(root) != NULL && atexit(remove_root) == 0);
    make_folder("proc/42");
    make_sysfs();
    const char status[] = "Name:\tx\nUid:\t1001\t1002\t1001\t1001\n";
    write_file("proc/42/status", status, strlen(status));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct input input = { bytes, length, 1 };
    if (length == 0)
        return 0;
    if (root[0] == '\0')
        make_root();
    if (bytes[0] == 'a')
        try_amd(&input);
    else if (bytes[0] == 'p')
        try_process(&input);
    else if (bytes[0] == 'l')
        try_lock(bytes + 1, length - 1);
    else if (bytes[0] == 't') {
        _cleanup_free_ char *output = xstrndup((const char *)bytes + 1, length - 1);
        try_results(output);
        try_control(bytes + 1, length - 1);
    }
    return 0;
}
