"""The README's table of defaults that differ from Hive's; ``python -m tests.defaults`` writes it there."""

from pathlib import Path

from metastore.config import Config

DOCUMENT = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- settings: begin -->\n", "<!-- settings: end -->"


def table() -> str:
    """The text between the marks in README.md."""
    rows = [
        f"| `{setting.key}` | {setting.default} | {setting.wiki or '–'} | {setting.hive or '–'}"
        f" | {setting.why or 'As in the wiki.'} |\n"
        for setting, _ in Config().settings()
        if {setting.wiki, setting.hive} - {None, setting.default}
    ]
    return "| setting | here | wiki | 4.0.1 | why |\n|---|---|---|---|---|\n" + "".join(rows)


def main() -> None:
    """Write the table into README.md."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    main()
