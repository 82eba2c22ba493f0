"""Runs the real `genba demo` and draws what it printed as demo.svg, beside this file."""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TARGET = Path(__file__).parent / "demo.svg"
GENBA = Path(sys.executable).parent / "genba"
SHOWN_FOLDER = "/tmp/genba-demo"  # noqa: S108  (a name in a picture, not a file)
FONTS = "DejaVu Sans Mono, Menlo, Consolas, monospace"
NIGHT = TerminalTheme(
    (22, 25, 32),
    (214, 219, 228),
    [(22, 25, 32), (242, 119, 122), (126, 211, 133), (240, 200, 110), (120, 170, 250), (200, 150, 240), (96, 208, 218),
     (214, 219, 228)],
    [(112, 122, 138), (255, 140, 140), (150, 230, 155), (250, 215, 130), (145, 190, 255), (220, 175, 255),
     (125, 225, 235), (255, 255, 255)],
)  # fmt: skip

STYLES = [
    (r"^\$ .*", "bold bright_white"),
    (r"^genba demo · .*", "bold bright_white"),
    (r"^/tmp/\S+", "bright_black"),
    (r"^ [▸·○◌‖].*", "bright_black"),
    (r"^ ●", "bold green"),
    (r"^ ✓", "bold green"),
    (r"^ [✗≠]", "bold red"),
    (r"^ \?", "bold magenta"),
    (r"(?<=  )● done", "bold green"),
    (r"(?<=  )✗ rejected", "bold red"),
    (r"(?<=  )\? waits", "bold magenta"),
    (r"tests_pass failed on \w+", "red"),
    (r"conflict with #\d+ in \S+,", "yellow"),
    (r'genba answer 5 "MIT"', "bold cyan"),
    (r"^ \d+ sessions · .*", "bold bright_white"),
    (r"^ next", "bold bright_white"),
    (r"(?<=^ next   ).*?(?=   )|(?<=^        )genba \S+(?: --\S+)?", "cyan"),
    (r"   (look around|goes on, once .*|the same in a browser|in your own repository)$", "bright_black"),
]
LEFT_OUT = ("step", "queued", "done", "paused")
"""What would make the picture long without saying more."""


def main() -> None:
    lines = ["$ genba demo", *demo_output()]
    width = max(len(line) for line in lines) + 3
    console = Console(record=True, width=width, file=io.StringIO())
    for line in lines:
        text = Text(line)
        for pattern, style in STYLES:
            text.highlight_regex(pattern, style)
        console.print(text, highlight=False, no_wrap=True, overflow="ignore")
    template = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    template = template.replace("Fira Code, monospace", FONTS)
    svg = console.export_svg(title="genba demo", theme=NIGHT, code_format=template, unique_id="genba-demo")
    TARGET.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {TARGET.name}: {len(lines)} lines, {width} columns\n")


def demo_output() -> list[str]:
    """What the demo prints, on both streams, in the order in which a terminal shows it."""
    with tempfile.TemporaryDirectory(prefix="ge", dir="/tmp") as folder:  # as long a name as the one that is shown
        home = Path(folder).resolve()
        words = [str(GENBA), "demo", "--folder", str(home)]
        found = {**os.environ, "PATH": f"{GENBA.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=found)
        lines = done.stdout.replace(str(home), SHOWN_FOLDER).rstrip().splitlines()
        return [line for line in lines if line[3:15].strip() not in LEFT_OUT]


if __name__ == "__main__":
    main()
