"""A few memories of a small project, for tests of search."""

from __future__ import annotations

from pegboard.toolsets.memory.memories import Memories

CORPUS: dict[str, tuple[str, str]] = {
    "shop:billing:decision:use-stripe": (
        "Payments run through Stripe",
        "We chose Stripe because its invoices fit ours. Refunds are settled within ten days.",
    ),
    "shop:billing:bug:double-charge": (
        "Customers were charged twice",
        "A retry after a timeout charged the card again. Idempotency keys prevent it now.",
    ),
    "shop:auth:design:sessions": (
        "Sessions live in Redis",
        "Authentication tokens expire after 30 minutes; the refresh token is rotated on every use.",
    ),
    "shop:search:experiment:synonyms": (
        "Synonyms did not help",
        "Recall rose by one percent and precision fell by four, so the synonym dictionary was dropped.",
    ),
    "shop:ops:constrained:deploys": (
        "No deployments on Fridays",
        "GitHub Actions deploys to Kubernetes; parseHttpRequest and read_config_file are the slowest steps.",
    ),
    "shop:i18n:設計:日本語": (
        "日本語の請求書",
        "請求書は令和3年度から電子化された。税率は10%です。検索機能も対応済み。",
    ),
    "shop:i18n:bug:umlauts": (
        "Umlaute in Adressen",
        "Die Straße in Zürich wurde als Z?rich gedruckt; façade, naïve and Müller are fine now.",
    ),
    "shop:ui:assumption:kebab": (
        "The order-status-page is what people look for",
        "Most visitors open it from the e-mail. The whole of it is to be or not to be.",
    ),
}


async def write_corpus(memories: Memories, namespace: str | None = None) -> None:
    """Write all of them."""
    for key, (summary, text) in CORPUS.items():
        await memories.add(key, summary, text, namespace=namespace)
