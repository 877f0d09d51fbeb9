/* SPDX-License-Identifier: MIT */
/* From grants to rules, on a made-up machine: its /dev, /proc and sysfs are files in a directory of the test.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/devices.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/event.h"
#include "wire/message.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define ANY LAUNCH_MINOR_MAX

struct machine {
    char top[64];
    struct gpu_devices *devices;
    struct gpu_state gpus[3];
    bool has_imex;
    int64_t reread_ms;
};

static void write_text(const struct machine *machine, const char *name, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", machine->top, name);
    _cleanup_free_ char *dir = xstrdup(path);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(make_directories(dir, 0755), 0);
    assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), false), 0);
}

/* GPU 0 and 1 are NVIDIA's, with the driver's minors the other way round; GPU 2 is AMD's. */
static int setup(void **state)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));
    static char uuids[3][8] = { "GPU-a", "GPU-b", "GPU-c" };
    static char pcis[3][16] = { "0000:01:00.0", "0000:02:00.0", "0000:03:00.0" };
    (void)snprintf(machine->top, sizeof(machine->top), "/tmp/mgpu-devices.XXXXXX");
    assert_non_null(mkdtemp(machine->top));
    write_text(machine, "devices",
        "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n234 nvidia-caps\n"
        "235 nvidia-uvm\n236 nvidia-nvswitch\n237 nvidia-fs\n238 nvidia-caps-imex-channels\n240 kfd\n\nBlock "
        "devices:\n241 kfd\n");
    write_text(machine, "nvidia/0000:01:00.0/information", "Model: X\nDevice Minor: \t 1\n");
    write_text(machine, "nvidia/0000:02:00.0/information", "Model: X\nDevice Minor: \t 0\n");
    write_text(machine, "pci/0000:01:00.0/vendor", "0x10de\n");
    write_text(machine, "pci/0000:02:00.0/vendor", "0x10de\n");
    write_text(machine, "pci/0000:02:00.0/drm/renderD130/dev", "226:130\n");
    write_text(machine, "pci/0000:02:00.0/drm/card2/dev", "226:2\n");
    write_text(machine, "pci/0000:03:00.0/vendor", "0x1002\n");
    write_text(machine, "pci/0000:03:00.0/drm/renderD131/dev", "226:131\n");
    for (uint32_t i = 0; i < 3; i++)
        machine->gpus[i] = (struct gpu_state){
            .index = i, .uuid = uuids[i], .pci = pcis[i], .numa = (int32_t)i, .minor = -1
        };
    *state = machine;
    return 0;
}

static int teardown(void **state)
{
    struct machine *machine = *state;
    gpu_devices_free(machine->devices);
    (void)unit_test_remove(machine->top);
    free(machine);
    return 0;
}

#define CASE(name, machine) TEST_ON(name, struct machine *machine, setup, teardown)

/* The last one is AMD's, unless it is simulated or an instance. */
static void open_devices(struct machine *machine, uint32_t vendor, bool has_simulated)
{
    _cleanup_free_ char *dev = xasprintf("%s/dev", machine->top);
    _cleanup_free_ char *pci = xasprintf("%s/pci", machine->top);
    _cleanup_free_ char *nvidia = xasprintf("%s/nvidia", machine->top);
    _cleanup_free_ char *file = xasprintf("%s/devices", machine->top);
    _cleanup_free_ char *caps = xasprintf("%s/caps", machine->top);
    struct gpu_devices_places places = { dev, pci, nvidia, file, has_simulated, machine->has_imex, caps,
        machine->reread_ms };
    struct record_list gpus = { machine->gpus, 3 };
    machine->devices = gpu_devices_new(&places);
    for (size_t i = 0; i < 3; i++)
        machine->gpus[i].vendor = vendor != GPU_VENDOR_SIMULATED && i == 2 && machine->gpus[i].parent == NULL
                                      ? GPU_VENDOR_AMD
                                      : vendor;
    gpu_devices_update(machine->devices, &gpus);
}

static bool decide(const struct record_list *rules, uint32_t major, uint32_t minor)
{
    const struct device_rule *all = rules->items;
    for (size_t i = 0; i < rules->count; i++)
        if (all[i].major == major && minor >= all[i].minor_first && minor <= all[i].minor_last)
            return all[i].is_allowed != 0;
    return true;
}

/* "+195:1 -195:0": what a job with the GPU of that uuid (NULL: with none) may open and what it may not. */
static void assert_devices(const struct machine *machine, const char *uuid, const char *expected)
{
    struct record_list grants = { 0 }, rules;
    if (uuid != NULL)
        gpu_grants_add(&grants, 0, uuid, 0, 0);
    gpu_devices_rules(machine->devices, &grants, &rules);
    unsigned major, minor;
    char sign;
    for (int n; sscanf(expected, " %c%u:%u%n", &sign, &major, &minor, &n) == 3; expected += n)
        if (decide(&rules, major, minor) != (sign == '+'))
            fail_msg("%s: %u:%u is %s", uuid != NULL ? uuid : "no GPU", major, minor,
                sign == '+' ? "shut" : "open");
    free(rules.items);
    gpu_grants_clear(&grants);
}

