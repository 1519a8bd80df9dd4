"""What only the surroundings tell: other lines, other places of a session, the command, the form, the script."""

from __future__ import annotations

import json

import pytest

from eval_core.domain.fixture import Fixture
from eval_core.suite.audit import audit_fixture
from eval_core.suite.scrub import Identities, ScrubOptions, harvest, scrub_fixture, session_texts
from eval_core.suite.scrub.numbers_near_people import numbers_near_people
from eval_core.suite.scrub.replace import leaves


def _scrubbed(output: str, command: str = "cat notes.txt") -> str:
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": json.dumps({"command": command})}}
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "look around"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": output},
    ]
    fixture = Fixture(name="surroundings", messages=messages)
    scrubbed = scrub_fixture(fixture, ScrubOptions(keep_system=True, max_output=None)).fixture
    return "\n".join(session_texts(scrubbed))


@pytest.mark.parametrize(
    "form",
    [
        "Payee: Dedigek Marsh\nTFN: 476 323 684\nMobile: 0441 797 923",
        "Naam: Gerrit Vandorpel\nPostcode: 5995 LB",
        "ПІБ: Шевчук Оксана Петрівна\nРНОКПП: 2895106422",
        "ชื่อ-นามสกุล: สมชาย ใจดี\nเลขประจำตัวประชาชน: 3-1006-90965-01-3",
        "Họ và tên: Trần Thị Hạnh\nSố CCCD: 059560263369\nĐiện thoại: 0916 876 221",
    ],
)
def test_one_field_about_a_person_explains_the_other_fields_of_its_form(form: str) -> None:
    scrubbed = _scrubbed(form)
    values = [line.partition(": ")[2] for line in form.splitlines()]
    assert [value for value in values if value in scrubbed] == []


def test_a_number_is_somebodys_only_beside_a_person() -> None:
    assert [hit.entity for hit in numbers_near_people("Badge 4471920 Person3")] == ["4471920"]
    assert list(numbers_near_people("Badge 4471920 of the day")) == []
    assert list(numbers_near_people("Person3 closed build 44719200 at 10:41")) == []


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("司马文博 上午10:12\n测试环境又挂了，诸葛晓燕你那边看一下日志", ("司马文博", "诸葛晓燕")),
        ("Παρόντες: Θεοδώρα Καραγιάννη, Σπύρος Μπακογιώργος", ("Καραγιάννη", "Μπακογιώργος")),
        ("Коллеги, отчёт не сходится. Игорь Валентинович, посмотрите?", ("Валентинович",)),
        ("배포 전에 제갈민서 님한테 승인 받아주세요", ("제갈민서",)),
        ("株式会社北浜の長谷部 恵子です。", ("長谷部",)),
        ("السيد محمد العتيبي اتصل أمس", ("العتيبي",)),
    ],
)
def test_names_in_other_scripts_go(text: str, gone: tuple[str, ...]) -> None:
    scrubbed = _scrubbed(text)
    assert [name for name in gone if name in scrubbed] == []


@pytest.mark.parametrize(
    "text", ["Российская Федерация приняла закон", "请在配置文件中设置数据库连接", "サーバーの設定を確認してください"]
)
def test_sentences_in_other_scripts_stay(text: str) -> None:
    assert text in _scrubbed(text)


def test_an_address_tells_the_logins_of_its_owner() -> None:
    scrubbed = _scrubbed('edit "jraragar"\n    set email-to "joy.raragar@acme-corp.dev"')
    assert "raragar" not in scrubbed


def test_a_product_that_the_code_uses_stays_a_product() -> None:
    text = (
        "We deploy with Pennyworth today.\nls pennyworth/api.py pennyworth/db.py\nimport pennyworth.api\npennyworth-cli"
    )
    assert "with Pennyworth today" in _scrubbed(text)


@pytest.mark.parametrize(
    "text",
    [
        "ED25519 key fingerprint is SHA256:N20EiQ3arsH8hpS9txvnpnHwj9J4PG0TAfN+wxYQxe8.",
        "Mittwoch, 11. März 2026, 09:40 Uhr",
        "==> Pouring openssl@3--3.2.1.arm64_sonoma.bottle.tar.gz",
        "debug1: kex: algorithm: sntrup761x25519-sha512@openssh.com",
        "run_id:b9a5b6e96f4640fc982af76f78525816c195acb1",
        "SERVICE_START_NAME : NT AUTHORITY\\NetworkService",
    ],
)
def test_digests_dates_packages_and_system_accounts_stay(text: str) -> None:
    assert text in _scrubbed(text)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (">>> os.environ[\"DATADOG_API_KEY\"]\n'5f32c6a3732ade32a7d0c700e5e88d70'", "5f32c6a3732ade32a7d0c700e5e88d70"),
        ("secret_id             faa9c764-78e3-0a76-bced-a34c64c76e66", "faa9c764-78e3-0a76-bced-a34c64c76e66"),
        ("snmp-server community kJDnEbbutylLsC RO", "kJDnEbbutylLsC"),
        ("    Password    REG_BINARY    156ee0bf32759f5b", "156ee0bf32759f5b"),
    ],
)
def test_a_secret_is_weighed_by_what_names_it(text: str, gone: str) -> None:
    assert gone not in _scrubbed(text)


