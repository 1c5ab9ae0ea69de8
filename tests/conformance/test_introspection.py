"""The services for tools: reflection of services and types, and health."""

import grpc
import pytest
from crossplane.function.proto.v1 import run_function_pb2 as v1
from crossplane.function.proto.v1beta1 import run_function_pb2 as v1beta1
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import (
    ServerReflectionRequest,
    ServerReflectionResponse,
)

from crossplane_side import cases
from crossplane_side.calls import V1, V1BETA1, Function
from crossplane_side.process import PATIENCE

SERVICES = {V1: v1.DESCRIPTOR, V1BETA1: v1beta1.DESCRIPTOR}
# The two versions differ only in the name of their package.
REFLECTIONS = ["grpc.reflection.v1", "grpc.reflection.v1alpha"]


# The message, and the field's name, number and type.
Field = tuple[str, str, int, int]


class Reflection:
    def __init__(self, channel: grpc.Channel, package: str) -> None:
        self._call = channel.stream_stream(
            f"/{package}.ServerReflection/ServerReflectionInfo",
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )

    def ask(self, **question: str) -> ServerReflectionResponse:
        request = ServerReflectionRequest(**question)
        (answer,) = self._call(iter([request]), timeout=PATIENCE)
        assert not answer.HasField("error_response"), answer
        return answer

    def services(self) -> set[str]:
        listed = self.ask(list_services="").list_services_response.service
        return {service.name for service in listed}

    def pool(self, symbol: str) -> DescriptorPool:
        """The descriptors of a symbol and of all its dependencies."""
        pool, known = DescriptorPool(), set()

        def add(answer: ServerReflectionResponse) -> None:
            for written in answer.file_descriptor_response.file_descriptor_proto:
                file = FileDescriptorProto.FromString(written)
                if file.name in known:
                    continue
                known.add(file.name)
                for dependency in file.dependency:
                    add(self.ask(file_by_filename=dependency))
                pool.Add(file)

        add(self.ask(file_containing_symbol=symbol))
        return pool


@pytest.fixture(params=REFLECTIONS)
def reflection(request: pytest.FixtureRequest, function: Function) -> Reflection:
    return Reflection(function.channel, request.param)


def test_every_service_is_listed(reflection: Reflection) -> None:
    assert set(SERVICES) | {"grpc.health.v1.Health"} <= reflection.services()


@pytest.mark.parametrize("service", SERVICES)
def test_the_types_are_those_of_crossplane(
    service: str, reflection: Reflection
) -> None:
    served = reflection.pool(service).FindServiceByName(service).file
    published = SERVICES[service]
    assert served.package == published.package
    assert _fields(published) <= _fields(served)
    assert _methods(published) == _methods(served)


def test_both_versions_have_the_same_types(reflection: Reflection) -> None:
    newer, older = (
        reflection.pool(service).FindServiceByName(service).file
        for service in [V1, V1BETA1]
    )
    assert _fields(newer) == _fields(older)
    assert newer.enum_types_by_name.keys() == older.enum_types_by_name.keys()


@pytest.mark.parametrize("service", SERVICES)
def test_a_tool_that_knows_nothing_can_call(
    service: str, reflection: Reflection, function: Function
) -> None:
    method = (
        reflection.pool(service)
        .FindServiceByName(service)
        .FindMethodByName("RunFunction")
    )
    request = GetMessageClass(method.input_type)()
    request.ParseFromString(cases.request(cases.PLAIN).SerializeToString())
    written = function.raw(request.SerializeToString(), service)
    response = GetMessageClass(method.output_type).FromString(written)
    assert response.meta.tag == request.meta.tag
    assert "pool" in response.desired.resources


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_it_is_healthy(service: str, function: Function) -> None:
    answer = HealthStub(function.channel).Check(
        HealthCheckRequest(service=service), timeout=PATIENCE
    )
    assert answer.status == HealthCheckResponse.SERVING


def test_the_health_of_an_unknown_service_is_unknown(function: Function) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        HealthStub(function.channel).Check(
            HealthCheckRequest(service="nonsense"), timeout=PATIENCE
        )
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND


def _fields(file: FileDescriptor) -> set[Field]:
    """Every field of every message, without the package's name."""

    def of(message: Descriptor) -> set[Field]:
        name = message.full_name.removeprefix(file.package)
        own = {(name, f.name, f.number, f.type) for f in message.fields}
        return own.union(*(of(nested) for nested in message.nested_types))

    return set().union(*(of(m) for m in file.message_types_by_name.values()))


def _methods(file: FileDescriptor) -> list[tuple[str, str, str]]:
    (service,) = file.services_by_name.values()
    return [
        (m.name, m.input_type.full_name, m.output_type.full_name)
        for m in service.methods
    ]
