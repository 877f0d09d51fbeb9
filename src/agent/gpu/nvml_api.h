/* SPDX-License-Identifier: MIT */
/*
 * The part of NVML that mgpu uses. The declarations are mgpu's own, because the library comes with the driver
 * but its header does not. Functions exist in several versions: the newest name is tried first. All but init,
 * count and handle are optional: NULL if the driver lacks them.
 */
#pragma once

#include "base/error.h"

#define NVML_LIBRARY              "libnvidia-ml.so.1"
#define NVML_SUCCESS              0
#define NVML_UNINITIALIZED        1
#define NVML_INVALID_ARGUMENT     2
#define NVML_NOT_SUPPORTED        3
#define NVML_NOT_FOUND            6
#define NVML_INSUFFICIENT_SIZE    7
#define NVML_NOT_LOADED           9 // the kernel module is not loaded
#define NVML_TIMEOUT              10
#define NVML_FUNCTION_NOT_FOUND   13
#define NVML_IS_LOST              15 // the GPU has fallen off the bus
#define NVML_RESET_REQUIRED       16
#define NVML_VERSION_MISMATCH     25
#define NVML_TEMPERATURE_GPU      0
#define NVML_CLOCK_SM             1
#define NVML_CLOCK_MEMORY         2
#define NVML_ECC_CORRECTED        0
#define NVML_ECC_UNCORRECTED      1
#define NVML_ECC_VOLATILE         0 // since the driver was loaded
#define NVML_EVENT_XID            0x8ULL
#define NVML_FIELD_RECOVERY       230 // recovery action that the driver requires for the GPU
#define NVML_MIG_ENABLED          1
#define NVML_COMPUTE_THREAD       1 // one program, as NVML_COMPUTE_PROCESS; no longer set by drivers
#define NVML_COMPUTE_PROHIBITED   2
#define NVML_COMPUTE_PROCESS      3
#define NVML_MEMORY_NOT_AVAILABLE (~0ULL)
#define NVML_TEXT_SIZE            96
#define NVML_BUS_ID_SIZE          16 // nvmlPciInfo_t.busIdLegacy
#define NVML_BUS_ID_LONG_SIZE     32

typedef void *nvml_device; // opaque in NVML too
typedef void *nvml_event_set;

struct nvml_pci {
    char bus_id_legacy[NVML_BUS_ID_SIZE];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[NVML_BUS_ID_LONG_SIZE];
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 { // `used` without the driver's own reservation
    unsigned int version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned int)(sizeof(struct nvml_memory_v2) | (2U << 24)))

struct nvml_utilization {
    unsigned int gpu, memory;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type, data;               // data: the number of the Xid
    unsigned int gpu_instance, compute_instance; // NVML_INSTANCE_NONE: of the GPU as a whole
};
#define NVML_INSTANCE_NONE (~0U)

struct nvml_attributes { // of a MIG instance
    unsigned int multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned int gpu_instance_slices, compute_instance_slices;
    unsigned long long memory_mib;
};

struct nvml_field {
    unsigned int id, scope;
    long long timestamp, latency_us;
    int type, code;
    union {
        double fraction;
        unsigned int number;
        unsigned long long large;
    } value;
};

/* `infos` is an array whose element type depends on the version, see gpu/nvml_processes.c. */
typedef int nvml_processes_fn(nvml_device device, unsigned int *count, void *infos);

struct nvml_api {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*driver)(char *text, unsigned int size); // its version
    int (*count)(unsigned int *count);
    int (*handle)(unsigned int index, nvml_device *device);
    int (*handle_at)(const char *address, nvml_device *device); // opens no other GPU
    int (*uuid)(nvml_device device, char *text, unsigned int size);
    int (*name)(nvml_device device, char *text, unsigned int size);
    int (*pci)(nvml_device device, struct nvml_pci *pci);
    int (*minor)(nvml_device device, unsigned int *minor);
    int (*memory)(nvml_device device, struct nvml_memory *memory);
    int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
    int (*utilization)(nvml_device device, struct nvml_utilization *utilization);
    int (*temperature)(nvml_device device, int sensor, unsigned int *celsius);
    int (*power)(nvml_device device, unsigned int *milliwatts);
    int (*power_limit)(nvml_device device, unsigned int *milliwatts);
    int (*energy)(nvml_device device, unsigned long long *millijoules);
    int (*clock)(nvml_device device, int kind, unsigned int *megahertz);
    int (*ecc)(nvml_device device, int kind, int counter, unsigned long long *count);
    int (*mig_mode)(nvml_device device, unsigned int *current, unsigned int *pending);
    int (*mig_count)(nvml_device device, unsigned int *count); // the most that there can be
    int (*mig_handle)(nvml_device device, unsigned int index, nvml_device *instance);
    int (*gpu_instance)(nvml_device instance, unsigned int *id);
    int (*compute_instance)(nvml_device instance, unsigned int *id);
    int (*attributes)(nvml_device instance, struct nvml_attributes *attributes);
    int (*compute_mode)(nvml_device device, unsigned int *mode);
    int (*numa_node)(nvml_device device, unsigned int *node);
    int (*fields)(nvml_device device, int count, struct nvml_field *fields);
    int (*link_state)(nvml_device device, unsigned int link, unsigned int *is_active);
    int (*link_pci)(nvml_device device, unsigned int link, struct nvml_pci *pci);
    nvml_processes_fn *compute, *graphics, *mps;          // v2 or v3
    nvml_processes_fn *compute_v1, *graphics_v1, *mps_v1; // only looked up if the newer ones are missing
    int (*event_set_create)(nvml_event_set *set);
    int (*event_set_free)(nvml_event_set set);
    int (*event_types)(nvml_device device, unsigned long long *types);
    int (*event_register)(nvml_device device, unsigned long long types, nvml_event_set set);
    int (*event_wait)(nvml_event_set set, struct nvml_event *event, unsigned int timeout_ms);
};

/* Loads the library; `path` NULL: the driver's. -ENODEV with a sentence and a hint if it is missing or too
 * old. */
int nvml_api_load(const char *path, struct nvml_api *ret, struct error *err);

/* Unloads the library; allowed if it was never loaded. */
void nvml_api_unload(struct nvml_api *api);

/* NVML's text for its error code. */
const char *nvml_api_describe(const struct nvml_api *api, int code);
