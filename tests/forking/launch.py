"""Stand in for a process that a fork server makes: hand over descriptors, folder and environment, pass signals on, and
end as it ends. Started without site packages, and with few modules, since it is started a thousand times."""

import _socket
import array
import marshal
import os
import signal
import sys

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGWINCH)


def main() -> None:
    """Start it, wait for it, and end alike."""
    pending: list[int] = []
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: pending.append(number))
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2], sys.argv[3:], os.getcwd(), dict(os.environ)))  # noqa: PTH109
    descriptors = array.array("i", (0, 1, 2))
    server.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors.tobytes())])
    server.sendall(request)
    # Whoever reads the output waits for its end, which is that of the process.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    answer = server.recv(4)
    if not answer:
        os._exit(1)
    pid = int.from_bytes(answer, "big")

    def pass_on(number: int, _: object) -> None:
        try:  # noqa: SIM105 (without another module)
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has ended, and how comes next

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    for number in pending:
        pass_on(number, None)
    status = int.from_bytes(server.recv(4) or b"\x09", "big")
    if os.WIFSIGNALED(status):
        for number in PASSED_ON:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


main()
