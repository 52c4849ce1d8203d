"""One greedy QUIC connection, by aioquic.

    quic.py serve ADDRESS PORT FOLDER
    quic.py fetch ADDRESS PORT LOCAL SECONDS ARRIVED

`serve` keeps a certificate that it makes in FOLDER. `fetch` writes into the file ARRIVED the bytes that came in
each half second since it began.
"""

import asyncio
import datetime
import json
import os
import ssl
import sys
import time
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

CHUNK = 1 << 20
BIN_S = 0.5


class Sender(QuicConnectionProtocol):
    """Sends without end on the stream that asks."""

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.data:
            asyncio.ensure_future(self.send(event.stream_id))

    async def send(self, stream):
        sender = self._quic._streams[stream].sender  # how much of it waits no public name tells
        while True:
            if len(sender._buffer) < CHUNK:
                self._quic.send_stream_data(stream, bytes(CHUNK))
                self.transmit()
            await asyncio.sleep(0.02)


class Receiver(QuicConnectionProtocol):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.bins, self.began = [], time.monotonic()

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            at = int((time.monotonic() - self.began) / BIN_S)
            self.bins += [0] * (at + 1 - len(self.bins))
            self.bins[at] += len(event.data)


def configuration(is_client):
    return QuicConfiguration(
        alpn_protocols=["outside"],
        is_client=is_client,
        verify_mode=ssl.CERT_NONE,
        congestion_control_algorithm="cubic",
        max_datagram_size=1350,
        # Windows of a browser's size; those of aioquic are one MiB.
        max_data=1 << 24,
        max_stream_data=1 << 24,
    )


def certificate(folder):
    """The files of a certificate for one day that nobody vouches for, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "outside")])
    today = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - datetime.timedelta(1)).not_valid_after(today + datetime.timedelta(1))
    files = folder / "quic.pem", folder / "quic.key"
    files[0].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


async def server(address, port, folder):
    settings = configuration(False)
    settings.load_cert_chain(*certificate(folder))
    await serve(address, port, configuration=settings, create_protocol=Sender)
    await asyncio.Event().wait()


async def fetch(address, port, local, seconds, file):
    began = time.monotonic()
    async with connect(
        address, port, configuration=configuration(True), create_protocol=Receiver, local_port=0
    ) as client:
        client.began = began
        client._quic.send_stream_data(client._quic.get_next_available_stream_id(), b"send")
        client.transmit()
        await asyncio.sleep(seconds - (time.monotonic() - began))
        with open(file, "w", encoding="utf-8") as out:
            json.dump(client.bins, out)
        # It does not wait for the close to be acknowledged: the server goes, too.
        os._exit(0)


def main():
    if sys.argv[1] == "serve":
        address, port, folder = sys.argv[2:]
        asyncio.run(server(address, int(port), Path(folder)))
    else:
        address, port, local, seconds, file = sys.argv[2:]
        asyncio.run(fetch(address, int(port), local, float(seconds), file))


if __name__ == "__main__":
    main()
