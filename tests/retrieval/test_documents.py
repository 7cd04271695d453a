"""Documents: reading each file type, refusing bad files, and storing the text."""

import contextlib
import io
import os
import stat
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from contend.graph.errors import BadInput
from contend.retrieval import documents
from contend.retrieval.documents import (
    DocumentPage,
    Loaded,
    Passage,
    corpus_id,
    load_corpus,
    load_documents,
    save_corpus,
)
from contend.retrieval.readers import KINDS, read


def pdf(*pages: str) -> bytes:
    """Return a minimal PDF; an empty string makes a page without text."""
    kids = " ".join(f"{4 + 2 * nth} 0 R" for nth in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for nth, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj 0 -14 Td" for line in text.split("\n") if line)
        drawn = f"BT /F1 12 Tf 72 720 Td {lines} ET" if lines else "0 0 m"
        objects += [
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
            f"/Contents {5 + 2 * nth} 0 R>>",
            f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
        ]
    written = "%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += f"{number} 0 obj{body}endobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    end = f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer<</Size {count}/Root 1 0 R>>\n"
    return f"{written}{end}startxref\n{len(written)}\n%%EOF\n".encode()


def locked(data: bytes, user: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, "owner", algorithm="RC4-128")
    sink = io.BytesIO()
    writer.write(sink)
    return sink.getvalue()


# What takes a second would take hours if it were quadratic; a busy machine is no reason to fail.
at_once = pytest.mark.timeout(60)
TWO_PAGES = pdf("The first page has words.", "The second page\nhas two lines.")


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def load_one(path: Path) -> Loaded:
    loaded, notices = load_documents([path])
    assert notices == []
    assert len(loaded) == 1
    return loaded[0]


def test_reads_a_pdf_by_page(tmp_path: Path) -> None:
    one = load_one(write(tmp_path / "Hand Book.pdf", TWO_PAGES))
    assert one.pages == (
        DocumentPage(1, "The first page has words."),
        DocumentPage(2, "The second page\nhas two lines."),
    )
    assert [passage.label for passage in one.passages] == ["hand-book:1", "hand-book:2"]
    document = one.document
    assert (document.name, document.pages, document.passages) == ("Hand Book.pdf", 2, 2)


def test_reports_pdf_pages_without_text_and_keeps_page_numbers(tmp_path: Path) -> None:
    (one,), (notice,) = load_documents([write(tmp_path / "a.pdf", pdf("", "Words.", ""))])
    assert (one.pages, one.document.pages) == ((DocumentPage(2, "Words."),), 3)
    assert notice.startswith("a.pdf: 2 of 3 pages have no text; if they are scanned, ")


def test_reads_an_encrypted_pdf_without_a_password(tmp_path: Path) -> None:
    one = load_one(write(tmp_path / "a.pdf", locked(TWO_PAGES, "")))
    assert one.pages[0].text == "The first page has words."


def test_repairing_a_pdf_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # pypdf remarks on the wrong place of the table, and finds the objects itself.
    load_one(write(tmp_path / "a.pdf", TWO_PAGES.replace(b"startxref\n", b"startxref\n9")))
    assert (capfd.readouterr().err, caplog.messages) == ("", [])


PARAGRAPH = "word " * 150 + "end."


@pytest.mark.parametrize(
    ("name", "content", "pages", "lines"),
    [
        ("a.txt", "\n\nOne.\nTwo.\n", [(3, "One.\nTwo.")], 4),
        ("a.TXT", "One.\r\nTwo.\rThree.", [(1, "One.\nTwo.\nThree.")], 3),
        ("a.txt", f"Head\n\n{PARAGRAPH}\n\n{PARAGRAPH}", [(1, ""), (5, "")], 5),
        ("a.txt", f"{PARAGRAPH} {PARAGRAPH}\nEnd.", [
            (1, f"{PARAGRAPH} {PARAGRAPH}"), (2, "End.")], 2),
        ("a.txt", "form\x0cfeed \x1b[31mred", [(1, "form feed [31mred")], 1),
        ("a.md", "# Head\n\n- *one*", [(1, "# Head\n\n- *one*")], 3),
        ("a.markdown", "One.", [(1, "One.")], 1),
        ("a.txt", "\ufeffmarked", [(1, "marked")], 1),
        ("a.txt", "wide ☕".encode("utf-16"), [(1, "wide ☕")], 1),
        ("a.txt", "“café”".encode("cp1252"), [(1, "“café”")], 1),
        ("a.csv", "name,age\nAnn,42\n\n\"Bo\nB\",7\nCy,8", [(2, "name: Ann; age: 42\n"
         "name: Bo B; age: 7\nname: Cy; age: 8")], 6),
        ("a.csv", "name;town\nAnn;Rome\nBo;Bonn", [(2, "name: Ann; town: Rome\n"
         "name: Bo; town: Bonn")], 3),
        ("a.csv", "Ann,42\nBo,7", [(1, "Ann; 42\nBo; 7")], 2),
        ("a.csv", "name,age\nAnn,,extra\n,7", [(2, "name: Ann; extra\nage: 7")], 3),
        ("a.csv", "only,words", [(1, "only; words")], 1),
        ("a.csv", "alone\nfirst\nsecond", [(2, "alone: first\nalone: second")], 3),
        ("a.html", "<!doctype html><html><head><title>T &amp; U</title>\n<style>p {}</style>"
         "<script>if (a < b) c</script>\n<body><h1>Head</h1>\n\n<p>One <b>bold</b>\ntwo<p>Three"
         "<br>four<table><tr><td>a<td>b</table></html>",
         [(1, "T & U\nHead\nOne bold\ntwo\nThree\nfour\na b")], 6),
        ("a.html", "<p title='a > b' class=\"x\">10<sup>6</sup> of H<SUB>2</SUB>O<sup>a</sup> 1 < 2"
         "<!-- <p>no --><? no ?>\n<STYLE>\nno</style >yes <b\nid=x>bold</b> don't "
         "<a href=it's>it</a>",
         [(1, "10⁶ of H₂Oa 1 < 2\nyes bold don't it")], 4),
        ("a.htm", "<ul>\n<li>one\n<li>&lt;two&gt; &#9749;", [(2, "one\n<two> ☕")], 3),
    ],
)  # fmt: skip
def test_reads_each_file_type_with_line_numbers(
    tmp_path: Path, name: str, content: str | bytes, pages: list[tuple[int, str]], lines: int
) -> None:
    one = load_one(write(tmp_path / name, content))
    assert [page.number for page in one.pages] == [number for number, _ in pages]
    for page, (_, text) in zip(one.pages, pages, strict=True):
        assert page.text == (text or page.text)
    assert one.document.pages == lines


def test_a_passage_is_numbered_by_its_source_line(tmp_path: Path) -> None:
    source = "<html>\n<p>" + "\n</p><p>".join(f"Paragraph {n} {'x ' * 300}" for n in range(5))
    one = load_one(write(tmp_path / "a.html", source))
    lines = source.split("\n")
    assert len(one.passages) == 5
    for passage in one.passages:
        assert " ".join(passage.text.split()[:2]) in lines[passage.page - 1]


def test_a_table_row_is_numbered_by_its_source_line(tmp_path: Path) -> None:
    source = 'name,text\nfirst,"over\nthree\nlines"\n' + "".join(
        f"row{line},{'x ' * 300}\n" for line in range(5, 9)
    )
    one = load_one(write(tmp_path / "a.csv", source))
    assert [page.number for page in one.pages] == [2, 6, 7, 8]
    for page in one.pages[1:]:
        assert page.text.startswith(f"name: row{page.number}; text: x")


def test_passages_are_short_and_lose_nothing(tmp_path: Path) -> None:
    text = "\n".join(f"{n} " + "Some sentence stands here. " * (n % 70) for n in range(100))
    one = load_one(write(tmp_path / "a.txt", text + "\n" + "字" * 2000))
    assert max(len(passage.text) for passage in one.passages) <= 900
    assert one.document.passages == len(one.passages) > 100
    words = "".join("".join(passage.text for passage in one.passages).split())
    assert words == "".join("".join(page.text for page in one.pages).split())
    assert words == "".join(text.split()) + "字" * 2000
    assert {passage.page for passage in one.passages} == {page.number for page in one.pages}


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["Q3 Report (final).txt"], ["q3-report-final"]),
        (["Übersicht Straße.txt"], ["ubersicht-strasse"]),
        (["手册.txt", "!!.txt"], ["doc", "doc-2"]),
        (["a/x.txt", "b/x.txt", "c/x.md"], ["x", "x-2", "x-3"]),
        (["x-2.txt", "y/x.txt", "z/x.txt"], ["x-2", "x", "x-3"]),
        ([f"{'l-' * 20}1.txt", f"{'l-' * 20}2.txt"], ["l-" * 11 + "l", "l-" * 10 + "l-2"]),
    ],
)  # fmt: skip
def test_short_names_are_plain_and_unique(tmp_path: Path, names: list[str], ids: list[str]) -> None:
    paths = [write(tmp_path / name, f"text {nth}") for nth, name in enumerate(names)]
    loaded, _ = load_documents(paths)
    assert [one.document.id for one in loaded] == ids
    assert max(map(len, ids)) <= 24


