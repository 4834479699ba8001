// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - module life
 */
#include <linux/module.h>

#include "vgpu.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static int __init octavo_init(void)
{
	int ret;

	ret = mdev_register_driver(&octavo_mdev_driver);
	if (ret)
		return ret;
	ret = parents_init();
	if (ret)
		goto err_driver;
	ret = control_init();
	if (ret)
		goto err_parents;
	return 0;

err_parents:
	parents_exit();
err_driver:
	mdev_unregister_driver(&octavo_mdev_driver);
	return ret;
}

static void __exit octavo_exit(void)
{
	control_exit();
	parents_exit();
	mdev_unregister_driver(&octavo_mdev_driver);
}

module_init(octavo_init);
module_exit(octavo_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Octavo: virtual GPUs of fixed size as mediated devices");
MODULE_AUTHOR("Octavo developers");
MODULE_VERSION(OCTAVO_VERSION);
MODULE_SOFTDEP("post: vfio_iommu_type1");
