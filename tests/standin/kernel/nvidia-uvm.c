/* SPDX-License-Identifier: MIT */
/* Stands in for the part of NVIDIA's driver that CUDA needs too: its major number is any that is free. */
#include <linux/fs.h>
#include <linux/module.h>

#define NAME "nvidia-uvm"

static const struct file_operations operations = { .owner = THIS_MODULE };
static int major;

static int __init start(void)
{
    major = register_chrdev(0, NAME, &operations);
    return major < 0 ? major : 0;
}

static void __exit stop(void)
{
    unregister_chrdev(major, NAME);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Stand-in for NVIDIA's driver of unified memory");
MODULE_LICENSE("Dual MIT/GPL");
