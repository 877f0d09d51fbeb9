/* SPDX-License-Identifier: MIT */
/*
 * Stands in for AMD's kernel driver in a virtual machine, as far as access to its nodes is concerned: kfd and
 * a render node, which the kernel creates and udev opens. The render node of a second GPU is of a vendor
 * whose GPUs are not mgpu's.
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/platform_device.h>

#define VENDOR_AMD   "0x1002\n"
#define VENDOR_OTHER "0x1af4\n"
#define N_GPUS       2
#define FIRST_RENDER 128

static const struct file_operations operations = { .owner = THIS_MODULE };
static struct platform_device *gpus[N_GPUS];
static struct class *kfd, *drm;
static int major;

static ssize_t vendor_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return sysfs_emit(text, "%s", to_platform_device(device)->id == 0 ? VENDOR_AMD : VENDOR_OTHER);
}
static DEVICE_ATTR_RO(vendor);

static struct attribute *gpu_attrs[] = { &dev_attr_vendor.attr, NULL };
ATTRIBUTE_GROUPS(gpu);

static char *name_render_node(struct device *device, umode_t *mode)
{
    return kasprintf(GFP_KERNEL, "dri/%s", dev_name(device));
}

static void remove_all(void)
{
    int i;
    for (i = 0; i < N_GPUS; i++) {
        if (!IS_ERR_OR_NULL(drm))
            device_destroy(drm, MKDEV(major, FIRST_RENDER + i));
        if (!IS_ERR_OR_NULL(gpus[i]))
            platform_device_unregister(gpus[i]);
    }
    if (!IS_ERR_OR_NULL(kfd)) {
        device_destroy(kfd, MKDEV(major, 0));
        class_destroy(kfd);
    }
    if (!IS_ERR_OR_NULL(drm))
        class_destroy(drm);
    unregister_chrdev(major, "amdgpu-standin");
}

/* The attribute is there before the render node's event, as for a PCI device. */
static int __init add_gpu(int i)
{
    struct device *node;
    const struct platform_device_info description = { .name = "gpu-standin", .id = i };
    gpus[i] = platform_device_register_full(&description);
    if (IS_ERR(gpus[i]))
        return PTR_ERR(gpus[i]);
    if (device_add_groups(&gpus[i]->dev, gpu_groups) < 0)
        return -ENOMEM;
    node = device_create(
        drm, &gpus[i]->dev, MKDEV(major, FIRST_RENDER + i), NULL, "renderD%d", FIRST_RENDER + i);
    return PTR_ERR_OR_ZERO(node);
}

static int __init start(void)
{
    int i, r;
    major = register_chrdev(0, "amdgpu-standin", &operations);
    if (major < 0)
        return major;
    kfd = class_create(THIS_MODULE, "kfd");
    drm = class_create(THIS_MODULE, "drm");
    r = IS_ERR(kfd) ? PTR_ERR(kfd) : PTR_ERR_OR_ZERO(drm);
    if (r == 0) {
        drm->devnode = name_render_node;
        r = PTR_ERR_OR_ZERO(device_create(kfd, NULL, MKDEV(major, 0), NULL, "kfd"));
    }
    for (i = 0; r == 0 && i < N_GPUS; i++)
        r = add_gpu(i);
    if (r < 0)
        remove_all();
    return r;
}

static void __exit stop(void)
{
    remove_all();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Stand-in for AMD's driver");
MODULE_LICENSE("Dual MIT/GPL");
