"""A Kubernetes API server in memory, for tests, simulations and demonstrations.

It imports nothing of fivespot, so that a misreading of the API in the product cannot hide in it; the same tests run
against it and against the real kube-apiserver. ``ApiServer.handle`` answers requests without a socket;
``HttpFront`` serves them over HTTP.
"""

from .clock import Clock, SystemClock
from .disconnect import DisconnectedError
from .http import HttpFront
from .kubeconfig import kubeconfig, write_kubeconfig
from .messages import Request, Response, Stream
from .server import VERSION, ApiServer, Handler, Middleware
from .status import ApiFault

__all__ = [
    "VERSION",
    "ApiFault",
    "ApiServer",
    "Clock",
    "DisconnectedError",
    "Handler",
    "HttpFront",
    "Middleware",
    "Request",
    "Response",
    "Stream",
    "SystemClock",
    "kubeconfig",
    "write_kubeconfig",
]