def test_reads_a_folder_recursively_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "sub/c.html", ".hidden.txt", ".git/d.txt", "sub/.e/f.txt"):
        write(tmp_path / name, f"text of {name}")
    for name in ("g.png", "h.PNG", "Makefile", "sub/i.docx"):
        write(tmp_path / name, "other")
    loaded, notices = load_documents([tmp_path])
    names = [one.document.name for one in loaded]
    assert names == [f"{tmp_path.name}/{name}" for name in ("a.md", "b.txt", "sub/c.html")]
    assert notices == ["Skipped 4 files of unsupported types: .docx, .png, no suffix."]


def test_handles_looping_and_broken_links(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "text")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    loaded, notices = load_documents([tmp_path / "loop"])
    assert [one.document.name for one in loaded] == ["loop/a.txt"]
    assert notices == ["Skipped broken links: 2."]


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret.txt", "not yours")
    write(tmp_path / "docs" / "a.txt", "text")
    (tmp_path / "docs" / "out.txt").symlink_to(secret)
    (tmp_path / "docs" / "in.txt").symlink_to(tmp_path / "docs" / "a.txt")
    loaded, notices = load_documents([tmp_path / "docs"])
    assert [one.document.name for one in loaded] == ["docs/a.txt"]
    assert "Skipped links that lead out of the folder: 1." in notices


