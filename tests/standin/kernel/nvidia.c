/* SPDX-License-Identifier: MIT */
/*
 * Stands in for NVIDIA's kernel driver in a virtual machine, as far as access to its nodes is concerned: the
 * options of the module, /proc/driver/nvidia/params, which nvidia-modprobe reads, and the major number. Like
 * the driver it has no device in sysfs, so that udev never sees its nodes. Opening one succeeds.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#define MAJOR_NUMBER 195

static uint NVreg_ModifyDeviceFiles = 1, NVreg_DeviceFileUID, NVreg_DeviceFileGID,
            NVreg_DeviceFileMode = 0666;
module_param(NVreg_ModifyDeviceFiles, uint, 0400);
module_param(NVreg_DeviceFileUID, uint, 0400);
module_param(NVreg_DeviceFileGID, uint, 0400);
module_param(NVreg_DeviceFileMode, uint, 0400);

static const struct file_operations operations = { .owner = THIS_MODULE };

/* In the order and the decimal form of the driver. */
static int show_params(struct seq_file *file, void *unused)
{
    seq_printf(file, "ModifyDeviceFiles: %u\nDeviceFileUID: %u\nDeviceFileGID: %u\nDeviceFileMode: %u\n",
        NVreg_ModifyDeviceFiles, NVreg_DeviceFileUID, NVreg_DeviceFileGID, NVreg_DeviceFileMode);
    return 0;
}

static int __init start(void)
{
    struct proc_dir_entry *directory;
    int r = register_chrdev(MAJOR_NUMBER, "nvidia-frontend", &operations);
    if (r < 0)
        return r;
    directory = proc_mkdir("driver/nvidia", NULL);
    if (directory != NULL && proc_create_single("params", 0444, directory, show_params) != NULL)
        return 0;
    remove_proc_subtree("driver/nvidia", NULL);
    unregister_chrdev(MAJOR_NUMBER, "nvidia-frontend");
    return -ENOMEM;
}

static void __exit stop(void)
{
    remove_proc_subtree("driver/nvidia", NULL);
    unregister_chrdev(MAJOR_NUMBER, "nvidia-frontend");
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Stand-in for NVIDIA's driver");
MODULE_LICENSE("Dual MIT/GPL");
