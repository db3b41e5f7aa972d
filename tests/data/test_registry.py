"""Public data sets: where local files are looked for, and fetching them from a made-up server."""

import io
import tarfile
from email.message import Message
from urllib.error import HTTPError, URLError

import pytest

from cige.data import Sentence, Span, read_sentences, write_sentences
from cige.data.columns import format_columns, parse_columns
from cige.data.jsonl import format_json_lines
from cige.data.origins import Origin, sha256_of
from cige.data.registry import DATASETS, Dataset, dataset_file, fetch, get_dataset, load_split
from cige.errors import DataError

BMES = "张 B-PER\n三 E-PER\n在 O\n沪 S-LOC\n\n好 O\n\n".encode()


class FakeServer:
    """Stands for urlopen: serves bytes by address, honours Range, and hangs up after `n_bytes` while that is set."""

    def __init__(self, files):
        self.files = files
        self.n_bytes = None
        self.requests = []

    def __call__(self, request, *, timeout):
        assert timeout > 0
        wanted = request.get_header("Range")
        self.requests.append((request.full_url, wanted))
        if request.full_url not in self.files:
            raise HTTPError(request.full_url, 404, "Not Found", Message(), None)
        body = self.files[request.full_url]
        headers = Message()
        status = 200
        if wanted is not None:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                raise HTTPError(request.full_url, 416, "Range Not Satisfiable", Message(), None)
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            body, status = body[start:], 206
        headers["Content-Length"] = str(len(body))
        response = io.BytesIO(body if self.n_bytes is None else body[: self.n_bytes])
        response.status, response.headers = status, headers
        return response


