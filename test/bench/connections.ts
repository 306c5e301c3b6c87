import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The established TCP connections of some processes to a port of 127.0.0.1, by /proc. */
export function connectionsTo(port: number, pids: readonly number[]): number {
  const sockets = new Set(pids.flatMap(socketsOf));
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const established = "01";
  let count = 0;
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1)) {
    const [, , to, state, , , , , , inode] = line.trim().split(/\s+/);
    if (to === remote && state === established && sockets.has(inode ?? "")) count++;
  }
  return count;
}

/** The inodes of a process's sockets; empty if the process is gone. */
function socketsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => inodeOf(`/proc/${pid}/fd/${fd}`) ?? []);
  } catch {
    return [];
  }
}

function inodeOf(link: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1];
  } catch {
    return undefined; // closed in the meantime
  }
}
