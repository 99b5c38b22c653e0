#!/usr/bin/env python3
"""A slow link between two network namespaces, in user space: bench/slow_link starts it.

Two tun devices, SERVERS (10.99.0.1) and WORKERS (10.99.0.2), are moved into their namespaces. A thread for each
direction forwards packets at a rate, after a delay, from a queue that drops what does not fit, as a router's. At
SIGTERM it prints the bytes and packets of both directions as JSON.

usage: slow_link.py SERVERS_NAMESPACE WORKERS_NAMESPACE MBIT_PER_SECOND ONE_WAY_MS
"""
import collections
import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
QUEUE_BYTES = 1 << 20  # about the bytes under way at 100 Mbit/s and 40 ms, twice


def open_device(name, namespace, address, peer):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    inside = ["ip", "netns", "exec", namespace]
    for words in (["ip", "link", "set", name, "netns", namespace],
                  inside + ["ip", "link", "set", "lo", "up"],
                  inside + ["ip", "address", "add", address, "peer", peer, "dev", name],
                  inside + ["ip", "link", "set", name, "up", "txqueuelen", "2000"]):
        subprocess.run(words, check=True)
    return device


class Direction(threading.Thread):
    def __init__(self, source, sink, bytes_per_second, delay):
        super().__init__(daemon=True)
        self.source, self.sink, self.rate, self.delay = source, sink, bytes_per_second, delay
        self.bytes = self.packets = self.dropped = 0

    def run(self):
        queue, waiting, free_at = collections.deque(), 0, 0.0
        while True:
            now = time.monotonic()
            while queue and queue[0][0] <= now:
                _, packet = queue.popleft()
                waiting -= len(packet)
                os.write(self.sink, packet)
            timeout = max(0.0, queue[0][0] - now) if queue else None
            if not select.select([self.source], [], [], timeout)[0]:
                continue
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                continue
            now = time.monotonic()
            backlog = max(0.0, free_at - now) * self.rate
            if backlog + len(packet) > QUEUE_BYTES:
                self.dropped += 1
                continue
            free_at = max(now, free_at) + len(packet) / self.rate
            queue.append((free_at + self.delay, packet))
            waiting += len(packet)
            self.bytes += len(packet)
            self.packets += 1


def main():
    servers, workers, mbit, delay_ms = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    a = open_device("bel_servers", servers, "10.99.0.1", "10.99.0.2")
    b = open_device("bel_workers", workers, "10.99.0.2", "10.99.0.1")
    up = Direction(b, a, mbit * 1e6 / 8, delay_ms / 1e3)
    down = Direction(a, b, mbit * 1e6 / 8, delay_ms / 1e3)
    up.start(), down.start()
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM})
    print(json.dumps({"up": up.bytes, "down": down.bytes, "packets": up.packets + down.packets,
                      "dropped": up.dropped + down.dropped}), flush=True)


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
main()
