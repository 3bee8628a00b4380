"""A real S3 server on the loopback: endpoints and credentials, folders and patterns."""

import logging

import pytest

import recordio
from recordio.errors import RemoteFileError, RemoteMissingError
from recordio.remote.objects import list_urls
from recordio.remote.settings import RemoteSettings

moto = pytest.importorskip("moto.server")
SECRET = "hunter2-hunter2"


@pytest.fixture(scope="module")
def endpoint():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "s3fs")
    return request.param


@pytest.fixture
def bucket(endpoint):
    boto3 = pytest.importorskip("boto3")
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        aws_access_key_id="me", aws_secret_access_key=SECRET,
    )  # fmt: skip
    client.create_bucket(Bucket="bucket")
    return client


@pytest.fixture
def options(endpoint, library, tmp_path):
    access = {
        "endpoint_url": endpoint, "access_key_id": "me", "secret_access_key": SECRET,
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


def test_the_environment_says_where(bucket, endpoint, tmp_path, monkeypatch, library):
    put(bucket, tmp_path, "env")
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET,
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
        recordio.files.listed_files("s3://bucket/parts/x*.rec", ".rec", settings)


def test_what_is_missing_is_named_without_credentials(bucket, options, endpoint):
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


def test_indexes_are_made_beside_the_pack(
    bucket, options, endpoint, tmp_path, monkeypatch, library
):
    from recordio.tools.cli import main

    path = put(bucket, tmp_path, "bare")
    bucket.delete_object(Bucket="bucket", Key="bare.idx")
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "RECORDIO_REMOTE_CACHE": str(tmp_path / "mirrors"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    if library == "fsspec":
        monkeypatch.setattr("recordio.remote.objects.has_obstore", lambda: False)
    with pytest.raises(recordio.IndexFileError, match="recordio index s3://bucket/bare.rec"):
        len(recordio.RecordReader("s3://bucket/bare.rec", **options))
    assert main(["index", "s3://bucket/bare.rec"]) == 0
    made = bucket.get_object(Bucket="bucket", Key="bare.idx")["Body"].read()
    assert made == path.with_suffix(".idx").read_bytes()
    with recordio.RecordReader("s3://bucket/bare.rec", **options) as reader:
        assert len(reader) == 100
    assert main(["index", "s3://bucket/bare.rec"]) == 1
    assert main(["index", "s3://bucket/bare.rec", "--force"]) == 0
