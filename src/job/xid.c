/* SPDX-License-Identifier: MIT */
/*
 * The classes follow NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with
 * the Xid Catalog"): RESTART_APP there is `application` or `contained` here, RESET_GPU is `reset`, and what
 * ends in a check of the hardware is `device`. Where it leaves room, NVIDIA's "GPU Memory Error Management"
 * decides: a row that waits to be remapped (63) keeps nobody from using the GPU, one that cannot be remapped
 * (64) does.
 */
#include "job/xid.h"

#include <stddef.h>

static const struct {
    uint32_t number;
    enum xid_class class;
    const char *words;
} rows[] = {
    { 8, XID_APPLICATION, "it stopped working on what a program gave it" },
    { 13, XID_APPLICATION, "a program did an illegal operation (graphics engine exception)" },
    { 31, XID_APPLICATION, "a program used an illegal address (memory page fault)" },
    { 32, XID_APPLICATION, "a program's commands were damaged (push buffer)" },
    { 38, XID_RESET, "the driver's firmware failed" },
    { 43, XID_APPLICATION, "it stopped working for a program that had failed" },
    { 45, XID_APPLICATION, "the work of a program was cleared away after an error" },
    { 46, XID_RESET, "it stopped working" },
    { 48, XID_RESET, "memory error that cannot be corrected (double bit ECC)" },
    { 61, XID_RESET, "its internal controller stopped" },
    { 62, XID_RESET, "its internal controller halted" },
    { 63, XID_INFO, "a bad row of its memory is replaced at the next reset" },
    { 64, XID_DEVICE, "a bad row of its memory cannot be replaced" },
    { 68, XID_APPLICATION, "a program failed in the video decoder" },
    { 69, XID_APPLICATION, "a program used the graphics engine wrongly (class error)" },
    { 74, XID_RESET, "NVLink error" },
    { 79, XID_DEVICE, "it has fallen off the bus" },
    { 92, XID_INFO, "many memory errors, all corrected" },
    { 94, XID_CONTAINED, "memory error that hit only the programs that used it (contained ECC)" },
    { 95, XID_RESET, "memory error that may have hit any program (uncontained ECC)" },
    { 109, XID_APPLICATION, "a program did not let others have their turn (context switch timeout)" },
    { 110, XID_RESET, "security fault" },
    { 119, XID_RESET, "its system processor does not answer (GSP RPC timeout)" },
    { 120, XID_RESET, "its system processor failed (GSP error)" },
    { 123, XID_RESET, "its power controller does not answer (PMU)" },
    { 140, XID_RESET, "memory error that was not recovered from (ECC)" },
    { 154, XID_RESET, "the driver asks for a reset" },
};

static const char *const class_names[XID_CLASSES] = {
    [XID_INFO] = "info",
    [XID_APPLICATION] = "application",
    [XID_CONTAINED] = "contained",
    [XID_RESET] = "reset",
    [XID_DEVICE] = "device",
};

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct gpu_xid, number, 0),
    RECORD_FIELD(2, RECORD_I64, struct gpu_xid, wall_ms, 0),
};
const struct record_type gpu_xid_record = RECORD_TYPE(68, "Xid", struct gpu_xid, fields);

static size_t find(uint32_t number)
{
    size_t i = 0;
    while (i < sizeof(rows) / sizeof(rows[0]) && rows[i].number != number)
        i++;
    return i;
}

enum xid_class xid_class_of(uint32_t number)
{
    size_t i = find(number);
    return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].class : XID_INFO;
}

const char *xid_class_name(enum xid_class class)
{
    return class < XID_CLASSES ? class_names[class] : "invalid";
}

const char *xid_words(uint32_t number)
{
    size_t i = find(number);
    return i < sizeof(rows) / sizeof(rows[0]) ? rows[i].words : "an error that mgpu does not know";
}