def test_a_pdf_of_too_many_pages_is_refused_before_it_is_read(tmp_path: Path) -> None:
    writer = PdfWriter()
    for _ in range(2001):
        writer.add_blank_page(72, 72)
    writer.write(tmp_path / "long.pdf")
    with pytest.raises(BadInput, match=r"has 2,001 pages, more than 2,000"):
        load_documents([tmp_path / "long.pdf"])


def test_reads_the_same_content_once_and_reports_duplicates(tmp_path: Path) -> None:
    first = write(tmp_path / "in" / "a.txt", "text")
    write(tmp_path / "in" / "b.md", "text")
    loaded, notices = load_documents([first, tmp_path / "in", first, tmp_path / "in/../in/a.txt"])
    assert [one.document.name for one in loaded] == ["a.txt"]
    assert notices == ["in/b.md has the same content as a.txt."]


def test_files_with_the_same_name_get_different_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("in/new", "in/old"):
        write(tmp_path / folder / "rules.txt", f"text of {folder}")
    loaded, _ = load_documents([tmp_path / "in" / "new", tmp_path / "in"])
    assert [one.document.name for one in loaded] == ["new/rules.txt", "in/old/rules.txt"]
    monkeypatch.chdir(tmp_path / "in")
    assert [one.document.name for one in load_documents([Path()])[0]] == [
        "in/new/rules.txt",
        "in/old/rules.txt",
    ]


def test_all_files_together_may_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_TOTAL_BYTES", 3_000_000)
    paths = [write(tmp_path / f"{nth}.txt", f"word{nth} " * 200_000) for nth in range(3)]
    assert len(load_documents(paths[:2])[0]) == 2
    with pytest.raises(BadInput) as refusal:
        load_documents(paths)
    assert str(refusal.value) == (
        f"{paths[2]} exceeds the limit of 3 MB for all files together: give fewer files."
    )


