"""Token shapes of the services that agents meet most: a fixed prefix, an alphabet, a length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from eval_core.suite.scrub.hits import Hit, secret_hit

__all__ = ["PROVIDERS", "provider_tokens"]

_EDGE = r"(?<![A-Za-z0-9_\-])"
_END = r"(?![A-Za-z0-9_\-])"


class Provider(NamedTuple):
    """One token shape; `needle` is a literal that every match holds, looked for first because it is cheap."""

    rule: str
    needle: str
    pattern: re.Pattern[str]


def _shape(rule: str, needle: str, body: str, end: str = _END) -> Provider:
    return Provider(rule, needle, re.compile(f"{_EDGE}(?:{body}){end}"))


PROVIDERS: tuple[Provider, ...] = (
    _shape("aws-access-key", "A", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"),
    _shape("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    _shape("gitlab-token", "gl", r"gl(?:pat|dt|ptt|ft|rt|imt|agent|oas|cbt|soat|ffct)-[\w.-]{18,}"),
    _shape("gitlab-token", "GR1348941", r"GR1348941[\w-]{18,}"),
    _shape("slack-token", "xox", r"xox[abcdeoprs](?:\.xox[bp])?-[\w-]{8,}"),
    _shape("slack-token", "xapp-", r"xapp-\d-[\w-]{10,}"),
    _shape("stripe-key", "_", r"(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    _shape("live-key", "_", r"[a-z]{2,16}_(?:live|prod)_[A-Za-z0-9]{20,}"),
    _shape("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    _shape("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    _shape("openrouter-key", "sk-or-", r"sk-or-(?:v\d-)?[\w-]{16,}"),
    _shape("openai-key", "sk-", r"sk-(?:proj-|svcacct-|admin-|None-|lf-)?[A-Za-z0-9][\w-]{18,}"),
    _shape("openai-key", "sess-", r"sess-[A-Za-z0-9]{30,}"),
    _shape("google-api-key", "AIza", r"AIza[\w-]{30,40}"),
    _shape("google-oauth", "ya29.", r"ya29\.[\w.-]{20,}"),
    _shape("google-oauth", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _shape("google-oauth", "1//0", r"1//0[\w-]{30,}"),
    _shape("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{28,}"),
    _shape("huggingface-token", "api_org_", r"api_org_[A-Za-z0-9]{28,}"),
    _shape("twilio-key", "", r"(?:SK|AC)[0-9a-f]{32}"),
    _shape("sendgrid-key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _shape("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _shape("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{32,}-[A-Za-z0-9]+"),
    _shape("resend-key", "re_", r"re_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _shape("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    _shape("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    _shape("crates-token", "cio", r"cio[A-Za-z0-9]{32}"),
    _shape("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _shape("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _shape("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
    _shape("heroku-key", "HRKU-", r"HRKU-[\w-]{30,}"),
    _shape("shopify-token", "shp", r"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{24,}"),
    _shape("square-token", "sq0", r"sq0(?:atp|csp|idp)-[\w-]{20,}"),
    _shape("square-token", "EAAA", r"EAAA[\w-]{50,}"),
    _shape("facebook-token", "EAA", r"EAA[A-Za-z0-9]{60,}"),
    _shape("telegram-token", ":", r"(?:bot)?\d{8,10}:[A-Za-z0-9_-]{32,46}"),
    _shape("discord-token", ".", r"[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{27,}"),
    _shape("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _shape("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    _shape("grafana-token", "gl", r"gl(?:sa|c)_[A-Za-z0-9+/_=]{20,}", end=""),
    _shape("vault-token", "hv", r"hv[sbr]\.[\w-]{20,}"),
    _shape("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{10,18}\.atlasv1\.[\w-]{40,}"),
    _shape("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    _shape("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{30,}"),
    _shape("notion-token", "secret_", r"secret_[A-Za-z0-9]{40,}"),
    _shape("postman-key", "PMAK-", r"PMAK-[0-9a-f]{20,}-[0-9a-f]{30,}"),
    _shape("newrelic-key", "NR", r"NR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{16,}"),
    _shape("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{30,}", end=""),
    _shape("figma-token", "fig", r"fig(?:d|u)_[\w-]{20,}"),
    _shape("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    _shape("atlassian-token", "AT", r"AT(?:ATT3|CTT3|BB)[\w=-]{20,}", end=""),
    _shape("cloudflare-key", "v1.0-", r"v1\.0-[0-9a-f]{20,}-[0-9a-f]{60,}"),
    _shape("supabase-key", "sb", r"sb(?:p_[0-9a-f]{36,}|_secret_[\w-]{16,})"),
    _shape("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}", end=""),
    _shape("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    _shape("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _shape("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _shape("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    _shape("fireworks-key", "fw_", r"fw_[A-Za-z0-9]{20,}"),
    _shape("tavily-key", "tvly-", r"tvly-[\w-]{20,}"),
    _shape("firecrawl-key", "fc-", r"fc-[0-9a-f]{32}"),
    _shape("nvidia-key", "nvapi-", r"nvapi-[\w-]{40,}"),
    _shape("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f_]{30,}"),
    _shape("elevenlabs-key", "sk_", r"sk_[0-9a-f]{40,}"),
    _shape("dropbox-token", "sl.", r"sl\.[\w-]{60,}"),
    _shape("azure-secret", "8Q~", r"[\w.~-]{3}8Q~[\w.~-]{30,40}"),
    _shape("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{12,26}"),
    _shape("tencent-key", "AKID", r"AKID[A-Za-z0-9]{24,40}"),
    _shape("jwt", "eyJ", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", end=""),
    _shape("mapbox-token", ".eyJ", r"[ps]k\.eyJ[\w-]{20,}(?:\.[\w-]+)?"),
    _shape("onepassword-token", "ops_eyJ", r"ops_eyJ[\w=-]{60,}", end=""),
    _shape("onepassword-key", "A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}"),
    _shape("tailscale-key", "tskey-", r"tskey-(?:auth|api|client|scim|webhook)-[\w-]{12,}"),
    _shape("sonar-token", "sq", r"sq[pau]_[0-9a-f]{40}"),
    _shape("artifactory-key", "AKC", r"AKC[a-zA-Z0-9]{10,}p[a-zA-Z0-9]{30,}"),
    _shape("artifactory-key", "cmVmdGtuOj", r"cmVmdGtuOj[A-Za-z0-9]{40,}"),
    _shape("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    _shape("fly-token", "fm", r"(?:FlyV1 )?fm[12][ar]?_[A-Za-z0-9+/=_,-]{40,}", end=""),
    _shape("vercel-token", "vc", r"vc[pkiar]_[A-Za-z0-9]{24,}"),
    _shape("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,}"),
    _shape("render-key", "rnd_", r"rnd_[A-Za-z0-9]{24,}"),
    _shape("typeform-token", "tfp_", r"tfp_[\w-]{40,}"),
    _shape("contentful-token", "CFPAT-", r"CFPAT-[\w-]{30,}"),
    _shape("dynatrace-token", "dt0", r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{50,}"),
    _shape(
        "prefixed-uuid",
        "-",
        r"(?:pat|access|secret|sk|key|token|api|sdk|mob|private|refresh|sandbox)(?:-[a-z0-9]{2,12}){0,3}"
        r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    _shape("dotted-key", ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"),
    _shape("swarm-token", "SWMTKN-", r"SWMTKN-1-[a-z0-9-]{40,}"),
    _shape("asana-token", "/", r"[012]/\d{12,18}(?:/\d+)?:[0-9a-f]{32}"),
    _shape("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    _shape("wallet-key", "prv", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{90,}"),
    _shape("encoded-private-key", "LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[A-Za-z0-9+/=]{20,}", end=""),
    _shape("password-hash", "$", r"\$(?:2[abxy]?|5|6|1|y|apr1)\$[\w./$,=-]{20,}", end=""),
    _shape("password-hash", "$argon2", r"\$argon2(?:id|i|d)\$[\w./$,=+-]{20,}", end=""),
)


# What manuals print in the place of a key.
_SAMPLE = re.compile(r"(?i)example|x{8}|0{12}|1234567890(?:abcdef|1234)|your[-_]|(?<=[-_])\.\.\.")


def provider_tokens(text: str, _key: str | None) -> Iterator[Hit]:
    """Find tokens by their issuer's form."""
    for rule, needle, pattern in PROVIDERS:
        if needle in text:
            for match in pattern.finditer(text):
                token = match.group()
                # Issuers draw digits too; `sk_test_placeholder` is what somebody typed.
                if _SAMPLE.search(token) or (token.islower() and not any(map(str.isdigit, token))):
                    continue
                yield secret_hit(match.start(), match.end(), rule, text)
