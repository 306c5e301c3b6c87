// Stands in for an executor that a guest has taken over: uses the protocol on descriptor 3, and misbehaves as its argument says.
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import { encodeFrame, frameType } from "../../../runtime/sandbox/wire.ts";

const stream = new Socket({ fd: 3 });
const write = (...parts: Buffer[]) => stream.write(Buffer.concat(parts));
const say = (type: number, header: unknown, body = "") => write(...encodeFrame(type, header, [Buffer.from(body)]));
const empty = "[[],[],[],[],-1,[],0]\n";

/** Behaves honestly until an event has arrived: with function 1 loaded, inside realm 1, and event 1 running. */
function honest(then: () => void): void {
  let heard = 0;
  const beat = setInterval(() => say(frameType.beat, {}), 100);
  stream.on("data", (chunk: Buffer) => {
    const before = heard;
    heard += chunk.length;
    if (before === 0) {
      say(frameType.ready, {});
      say(frameType.entering, { tenant: 1, realm: 1, events: [] });
      setTimeout(() => {
        say(frameType.drained, { tenant: 1, realm: 1 }, empty);
        say(frameType.loaded, { tenant: 1 });
      }, 200);
      setTimeout(() => {
        say(frameType.entering, { tenant: 1, realm: 1, events: [1] });
        clearInterval(beat);
        then();
      }, 600);
    }
  });
}

/** Sends the same bytes forever, as fast as they are read. */
function flood(bytes: Buffer): void {
  const more = () => {
    while (stream.write(bytes));
    stream.once("drain", more);
  };
  more();
}

const repeat = (frame: Buffer[], times: number) =>
  Buffer.concat(Array.from({ length: times }, () => Buffer.concat(frame)));
const call = (count: number, no: number, args = `{"ref":{"name":"stolen"}}`) => {
  const calls = Array.from({ length: count }, (_, id) => [id + 1, no, "kube.get", args.length]);
  return `${JSON.stringify([[], calls, [], [], -1, [], 0])}\n${args.repeat(count)}`;
};
const logs = (count: number, message: string, fields: string) => {
  const lines = Array.from({ length: count }, () => [1, "info", message.length, fields.length]);
  return `${JSON.stringify([[], [], lines, [], -1, [], 0])}\n${(message + fields).repeat(count)}`;
};
const metrics = (count: number, name: string) => {
  const samples = Array.from({ length: count }, () => [1, "increment", name.length, 1, 0]);
  return `${JSON.stringify([[], [], [], samples, -1, [], 0])}\n${name.repeat(count)}`;
};
/** Sends a cache lookup, which blocks its caller. */
const ask = (more: object = {}, args = "{}") =>
  say(frameType.asking, { tenant: 1, realm: 1, call: 1, no: 1, operation: "cache.list", ...more }, args);
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
/** Leaves the isolate with this outbox, and enters it again, twenty times. */
const sayAll = (outbox: string) => {
  for (let turn = 0; turn < 20; turn++) {
    say(frameType.drained, { tenant: 1, realm: 1 }, outbox);
    say(frameType.entering, { tenant: 1, realm: 1, events: [1] });
  }
};

function nestedHeader(depth: number): Buffer {
  const header = Buffer.from(nested(depth / 2));
  const head = Buffer.alloc(9);
  head.writeUInt32LE(5 + header.length, 0);
  head.writeUInt8(frameType.entering, 4);
  head.writeUInt32LE(header.length, 5);
  return Buffer.concat([head, header]);
}

