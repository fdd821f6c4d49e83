"""Counts the cache lines of 64 bytes that threads pass to each other, in a trace of lackey
(`--trace-mem=yes --trace-sched=yes`), between two places in percent: accesses to a line that
another thread wrote last, and writes to a line that another thread has read since."""

import os
import re
import sys

turn = re.compile(r"SCHED\[(\d+)\]:  acquired lock")
thread = 0
writers: dict[int, int] = {}
readers: dict[int, set[int]] = {}
passed = at = 0
first_byte, last_byte = (os.path.getsize(sys.argv[1]) * int(p) // 100 for p in sys.argv[2:4])
with open(sys.argv[1], encoding="ascii", errors="replace") as trace:
    for text in trace:
        kind = text[:2]
        at += len(text)
        counts = first_byte <= at < last_byte
        if kind in (" L", " S", " M"):
            address, size = text[3:].split(",")
            first, last = int(address, 16), int(address, 16) + int(size) - 1
            for line in range(first >> 6, (last >> 6) + 1):
                if kind == " L":
                    if writers.get(line, thread) != thread:
                        passed += counts
                        readers[line] = {writers.pop(line)}
                    readers.setdefault(line, set()).add(thread)
                else:
                    users = readers.pop(line, set()) | {writers.get(line, thread)}
                    passed += counts and users != {thread}
                    writers[line] = thread
        elif match := turn.search(text):
            thread = int(match[1])
print(passed)
