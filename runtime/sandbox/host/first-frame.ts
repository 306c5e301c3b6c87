import type { Socket } from "node:net";
import { maxWardenFrame } from "../supervisor/frames.ts";
import { type Frame, FrameError, FrameReader } from "../wire.ts";

/** Milliseconds that a connection has to say who it is. */
const greetMs = 5000;

/**
 * Hears a connection's first frame, soon, and leaves it paused with what came behind that frame unread. `heard` is called once,
 * unless the connection ends or takes too long before: with undefined for bytes that are no frame.
 */
export function hearFirstFrame(socket: Socket, heard: (frame: Frame | undefined) => void): void {
  const timer = setTimeout(() => socket.destroy(), greetMs);
  const over = () => clearTimeout(timer);
  socket.once("close", over);
  let pending: Buffer = Buffer.alloc(0);
  const first = (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    const length = pending.length < 4 ? undefined : pending.readUInt32LE(0) + 4;
    if (length === undefined || (length <= maxWardenFrame && pending.length < length)) return;
    over();
    socket.pause();
    socket.off("data", first);
    socket.off("close", over);
    const [frame] = framesOf(new FrameReader(maxWardenFrame), pending.subarray(0, length)) ?? [];
    // An executor may have spoken already behind its warden's first frame.
    if (pending.length > length) socket.unshift(pending.subarray(length));
    heard(frame);
  };
  socket.on("data", first);
}

/** The frames that are whole now; undefined for bytes that are none. */
export function framesOf(reader: FrameReader, chunk: Buffer): Frame[] | undefined {
  try {
    return [...reader.push(chunk)];
  } catch (error) {
    if (error instanceof FrameError) return undefined;
    throw error;
  }
}
