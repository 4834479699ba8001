#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Given a worker whose guest renders, all it has open is its session, its gate, the render node,
# memory without a name and sockets of its own.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
uuid=$(vgpu_create 1_4)
guest-start g1 "$uuid"
guest_give g1 vk_check gl_check
assert_ok guest g1 /tmp/gl_check
assert_ok guest g1 /tmp/vk_check
worker=$(vgpu_worker "$uuid")
for fd in "/proc/$worker/fd"/*; do
	what=$(readlink "$fd") || continue
	case ${fd##*/}:$what in
	0:/dev/null | [12]:*) ;;
	*:anon_inode:* | *:/memfd:* | *:/dmabuf:* | *:socket:* | *:/dev/dri/renderD* | *:'/[octavo'* | *:octavo* | *:/dev/udmabuf) ;;
	*) fail "the worker has $what open as descriptor ${fd##*/}" ;;
	esac
done
