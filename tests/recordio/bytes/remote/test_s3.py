"""A real S3 server on the loopback: endpoints and credentials, folders and patterns."""

import time

import pytest

import recordio
from recordio.bytes.remote import output
from recordio.bytes.remote.objects import list_urls
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError, RemoteMissingError

SECRET = "hunter2-hunter2"


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "s3fs")
    return request.param


@pytest.fixture
def options(s3_endpoint, library, tmp_path):
    access = {
        "endpoint_url": s3_endpoint, "access_key_id": "me", "secret_access_key": SECRET,
        "region": "us-east-1", "library": library,
    }  # fmt: skip
    return {"remote_cache": tmp_path / "mirrors", "remote_timeout": 5, "remote_options": access}


def put(bucket, tmp_path, name):
    path = tmp_path / "a.rec"
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for i in range(100):
            writer.write(bytes([i]) * 1000 * i, key=i)
    bucket.put_object(Bucket="bucket", Key=f"{name}.rec", Body=path.read_bytes())
    bucket.put_object(
        Bucket="bucket", Key=f"{name}.idx", Body=path.with_suffix(".idx").read_bytes()
    )
    return path


def test_records(bucket, options, tmp_path):
    path = put(bucket, tmp_path, "sets/a b")
    with (
        recordio.RecordReader("s3://bucket/sets/a b.rec", **options) as found,
        recordio.RecordReader(path) as wanted,
    ):
        assert len(found) == 100 and found[37] == wanted[37] and list(found) == list(wanted)


