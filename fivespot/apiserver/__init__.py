"""A Kubernetes API server in memory, for tests, simulations and demonstrations.

It imports nothing of fivespot, so that a misreading of the API in the product cannot hide in it; the same tests run
against it and against the real kube-apiserver. ``ApiServer.handle`` answers requests without a socket;
``HttpListener`` serves them over HTTP.
"""

from .clock import ServerClock, WallClock
from .http import HttpListener
from .kubeconfig import kubeconfig, write_kubeconfig
from .messages import ApiRequest, ApiResponse, DisconnectedError, Stream
from .server import VERSION, ApiServer, Handler, Middleware
from .status import StatusError

__all__ = [
    "VERSION",
    "ApiRequest",
    "ApiResponse",
    "ApiServer",
    "DisconnectedError",
    "Handler",
    "HttpListener",
    "Middleware",
    "ServerClock",
    "StatusError",
    "Stream",
    "WallClock",
    "kubeconfig",
    "write_kubeconfig",
]
