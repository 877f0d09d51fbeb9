/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for ROCm's libamdhip64.so: the stand-in for CUDA under HIP's names, with the same state file.
 * What differs is here: the UUID of a GPU is the first 16 of its digits, as text; ROCR_VISIBLE_DEVICES says
 * which GPUs there are, unless a file `unfiltered` is beside the state; programs are source, which a
 * translator turns into code that has the mark of ELF, and a line `fail hiprtcCompileProgram CODE` has it
 * refuse.
 */
#include "cuda.c"

#define DIGITS       16
#define ELF          "\177ELF"
#define UNKNOWN_ARCH "Error: the stand-in does not know the GPU.\nMore"

/* As "GPU-" and its digits. */
static void write_name(const struct gpu *gpu, char text[5 + DIGITS])
{
    size_t at = (size_t)snprintf(text, 5, "GPU-");
    for (size_t b = 0; b < DIGITS / 2; b++)
        at += (size_t)snprintf(&text[at], 3, "%02x", gpu->uuid.bytes[b]);
}

static int is_unfiltered(void)
{
    FILE *file = open_beside("unfiltered", "re");
    return file != NULL && fclose(file) == 0;
}

__attribute__((constructor)) static void select_visible(void)
{
    const char *visible = getenv("ROCR_VISIBLE_DEVICES");
    char chosen[1024] = "none";
    if (visible == NULL || is_unfiltered())
        return;
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    struct machine machine = look();
    size_t at = 0;
    for (unsigned int i = 0; i < machine.count; i++) {
        char name[5 + DIGITS];
        write_name(&machine.gpus[i], name);
        if (strstr(visible, name) != NULL)
            at += (size_t)snprintf(&chosen[at], sizeof(chosen) - at, "%s%u", at > 0 ? "," : "", i);
    }
    (void)setenv("CUDA_VISIBLE_DEVICES", chosen, 1);
}

EXPORT int hipInit(unsigned int flags)
{
    int code = cuInit(flags);
    return code == NO_DEVICE ? INVALID_DEVICE : code;
}

EXPORT const char *hipGetErrorName(int code)
{
    return code == OUT_OF_MEMORY    ? "hipErrorOutOfMemory"
           : code == INVALID_DEVICE ? "hipErrorInvalidDevice"
                                    : "hipErrorUnknown";
}

EXPORT int hipDeviceGetUuid(struct uuid *uuid, int device)
{
    ENTER(machine);
    char name[5 + DIGITS];
    if (device < 0 || (unsigned int)device >= machine.count)
        return INVALID_DEVICE;
    write_name(&machine.gpus[device], name);
    memcpy(uuid->bytes, &name[4], DIGITS);
    return 0;
}

EXPORT int hipDeviceComputeCapability(int *major, int *minor, int device)
{
    ENTER(machine);
    *major = 9;
    *minor = 0;
    return 0;
}

EXPORT int hipSetDevice(int device)
{
    void *context;
    int code = cuDevicePrimaryCtxRetain(&context, device);
    return code != 0 ? code : cuCtxSetCurrent(context);
}

EXPORT int hipModuleLoadData(void **module, const void *image)
{
    return memcmp(image, ELF, strlen(ELF)) != 0 ? INVALID_VALUE
                                                : cuModuleLoadData(module, ".version 0 .entry");
}

/* --- the translator --- */

EXPORT int hiprtcCreateProgram(void **program, const char *source, const char *name, int n_headers,
    const char **headers, const char **header_names)
{
    ENTER(machine);
    *program = strdup(source);
    return n_headers != 0 || *program == NULL;
}

EXPORT int hiprtcCompileProgram(void *program, int n_options, const char **options)
{
    ENTER(machine);
    return 0;
}

EXPORT int hiprtcGetProgramLogSize(void *program, size_t *bytes)
{
    *bytes = sizeof(UNKNOWN_ARCH);
    return 0;
}

EXPORT int hiprtcGetProgramLog(void *program, char *text)
{
    memcpy(text, UNKNOWN_ARCH, sizeof(UNKNOWN_ARCH));
    return 0;
}

EXPORT int hiprtcGetCodeSize(void *program, size_t *bytes)
{
    *bytes = strstr(program, "mgpu_fill") != NULL ? sizeof(ELF) : 0;
    return 0;
}

EXPORT int hiprtcGetCode(void *program, char *code)
{
    memcpy(code, ELF, sizeof(ELF));
    return 0;
}

EXPORT int hiprtcDestroyProgram(void **program)
{
    free(*program);
    *program = NULL;
    return 0;
}

/* --- the same as with CUDA --- */

#define SAME(name, of_cuda) EXPORT __typeof__(of_cuda) name __attribute__((alias(#of_cuda)));
SAME(hipDriverGetVersion, cuDriverGetVersion)
SAME(hipGetDeviceCount, cuDeviceGetCount)
SAME(hipDeviceGet, cuDeviceGet)
SAME(hipDeviceGetName, cuDeviceGetName)
SAME(hipDeviceGetPCIBusId, cuDeviceGetPCIBusId)
SAME(hipDeviceTotalMem, cuDeviceTotalMem_v2)
SAME(hipDeviceSynchronize, cuCtxSynchronize)
SAME(hipMemGetInfo, cuMemGetInfo_v2)
SAME(hipMalloc, cuMemAlloc_v2)
SAME(hipMallocManaged, cuMemAllocManaged)
SAME(hipFree, cuMemFree_v2)
SAME(hipMemAllocHost, cuMemAllocHost_v2)
SAME(hipHostFree, cuMemFreeHost)
SAME(hipMemcpyHtoD, cuMemcpyHtoD_v2)
SAME(hipMemcpyDtoH, cuMemcpyDtoH_v2)
SAME(hipMemcpyDtoD, cuMemcpyDtoD_v2)
SAME(hipModuleGetFunction, cuModuleGetFunction)
SAME(hipModuleLaunchKernel, cuLaunchKernel)
SAME(hipEventCreateWithFlags, cuEventCreate)
SAME(hipEventRecord, cuEventRecord)
SAME(hipEventSynchronize, cuEventSynchronize)
SAME(hipEventElapsedTime, cuEventElapsedTime)
SAME(hipEventDestroy, cuEventDestroy_v2)