def pack(files):
    """A .tgz with some files in a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"folder/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def origin(form, path="made/{}.txt", expected=BMES, member=None):
    return Origin("owner/made", "0123456789ab", path, form, sha256_of(expected), member=member)


@pytest.fixture
def made(monkeypatch):
    """A small data set of two plain files, and the server that has them."""
    dataset = Dataset("made", "ours", {s: origin("columns", f"made/{s}.txt") for s in ("train", "dev")})
    monkeypatch.setitem(DATASETS, "made", dataset)
    return FakeServer({entry.url: BMES.replace(b" ", b"\t") for entry in dataset.origins.values()})


@pytest.fixture(autouse=True)
def no_own_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("CIGE_DATA", raising=False)
    monkeypatch.setenv("CIGE_CACHE", str(tmp_path / "cache"))


def put(folder, name="weibo/train.bmes", raw=BMES):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def test_a_given_folder_is_searched_alone_and_in_both_layouts(tmp_path, monkeypatch):
    monkeypatch.setenv("CIGE_DATA", str(tmp_path / "env"))
    put(tmp_path / "env")
    with pytest.raises(DataError, match=r"cige data fetch weibo.*--data-dir or CIGE_DATA") as caught:
        dataset_file("weibo", "train", data_dir=tmp_path / "given")
    assert str(tmp_path / "given") in str(caught.value)
    deep = put(tmp_path / "given" / "ner")
    assert dataset_file("weibo", "train", data_dir=tmp_path / "given") == deep
    flat = put(tmp_path / "given")
    assert dataset_file("weibo", "train", data_dir=str(tmp_path / "given")) == flat


def test_without_a_folder_the_variable_comes_before_the_cache(tmp_path, monkeypatch):
    cached = put(tmp_path / "cache" / "ner")
    assert dataset_file("weibo", "train") == cached
    monkeypatch.setenv("CIGE_DATA", str(tmp_path / "env"))
    assert dataset_file("weibo", "train") == cached
    local = put(tmp_path / "env" / "ner")
    assert dataset_file("weibo", "train") == local


def test_unknown_names_and_splits_say_what_there_is(tmp_path):
    with pytest.raises(DataError, match="did you mean weibo"):
        get_dataset("webo")
    with pytest.raises(DataError, match="cluener has no test file; it has train, dev"):
        dataset_file("cluener", "test", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"msra has no dev file.*load_split"):
        dataset_file("msra", "dev", data_dir=tmp_path)


def test_the_dev_split_of_msra_is_the_end_of_its_training_file(tmp_path):
    sentences = [Sentence(f"第{number}句", (Span(0, 1, "NR"),)) for number in range(2003)]
    path = put(tmp_path, "msra/train.bmes", format_columns(sentences).encode())
    train = load_split("msra", "train", data_dir=tmp_path)
    dev = load_split("msra", "dev", data_dir=tmp_path)
    assert [s.text for s in train] == ["第0句", "第1句", "第2句"]
    assert (len(dev), dev[0].text, dev[-1].text) == (2000, "第3句", "第2002句")
    assert DATASETS["msra"].splits == ("train", "dev", "test")
    write_sentences(path, sentences[:2000])
    with pytest.raises(DataError, match="has 2000 sentences; expected more than the 2000 of dev"):
        load_split("msra", "dev", data_dir=tmp_path)


def test_other_splits_are_their_files(tmp_path):
    put(tmp_path, "weibo/dev.bmes")
    assert [s.text for s in load_split("weibo", "dev", data_dir=tmp_path)] == ["张三在沪", "好"]


@pytest.mark.parametrize(
    ("form", "source"),
    [
        ("columns", "张\tB-PER\n三\tE-PER\n在\tO\n沪\tS-LOC\n\n好\tO\n"),
        ("columns", "张\tI-PER\r\n三\tI-PER\r\n在\tO\r\n沪\tB-LOC\r\n\r\n好\tO\r\n"),  # one illegal tag, mended
        ("weibo", "张0\tB-PER\n三1\tI-PER\n在0\tO\n沪10\tB-LOC\n\n好0\tO\n"),
        ("words", "张三/nr  在/o 沪/ns \r\n好/o\n\n"),
        ("cluener", format_json_lines(parse_columns(BMES.decode(), name="x").sentences, "cluener")),
    ],
)
def test_each_form_of_source_converts_to_the_same_file(form, source):
    expected = BMES.replace(b"PER", b"NR").replace(b"LOC", b"NS") if form == "words" else BMES
    assert origin(form, expected=expected).convert(source.encode()) == expected


def test_sources_inside_an_archive_are_found_by_name():
    raw = pack({"other.txt": b"x", "train.txt": BMES})
    assert origin("columns", member="train.txt").convert(raw) == BMES
    with pytest.raises(DataError, match=r"contains no file dev\.txt"):
        origin("columns", member="dev.txt").convert(raw)
    with pytest.raises(DataError, match="not the expected archive"):
        origin("columns", member="train.txt").convert(b"<html>")


def test_a_word_without_a_tag_is_refused_by_line():
    with pytest.raises(DataError, match="line 2: expected word/tag, found '好'"):
        origin("words").convert("张三/nr\n好\n".encode())


def test_fetching_writes_the_converted_files_into_the_cache(made, tmp_path):
    paths = fetch("made", opener=made)
    assert paths == [tmp_path / "cache" / "ner" / "made" / f"{split}.bmes" for split in ("train", "dev")]
    assert [path.read_bytes() for path in paths] == [BMES, BMES]
    assert dataset_file("made", "train") == paths[0]
    assert {path for path in (tmp_path / "cache").rglob("*") if path.is_file()} == set(paths)


def test_what_is_there_is_not_fetched_again(made, tmp_path):
    fetch("made", data_dir=tmp_path / "here", opener=made)
    n_requests = len(made.requests)
    fetch("made", data_dir=tmp_path / "here", opener=made)
    assert n_requests == len(made.requests) == 2


def test_another_file_in_the_place_is_left_alone(made, tmp_path):
    path = put(tmp_path / "here" / "ner", "made/train.bmes", b"mine O\n")
    with pytest.raises(DataError, match="is not the published file"):
        fetch("made", data_dir=tmp_path / "here", opener=made)
    assert path.read_bytes() == b"mine O\n"


def test_a_cut_off_download_goes_on_where_it_stopped(made, tmp_path):
    url = DATASETS["made"].origins["train"].url
    made.n_bytes = 10
    with pytest.raises(DataError, match=rf"cannot fetch {url}.*closed after 10 of.*run the command again"):
        fetch("made", opener=made)
    assert not list((tmp_path / "cache").rglob("*.bmes"))
    made.n_bytes = None
    assert fetch("made", opener=made)[0].read_bytes() == BMES
    assert made.requests[1] == (url, "bytes=10-")


def test_a_server_that_ignores_ranges_is_read_from_the_start(made):
    made.n_bytes = 10
    with pytest.raises(DataError):
        fetch("made", opener=made)

    def whole(request, *, timeout):
        request.remove_header("Range")
        made.n_bytes = None
        return made(request, timeout=timeout)

    assert fetch("made", opener=whole)[0].read_bytes() == BMES


def test_a_beginning_that_cannot_be_continued_is_thrown_away(made, tmp_path):
    made.n_bytes = 10
    with pytest.raises(DataError):
        fetch("made", opener=made)
    made.n_bytes = None
    (part,) = (tmp_path / "cache").rglob("*.part")
    part.write_bytes(b"x" * 1000)  # longer than the file: the server answers 416
    assert fetch("made", opener=made)[0].read_bytes() == BMES


def test_a_changed_source_is_refused_and_fetched_afresh_next_time(made, tmp_path):
    url = DATASETS["made"].origins["train"].url
    good = made.files[url]
    made.files[url] = good + "坏 O\n".encode()
    with pytest.raises(DataError, match=r"sha256 .* expected .*nothing was kept"):
        fetch("made", opener=made)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    made.files[url] = good
    assert fetch("made", opener=made)[0].read_bytes() == BMES


def test_a_commit_that_the_host_does_not_know_falls_back_to_the_branch(made):
    made.files = {url.replace("0123456789ab", "master"): body for url, body in made.files.items()}
    assert fetch("made", opener=made)[0].read_bytes() == BMES


def test_network_failures_name_the_address(made):
    made.files = {}
    with pytest.raises(DataError, match=r"cannot fetch https://raw.*the server answers 404.*--data-dir"):
        fetch("made", opener=made)

    def unreachable(request, *, timeout):
        raise URLError("no route to host")

    with pytest.raises(DataError, match="no route to host"):
        fetch("made", opener=unreachable)


def test_recorded_checksums_are_those_of_the_local_files(shared_data):
    n_checked = 0
    for name, dataset in DATASETS.items():
        for split, entry in dataset.origins.items():
            path = shared_data / "ner" / name / f"{split}.bmes"
            if path.exists():
                assert sha256_of(path.read_bytes()) == entry.sha256, path
                assert dataset_file(name, split, data_dir=shared_data) == path
                n_checked += 1
    assert n_checked >= 11


@pytest.mark.parametrize(
    ("name", "split"), [("weibo", "test"), ("resume", "dev"), ("ecommerce", "dev"), ("cluener", "dev")]
)
def test_real_files_told_in_the_form_of_their_source_convert_back(shared_data, name, split):
    sentences = read_sentences(shared_data / "ner" / name / f"{split}.bmes")
    entry = DATASETS[name].origins[split]
    if name == "weibo":
        lines = format_columns(sentences, "BIO").split("\n")
        source = "\n".join(f"{line[0]}{i % 12}\t{line[2:]}" if line else "" for i, line in enumerate(lines))
    elif name == "ecommerce":
        source = format_columns(sentences, "BIOES").replace(" ", "\t").replace("␣", " ")
    elif name == "cluener":
        source = format_json_lines(sentences, "cluener")
    else:
        source = format_columns(sentences)
    raw = source.encode()
    raw = raw if entry.member is None else pack({entry.member: raw})
    assert sha256_of(entry.convert(raw)) == entry.sha256