CASE(a_job_without_gpus_opens_none, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, NULL,
        "-195:0 -195:1 -195:254 -195:255 -234:1 -235:0 -236:0 -237:0 -240:0 -226:0 -226:128 -226:130 +1:3 "
        "+241:0");
}

CASE(drivers_are_read_again_after_a_while, machine)
{
    machine->reread_ms = 3600000;
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, NULL, "-235:0");
    write_text(machine, "devices", "Character devices:\n300 nvidia-uvm\n\nBlock devices:\n");
    assert_devices(machine, NULL, "-235:0 +300:0");
    gpu_devices_free(machine->devices);
    machine->reread_ms = 0;
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, NULL, "-300:0 +235:0");
    write_text(machine, "devices", "Character devices:\n301 nvidia-uvm\n\nBlock devices:\n");
    assert_devices(machine, NULL, "-301:0 +300:0");
}

CASE(a_job_opens_the_nodes_of_its_gpu_by_the_drivers_numbers, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "GPU-a",
        "+195:1 -195:0 +195:254 +195:255 +235:0 -234:1 -236:0 +237:0 -240:0 -226:130 -226:131");
    assert_devices(machine, "GPU-b", "+195:0 -195:1 +195:255 +235:0 -240:0 +226:130 -226:2 -226:131");
}

CASE(imex_channels_are_opened_only_where_the_site_says_so, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "GPU-a", "-238:0 -238:1");
    gpu_devices_free(take_ptr(machine->devices));
    machine->has_imex = true;
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "GPU-a", "+238:0 +238:1 -234:1");
    assert_devices(machine, "GPU-c", "-238:0");
}

CASE(an_amd_gpu_comes_with_kfd_and_its_render_node, machine)
{
    open_devices(machine, GPU_VENDOR_AMD, false);
    assert_devices(machine, "GPU-c", "+240:0 +226:131 -226:130 -226:0 -195:0 -195:2 -195:255 -235:0");
}

CASE(a_gpu_that_is_not_known_opens_nothing, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "GPU-gone", "-195:0 -195:1 -195:255 -235:0 -240:0 -226:130");
}

CASE(simulated_gpus_have_nodes_only_in_a_directory_of_their_own, machine)
{
    open_devices(machine, GPU_VENDOR_SIMULATED, false);
    assert_devices(machine, "GPU-a", "-195:0 -195:1 -195:255");
    gpu_devices_free(take_ptr(machine->devices));
    open_devices(machine, GPU_VENDOR_SIMULATED, true);
    assert_devices(machine, "GPU-b", "+195:1 -195:0 -195:2 +195:255");
}

CASE(gpus_that_changed_are_looked_up_anew, machine)
{
    static char other[] = "GPU-x";
    struct record_list gpus = { machine->gpus, 3 };
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    machine->gpus[0].uuid = other;
    assert_devices(machine, other, "-195:1");
    gpu_devices_update(machine->devices, &gpus);
    assert_devices(machine, other, "+195:1");
    assert_devices(machine, "GPU-a", "-195:1");
}

static void assert_visible(const struct machine *machine, const char *uuids, const char *expected)
{
    struct record_list grants = { 0 };
    for (; *uuids != '\0'; uuids++) {
        char uuid[] = { 'G', 'P', 'U', '-', *uuids, '\0' };
        gpu_grants_add(&grants, (uint32_t)(*uuids - 'a'), uuid, 0, 0);
    }
    _cleanup_free_ char *visible = gpu_devices_visible(machine->devices, &grants);
    gpu_grants_clear(&grants);
    if (!text_equal(visible, expected))
        fail_msg("%s instead of %s", visible, expected);
}

CASE(gpus_are_numbered_as_the_job_sees_them, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_visible(machine, "a", "0");
    assert_visible(machine, "b", "0");
    assert_visible(machine, "ab", "0,1");
    assert_visible(machine, "ba", "1,0");
    assert_visible(machine, "c", NULL); // AMD's
    assert_visible(machine, "x", NULL);
    assert_visible(machine, "", NULL);
    gpu_devices_free(take_ptr(machine->devices));
    open_devices(machine, GPU_VENDOR_SIMULATED, false);
    assert_visible(machine, "b", NULL);
}

static bool has_nodes(const struct machine *machine, const char *uuid)
{
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    gpu_grants_add(&grants, 0, uuid, 0, 0);
    bool is_so = gpu_devices_has_nodes(machine->devices, &grants);
    return is_so;
}

/* Only then does CUDA count anew what the job may open. The node may come after the GPU was found. */
CASE(a_gpu_without_a_node_of_its_own_hides_no_other, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_false(has_nodes(machine, "GPU-a"));
    write_text(machine, "dev/nvidia1", "");
    assert_true(has_nodes(machine, "GPU-a"));
    assert_false(has_nodes(machine, "GPU-b"));
    assert_false(has_nodes(machine, "GPU-c")); // AMD's
    assert_false(has_nodes(machine, "GPU-x"));
}

