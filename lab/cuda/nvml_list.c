/* SPDX-License-Identifier: MIT */
/* The GPUs that this process can open through NVML: in a job or a container those whose nodes it has. */
#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/cuda/probes.h"

#define LIBRARY   "libnvidia-ml.so.1"
#define TEXT_SIZE 96U
#define SUCCESS   0

struct nvml {
    int (*init)(void);
    int (*count)(unsigned int *count);
    int (*handle)(unsigned int number, void **ret);
    int (*uuid)(void *device, char *text, unsigned int size);
};

/* NULL with a reason. */
static void *load(const char *path, struct nvml *ret, struct error *err)
{
    static const char *const names[] = { "nvmlInit_v2", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID" };
    void *library = dlopen(path != NULL ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *symbols[sizeof(names) / sizeof(names[0])];
    if (library == NULL)
        (void)error_set(err, -1, "there is no NVML: %s", dlerror());
    for (size_t i = 0; library != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        symbols[i] = dlsym(library, names[i]);
        if (symbols[i] != NULL)
            continue;
        (void)dlclose(library);
        (void)error_set(err, -1, "the library of NVML has no %s", names[i]);
        library = NULL;
    }
    if (library != NULL)
        memcpy(ret, symbols, sizeof(symbols));
    return library;
}

/* Those that cannot be opened are counted, and left out. */
static json_t *list_gpus(const struct nvml *nvml, unsigned int count)
{
    json_t *gpus = json_array();
    for (unsigned int i = 0; i < count; i++) {
        char uuid[TEXT_SIZE] = "";
        void *device = NULL;
        if (nvml->handle(i, &device) == SUCCESS && nvml->uuid(device, uuid, sizeof(uuid)) == SUCCESS)
            (void)json_array_append_new(gpus, json_pack("{s:i, s:s}", "number", (int)i, "uuid", uuid));
    }
    return gpus;
}

int probe_nvml(const struct probe_options *options, const struct cuda_api *api)
{
    struct error err = { 0 };
    struct nvml nvml;
    unsigned int count = 0;
    void *library = load(options->nvml_library, &nvml, &err);
    if (library == NULL)
        return probe_failed(&err);
    int code = nvml.init();
    if (code == SUCCESS)
        code = nvml.count(&count);
    json_t *line = json_pack("{s:s, s:i, s:i, s:o}", "result", code == SUCCESS ? "passed" : "failed", "code",
        code, "count", (int)count, "gpus", list_gpus(&nvml, code == SUCCESS ? count : 0));
    char *text = json_dumps(line, JSON_COMPACT);
    (void)puts(text != NULL ? text : "{}");
    free(text);
    json_decref(line);
    return code == SUCCESS ? PROBE_OK : PROBE_WRONG;
}
