"""An HTTP server on some ports that answers everything with 64 kB."""

import os
import socket
import sys
import threading

BODY = b"x" * 65536


def answer(connection):
    with connection:
        connection.settimeout(60)
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                more = connection.recv(4096)
                if not more:
                    return
                head += more
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\nConnection: close\r\n\r\n" + BODY)
        except OSError:
            pass


def serve(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def main():
    ready, *ports = sys.argv[1:]
    threads = []
    for port in ports:
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::", int(port)))
        listener.listen(512)
        threads.append(threading.Thread(target=serve, args=(listener,), daemon=True))
    for thread in threads:
        thread.start()
    os.close(os.open(ready, os.O_WRONLY))
    for thread in threads:
        thread.join()


main()
