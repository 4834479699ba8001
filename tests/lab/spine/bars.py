#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bars.py FILE.ppm WIDTH HEIGHT: is it modetest's SMPTE picture of that size, pixel for pixel?

The picture is described by its rules (bands of a sixth and sevenths), so that the device under test
has no part in what it is compared with. Says how many pixels differ and where the first one is.
"""
import sys

TOP = [(192, 192, 192), (192, 192, 0), (0, 192, 192), (0, 192, 0), (192, 0, 192), (192, 0, 0),
       (0, 0, 192)]
MIDDLE = [(0, 0, 192), (19, 19, 19), (192, 0, 192), (19, 19, 19), (0, 192, 192), (19, 19, 19),
          (192, 192, 192)]
BOTTOM = [(0, 33, 76), (255, 255, 255), (50, 0, 106), (19, 19, 19), (9, 9, 9), (19, 19, 19),
          (29, 29, 29), (19, 19, 19)]


def line(colours):
    return b"".join(bytes(colour) for colour in colours)


def bottom(x, width):
    if x < width * 5 // 7:
        return BOTTOM[x * 4 // (width * 5 // 7)]
    if x < width * 6 // 7:
        return BOTTOM[(x - width * 5 // 7) * 3 // (width // 7) + 4]
    return BOTTOM[7]


def picture(width, height):
    top = line(TOP[x * 7 // width] for x in range(width))
    middle = line(MIDDLE[x * 7 // width] for x in range(width))
    last = line(bottom(x, width) for x in range(width))
    for y in range(height):
        yield top if y < height * 6 // 9 else middle if y < height * 7 // 9 else last


def main():
    path, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, "rb") as file:
        head = [file.readline().split() for _ in range(3)]
        data = file.read()
    if head != [[b"P6"], [str(width).encode(), str(height).encode()], [b"255"]]:
        print(f"{path} is {head}, not a picture of {width}x{height}")
        return 1
    stride = 3 * width
    differ, first = 0, None
    for y, wanted in enumerate(picture(width, height)):
        got = data[y * stride:(y + 1) * stride]
        if got == wanted:
            continue
        for x in range(width):
            if got[3 * x:3 * x + 3] != wanted[3 * x:3 * x + 3]:
                differ += 1
                first = first or (x, y, tuple(got[3 * x:3 * x + 3]),
                                  tuple(wanted[3 * x:3 * x + 3]))
        if differ > 100000:
            break
    if differ:
        print("%d or more pixels differ, the first at %d,%d: %s, wanted %s" % (differ, *first))
        return 1
    print(f"{width * height} pixels are equal")
    return 0


sys.exit(main())
