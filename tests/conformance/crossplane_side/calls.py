"""Calls of RunFunction in both versions. They return the bytes of the response."""

from dataclasses import dataclass

import grpc
from crossplane.function.proto.v1.run_function_pb2 import (
    RunFunctionRequest,
    RunFunctionResponse,
)

from crossplane_side import cases
from crossplane_side.process import PATIENCE

V1 = "apiextensions.fn.proto.v1.FunctionRunnerService"
V1BETA1 = "apiextensions.fn.proto.v1beta1.FunctionRunnerService"


@dataclass
class Function:
    """A function that is called as Crossplane calls it."""

    channel: grpc.Channel

    def run(self, request: RunFunctionRequest) -> RunFunctionResponse:
        response = RunFunctionResponse()
        response.ParseFromString(self.raw(request.SerializeToString()))
        return response

    def raw(self, request: bytes, service: str = V1) -> bytes:
        """Sends the bytes of a request. Returns the bytes of the response."""
        call = self.channel.unary_unary(
            f"/{service}/RunFunction",
            request_serializer=None,
            response_deserializer=None,
        )
        answer: bytes = call(request, timeout=PATIENCE, wait_for_ready=True)
        return answer


class Answers:
    """The responses to the cases. Each case is called once, and tests share the
    response, so they must not change it."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._known: dict[str, RunFunctionResponse] = {}

    def of(self, case: str) -> RunFunctionResponse:
        if case not in self._known:
            self._known[case] = self._function.run(cases.request(case))
        return self._known[case]
