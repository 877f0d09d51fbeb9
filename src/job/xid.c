/* SPDX-License-Identifier: MIT */
/*
 * The classes follow the immediate action of NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors,
 * "Analyzing Xid Errors with the Xid Catalog"): RESTART_APP there is `application` or `contained` here,
 * RESET_GPU is `reset`, IGNORE is `info`; what asks for a restart of the machine, or for somebody to look at
 * it, is `device`. Where that leaves room:
 *
 * - 43 and 45 are to be ignored there because they follow from what a program did: for its job they are the
 *   reason of its end.
 * - 64 asks for a reset, but a row that cannot be remapped stays bad ("GPU Memory Error Management").
 * - 61 and 123 are not used any more; before Ampere they asked for a reset.
 * - What follows from 144 to 150 is in details that NVML does not give, and 154 says that what the driver
 * wants to be done has changed: that is asked for with each sample (GPU_RECOVERY) and counts by itself.
 */
#include "job/xid.h"

#include <stddef.h>

#define COPY_ENGINE "a program's copy failed (copy engine)"
#define DECODER     "a program failed in the video decoder"
#define JPEG        "a program failed in the JPEG engine"
#define OPTICAL     "a program failed in the optical flow engine"
#define COMMANDS    "a program's commands were damaged (push buffer)"
#define FABRIC      "an error of NVLink"

static const struct {
    uint32_t first, last;
    enum xid_class class;
    const char *words;
} rows[] = {
    { 8, 8, XID_APPLICATION, "it stopped working on what a program gave it" },
    { 11, 11, XID_APPLICATION, COMMANDS },
    { 13, 13, XID_APPLICATION, "a program did an illegal operation (graphics engine exception)" },
    { 25, 25, XID_APPLICATION, COMMANDS },
    { 31, 31, XID_APPLICATION, "a program used an illegal address (memory page fault)" },
    { 32, 32, XID_APPLICATION, COMMANDS },
    { 37, 38, XID_INFO, "an error of the driver's firmware" },
    { 39, 41, XID_APPLICATION, COPY_ENGINE },
    { 43, 43, XID_APPLICATION, "it stopped working for a program that had failed" },
    { 44, 44, XID_INFO, "a fault while it changed between programs" },
    { 45, 45, XID_APPLICATION, "the work of a program was cleared away after an error" },
    { 46, 46, XID_RESET, "it stopped working" },
    { 48, 48, XID_RESET, "memory error that cannot be corrected (double bit ECC)" },
    { 54, 54, XID_DEVICE, "its auxiliary power is not connected" },
    { 60, 60, XID_APPLICATION, "a program failed in the video processor" },
    { 61, 61, XID_RESET, "its internal controller stopped" },
    { 62, 62, XID_RESET, "its internal controller halted" },
    { 63, 63, XID_INFO, "a bad row of its memory is replaced at the next reset" },
    { 64, 64, XID_DEVICE, "a bad row of its memory cannot be replaced" },
    { 66, 67, XID_INFO, "an illegal access by the driver" },
    { 68, 68, XID_APPLICATION, DECODER },
    { 69, 69, XID_APPLICATION, "a program used the graphics engine wrongly (class error)" },
    { 70, 72, XID_APPLICATION, COPY_ENGINE },
    { 74, 74, XID_RESET, FABRIC },
    { 75, 77, XID_APPLICATION, COPY_ENGINE },
    { 79, 79, XID_DEVICE, "it has fallen off the bus" },
    { 80, 80, XID_APPLICATION, "data that a program sent to it was damaged" },
    { 82, 82, XID_APPLICATION, JPEG },
    { 83, 84, XID_APPLICATION, DECODER },
    { 85, 85, XID_APPLICATION, COPY_ENGINE },
    { 86, 86, XID_APPLICATION, OPTICAL },
    { 88, 89, XID_APPLICATION, DECODER },
    { 92, 92, XID_INFO, "many memory errors, all corrected" },
    { 94, 94, XID_CONTAINED, "memory error that hit only the programs that used it (contained ECC)" },
    { 95, 95, XID_RESET, "memory error that may have hit any program (uncontained ECC)" },
    { 96, 98, XID_APPLICATION, DECODER },
    { 99, 105, XID_APPLICATION, JPEG },
    { 109, 109, XID_RESET, "a program did not let others have their turn (context switch timeout)" },
    { 110, 110, XID_RESET, "security fault" },
    { 119, 119, XID_RESET, "its system processor does not answer (GSP RPC timeout)" },
    { 120, 120, XID_RESET, "its system processor failed (GSP error)" },
    { 121, 121, XID_INFO, "an error of the link between processor and GPU, corrected (C2C)" },
    { 123, 123, XID_RESET, "its power controller does not answer (PMU)" },
    { 126, 135, XID_APPLICATION, COPY_ENGINE },
    { 136, 136, XID_RESET, "an NVLink could not be trained" },
    { 137, 137, XID_INFO, "a program used memory of another GPU that it may not use (NVLink)" },
    { 139, 139, XID_APPLICATION, OPTICAL },
    { 140, 140, XID_RESET, "memory error that was not recovered from (ECC)" },
    { 143, 143, XID_RESET, "it could not be initialised" },
    { 144, 150, XID_INFO, FABRIC },
    { 151, 151, XID_DEVICE, "its keys could not be changed: the virtual machine has to be restarted" },
    { 154, 154, XID_INFO, "what the driver wants to be done with it has changed" },
    { 155, 155, XID_RESET, FABRIC },
    { 156, 156, XID_RESET, "a part of it was retired, from the next reset on" },
    { 157, 157, XID_INFO, "a part of it could not be retired" },
    { 158, 158, XID_RESET, "it did not answer in time (fatal timeout)" },
    { 167, 167, XID_RESET, "the bus did not answer in time (PCIe fatal timeout)" },
    { 171, 171, XID_INFO, "memory error that cannot be corrected, in DRAM" },
    { 172, 172, XID_INFO, "memory error that cannot be corrected, in SRAM" },
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
    return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].words : "an error that mgpu does not know";
}
