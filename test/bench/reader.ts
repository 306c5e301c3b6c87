// Measures the host's work per byte of a watch. `node test/bench/reader.ts` prints microseconds per event of the reader and
// scanner together, and of JSON.parse on the same events, which they replace.
import { EnvelopeScanner } from "../../runtime/informer/scan/object-scan.ts";
import { ValueReader } from "../../runtime/informer/scan/value-reader.ts";
import { makePodStream } from "./pod-stream.ts";

const events = 20_000;
const rounds = 5;

const stream = makePodStream(events);
const received = stream.pieces("");

/** The runtime's steps for every event: find it, check it, find its metadata, and create the body to pass on. */
function scan(): number {
  const scanner = new EnvelopeScanner();
  const reader = new ValueReader((line, start, end) => scanner.scan(line, start, end));
  let bytes = 0;
  // Creating a body changes the bytes before it, so each round has a copy.
  for (const piece of received.map((each) => Buffer.from(each))) {
    reader.push(piece, (line) => {
      scanner.object.meta();
      bytes += scanner.object.body(line, scanner.object.start, scanner.object.end).length;
      return true;
    });
  }
  return bytes;
}

function parse(): number {
  const reader = new ValueReader(() => true);
  let objects = 0;
  for (const piece of received) {
    reader.push(piece, (line, start, end) => {
      if (typeof JSON.parse(line.toString("utf8", start, end)) === "object") objects++;
      return true;
    });
  }
  return objects;
}

function microsecondsPerEvent(work: () => number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    work();
    best = Math.min(best, ((performance.now() - began) * 1000) / events);
  }
  return best;
}

const kilobytes = (stream.bytes / events / 1024).toFixed(1);
process.stdout.write(`reader and scanner  ${microsecondsPerEvent(scan).toFixed(2)} us per event of ${kilobytes} KiB\n`);
process.stdout.write(`JSON.parse          ${microsecondsPerEvent(parse).toFixed(2)} us per event\n`);
