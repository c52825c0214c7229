"""A corpus of results: JSON of many nestings, text, CSV, HTML, logs, other scripts, one line. The same on every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "omicron",
    "sigma",
    "tau",
    "upsilon",
]
CJK = "検索結果一覧表示設定変更確認画面日本語文字列長大規模"
EMOJI = "😀🚀🧪👩‍🔬🇪🇺"
Result = dict[str, Any]


def text_result(*texts: str, **more: Any) -> Result:
    """A result of these texts."""
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def sentence(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def record(rng: random.Random, kind: int, number: int) -> Any:
    """A record of one of a few kinds."""
    match kind:
        case 0:
            return {
                "id": number,
                "title": sentence(rng, 5),
                "open": rng.random() < 0.5,
                "labels": rng.choices(WORDS, k=2),
            }
        case 1:
            user = {"login": rng.choice(WORDS), "id": rng.randrange(10**6), "site": {"admin": False, "url": None}}
            return {"number": number, "user": user, "body": sentence(rng, rng.randrange(1, 60)), "score": rng.random()}
        case 2:
            return [number, rng.choice(WORDS), rng.random(), None, True]
        case 3:
            return sentence(rng, rng.randrange(1, 20))
        case 4:
            return rng.randrange(-(10**9), 10**9)
        case 5:
            return {"name": "".join(rng.choices(CJK, k=12)), "notes": "".join(rng.choices(EMOJI, k=4)), "n": number}
        case 6:
            return {"key": f"k{number}", "blob": "x" * rng.randrange(1, 3000), "more": {"deep": [{"er": [number]}]}}
        case _:
            return {rng.choice(WORDS) + str(rng.randrange(30)): number for _ in range(rng.randrange(1, 12))}


def nest(rng: random.Random, depth: int, records: list[Any]) -> Any:
    """Records inside of objects and lists."""
    value: Any = records
    for level in range(depth):
        match rng.randrange(4):
            case 0:
                value = {"items": value, "total": len(records), "next": None}
            case 1:
                value = {"meta": {"page": level, "links": ["a", "b"]}, "data": value, "note": sentence(rng, 6)}
            case 2:
                value = [value]
            case _:
                value = {"a/b": {"c.d": value}, "other": [1, 2, 3], "~": {}}
    return value


def json_results(rng: random.Random) -> Iterator[tuple[str, Result]]:
    """JSON as text, with and without indents, beside structured content, and alone in it."""
    for kind in range(8):
        for depth in range(6):
            value = nest(rng, depth, [record(rng, kind, number) for number in range(rng.randrange(200, 900))])
            for form in range(4):
                name = f"json kind {kind} depth {depth} form {form}"
                wrapped = value if isinstance(value, dict) else {"result": value}
                match form:
                    case 0:
                        yield name, text_result(json.dumps(value))
                    case 1:
                        yield name, text_result(json.dumps(value, indent=2, ensure_ascii=False))
                    case 2:
                        yield name, text_result(json.dumps(value), structuredContent=wrapped)
                    case _:
                        yield name, {"content": [], "structuredContent": wrapped}


def odd_json(rng: random.Random) -> Iterator[tuple[str, Result]]:
    """JSON that is unusual, and what only looks like it."""
    big = 123456789012345678901234567890
    yield "an object of many keys", text_result(json.dumps({f"key {number}": number for number in range(5000)}))
    yield "one long string", text_result(json.dumps({"file": "main.py", "content": sentence(rng, 20000)}))
    yield "two large records", text_result(json.dumps([{"page": sentence(rng, 9000)}, {"page": sentence(rng, 9000)}]))
    yield "one giant among small", text_result(json.dumps([1, 2, sentence(rng, 20000), 3, {"x": []}]))
    yield (
        "records that are too large",
        text_result(json.dumps([{"n": n, "body": sentence(rng, 9000)} for n in range(9)])),
    )
    yield "large numbers", text_result(json.dumps({"rows": [{"n": big + n, "f": 0.1} for n in range(2000)]}))
    yield "odd numbers", text_result("[" + ",".join(f"1.000000000000000000{n}e-0{n % 9}" for n in range(3000)) + "]")
    yield "half a pair", text_result("[" + ",".join(f'"\\ud83d {n}"' for n in range(6000)) + "]")
    yield "doubled names", text_result("[" + ",".join(f'{{"a":{n},"a":{n + 1}}}' for n in range(5000)) + "]")
    yield "blanks around", text_result("\n\n  " + json.dumps([record(rng, 0, n) for n in range(900)]) + "  \n")
    yield "broken at its end", text_result(json.dumps([record(rng, 0, n) for n in range(900)])[:-1])
    yield "lines of JSON", text_result("\n".join(json.dumps(record(rng, 1, n)) for n in range(600)))
    yield "deep", text_result("[" * 150 + json.dumps([record(rng, 0, n) for n in range(500)]) + "]" * 150)
    yield "too deep", text_result("[" * 3000 + "1" + "]" * 3000 + " " * 60_000)
    yield "nothing but brackets", text_result("[" + "[],{}," * 15000 + "[]]")
    yield "empty lists", text_result(json.dumps({"a": [], "b": {}, "text": sentence(rng, 15000)}))
    yield "numbers", text_result(json.dumps(list(range(20000))))
    yield "a lone number", text_result("9" * 60_000)
    yield "a text in quotes", text_result(json.dumps(sentence(rng, 12000)))
    grid = [[rng.random() for _ in range(40)] for _ in range(120)]
    yield "a grid", text_result(json.dumps(grid))
    yield "an error", text_result(json.dumps([record(rng, 0, n) for n in range(900)]), isError=True)


def texts(rng: random.Random) -> Iterator[tuple[str, Result]]:
    """What is no JSON."""
    for number in range(12):
        rows = [",".join(str(rng.randrange(10**6)) for _ in range(number + 2)) for _ in range(4000)]
        yield f"CSV {number}", text_result("\n".join([",".join(f"column_{at}" for at in range(number + 2)), *rows]))
    for number in range(12):
        rows = [f"<li class='{rng.choice(WORDS)}'><a href='/{n}'>{sentence(rng, 6)}</a></li>" for n in range(900)]
        between = "\n" if number % 2 else ""
        yield f"HTML {number}", text_result(f"<!doctype html><html><body><ul>{between.join(rows)}</ul></body></html>")
    for number in range(12):
        rows = [
            f"2026-11-{n % 28 + 1:02} {rng.choice(['INFO', 'WARN', 'ERROR'])} {sentence(rng, 9)}" for n in range(1200)
        ]
        yield f"a log {number}", text_result(("\r\n" if number % 3 == 0 else "\n").join(rows))
    for number in range(10):
        yield f"CJK {number}", text_result("".join(rng.choices(CJK + "。\n" * (number % 2), k=60_000)))
        yield f"emoji {number}", text_result("".join(rng.choices(EMOJI + " ", k=45_000)))
        yield f"one line {number}", text_result("".join(rng.choices("abcdefgh", k=50_000 + number)))
        yield f"prose {number}", text_result("\n\n".join(sentence(rng, 80) for _ in range(150)))
        yield f"line ends {number}", text_result("\n" * (45_000 + number))
    yield "halves of pairs", text_result("a\ud83d b\ude00 " * 9000)
    odd = [
        "\x00\x01\x1b[31m",
        "\u2028\u2029\x85\x0b\x0c",
        "\ufeff",
        "e\u0301" * 9,
        '"\\"\\\\\\',
        "[pegboard] 1 characters",
    ]
    for number, part in enumerate(odd):
        yield f"odd characters {number}", text_result(f"{part}{sentence(rng, 3)}" * 4000)


def several(rng: random.Random) -> Iterator[tuple[str, Result]]:
    """Several blocks, some of them no text."""
    image = {"type": "image", "data": "iVBORw0KGgo=" * 9000, "mimeType": "image/png"}
    for count in (2, 3, 10, 150, 500, 3000):
        long = [
            {"type": "text", "text": f"{number} {sentence(rng, 4000 // count + 20)}"} for number in range(count * 2)
        ]
        yield f"{count * 2} texts", {"content": long}
        yield f"{count * 2} texts and pictures", {"content": [image, *long[:count], image, *long[count:], image]}
    for number in range(6):
        resource = {"uri": f"file:///notes/{number}.md", "mimeType": "text/markdown", "text": sentence(rng, 9000)}
        blob = {"type": "resource", "resource": {"uri": "file:///x.bin", "blob": "AAAA" * 20_000}}
        said = {"type": "text", "text": "Here it is:", "annotations": {"priority": 1}}
        yield f"a resource {number}", {"content": [said, {"type": "resource", "resource": resource}, blob]}
        records = [record(rng, 0, n) for n in range(700)]
        more = {"structuredContent": {"rows": records, "count": len(records)}, "_meta": {"of": {"the": "server"}}}
        yield f"words and structured content {number}", text_result(f"{len(records)} rows", **more)


def corpus(seed: int = 1) -> list[tuple[str, Result]]:
    """All of it: each with a name."""
    rng = random.Random(seed)
    return [*json_results(rng), *odd_json(rng), *texts(rng), *several(rng)]