def test_the_environment_says_where(bucket, s3_endpoint, tmp_path, monkeypatch, library):
    put(bucket, tmp_path, "env")
    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1",
        "RECORDIO_REMOTE_CACHE": str(tmp_path / "mirrors"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with recordio.RecordReader(
        "s3://bucket/env.rec", remote_options={"library": library}
    ) as reader:
        assert len(reader[99]) == 99_000
    assert list((tmp_path / "mirrors").glob("env.rec-*"))


def test_folders_and_patterns(bucket, options, tmp_path):
    for name in ("parts/b-2", "parts/b-1", "parts/deeper/b-3", "parts/c"):
        put(bucket, tmp_path, name)
    settings = RemoteSettings(**options)
    assert list_urls("s3://bucket/parts/b-*.rec", ".rec", settings) == [
        "s3://bucket/parts/b-1.rec",
        "s3://bucket/parts/b-2.rec",
    ]
    assert len(list_urls("s3://bucket/parts/", ".rec", settings)) == 3
    with pytest.raises(FileNotFoundError, match="no .rec file has a name like that"):
        recordio.bytes.files.listed_files("s3://bucket/parts/x*.rec", ".rec", settings)


def test_what_is_missing_is_named_without_credentials(bucket, options, s3_endpoint):
    for url, error in (
        ("s3://bucket/nothing.rec", RemoteMissingError),
        ("s3://no-such-bucket/a.rec", RemoteFileError),
    ):
        with pytest.raises(error) as caught:
            recordio.RecordReader(url, **{**options, "remote_timeout": 0.5})
        assert str(caught.value).startswith(url) and SECRET not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_server_that_is_not_there(options):
    access = {**options["remote_options"], "endpoint_url": "http://127.0.0.1:9"}
    with pytest.raises(RemoteFileError) as caught:
        recordio.RecordReader(
            "s3://bucket/a.rec", **{**options, "remote_options": access, "remote_timeout": 0.5}
        )
    assert SECRET not in str(caught.value)


def test_settings_do_not_show_credentials(options):
    assert SECRET not in repr(RemoteSettings(**options))


@pytest.fixture
def sending(options, monkeypatch):
    """Options for writers; parts are as small as S3 allows."""
    monkeypatch.setattr(output, "PART", 5 << 20)
    return {name: options[name] for name in ("remote_timeout", "remote_options")}


def body(bucket, key):
    return bucket.get_object(Bucket="bucket", Key=key)["Body"].read()


@pytest.mark.parametrize("count", [0, 3, 12])
def test_packs_are_written(bucket, sending, tmp_path, count):
    names = tmp_path / "a.rec", tmp_path / "a.idx"
    for files, given in (
        (names, {}),
        (("s3://bucket/new/a.rec", "s3://bucket/new/a.idx"), sending),
    ):
        with recordio.RecordWriter(*files, **given) as writer:
            for i in range(count):
                writer.write(bytes([i]) * 1_000_001, key=i)
    for path in names:
        assert body(bucket, f"new/{path.name}") == path.read_bytes()
    bucket.delete_object(Bucket="bucket", Key="new/a.idx")


def test_uploads_that_are_given_up_leave_nothing(bucket, sending):
    bucket.put_object(Bucket="bucket", Key="kept.rec", Body=b"old")
    with (
        pytest.raises(RuntimeError),
        recordio.RecordWriter("s3://bucket/kept.rec", "s3://bucket/kept.idx", **sending) as writer,
    ):
        writer.write(bytes(12 << 20))
        raise RuntimeError
    assert body(bucket, "kept.rec") == b"old"
    while "Uploads" in bucket.list_multipart_uploads(Bucket="bucket"):
        time.sleep(0.05)  # the writer asks for it, and does not wait for long


def test_old_companions_go_with_the_old_pack(bucket, sending):
    for name in ("pair.rec", "pair.idx"):
        bucket.put_object(Bucket="bucket", Key=name, Body=b"old")
    with recordio.RecordWriter("s3://bucket/pair.rec", "s3://bucket/pair.idx", **sending) as writer:
        writer.write(b"new")
    assert body(bucket, "pair.idx") == b"0\t0\n"
    found = bucket.list_objects(Bucket="bucket", Prefix="pair")["Contents"]
    assert [item["Key"] for item in found] == ["pair.idx", "pair.rec"]


def test_buckets_that_are_not_there_are_named(bucket, sending):
    with (
        pytest.raises(RemoteFileError, match="cannot be written") as caught,
        recordio.RecordWriter("s3://no-such-bucket/a.rec", **sending) as writer,
    ):
        writer.write(b"a")
    assert str(caught.value).startswith("s3://no-such-bucket/a.rec: ")
    assert SECRET not in str(caught.value)


def test_indexes_are_made_beside_the_pack(
    bucket, options, s3_endpoint, tmp_path, monkeypatch, library
):
    from recordio.tools.cli import main

    path = put(bucket, tmp_path, "bare")
    bucket.delete_object(Bucket="bucket", Key="bare.idx")
    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "RECORDIO_REMOTE_CACHE": str(tmp_path / "mirrors"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    if library == "fsspec":
        monkeypatch.setattr("recordio.bytes.remote.by_obstore.is_installed", lambda: False)
    with pytest.raises(recordio.IndexFileError, match="recordio index s3://bucket/bare.rec"):
        len(recordio.RecordReader("s3://bucket/bare.rec", **options))
    assert main(["index", "s3://bucket/bare.rec"]) == 0
    made = bucket.get_object(Bucket="bucket", Key="bare.idx")["Body"].read()
    assert made == path.with_suffix(".idx").read_bytes()
    with recordio.RecordReader("s3://bucket/bare.rec", **options) as reader:
        assert len(reader) == 100
    assert main(["index", "s3://bucket/bare.rec"]) == 1
    assert main(["index", "s3://bucket/bare.rec", "--force"]) == 0


@pytest.mark.parametrize("read", ["read_csv", "CSVReader", "folder", "read_libsvm"])
def test_text_is_reached_with_the_options_that_are_given(bucket, options, library, read):
    if read == "read_libsvm":
        pytest.importorskip("scipy")
    text = "1 2:5\n" if read == "read_libsvm" else "1,2\n3,4\n"
    bucket.put_object(Bucket="bucket", Key=f"{read}/a.txt", Body=text.encode())
    url, access = f"s3://bucket/{read}/a.txt", {"remote_options": options["remote_options"]}
    url = "s3://bucket/folder" if read == "folder" else url
    if read == "read_libsvm":
        assert recordio.read_libsvm(url, **access)[0].toarray().tolist() == [[0, 0, 5]]
    elif read == "CSVReader":
        with recordio.CSVReader(url, **access) as reader:
            assert reader.count() == 2
            assert [rows.tolist() for rows in reader.rows(1)] == [[[3, 4]]]
    else:
        assert recordio.read_csv(url, **access).tolist() == [[1, 2], [3, 4]]
