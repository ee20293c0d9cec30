#!/usr/bin/python3
"""Talks to a ranklab service as somebody else's client would: no generated code, no ranklab library.

Checks that the health service answers SERVING, that reflection lists each service asked for and
describes it with the methods asked for, and that each unary method asked for answers. Needs Debian's
python3-grpcio and python3-protobuf.

  foreign_client.py 127.0.0.1:7070 --service ranklab.v1.Coordinator \
      --call ranklab.v1.Coordinator/ReadClock

Exit status: 0, everything as it should be; 1, with one line that says what is not; 77, the packages
are missing.
"""

import argparse
import sys

try:
    import grpc
    from google.protobuf import descriptor_pb2
except ImportError as missing:
    print(f"foreign_client: {missing}; Debian's python3-grpcio and python3-protobuf have it")
    sys.exit(77)

TIMEOUT_S = 10
SERVING = 1


class Wrong(Exception):
    """What is not as it should be."""


def same(data):
    return data


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text_field(number, text):
    data = text.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message; bytes or int."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 2:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at : at + size], "little"), at + size
        else:
            raise Wrong(f"an answer with wire type {kind}")
        yield tag >> 3, value


def call(channel, method, request=b""):
    unary = channel.unary_unary(f"/{method}", request_serializer=same, response_deserializer=same)
    try:
        return unary(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        raise Wrong(f"{method}: {error.code().name}: {error.details()}") from None


def check_health(channel):
    answer = dict(fields(call(channel, "grpc.health.v1.Health/Check")))  # of the whole server
    if answer.get(1, 0) != SERVING:
        raise Wrong(f"health is {answer.get(1, 0)}, not {SERVING} (SERVING)")


def reflect(channel, request, wanted_field):
    """The messages in the wanted field of reflection's one answer to one request."""
    stream = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=same,
        response_deserializer=same,
    )
    try:
        answers = list(stream(iter([request]), timeout=TIMEOUT_S))
    except grpc.RpcError as error:
        raise Wrong(f"reflection: {error.code().name}: {error.details()}") from None
    for number, value in (field for answer in answers for field in fields(answer)):
        if number == wanted_field:
            return [inner for inner_number, inner in fields(value) if inner_number == 1]
    raise Wrong("reflection answers with an error, or with nothing")


def listed_services(channel):
    services = reflect(channel, text_field(7, "*"), 6)  # list_services, list_services_response
    return [dict(fields(service))[1].decode() for service in services]


def methods_of(channel, service):
    files = reflect(channel, text_field(4, service), 4)  # file_containing_symbol, its response
    for data in files:
        described = descriptor_pb2.FileDescriptorProto.FromString(data)
        for candidate in described.service:
            if f"{described.package}.{candidate.name}" == service:
                return [method.name for method in candidate.method]
    raise Wrong(f"reflection does not describe {service}")


def check(arguments):
    with grpc.insecure_channel(
        arguments.address, options=[("grpc.enable_http_proxy", 0)]
    ) as channel:
        check_health(channel)
        print("health: SERVING")
        listed = listed_services(channel)
        for service in arguments.service:
            if service not in listed:
                raise Wrong(f"reflection lists {', '.join(sorted(listed))}; not {service}")
            print(f"{service}: {', '.join(methods_of(channel, service))}")
        for method in arguments.call:
            service, _, name = method.partition("/")
            if name not in methods_of(channel, service):
                raise Wrong(f"{service} has no method {name}")
            print(f"{method}: answers with {len(call(channel, method))} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", help="host:port")
    parser.add_argument("--service", action="append", default=[], help="must be listed")
    parser.add_argument(
        "--call", action="append", default=[], help="package.Service/Method, with an empty request"
    )
    arguments = parser.parse_args()
    try:
        check(arguments)
    except Wrong as wrong:
        print(f"foreign_client: {arguments.address}: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