def test_a_hidden_file_named_directly_is_read(tmp_path: Path) -> None:
    assert load_one(write(tmp_path / ".a.txt", "text")).document.id == "a"


REFUSED: dict[str, tuple[str, str | bytes, str]] = {
    "another kind": ("a.docx", "text", "is not a supported type: give files that end in .txt, "),
    "empty": ("a.txt", "", "is empty"),
    "blank": ("a.txt", " \n\t\n", "has no text"),
    "only code": ("a.html", "<script>x</script>", "has no text"),
    "bad declaration": ("a.html", "<p>x<![oops[", "is not readable HTML"),
    "only commas": ("a.csv", ",,\n,,", "has no text"),
    "huge cell": ("a.csv", "x," + "y" * 200_000, "is not readable CSV"),
    "nul bytes": ("a.txt", b"MZ\x00\x01", "is a binary file"),
    "control characters": ("a.md", b"\x01\x02\x03", "is a binary file"),
    "no encoding fits": ("a.csv", b"\x81\xff\xfe", "is not UTF-8: save it as UTF-8"),
    "Russian": ("a.txt", "Привет, мир".encode("cp1251"), "is not UTF-8: save it as UTF-8"),
    "Russian of Unix": ("a.txt", "Привет, мир".encode("koi8-r"), "is not UTF-8"),
    "Chinese": ("a.txt", "委员会每个星期二开会".encode("gb18030"), "is not UTF-8"),
    "Japanese": ("a.txt", "委員会は毎週火曜日".encode("shift-jis"), "is not UTF-8"),
    "Greek": ("a.txt", "Η επιτροπή συνεδριάζει".encode("cp1253"), "is not UTF-8"),
    "Polish": ("a.txt", "Północ i południe, są też żółwie".encode("cp1250"), "is not UTF-8"),
    "Polish of Unix": ("a.txt", "Północ i południe są".encode("iso8859-2"), "is not UTF-8"),
    "Czech": ("a.txt", "Příliš žluoučký kůň úpěl ďábelské ódy".encode("cp1250"), "is not UTF-8"),
    "Hungarian": ("a.txt", "Árvíztűrő tükörfúrógép, őrült nő".encode("cp1250"), "is not UTF-8"),
    "Turkish": ("a.txt", "Kırmızı şapkalı kız ağaçta".encode("cp1254"), "is not UTF-8"),
    "comment without end": ("a.html", "<p>x</p><!-- y", "is not readable HTML"),
    "half of a UTF-16 pair": ("a.txt", b"\xff\xfea", "is a binary file"),
    "scanned": ("a.pdf", pdf("", ""), "may be scanned; run text recognition (OCR) first"),
    "locked": ("a.pdf", locked(TWO_PAGES, "secret"), "is encrypted: save a copy without"),
    "cut off": ("a.pdf", TWO_PAGES[:-200], "is not a readable PDF"),
    "later edition cut off": ("a.pdf", TWO_PAGES + b"8 0 obj\n" * 400, "is not a readable PDF"),
    "cut out": ("a.pdf", TWO_PAGES[:40] + TWO_PAGES[-90:], "is not a readable PDF"),
    "no pdf": ("a.pdf", "<html>not found</html>", "is not a readable PDF"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_a_bad_file_and_names_it(tmp_path: Path, case: str) -> None:
    name, content, why = REFUSED[case]
    path = write(tmp_path / name, content)
    with pytest.raises(BadInput) as refusal:
        load_documents([path])
    said = str(refusal.value)
    assert said.startswith(f"{path} ")
    assert why in said
    assert said.endswith(".")
    assert "\n" not in said


def test_every_bad_file_is_named_and_none_is_added(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "good.txt", "text"),
        tmp_path / "missing.txt",
        write(tmp_path / "bad.pdf", "no"),
        tmp_path / "missing.txt",
    ]
    with pytest.raises(BadInput) as refusal:
        load_documents(paths)
    assert str(refusal.value).split("\n") == [
        f"File not found: {paths[1]}.",
        f"{paths[2]} is not a readable PDF: export or download it again.",
    ]


def test_a_folder_without_readable_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.png", "other")
    with pytest.raises(BadInput, match=f"{tmp_path} has no supported files: give"):
        load_documents([tmp_path])


def test_a_large_file_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    with path.open("wb") as sink:
        sink.truncate(documents.MAX_FILE_BYTES + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(BadInput, match=f"{path} is larger than 50 MB"):
        load_documents([path])


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.txt", "text")

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)  # for root may read anything
    with pytest.raises(BadInput, match=rf"Cannot read {path} \(Permission denied\)"):
        load_documents([path])


def test_a_folder_that_may_not_be_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.txt", "text")
    write(tmp_path / "sub" / "b.txt", "text")
    listed = os.scandir

    def scandir(path: str) -> "os._ScandirIterator[str]":
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(BadInput, match=rf"Cannot read {tmp_path}/sub \(Permission denied\)"):
        load_documents([tmp_path])


def test_refuses_a_pipe_without_blocking(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    os.mkfifo(path)
    with pytest.raises(BadInput, match=f"{path} is not a regular file"):
        load_documents([path])


def test_a_device_is_refused_and_never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(BadInput, match="/dev/zero is not a regular file"):
        load_documents([Path("/dev/zero")])


@pytest.mark.parametrize(
    "text",
    [
        "Fünf größere Bäche flössen über Äcker.",
        "Ça a été créé à l’été, où les élèves naïfs…",
        "¿Dónde está el niño? ¡Aquí! 5 m², 20 °C",
        "A situação das coleções não é fácil.",
        "Þýðir það að hún sé æði?",
        "Smørrebrød på gården, århundredets højde",
        "Mostly plain words of Müller, Sørensen, Peña, Šimić and François. " + "word " * 400,
        "Contents ············ 5 – £7, don´t",
    ],
)
def test_reads_text_in_windows_1252(tmp_path: Path, text: str) -> None:
    encoded = text.replace("ć", "c").encode("cp1252")
    one = load_one(write(tmp_path / "a.txt", encoded))
    assert one.pages[0].text == text.replace("ć", "c").strip()


@at_once
@pytest.mark.parametrize(
    "piece",
    ["<a ", "<!--", "</", "<?", "<!", 'x<a x="', "<a x='\"", "</a ", "<a\n", "<a b=c ", "&", "<",
     "<script>", "<style", "<sup>1", "<!-->", "<a x=\"'"],
)  # fmt: skip
def test_hostile_html_is_read_or_refused_and_does_not_hang(tmp_path: Path, piece: str) -> None:
    path = write(tmp_path / "a.html", piece * (5_000_000 // len(piece)))
    with contextlib.suppress(BadInput):
        read(path, path.read_bytes())


@at_once
@pytest.mark.parametrize("text", ["x" * 50_000_000, ("x" * 899 + " ") * 20_000, "字" * 10_000_000])
def test_text_without_spaces_is_cut_and_does_not_hang(tmp_path: Path, text: str) -> None:
    one = load_one(write(tmp_path / "a.txt", text))
    assert sum(len(passage.text) for passage in one.passages) == len(text.replace(" ", ""))
    assert max(len(passage.text) for passage in one.passages) <= 900


def test_stores_table_rows_as_written_in_the_file(tmp_path: Path) -> None:
    source = 'name;text\n"Bo\nB";7\n' + "".join(f"row{n};{'x ' * 300}\n" for n in (4, 5))
    one = load_one(write(tmp_path / "a.csv", source))
    assert [(page.number, page.raw) for page in one.pages] == [
        (2, 'name;text\n"Bo\nB";7\nrow4;' + "x " * 300),
        (5, "row5;" + "x " * 300),
    ]
    save_corpus([one], tmp_path)
    assert load_corpus([one.document], tmp_path).pages == {"a": one.pages}


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_FILES", 3)
    paths = [write(tmp_path / f"{nth}.txt", f"text {nth}") for nth in range(4)]
    assert len(load_documents(paths[:3])[0]) == 3
    with pytest.raises(BadInput, match=f"{tmp_path} exceeds the limit of 3 files"):
        load_documents([tmp_path])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(KINDS),
    st.binary(max_size=300) | st.text(string.printable + 'é“<>&;"', max_size=300).map(str.encode),
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = write(tmp_path / f"any{suffix}", content)
    one, refusal = None, ""
    try:
        one = load_one(path)
    except BadInput as error:
        refusal = str(error)
    if one is None:
        assert str(path) in refusal
        return
    assert one.passages
    assert all(1 <= page.number <= one.document.pages for page in one.pages)
    "".join(page.text for page in one.pages).encode()


def kept(home: Path) -> Path:
    (file,) = (home / "documents").glob("*/*")
    return file


@pytest.fixture
def loaded(tmp_path: Path) -> list[Loaded]:
    write(tmp_path / "in" / "notes.txt", "Some notes\x85 of mine.\u2028More.")
    write(tmp_path / "in" / "book.pdf", TWO_PAGES)
    return load_documents([tmp_path / "in"])[0]


def test_stores_the_text_with_private_permissions(tmp_path: Path, loaded: list[Loaded]) -> None:
    home = tmp_path / "home"
    save_corpus(loaded, home)
    kinds = [one.document for one in loaded]
    corpus = load_corpus(kinds, home)
    assert corpus.pages == {one.document.id: one.pages for one in loaded}
    assert corpus.passages == tuple(passage for one in loaded for passage in one.passages)
    assert corpus.lengths == {"book": 2, "notes": 1}
    assert load_corpus(kinds[::-1], home) is corpus
    file = kept(home)
    assert file.parent == home / "documents" / corpus_id(kinds)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    folders = (home, home / "documents", file.parent)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_stored_text_is_rewritten_only_if_damaged(tmp_path: Path, loaded: list[Loaded]) -> None:
    save_corpus(loaded, tmp_path)
    file = kept(tmp_path)
    content, number = file.read_bytes(), file.stat().st_ino
    save_corpus(loaded, tmp_path)
    assert kept(tmp_path).stat().st_ino == number
    file.write_bytes(content[:-5])
    save_corpus(loaded, tmp_path)
    assert kept(tmp_path).read_bytes() == content


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-5]),
    "changed": lambda file: file.write_bytes(file.read_bytes().replace(b"notes", b"votes")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_text_is_refused(tmp_path: Path, loaded: list[Loaded], damage: str) -> None:
    home = tmp_path / "home"
    save_corpus(loaded, home)
    file = kept(home)
    DAMAGES[damage](file)
    with pytest.raises(BadInput, match=r"The documents of this debate are missing or damaged \("):
        load_corpus([one.document for one in loaded], home)
    save_corpus(loaded, home)
    assert load_corpus([one.document for one in loaded], home).passages


def test_a_failed_write_leaves_nothing(
    tmp_path: Path, loaded: list[Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        BadInput, match=rf"Cannot store the documents in {tmp_path}.* \(No space left on device\)"
    ):
        save_corpus(loaded, tmp_path)
    assert not list((tmp_path / "documents").glob("*/*"))


def test_the_corpus_is_named_by_content_names_and_splitter(
    loaded: list[Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (one.document for one in loaded)
    changed = [
        [first],
        [first.model_copy(update={"id": "other"}), second],
        [first.model_copy(update={"sha256": "0" * 64}), second],
    ]
    names = {corpus_id(each) for each in [[first, second], *changed]}
    assert len(names) == 4
    assert corpus_id([second, first]) == corpus_id([first, second])
    monkeypatch.setattr(documents, "SPLITTER", "other")
    assert corpus_id([first, second]) not in names


def test_an_empty_corpus_stores_no_file(tmp_path: Path) -> None:
    save_corpus([], tmp_path / "home")
    corpus = load_corpus([], tmp_path / "home")
    assert (corpus.pages, corpus.passages) == ({}, ())
    assert not (tmp_path / "home").exists()


def test_a_label_names_document_and_page() -> None:
    assert Passage("handbook", 12, "text").label == "handbook:12"


def test_importing_quotes_does_not_import_pypdf_or_the_splitter() -> None:
    costly = "{'pypdf', 'langchain_text_splitters'}"
    asks = f"import sys, retrieval.quotes; print({costly} & {{*sys.modules}})"
    ended = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"
