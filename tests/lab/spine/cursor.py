#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""cursor.py FILE.ppm WIDTH HEIGHT [X Y]: is it the picture of kms.c, with its cursor's upper left
corner at X Y (which may lie outside), or without one?
"""
import sys


def main():
    path, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    left, top = (int(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 4 else (width, height)
    with open(path, "rb") as file:
        head = [file.readline().split() for _ in range(3)]
        data = file.read()
    if head[1] != [str(width).encode(), str(height).encode()]:
        print(f"{path} is {head}, not a picture of {width}x{height}")
        return 1
    for y in range(height):
        row = bytearray()
        for x in range(width):
            row += bytes((x & 255, y & 255, 0x40))
        if top <= y < top + 64:
            for x in range(max(left, 0), min(left + 64, width)):
                if x - left < 32:
                    pixel = bytes(0x80 + (c * 127 + 127) // 255 for c in row[3 * x:3 * x + 3])
                else:
                    pixel = b"\xff\x00\xff"
                row[3 * x:3 * x + 3] = pixel
        got = data[3 * width * y:3 * width * (y + 1)]
        if got != bytes(row):
            x = next(i for i in range(width) if got[3 * i:3 * i + 3] != row[3 * i:3 * i + 3])
            print(f"pixel {x},{y} is {tuple(got[3 * x:3 * x + 3])}, "
                  f"wanted {tuple(row[3 * x:3 * x + 3])}")
            return 1
    return 0


sys.exit(main())
