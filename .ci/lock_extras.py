"""Repeat each `name[extra]==version` of a lock as `name==version`: pip asks for hashes of both when both are required."""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^(?P<name>[a-z0-9.-]+)\[[a-z0-9, -]+\](?P<rest>==.*\n(?:    .*\n)*)", re.M)

for lock in map(Path, sys.argv[1:]):
    lock.write_text(BLOCK.sub(r"\g<name>\g<rest>\g<0>", lock.read_text()))
