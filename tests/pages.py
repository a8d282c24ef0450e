"""What a browser reads from a page."""

from html.parser import HTMLParser

FORBIDDEN = {"script", "img", "link", "iframe", "object", "embed", "base", "form", "image", "audio", "video"}
HOSTILE = ("<script>document.title='taken'</script>", "\"'></bdi></td><img src=x onerror=alert(1)>&amp;")


class Page(HTMLParser):
    """Tags, attributes, labels of figures and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.labels: list[str] = []
        self.parts: list[str] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "svg":
            self.labels.append(dict(attrs).get("aria-label") or "")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