/* Where the driver has no page about a GPU, its library's number is better than the GPU's own. */
CASE(the_library_s_minor_is_taken_without_a_page_of_the_driver, machine)
{
    struct record_list gpus = { machine->gpus, 3 };
    static char pci[] = "0000:09:00.0";
    machine->gpus[0].pci = pci;
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "GPU-a", "+195:0 -195:1");
    machine->gpus[0].minor = 5;
    gpu_devices_update(machine->devices, &gpus);
    assert_devices(machine, "GPU-a", "+195:5 -195:0");
}

/* A job has the capabilities of its own instances only, and the GPU that they are part of. */
CASE(a_job_opens_the_capabilities_of_its_mig_instances_alone, machine)
{
    static char parent[] = "GPU-a", second[] = "MIG-b", third[] = "MIG-c", pci[] = "0000:01:00.0";
    machine->gpus[1] = (struct gpu_state){ .index = 1,
        .uuid = second,
        .parent = parent,
        .pci = pci,
        .gpu_instance = 9,
        .compute_instance = 0,
        .minor = 1 };
    machine->gpus[2] = machine->gpus[1];
    machine->gpus[2].index = 2;
    machine->gpus[2].uuid = third;
    machine->gpus[2].gpu_instance = 2;
    machine->gpus[2].compute_instance = 1;
    write_text(machine, "caps/gpu1/mig/gi9/access", "DeviceFileMinor: 84\nDeviceFileMode: 292\n");
    write_text(machine, "caps/gpu1/mig/gi9/ci0/access", "DeviceFileMinor: 85\nDeviceFileMode: 292\n");
    write_text(machine, "caps/gpu1/mig/gi2/access", "DeviceFileMinor: 21\n");
    write_text(machine, "caps/gpu1/mig/gi2/ci1/access", "DeviceFileMinor: nonsense\n");
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_devices(machine, "MIG-b", "+195:1 -195:0 +195:255 +235:0 +234:84 +234:85 -234:21 -234:1 -234:2");
    assert_devices(machine, "MIG-c", "+195:1 +234:21 -234:84 -234:85 -234:0");
    assert_devices(machine, "GPU-a", "+195:1 -234:84 -234:85");
    /* The driver numbers the capabilities of a new layout anew. */
    write_text(machine, "caps/gpu1/mig/gi9/access", "DeviceFileMinor: 30\n");
    assert_devices(machine, "MIG-b", "+234:30 +234:85 -234:84");
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    _cleanup_strings_ struct strings paths = { 0 };
    gpu_grants_add(&grants, 1, "MIG-b", 0, 0);
    gpu_devices_paths(machine->devices, &grants, &paths);
    _cleanup_free_ char *visible = gpu_devices_visible(machine->devices, &grants);
    assert_string_equal(visible, "MIG-b");
    assert_non_null(strstr(paths.items[0], "/dev/nvidia1"));
    assert_non_null(strstr(paths.items[1], "/dev/nvidia-caps/nvidia-cap30"));
    assert_non_null(strstr(paths.items[2], "/dev/nvidia-caps/nvidia-cap85"));
}

/* `uuids` as for assert_visible(); the paths below the machine's directory, separated by blanks. */
static void assert_paths(const struct machine *machine, const char *uuids, const char *expected)
{
    struct record_list grants = { 0 };
    _cleanup_strings_ struct strings paths = { 0 };
    _cleanup_buffer_ struct buffer text = { 0 };
    for (; *uuids != '\0'; uuids++) {
        char uuid[] = { 'G', 'P', 'U', '-', *uuids, '\0' };
        gpu_grants_add(&grants, (uint32_t)(*uuids - 'a'), uuid, 0, 0);
    }
    gpu_devices_paths(machine->devices, &grants, &paths);
    gpu_grants_clear(&grants);
    for (size_t i = 0; i < paths.count; i++)
        buffer_printf(&text, "%s%s", i > 0 ? " " : "", strstr(paths.items[i], "/dev/") + 5);
    if (strcmp(buffer_text(&text), expected) != 0)
        fail_msg("%s instead of %s", buffer_text(&text), expected);
}

CASE(a_container_gets_the_nodes_of_its_gpus_and_those_they_need, machine)
{
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_paths(machine, "a", "nvidia1 nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset");
    assert_paths(machine, "ba", "nvidia0 nvidia1 nvidiactl nvidia-uvm nvidia-uvm-tools nvidia-modeset");
    assert_paths(machine, "x", "");
    assert_paths(machine, "", "");
    gpu_devices_free(take_ptr(machine->devices));
    open_devices(machine, GPU_VENDOR_SIMULATED, false);
    assert_paths(machine, "ab", "");
}

CASE(the_gpus_say_where_the_cpus_should_be, machine)
{
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    open_devices(machine, GPU_VENDOR_NVIDIA, false);
    assert_int_equal(gpu_devices_numas(machine->devices, &grants), 0);
    gpu_grants_add(&grants, 1, "GPU-b", 0, 0);
    assert_int_equal(gpu_devices_numas(machine->devices, &grants), 2);
    gpu_grants_add(&grants, 0, "GPU-a", 0, 0);
    assert_int_equal(gpu_devices_numas(machine->devices, &grants), 3);
}
