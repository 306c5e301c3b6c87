// Runs an executor in this process, on a separate stream, and sends it 600 events of a function that it does not have. Prints the
// executor's own figures at its first two heartbeats.
import { Duplex } from "node:stream";
import { Executor } from "../../runtime/sandbox/executor/executor.ts";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";
import type { EventItem, Hello } from "../../runtime/sandbox/messages.ts";
import { encodeFrame, frameType } from "../../runtime/sandbox/wire.ts";

const looks: boolean[] = [];
const look = (isBusy: boolean): void => {
  if (looks.push(isBusy) < 2) return;
  process.stdout.write(JSON.stringify(looks));
  process.exit(0);
};

const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
new Executor(stream, "watchfire:guest", { look }).start({ node: "24.0.0", isolatedVm: "7.0.1" });
const hello: Hello = { heartbeatMs: 200, idleMs: 60_000, recycleEvents: 1000 };
const head = Buffer.from("{}");
const items = Array.from({ length: 600 }, (_, no): EventItem => [no, 1000, head.length, 0, -1, -1, -1]);
const events = encodeFrame(frameType.events, { functionId: 1, items }, [Buffer.concat(items.map(() => head))]);
stream.push(Buffer.concat([...encodeFrame(frameType.hello, hello, [Buffer.from(await guestScript())]), ...events]));
