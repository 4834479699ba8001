#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""hold_gate.py PID FILE: keep the gate of the worker PID closed until FILE is gone.

It does what an arbiter would (scheduler/gate.h): `open` is 0 and the heartbeat goes on. octavod
must be stopped meanwhile, or both write. Prints "closed" when it is.
"""
import mmap
import os
import struct
import sys
import time

OPEN, HEARTBEAT = 64, 72


def gate_of(pid):
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        if "octavo-gate" in os.readlink(f"{folder}/{name}"):
            return os.open(f"{folder}/{name}", os.O_RDWR)
    sys.exit(f"process {pid} has no gate")


def main():
    page = mmap.mmap(gate_of(int(sys.argv[1])), 4096)
    told = False
    while os.path.exists(sys.argv[2]):
        (beat,) = struct.unpack_from("<I", page, HEARTBEAT)
        struct.pack_into("<I", page, OPEN, 0)
        struct.pack_into("<I", page, HEARTBEAT, (beat + 1) & 0xffffffff)
        if not told:
            print("closed", flush=True)
            told = True
        time.sleep(0.05)


main()
