"""The page of what each method needs is made of the table."""

from tests.repository.rights import PAGE, document


def test_the_page_is_of_today() -> None:
    assert PAGE.read_text() == document(), "run python -m tests.repository.rights"
