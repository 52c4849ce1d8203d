"""Connections that are there and send little: what a home has dozens of.

    small.py serve PORT
    small.py connect ADDRESS PORT LOCAL KIND N COUNTS

`connect` opens N connections of KIND and keeps them until it is ended; then writes into the file COUNTS what arrived on each.
"""

import asyncio
import json
import signal
import socket
import sys

# Of each kind: bytes that the client sends at once, bytes that come back or are pushed, and s in between.
KINDS = {
    "idle": (0, 300, 0.3),  # 8 kbit/s towards the station
    "poll": (100, 1000, 0.3),
    "push": (0, 200, 2.0),
    "half": (0, 300, 0.5),  # the client has ended its direction
    "talk": (300, 0, 0.3),  # 8 kbit/s from the station
    "think": (200, 100_000, 1.0),  # request and response, with the time that a reader takes
}


async def serve(port):
    async def each(reader, writer):
        try:
            kind = (await reader.readline()).decode().strip()
            asks, answer, pause = KINDS[kind]
            while True:
                if asks and answer:
                    await reader.readexactly(asks)
                    writer.write(bytes(answer))
                    await writer.drain()
                elif asks:
                    if not await reader.read(65536):
                        return
                else:
                    writer.write(bytes(answer))
                    await writer.drain()
                    await asyncio.sleep(pause)
        except (OSError, asyncio.IncompleteReadError):
            pass

    server = await asyncio.start_server(each, None, port, backlog=256)
    async with server:
        await server.serve_forever()


async def connect(address, port, local, kind, n, file):
    arrived, sent, failed = [0] * n, [0] * n, []
    asks, answer, pause = KINDS[kind]

    async def each(i):
        reader, writer = await asyncio.open_connection(address, port, local_addr=(local, 0))
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write(kind.encode() + b"\n")
        await asyncio.sleep(pause * i / n)
        if kind == "half":
            writer.write_eof()
        while True:
            if asks:
                writer.write(bytes(asks))
                await writer.drain()
                sent[i] += asks
            if answer:
                arrived[i] += len(await reader.readexactly(answer))
            if asks:
                await asyncio.sleep(pause)

    async def tried(i):
        try:
            await each(i)
        except (OSError, asyncio.IncompleteReadError) as error:
            failed.append(str(error))

    tasks = [asyncio.ensure_future(tried(i)) for i in range(n)]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    for task in tasks:
        task.cancel()
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"arrived": arrived, "sent": sent, "failed": failed}, out)


def main():
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2])))
    else:
        address, port, local, kind, n, file = sys.argv[2:]
        asyncio.run(connect(address, int(port), local, kind, int(n), file))


if __name__ == "__main__":
    main()
