/* SPDX-License-Identifier: MIT */
/*
 * The part of CUDA's driver API that mgpu uses. The declarations are mgpu's own, because the library comes
 * with the driver but its header does not. HIP, which programs use AMD GPUs through, has the same functions
 * under other names, and the same codes of the errors named here. Only short-lived processes load either,
 * never a daemon: the first call takes hundreds of milliseconds and memory on each GPU, and it may hang.
 * Functions that old drivers lack are NULL.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define CUDA_LIBRARY              "libcuda.so.1"
#define CUDA_SUCCESS              0
#define CUDA_OUT_OF_MEMORY        2
#define CUDA_NO_DEVICE            100
#define CUDA_INVALID_DEVICE       101
#define CUDA_ATTRIBUTE_PROCESSORS 16
#define CUDA_ATTRIBUTE_MAJOR      75
#define CUDA_ATTRIBUTE_MINOR      76
#define CUDA_MANAGED_GLOBAL       1U
#define CUDA_PEER_RANK            1 // of a pair: 0 is the fastest kind of link
#define CUDA_PEER_ATOMICS         3 // they are native, as over NVLink
#define CUDA_UUID_SIZE            16
#define CUDA_BUS_ID_SIZE          32
#define CUDA_TEXT_SIZE            96

typedef int cuda_device;
typedef unsigned long long cuda_pointer;
typedef void *cuda_context, *cuda_module, *cuda_function, *cuda_event;

struct cuda_uuid {
    unsigned char bytes[CUDA_UUID_SIZE];
};

enum gpu_runtime { RUNTIME_CUDA, RUNTIME_HIP, RUNTIMES };

/* HIP's translator. What the program is for follows in the options. */
struct hip_translator {
    void *library; // NULL: it is in HIP's own
    int (*create)(void **program, const char *source, const char *name, int n_headers, const char **headers,
        const char **header_names);
    int (*compile)(void *program, int n_options, const char **options);
    int (*log_size)(void *program, size_t *bytes);
    int (*log)(void *program, char *text);
    int (*code_size)(void *program, size_t *bytes);
    int (*code)(void *program, char *code);
    int (*destroy)(void **program);
};

struct cuda_api {
    enum gpu_runtime runtime;
    struct hip_translator translator; // of HIP alone
    void *library;
    int (*init)(unsigned int flags);
    int (*version)(int *version); // 13000 is CUDA 13.0
    int (*error_name)(int code, const char **name);
    const char *(*error_word)(int code); // of HIP, which has this in place of error_name
    int (*count)(int *count);
    int (*device)(cuda_device *device, int number);
    int (*name)(char *text, int size, cuda_device device);
    int (*uuid)(struct cuda_uuid *uuid, cuda_device device); // of a MIG instance where it is one
    int (*bus_id)(char *text, int size, cuda_device device);
    int (*total)(size_t *bytes, cuda_device device);
    int (*attribute)(int *value, int attribute, cuda_device device); // of CUDA alone: HIP renumbers them
    int (*capability)(int *major, int *minor, cuda_device device);   // of HIP
    int (*device_set)(cuda_device device);                           // of HIP, in place of a context
    int (*context_retain)(cuda_context *context, cuda_device device);
    int (*context_release)(cuda_device device);
    int (*context_set)(cuda_context context);
    int (*synchronize)(void);
    int (*memory)(size_t *free_bytes, size_t *total);
    int (*allocate)(cuda_pointer *pointer, size_t bytes);
    int (*allocate_managed)(cuda_pointer *pointer, size_t bytes, unsigned int flags);
    int (*release)(cuda_pointer pointer);
    int (*allocate_host)(void **pointer, size_t bytes); // page-locked
    int (*release_host)(void *pointer);
    int (*copy_in)(cuda_pointer to, const void *from, size_t bytes);
    int (*copy_out)(void *to, cuda_pointer from, size_t bytes);
    int (*copy_on)(cuda_pointer to, cuda_pointer from, size_t bytes);
    int (*module_load)(cuda_module *module, const void *image);
    int (*module_function)(cuda_function *function, cuda_module module, const char *name);
    int (*launch)(cuda_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
        void *stream, void **parameters, void **extra);
    int (*event_create)(cuda_event *event, unsigned int flags);
    int (*event_record)(cuda_event event, void *stream);
    int (*event_wait)(cuda_event event);
    int (*event_elapsed)(float *milliseconds, cuda_event from, cuda_event to);
    int (*event_destroy)(cuda_event event);
    int (*stream_create)(void **stream, unsigned int flags);
    int (*stream_wait)(void *stream);
    int (*peer_access)(int *can, cuda_device from, cuda_device to);
    int (*peer_attribute)(int *value, int attribute, cuda_device from, cuda_device to);
    int (*peer_enable)(cuda_context to, unsigned int flags); // for the current context
    int (*copy_peer)(cuda_pointer to, cuda_context to_context, cuda_pointer from, cuda_context from_context,
        size_t bytes, void *stream);                  // returns before it is done
    int (*checkpoint_lock)(int pid, void *arguments); // only to know that the driver has it
};

/* Loads the library; `path` NULL: the one of the driver, or of ROCm. -ENODEV with a sentence if it is missing
 * or too old. */
int cuda_api_load(enum gpu_runtime runtime, const char *path, struct cuda_api *ret, struct error *err);

/* Unloads the library; allowed if it was never loaded. */
void cuda_api_unload(struct cuda_api *api);

/* The library's name of an error code: "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory". */
const char *cuda_api_describe(const struct cuda_api *api, int code);

/* The name that the library has for one of CUDA's functions: "cuMemAlloc", "hipMalloc". Other words stay. */
const char *cuda_api_call(const struct cuda_api *api, const char *call);

/* "CUDA", "HIP". */
const char *cuda_api_word(const struct cuda_api *api);
