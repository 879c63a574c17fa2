"""A server of PostgreSQL for a script: in a folder of its own, on a socket in it, as an ordinary user, with fsync on. It ends with the script."""
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import time


class Server:
    """One that ends with `stop`."""

    def __init__(self, folder, before=()):
        """`before` is put in front of the server's command: taskset and the like."""
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pgbench"), key=lambda p: int(p.parts[-3]))
        if not versions:
            sys.exit("no pgbench below /usr/lib/postgresql (package postgresql)")
        self.bin, self.folder = versions[-1].parent, folder / "postgres"
        self.folder.mkdir()
        self.user = []
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            folder.chmod(0o755)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        data = self.folder / "data"
        subprocess.run([*self.user, self.bin / "initdb", "-D", data, "-U", "wt", "-A", "trust"], check=True, stdout=subprocess.DEVNULL, cwd=self.folder)
        options = ["listen_addresses=", "fsync=on", "max_connections=1100", "shared_buffers=128MB"]
        arguments = [word for option in options for word in ("-c", option)]
        self.command = [*before, *(self.user or ["setpriv"]), "--pdeathsig", "INT", self.bin / "postgres", "-D", data, "-k", self.folder, *arguments]
        self.start()
        self.sql("CREATE DATABASE fleet", "postgres")
        self.url = f"postgresql://wt@/fleet?host={str(self.folder).replace('/', '%2F')}"

    def sql(self, text, database="fleet"):
        command = [self.bin / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "wt", "-h", self.folder, "-d", database, "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self):
        self.process = subprocess.Popen(self.command, cwd=self.folder, stderr=subprocess.DEVNULL, start_new_session=True)
        while subprocess.run([self.bin / "pg_isready", "-q", "-h", self.folder]).returncode:
            if self.process.poll() is not None:
                sys.exit("the server didn't start")
            time.sleep(0.1)

    def kill(self):
        """Ends it by SIGKILL with every process of it, as a power failure would."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for process in [self.process.pid, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def kill_and_restart(self):
        self.kill()
        self.start()

    def stop(self):
        self.process.terminate()
        self.process.wait()
