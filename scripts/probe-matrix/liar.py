"""Answers packets that are too long with "too long", and names an MTU that isn't the truth."""

import os
import socket
import struct
import sys


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def word_v4(packet, says):
    body = struct.pack("!BBHHH", 3, 4, 0, 0, says & 0xFFFF) + packet[:548]
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def word_v6(packet, says):
    # The kernel adds the checksum of ICMPv6 itself.
    return struct.pack("!BBHI", 2, 0, 0, says) + packet[:1200]


def main():
    device, passes, says, ready = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    heard.bind((device, 0))
    v4 = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    os.close(os.open(ready, os.O_WRONLY))
    while True:
        packet, where = heard.recvfrom(65536)
        if where[2] == socket.PACKET_OUTGOING or len(packet) <= passes:
            continue
        try:
            if packet[0] >> 4 == 4 and packet[6] & 0x40:
                v4.sendto(word_v4(packet, says), (socket.inet_ntop(socket.AF_INET, packet[12:16]), 0))
            elif packet[0] >> 4 == 6:
                v6.sendto(word_v6(packet, says), (socket.inet_ntop(socket.AF_INET6, packet[8:24]), 0))
        except OSError:
            pass


main()
