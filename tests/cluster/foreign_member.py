#!/usr/bin/python3
"""Joins a coordinator as a worker of another build, without ranklab's code, and expects to be told.

  foreign_member.py 127.0.0.1:7070

Exit status: 0, refused with FAILED_PRECONDITION, both builds named; 1, anything else; 77, Debian's
python3-grpcio is missing.
"""

import sys

try:
    import grpc
except ImportError as missing:
    print(f"foreign_member: {missing}; Debian's python3-grpcio has it")
    sys.exit(77)

TIMEOUT_S = 20
BUILD = b"another build"


def bytes_field(number, data):
    """A length-delimited field; both number and length fit one byte here."""
    return bytes([number << 3 | 2, len(data)]) + data


def varint_field(number, value):
    return bytes([number << 3, value])


def main():
    # JoinRequest: host = 2, grpc_port = 3, build = 7; MemberMessage: join = 1.
    join = bytes_field(2, b"127.0.0.1") + varint_field(3, 1) + bytes_field(7, BUILD)
    with grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0)]) as channel:
        session = channel.stream_stream(
            "/ranklab.v1.Coordinator/Session",
            request_serializer=lambda data: data,
            response_deserializer=lambda data: data,
        )
        try:
            answers = list(session(iter([bytes_field(1, join)]), timeout=TIMEOUT_S))
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}")
            told = error.details()
            both = BUILD.decode() in told and 'the coordinator is build "ranklab ' in told
            return 0 if error.code() == grpc.StatusCode.FAILED_PRECONDITION and both else 1
    print(f"foreign_member: not refused, {len(answers)} answers", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
