"""/problems: what each problem type means and what to do about it."""

from html import escape

from litestar import MediaType, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from twiceshy_contract.problems import PROBLEMS, ProblemKind


@get("/problems", media_type=MediaType.HTML, include_in_schema=False, sync_to_thread=False)
def listing() -> Response[str]:
    """Show every problem."""
    return _page("Problems", "".join(_section(code, kind) for code, kind in sorted(PROBLEMS.items())))


@get("/problems/{code:str}", media_type=MediaType.HTML, include_in_schema=False, sync_to_thread=False)
def show(code: FromPath[str]) -> Response[str]:
    """Show one problem."""
    found = next((kind for known, kind in PROBLEMS.items() if known == code), None)
    if found is None:
        raise NotFoundException
    return _page(found.title, _section(code, found))


def _section(code: str, kind: ProblemKind) -> str:
    return (
        f"<h2 id='{escape(code)}'><code>{escape(code)}</code> ({kind.status})</h2>"
        f"<p><b>{escape(kind.title)}.</b></p><p>{escape(kind.remedy)}</p>"
    )


def _page(title: str, body: str) -> Response[str]:
    style = "body{font:1rem/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}"
    return Response(
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<style>{style}</style><body>{body}</body></html>",
        media_type=MediaType.HTML,
    )


ROUTES = (listing, show)
