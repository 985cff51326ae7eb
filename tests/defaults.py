"""The table of defaults that differ from Hive's; ``python -m tests.defaults`` writes it into the page of settings."""

from pathlib import Path

from metastore.config import Config

DOCUMENT = Path(__file__).parent.parent / "docs" / "operate" / "settings.md"
BEGIN, END = "<!-- settings: begin -->\n", "<!-- settings: end -->"


def table() -> str:
    """The text between the marks."""
    rows = [
        f"| `{setting.key}` | {setting.default} | {setting.wiki or '–'} | {setting.hive or '–'}"
        f" | {setting.why or 'As in the wiki.'} |\n"
        for setting, _ in Config().settings()
        if {setting.wiki, setting.hive} - {None, setting.default}
    ]
    return "| setting | here | wiki | 4.0.1 | why |\n|---|---|---|---|---|\n" + "".join(rows)


def main() -> None:
    """Write the table into the page."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    main()
