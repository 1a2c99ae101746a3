"""Each line of the table of key formats, by a key made up for it."""

from __future__ import annotations

import pytest

from omcli.text.redaction import FORMATS, redact
from tests.unit.text.secret_kinds import BASE64, HEX, URL_SAFE, fake

CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SMALL = CAPITALS.lower()
UUID = "-".join(fake(length, HEX) for length in (8, 4, 4, 4, 12))

# What follows the prefix, by the first prefix of the line in the table.
RESTS = {
    "sk-ant-": "api03-" + fake(95, URL_SAFE),
    "sk-or-": "v1-" + fake(64, HEX),
    "sk-lf-": UUID,
    "sk-": fake(48),
    "ghp_": fake(36),
    "github_pat_": f"{fake(22)}_{fake(59)}",
    "AKIA": fake(16, CAPITALS),
    "ABSK": fake(120, BASE64),
    "bedrock-api-key-": fake(130, BASE64),
    "xoxa-": f"2-{fake(48)}",
    "xoxe.": f"xoxp-1-{fake(120)}",
    "AIza": fake(35, URL_SAFE),
    "ya29.": "a0Af" + fake(150, URL_SAFE),
    "1//0": fake(60, URL_SAFE),
    "GOCSPX-": fake(28, URL_SAFE),
    "glpat-": fake(20, URL_SAFE),
    "GR1348941": fake(20, URL_SAFE),
    "npm_": fake(36),
    "pypi-Ag": fake(150, URL_SAFE),
    "rubygems_": fake(48, HEX),
    "cio": fake(32),
    "CLOJARS_": fake(60, HEX),
    "oy2": fake(43, SMALL),
    "hf_": fake(34),
    "sk_live_": fake(24),
    "whsec_": fake(20) + "+" + fake(20) + "==",
    "sk_": fake(48, HEX),
    "xai-": fake(80),
    "gsk_": fake(52),
    "r8_": fake(37),
    "pplx-": fake(48),
    "fw_": fake(24),
    "tgp_v1_": fake(43, URL_SAFE),
    "csk-": fake(48),
    "nvapi-": fake(64, URL_SAFE),
    "tvly-": "dev-" + fake(32),
    "fc-": fake(32, HEX),
    "jina_": fake(60, URL_SAFE),
    "lsv2_pt_": f"{fake(32, HEX)}_{fake(10, HEX)}",
    "wandb_v1_": fake(77, URL_SAFE),
    "SG.": f"{fake(22, URL_SAFE)}.{fake(43, URL_SAFE)}",
    "key-": fake(32, HEX),
    "xkeysib-": f"{fake(64, HEX)}-{fake(16)}",
    "re_": f"{fake(8)}_{fake(24)}",
    ":AA": fake(33, URL_SAFE),
    "MT": f"{fake(24, URL_SAFE)}.{fake(6, URL_SAFE)}.{fake(38, URL_SAFE)}",
    "hvs.": "CAES" + fake(91, URL_SAFE),
    "atlasv1.": fake(67, URL_SAFE),
    "dop_v1_": fake(64, HEX),
    "dckr_pat_": fake(27, URL_SAFE),
    "shpat_": fake(32, HEX),
    "dapi": fake(32, HEX),
    "lin_api_": fake(40),
    "AGE-SECRET-KEY-1": fake(58, CAPITALS),
    "ops_eyJ": fake(250),
    "A3-": "-".join(fake(length, CAPITALS) for length in (6, 6, 5, 5, 5, 5)),
    "pat": f"{fake(14)}.{fake(64, HEX)}",
    "pcsk_": f"{fake(6)}_{fake(63)}",
    "p8e-": fake(32),
    "LTAI": fake(20),
    "AKCp": fake(69),
    "cmVmd": fake(59),
    "ATATT3": "xFf" + fake(180, URL_SAFE) + "=" + fake(8, HEX).upper(),
    "ATBB": fake(32),
    "bkua_": fake(40, HEX),
    "CCIPAT_": f"{fake(22)}_{fake(40, HEX)}",
    "4b1d": fake(38),
    "v1.0-": f"{fake(24, HEX)}-{fake(146, HEX)}",
    "CFPAT-": fake(43, URL_SAFE),
    "dp.pt.": fake(43),
    "duffel_test_": fake(43, URL_SAFE),
    "dt0c01.": f"{fake(24, CAPITALS)}.{fake(64, CAPITALS)}",
    "EZAK": fake(54),
    "EAA": fake(180),
    "figd_": fake(40, URL_SAFE),
    "FLWSECK-": fake(32) + "-X",
    "FLWSECK_TEST-": fake(32) + "-X",
    "fo1_": fake(43, URL_SAFE),
    "fm1r_": fake(200),
    "fio-u-": fake(64, URL_SAFE),
    "glc_": fake(60) + "==",
    "glsa_": f"{fake(32)}_{fake(8, HEX)}",
    "eyJrIjoi": fake(80),
    "pat.": f"{fake(22, URL_SAFE)}.{fake(24)}.{fake(20)}",
    "HRKU-": "AA" + fake(58),
    "hcaik_": fake(58, SMALL),
    "pat-na1-": UUID,
    "ico-": fake(32),
    "nfp_": fake(36),
    "napi_": fake(64, SMALL),
    "NRAK-": fake(27, CAPITALS),
    "NRII-": fake(32, URL_SAFE),
    "ntn_": f"{fake(12, '0123456789')[:11]}{fake(35)}",
    "secret_": fake(43),
    "API-": fake(26, CAPITALS),
    "sha256~": fake(43, URL_SAFE),
    "access-sandbox-": UUID,
    "pscale_tkn_": fake(43, URL_SAFE),
    "PMAK-": f"{fake(24, HEX)}-{fake(34, HEX)}",
    "phx_": fake(43),
    "pnu_": fake(36),
    "pul-": fake(40, HEX),
    "rdme_": fake(70, SMALL),
    "rnd_": fake(28),
    "tk-us-": fake(48, URL_SAFE),
    "sntrys_": f"eyJ{fake(120)}_{fake(43)}",
    "sntryu_": fake(64, HEX),
    "shippo_live_": fake(40, HEX),
    "squ_": fake(40, HEX),
    "sgp_": f"{fake(16, HEX)}_{fake(40, HEX)}",
    "EAAA": fake(60, URL_SAFE),
    "sbp_": fake(40, HEX),
    "sb_secret_": f"{fake(22, URL_SAFE)}_{fake(8)}",
    "tskey-auth-": f"{fake(12)}CNTRL-{fake(32)}",
    "SK": fake(32, HEX),
    "AAAAAAAAAAAAAAAAAAAA": f"{fake(22)}%2B{fake(60)}",
    "vcp_": fake(56),
    "AQVN": fake(36, URL_SAFE),
    "eyJ": f"{fake(33)}.eyJ{fake(70, URL_SAFE)}.{fake(43, URL_SAFE)}",
    "ZXlK": fake(120),
}
# What precedes the prefix in the keys that don't begin with it.
BEFORE = {":AA": "8123456789", "atlasv1.": f"{fake(14)}."}


