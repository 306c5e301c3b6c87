import type { Socket } from "node:net";
import { maxSupervisorFrame } from "../supervisor/frames.ts";
import { type Frame, FrameError, FrameReader } from "../wire.ts";

/** Milliseconds within which a connection must send its first frame. */
const greetMs = 5000;

/**
 * Reads a connection's first frame and leaves the connection paused, with the data after that frame unread. Calls `heard` once,
 * with `undefined` for bytes that are no frame. Does not call it if the connection closes or times out first.
 */
export function hearFirstFrame(socket: Socket, heard: (frame: Frame | undefined) => void): void {
  const timer = setTimeout(() => socket.destroy(), greetMs);
  const over = () => clearTimeout(timer);
  socket.once("close", over);
  let pending: Buffer = Buffer.alloc(0);
  const first = (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    const length = pending.length < 4 ? undefined : pending.readUInt32LE(0) + 4;
    if (length === undefined || (length <= maxSupervisorFrame && pending.length < length)) return;
    over();
    socket.pause();
    socket.off("data", first);
    socket.off("close", over);
    const [frame] = framesOf(new FrameReader(maxSupervisorFrame), pending.subarray(0, length)) ?? [];
    // An executor may already have sent data after its supervisor's first frame.
    if (pending.length > length) socket.unshift(pending.subarray(length));
    heard(frame);
  };
  socket.on("data", first);
}

/** Returns the frames that are complete, or `undefined` for bytes that are no frames. */
export function framesOf(reader: FrameReader, chunk: Buffer): Frame[] | undefined {
  try {
    return [...reader.push(chunk)];
  } catch (error) {
    if (error instanceof FrameError) return undefined;
    throw error;
  }
}
