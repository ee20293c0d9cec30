#!/usr/bin/python3
"""A peer of the tensor stream that says its hello, and then nothing more, until it is killed.

  foreign_peer.py 127.0.0.1:7070 HELLO_FRAME_AS_HEX

Prints its process id, then "standing" once the other side has answered. Reads no further frames, so
what is sent to it stays on the way. Exit status 77: Debian's python3-grpcio is missing.
"""

import os
import sys
import threading

try:
    import grpc
except ImportError:
    print("Debian's python3-grpcio is missing", flush=True)
    sys.exit(77)


def main():
    address, hello = sys.argv[1], bytes.fromhex(sys.argv[2])
    print(os.getpid(), flush=True)
    forever = threading.Event()

    def frames():
        yield hello
        forever.wait(60)

    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stream = channel.stream_stream(
            "/ranklab.v1.TensorWire/Stream",
            request_serializer=lambda data: data,
            response_deserializer=lambda data: data,
        )(frames(), timeout=60)
        next(stream)
        print("standing", flush=True)
        forever.wait(60)


if __name__ == "__main__":
    main()
