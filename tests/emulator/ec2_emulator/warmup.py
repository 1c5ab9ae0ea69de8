"""Loads API models, backends and types before the first calls need them."""

import importlib
import io
from urllib.parse import urlencode

from .app import App
from .ec2.images import IMAGES

REGION = "us-east-1"

_CALLS = (
    ("sts", {"Action": "GetCallerIdentity", "Version": "2011-06-15"}),
    ("ec2", {"Action": "DescribeInstances", "Version": "2016-11-15"}),
    (
        "ec2",
        {
            "Action": "RunInstances",
            "Version": "2016-11-15",
            "DryRun": "true",
            "ImageId": IMAGES[0].id_in(REGION),
            "InstanceType": "g4dn.xlarge",
            "MinCount": "1",
            "MaxCount": "1",
        },
    ),
)


def warm_up(app: App) -> None:
    """Answers a few harmless calls, and removes them from the records."""
    # Otherwise the first encrypted volume would load this module.
    importlib.import_module("moto.kms.models")
    for service, parameters in _CALLS:
        body = urlencode(parameters).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/",
            "QUERY_STRING": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 Credential="
            f"AKIAWARMUP/20260101/{REGION}/{service}/aws4_request",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
        }
        for _ in app(environ, lambda *_: None):
            pass
    app.emulator.recorder.clear()
