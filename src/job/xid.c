/* SPDX-License-Identifier: MIT */
/*
 * The classes follow the immediate action of NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors,
 * "Analyzing Xid Errors with the Xid Catalog"): RESTART_APP there is `application` or `contained` here,
 * RESET_GPU is `reset`, IGNORE is `info`; those that require a restart of the machine or an inspection are
 * `device`. Exceptions:
 *
 * - 43 and 45 are to be ignored there because a program caused them: for its job they are the reason of its
 * end.
 * - 64 asks for a reset, but a row that cannot be remapped stays bad ("GPU Memory Error Management").
 * - 61 and 123 are not used any more; before Ampere they asked for a reset.
 * - The consequences of 144 to 150 are in details that NVML does not provide, and 154 reports that the action
 * required by the driver has changed: each sample queries that action (GPU_RECOVERY), which counts by itself.
 */
#include "job/xid.h"

#include <stddef.h>

#define COPY_ENGINE "copy engine error caused by a program"
#define DECODER     "video decoder error caused by a program"
#define JPEG        "JPEG engine error caused by a program"
#define OPTICAL     "optical flow engine error caused by a program"
#define COMMANDS    "invalid or corrupted push buffer stream"
#define FABRIC      "NVLink error"

static const struct {
    uint32_t first, last;
    enum xid_class class;
    const char *words;
} rows[] = {
    { 8, 8, XID_APPLICATION, "GPU stopped processing" },
    { 11, 11, XID_APPLICATION, COMMANDS },
    { 13, 13, XID_APPLICATION, "graphics engine exception caused by a program" },
    { 25, 25, XID_APPLICATION, COMMANDS },
    { 31, 31, XID_APPLICATION, "GPU memory page fault: a program accessed an invalid address" },
    { 32, 32, XID_APPLICATION, COMMANDS },
    { 37, 38, XID_INFO, "driver firmware error" },
    { 39, 41, XID_APPLICATION, COPY_ENGINE },
    { 43, 43, XID_APPLICATION, "GPU stopped processing after a program failed" },
    { 44, 44, XID_INFO, "context switch fault" },
    { 45, 45, XID_APPLICATION, "preemptive channel removal after an error" },
    { 46, 46, XID_RESET, "GPU stopped processing" },
    { 48, 48, XID_RESET, "uncorrectable memory error (double bit ECC)" },
    { 54, 54, XID_DEVICE, "auxiliary power is not connected" },
    { 60, 60, XID_APPLICATION, "video processor error caused by a program" },
    { 61, 61, XID_RESET, "internal micro-controller halt" },
    { 62, 62, XID_RESET, "internal micro-controller breakpoint or halt" },
    { 63, 63, XID_INFO, "memory row remapping pending: reset the GPU" },
    { 64, 64, XID_DEVICE, "memory row remapping failed" },
    { 66, 67, XID_INFO, "invalid access by the driver" },
    { 68, 68, XID_APPLICATION, DECODER },
    { 69, 69, XID_APPLICATION, "graphics engine class error caused by a program" },
    { 70, 72, XID_APPLICATION, COPY_ENGINE },
    { 74, 74, XID_RESET, FABRIC },
    { 75, 77, XID_APPLICATION, COPY_ENGINE },
    { 79, 79, XID_DEVICE, "GPU has fallen off the bus" },
    { 80, 80, XID_APPLICATION, "corrupted data sent by a program" },
    { 82, 82, XID_APPLICATION, JPEG },
    { 83, 84, XID_APPLICATION, DECODER },
    { 85, 85, XID_APPLICATION, COPY_ENGINE },
    { 86, 86, XID_APPLICATION, OPTICAL },
    { 88, 89, XID_APPLICATION, DECODER },
    { 92, 92, XID_INFO, "high rate of corrected memory errors" },
    { 94, 94, XID_CONTAINED, "contained memory error: affects only the programs that used it (ECC)" },
    { 95, 95, XID_RESET, "uncontained memory error: may affect any program (ECC)" },
    { 96, 98, XID_APPLICATION, DECODER },
    { 99, 105, XID_APPLICATION, JPEG },
    { 109, 109, XID_RESET, "context switch timeout caused by a program" },
    { 110, 110, XID_RESET, "security fault" },
    { 119, 119, XID_RESET, "GPU system processor does not respond (GSP RPC timeout)" },
    { 120, 120, XID_RESET, "GPU system processor error (GSP)" },
    { 121, 121, XID_INFO, "corrected error of the CPU-GPU link (C2C)" },
    { 123, 123, XID_RESET, "power management unit does not respond (PMU)" },
    { 126, 135, XID_APPLICATION, COPY_ENGINE },
    { 136, 136, XID_RESET, "NVLink training failed" },
    { 137, 137, XID_INFO, "invalid peer memory access over NVLink by a program" },
    { 139, 139, XID_APPLICATION, OPTICAL },
    { 140, 140, XID_RESET, "unrecovered memory error (ECC)" },
    { 143, 143, XID_RESET, "GPU initialization failed" },
    { 144, 150, XID_INFO, FABRIC },
    { 151, 151, XID_DEVICE, "key rotation failed: restart the virtual machine" },
    { 154, 154, XID_INFO, "recovery action of the driver changed" },
    { 155, 155, XID_RESET, FABRIC },
    { 156, 156, XID_RESET, "resource channel retirement pending: reset the GPU" },
    { 157, 157, XID_INFO, "resource channel retirement failed" },
    { 158, 158, XID_RESET, "fatal timeout: GPU did not respond" },
    { 167, 167, XID_RESET, "PCIe fatal timeout" },
    { 171, 171, XID_INFO, "uncorrectable memory error in DRAM" },
    { 172, 172, XID_INFO, "uncorrectable memory error in SRAM" },
};

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct gpu_xid, number, 0),
    RECORD_FIELD(2, RECORD_I64, struct gpu_xid, wall_ms, 0),
    RECORD_FIELD(3, RECORD_I64, struct gpu_xid, boot_ms, 0),
};
const struct record_type gpu_xid_record = RECORD_TYPE(68, "Xid", struct gpu_xid, fields);

size_t xid_first_new(const struct gpu_xid *xids, size_t count, int64_t seen_ms)
{
    for (size_t i = count; i > 0; i--)
        if (xids[i - 1].wall_ms == seen_ms)
            return i;
    return 0;
}

static size_t find(uint32_t number)
{
    size_t i = 0;
    while (i < sizeof(rows) / sizeof(rows[0]) && (number < rows[i].first || number > rows[i].last))
        i++;
    return i;
}

enum xid_class xid_class_of(uint32_t number)
{
    size_t i = find(number);
    return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].class : XID_INFO;
}

const char *xid_words(uint32_t number)
{
    size_t i = find(number);
    return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].words : "unknown error";
}