@pytest.mark.parametrize(
    ("output", "gone"),
    [
        ("> authorization: KakaoAK 4e40e9c652f409e2fc50dc02669d87c6", "4e40e9c652f409e2fc50dc02669d87c6"),
        ("<PESEL>44051401359</PESEL>", "44051401359"),
        ("System Information\n\tSerial Number: PFCEZFVI", "PFCEZFVI"),
        ("<array>\n\t<string>00008110-276BF440E037F98B</string>\n</array>", "00008110-276BF440E037F98B"),
        ("   Hostname  . . . . . . . . . . . . : GRANITE-WS14", "GRANITE-WS14"),
        ("connected as (bimorel31@93.184.7.20)", "bimorel31"),
    ],
)
def test_a_label_is_read_in_every_notation(output: str, gone: str) -> None:
    assert gone not in _scrubbed(output)


@pytest.mark.parametrize(
    "kept",
    [
        "db_password: ENC[AES256_GCM,data:Wg+QDuoj+UGZZJW2,iv:6ZOt51DtA+501RSmiIlaezE4=,tag:WLCpyiksz/Cx==,type:str]",
        "Serial Number: UNKNOWN",
        "jq: ELF 64-bit LSB pie executable, BuildID[sha1]=b5b5f83721a98d00cb74ab11af40d06e3dfcd961, stripped",
    ],
)
def test_what_is_encrypted_or_tells_of_nobody_stays(kept: str) -> None:
    assert kept in _scrubbed(kept)


def test_a_machine_called_after_an_ordinary_word_leaves_the_word_alone() -> None:
    scrubbed = _scrubbed('url: [host: "ledger.orvendale.net", port: 443]\nmodified: src/relay/ledger.py')
    assert "ledger.orvendale.net" not in scrubbed
    assert "src/relay/ledger.py" in scrubbed


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("owner: Bogdan Țurcanu\nI asked Bogdan, and Țurcanu will merge it", ("Bogdan", "Țurcanu")),
        ("thanks to Bogdan Țurcanu for the fix", ("Bogdan", "Țurcanu")),
        ("contact: Lê Quang Vinh\nVinh called, then Quang", ("Lê", "Quang", "Vinh")),
        ("I spoke with Lê Quang Vinh today", ("Quang", "Vinh")),
        ("担当者: 田中 美咲\n田中さんに確認済み、美咲さんが対応", ("田中", "美咲")),
        ("昨日、田中 美咲さんが確認しました", ("田中", "美咲")),
        # As macOS spells accents: a letter, and a mark after it.
        ("owner: Bogdan T\u0326urcanu\nI asked Bogdan, and T\u0326urcanu will merge it", ("Bogdan", "urcanu")),
        ("owner: Le\u0302 Quang Vinh\nVinh called", ("Quang", "Vinh", "\u0302")),
    ],
)
def test_no_half_of_a_name_stays(text: str, parts: tuple[str, ...]) -> None:
    scrubbed = _scrubbed(text)
    assert [part for part in parts if part in scrubbed] == []


@pytest.mark.parametrize("value", ["محمد العتيبي", "هبة الله عبد المنعم", "小野寺 拓海", "Соломія Куцик"])
def test_a_name_in_another_script_goes_from_under_a_plain_name_key(value: str) -> None:
    assert value not in _scrubbed(json.dumps({"id": 7, "name": value}, ensure_ascii=False))


def test_coordinates_of_a_drawing_are_no_place() -> None:
    text = '<g transform="translate(12.34567, 45.67891)"><path d="M12.34567,45.67891 L13.00001,46.12345"/></g>'
    assert text in _scrubbed(text)


@pytest.mark.parametrize("word", ["worker", "network", "work", "workspace"])
def test_a_machine_called_after_a_word_makes_no_finding_of_longer_words(word: str) -> None:
    fixture = Fixture(
        name="machine",
        messages=[
            {"role": "user", "content": f"$ ssh dev@work\nthe {word} of the queue is slow"},
            {"role": "assistant", "content": "Fine."},
            {"role": "user", "content": "Thanks."},
            {"role": "assistant", "content": "Done."},
        ],
    )
    found, _ = harvest(piece for text in session_texts(fixture) for piece in leaves(text))
    people = Identities(groups=[(one.alias,) for one in found if not one.doubtful])
    options = ScrubOptions(people, keep_system=True, max_output=None)
    after = scrub_fixture(fixture, options).fixture
    assert word in after.messages[0]["content"]
    assert audit_fixture(after, people) == []