const misdeeds: Record<string, () => void> = {
  "random bytes": () => flood(randomBytes(65_536)),
  "a frame of 4 GiB": () => write(Buffer.from([0xff, 0xff, 0xff, 0xff, 17, 0, 0, 0, 0])),
  "a header longer than its frame": () => write(Buffer.from([6, 0, 0, 0, 17, 0xff, 0xff, 0, 0, 0])),
  "a frame that trickles in": () => {
    write(Buffer.from([0, 0, 16, 0, 19, 2, 0, 0, 0]));
    setInterval(() => write(Buffer.from([32])), 50);
  },
  "a tenant it never had": () => say(frameType.drained, { tenant: 7, realm: 1 }, call(1, 1)),
  "an exit without an entry": () => say(frameType.drained, { tenant: 1, realm: 9 }, empty),
  "calls without end": () => say(frameType.drained, { tenant: 1, realm: 1 }, call(1000, 1)),
  "questions without end": () => {
    for (let id = 1; id <= 1000; id++) ask({ call: id });
  },
  "a question of another function's event": () => ask({ tenant: 2 }),
  "a question of an event that it was not sent": () => ask({ no: 2 }),
  "a question of the API server": () => ask({ operation: "kube.delete" }),
  "a question longer than a guest's": () => ask({}, JSON.stringify({ labelSelector: "x".repeat(17_000) })),
  "questions whose answers it does not read": () => {
    stream.pause();
    let id = 0;
    setInterval(() => {
      for (let count = 0; count < 4; count++) ask({ call: ++id });
    }, 25);
  },
  "entries without end": () => {
    for (let realm = 2; realm < 5000; realm++) say(frameType.entering, { tenant: 1, realm, events: [1] });
  },
  "a million heartbeats a second": () => flood(repeat(encodeFrame(frameType.beat, {}), 5000)),
  "a million entries and exits a second": () =>
    flood(
      repeat(
        [
          ...encodeFrame(frameType.entering, { tenant: 1, realm: 2, events: [1] }),
          ...encodeFrame(frameType.drained, { tenant: 1, realm: 2 }, [Buffer.from(empty)]),
        ],
        1000,
      ),
    ),
  "the return of an event that it had begun": () =>
    stream.on("data", () => say(frameType.returned, { tenant: 1, events: [1] })),
  "a return that nobody asked for": () => say(frameType.returned, { tenant: 1, events: [] }),
  "a frame of the parent's": () => say(frameType.unload, { tenant: 1 }),
  "JSON as deep as a frame": () => write(...encodeFrame(frameType.drained, {}, [Buffer.from("[".repeat(4_000_000))])),
  "a header as deep as a frame": () => write(nestedHeader(4_000_000)),
  "an outbox as deep as a frame": () => sayAll(`${nested(2_000_000)}\n`),
  "an outbox as deep as its head may be": () => sayAll(`${nested(100_000)}\n`),
  "fields of a log line as deep as a frame": () => sayAll(logs(1, "m", `{"a":${nested(2_000_000)}}`)),
  "as many log lines as there may be": () => sayAll(logs(30, "\u0001".repeat(2000), `{"a":[${"1,".repeat(2000)}1]}`)),
  "more metrics than a guest sends": () => sayAll(metrics(1000, "m")),
  "a call nested as deep as a frame": () => {
    sayAll(call(1, 1, nested(1_000_000)));
    say(frameType.unload, {});
  },
  "an event that it was not sent": () => say(frameType.drained, { tenant: 1, realm: 1 }, "[[2],[],[],[],-1,[],0]\n"),
  "the leaving of an event that it had begun": () =>
    say(frameType.drained, { tenant: 1, realm: 1 }, "[[],[],[],[],-1,[],1]\n"),
  "the leaving of more events than came": () =>
    say(frameType.drained, { tenant: 1, realm: 1 }, "[[],[],[],[],-1,[],9]\n"),
  "an entry with fields that none has": () =>
    flood(repeat(encodeFrame(frameType.entering, { tenant: 1, realm: 1, events: [1], x: nested(50_000) }), 2)),
  "a heartbeat with a body": () => flood(repeat(encodeFrame(frameType.beat, {}, [Buffer.alloc(1_000_000)]), 1)),
  "a log line of quotation marks": () => sayAll(logs(1, "m", `"${'\\"'.repeat(60_000)}\\\napp:///x`)),
  "log lines of quotation marks, each as long as one may be": () =>
    sayAll(logs(10, "m", `"${'\\"'.repeat(9_900)}\\\napp:///x`)),
  "calls whose answers it does not read": () => {
    stream.pause();
    let id = 0;
    setInterval(() => {
      const calls = Array.from({ length: 4 }, () => [++id, 1, "kube.get", 2]);
      say(frameType.drained, { tenant: 1, realm: 1 }, `${JSON.stringify([[], calls, [], [], -1, [], 0])}\n{}{}{}{}`);
      say(frameType.entering, { tenant: 1, realm: 1, events: [1] });
    }, 25);
  },
  "doom, and stays": () => {
    setInterval(() => say(frameType.beat, {}), 100);
    say(frameType.doomed, { tenant: 1, reason: "poisoned" });
  },
  silence: () => {},
  "heartbeats and no answer": () => {
    setInterval(() => say(frameType.beat, {}), 100);
  },
  "memory without end": () => {
    const hoard: Buffer[] = [];
    setInterval(() => {
      say(frameType.beat, {});
      hoard.push(Buffer.alloc(20 * 2 ** 20, 1));
    }, 20);
  },
};

const misdeed = misdeeds[process.argv[2] ?? ""];
if (!misdeed) throw new Error(`there is no misdeed ${process.argv[2]}`);
honest(misdeed);
