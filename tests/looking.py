"""Says what it sees of itself, and leaves as it is told: `python -m tests.looking CODE`."""

import os
import sys
from pathlib import Path

sys.stdout.write(f"{Path.cwd()} {os.environ.get('FRUIT')} {'LOST' in os.environ} {os.getsid(0) == os.getpid()}\n")
sys.stderr.write(f"{[number for number in range(3, 256) if Path(f'/proc/self/fd/{number}').exists()]}\n")
sys.exit(int(sys.argv[1]))
