# SPDX-License-Identifier: LGPL-2.1-or-later
# What native tests of the slice layer share: the driver, and a manifest for the layer as built.
# Sourced by them. OCTAVO_DRIVER: a driver's manifest in place of lavapipe's.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export VK_DRIVER_FILES=${OCTAVO_DRIVER:-/usr/share/vulkan/icd.d/lvp_icd.json}
export VK_LOADER_LAYERS_DISABLE='~implicit~'
# a software engine must leave a core to the arbiter
export LP_NUM_THREADS=1
layer_dir=$work/layer
mkdir "$layer_dir"
sed "s|@LAYER_LIBRARY@|$OCTAVO_BUILD/.libs/VkLayer_octavo_slice.so|" \
	"$OCTAVO_TREE/scheduler/layer/VkLayer_octavo_slice.json.in" >"$layer_dir/VkLayer_octavo_slice.json"
export OCTAVO_LAYER_PATH=$layer_dir

fail() {
	echo "FAIL: $*" >&2
	exit 1
}