def test_each_line_of_the_table_has_a_made_up_key() -> None:
    """XE5."""
    assert set(RESTS) == {prefixes.split()[0] for _, prefixes, _ in FORMATS}


@pytest.mark.parametrize(
    ("rule", "prefix", "rest"),
    [(rule, prefix, RESTS[prefixes.split()[0]]) for rule, prefixes, _ in FORMATS for prefix in prefixes.split()],
)
def test_a_key_of_each_prefix_is_replaced(rule: str, prefix: str, rest: str) -> None:
    """XE5. Some prefixes are kept, but nothing of what follows them, in text, after an escape and in a diff."""
    for around in ("use {}, please", '{{"a": "\\n{}"}}', "?a%3D{}&b", "-{}\n"):
        redacted = redact(around.format(BEFORE.get(prefix, "") + prefix + rest))
        assert redacted.counts == {rule: 1}, around
        assert not any(rest[at : at + 6] in redacted.text for at in range(len(rest) - 5)), around


def test_a_prefix_alone_is_no_key() -> None:
    """XE5: documentation may name the prefix."""
    for rule, prefixes, _ in FORMATS:
        for prefix in prefixes.split():
            assert redact(f"a {rule} begins with {prefix}, and {prefix}… follows").counts == {}, prefix


def test_a_hash_after_a_prefix_of_another_length_stays() -> None:
    """XE5."""
    text = f"key-{fake(31, HEX)} dapi{fake(40, HEX)}"
    assert redact(text).text == text
