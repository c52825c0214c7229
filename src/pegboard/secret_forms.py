"""Forms of secrets: texts that are secrets whatever they are called and wherever they stand."""

from __future__ import annotations

import re

from pegboard.log import REDACTED

# Of who gives them out, where it is not plain from the form. What only begins like one may be a name, so that some need
# a digit.
_SECRET = re.compile(
    r"pgb_[A-Za-z0-9_-]{8,}|\bBearer\s+\S+|\bBasic\s+[A-Za-z0-9+/=]{8,}|(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*|(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"
    # GitHub, GitLab
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    # OpenAI and Anthropic, Google, Hugging Face, Notion, Linear, Figma
    r"|(?<![\w-])sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\bntn_[A-Za-z0-9]{8,}|\blin_api_[A-Za-z0-9]{16,}|\bfigd_[\w-]{16,}"
    # AWS, Slack, Stripe, SendGrid, npm, PyPI
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}"
    r"|\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}|\bSG\.[\w-]{16,}\.[\w-]{16,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}"
)


def redact_text(text: str) -> str:
    """A text without what is secret in it by its form."""
    return _SECRET.sub(REDACTED, text)
