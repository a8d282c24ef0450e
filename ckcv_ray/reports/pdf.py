"""The page as a PDF, by WeasyPrint where it is installed: it knows the page's rules for printing.

Nothing is loaded: whatever address the page might name is refused.
"""

from typing import Any, NoReturn

from ckcv_ray.errors import InputError, write_install

ADVICE = (
    f"a PDF needs WeasyPrint: {write_install('pdf')} (and the system's Pango library), or print the HTML "
    "report from a browser"
)


def check_pdf() -> Any:
    """Return WeasyPrint's document class.

    Raises:
        InputError: WeasyPrint, or a library of the system that it needs, is not installed.
    """
    try:
        from weasyprint import HTML
    except (ImportError, OSError):  # OSError: Pango is missing
        raise InputError(ADVICE) from None
    return HTML


def make_pdf(page: str) -> bytes:
    """Return a page as a PDF.

    Raises:
        InputError: as ``check_pdf``.
    """
    made: bytes = check_pdf()(string=page, url_fetcher=_refuse).write_pdf()
    return made


def _refuse(url: str, *_: Any, **__: Any) -> NoReturn:
    raise ValueError(f"a report loads nothing, and names {url!r}")
