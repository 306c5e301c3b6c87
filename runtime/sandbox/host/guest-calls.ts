import type { Caller, HostCalls, HostReply } from "../host-calls.ts";
import { frameType } from "../wire.ts";
import type { SandboxAttempt } from "./attempt.ts";
import type { ExecutorHandle } from "./executor.ts";
import { callFault, misshapen } from "./json-shape.ts";
import type { GuestCall } from "./run-output.ts";

/** Maximum number of one attempt's calls that wait: twice the guest's own limit. With more, the guest has been taken over. */
const mostOfAttempt = 128;

/** Maximum bytes of replies in one frame, unless a single one is larger: far below a frame's limit. */
const frameBytes = 16 * 2 ** 20;

/**
 * Maximum bytes of one function's replies that are being produced or not yet read: as many as one answer of the API server may
 * have. A running call counts with the size of the last answer. At first it counts as a page of objects, and never less than a
 * small object.
 */
const mostUnderWay = 16 * 2 ** 20;
const firstGuess = 256 * 1024;
const leastGuess = 16 * 1024;

/**
 * Characters of the arguments of calls that have begun, and of those that wait; what comes beyond is refused, as the access room refuses
 * it.
 */
const mostBegun = 24 * 2 ** 20;
const mostWaiting = 16 * 2 ** 20;

interface WaitingCall {
  /** Characters of its arguments. */
  readonly length: number;
  readonly begin: () => void;
}

interface Reply {
  readonly item: readonly [realm: number, call: number, ok: 0 | 1, length: number];
  readonly text: Buffer;
  readonly attempt: SandboxAttempt;
}

/** The parts of a placement that its calls use. */
interface CallParts {
  readonly executor: Pick<ExecutorHandle, "send" | "isFull">;
  readonly functionId: number;
  readonly hostCalls: HostCalls;
  /** Whether the function is gone, so that no answer is needed. */
  readonly isGone: () => boolean;
  /** Reports a failed call that its handler did not await. */
  readonly unheard: (caller: Caller, fields: Record<string, unknown>) => void;
  /** Reports a fault of this process in making a call of this event. */
  readonly unreadable: (no: number, fault: unknown) => void;
}

/**
 * The calls of one function on one executor. A call ends once the executor has read its reply, and calls only begin while there
 * is room for replies. An executor that does not read cannot fill this process' memory.
 */
export class GuestCalls {
  private readonly parts: CallParts;
  private readonly waiting: WaitingCall[] = [];
  private waitingLength = 0;
  private replies: Reply[] = [];
  private underWay = 0;
  /** Characters of the arguments of those that have begun. */
  private begun = 0;
  private guess = firstGuess;

  constructor(parts: CallParts) {
    this.parts = parts;
  }

  /**
   * Makes a call for the attempt it belongs to, whatever the message claims. Returns false if the guest has more waiting calls
   * than an honest one can have.
   */
  make(realm: number, call: GuestCall, attempt: SandboxAttempt): boolean {
    if (++attempt.calls > mostOfAttempt) return false;
    const { length } = call.args;
    if (this.waiting.length === 0 && !this.isFull) this.start(realm, call, attempt);
    else if (this.waitingLength + length > mostWaiting) this.turnDown(realm, call.call, call.no, length, attempt);
    else {
      this.waitingLength += length;
      this.waiting.push({ length, begin: () => this.start(realm, call, attempt) });
    }
    return true;
  }

  private start(realm: number, call: GuestCall, attempt: SandboxAttempt): void {
    const { no } = call;
    void this.begin(realm, call, attempt).catch((fault) => this.parts.unreadable(no, fault));
  }

  /** Answers a blocking call of an attempt that has ended, because its code waits for it. */
  refuse(realm: number, call: number): void {
    const error = { type: "TimeoutError", message: "the attempt has ended", status: 0, reason: "Aborted" };
    const text = Buffer.from(JSON.stringify(error));
    const { executor, functionId } = this.parts;
    const header = { functionId, items: [[realm, call, 0, text.length] as const] };
    if (!executor.isFull) executor.send({ type: frameType.replies, header, segments: [text] });
  }

  /** Begins waiting calls, as far as there is room. */
  proceed(): void {
    while (!this.isFull) {
      const next = this.waiting.shift();
      if (!next) return;
      this.waitingLength -= next.length;
      next.begin();
    }
  }

  /** Refuses a call for which the function has no memory left. Its arguments are not kept until the answer. */
  private turnDown(realm: number, call: number, no: number, length: number, attempt: SandboxAttempt): void {
    const answer = async () => {
      await this.parts.hostCalls.refused?.(attempt.delivery, length);
      if (!attempt.isOver && !this.parts.isGone()) this.answer(realm, call, tooMany, attempt);
    };
    void answer().catch((fault) => this.parts.unreadable(no, fault));
  }

  private get isFull(): boolean {
    if (this.begun > mostBegun) return true;
    return this.parts.executor.isFull || (this.underWay > 0 && this.underWay + this.guess > mostUnderWay);
  }

  private async begin(realm: number, { call, operation, args }: GuestCall, attempt: SandboxAttempt): Promise<void> {
    if (attempt.isOver || this.parts.isGone()) return;
    const reply = await this.ask(operation, args, attempt);
    if (attempt.isDone && !reply.ok) {
      const { type, message } = reply.error;
      this.parts.unheard(attempt.delivery, { operation, error: `${type}: ${message}`, hint: "await the call" });
    }
    if (!attempt.isOver && !this.parts.isGone()) this.answer(realm, call, reply, attempt);
    this.proceed();
  }

  private async ask(operation: string, args: string, attempt: SandboxAttempt): Promise<HostReply> {
    const { length } = args;
    const reserved = this.guess;
    this.underWay += reserved;
    this.begun += length;
    try {
      const fault = callFault(operation, args);
      if (fault) {
        await this.parts.hostCalls.refused?.(attempt.delivery, length);
        return misshapen(operation, fault);
      }
      const reply = await this.parts.hostCalls.call(attempt.delivery, operation, args, attempt.signal);
      this.guess = Math.max(leastGuess, reply.ok ? reply.json.length : 0);
      return reply;
    } finally {
      this.underWay -= reserved;
      this.begun -= length;
    }
  }

  private answer(realm: number, call: number, reply: HostReply, attempt: SandboxAttempt): void {
    const text = Buffer.from(reply.ok ? reply.json : JSON.stringify(reply.error));
    this.underWay += text.length;
    if (this.replies.length === 0) setImmediate(() => this.send());
    this.replies.push({ item: [realm, call, reply.ok ? 1 : 0, text.length], text, attempt });
  }

  private send(): void {
    let count = 1;
    let bytes = this.replies[0]?.text.length ?? 0;
    for (; count < this.replies.length; count++) {
      const length = this.replies[count]?.text.length ?? 0;
      if (bytes + length > frameBytes) break;
      bytes += length;
    }
    const sent = this.replies.splice(0, count);
    if (this.replies.length > 0) setImmediate(() => this.send());
    const { executor, functionId } = this.parts;
    const items = sent.map(({ item }) => item);
    executor.send(
      { type: frameType.replies, header: { functionId, items }, segments: sent.map(({ text }) => text) },
      () => {
        this.underWay -= bytes;
        for (const { attempt } of sent) attempt.calls--;
        this.proceed();
      },
    );
  }
}

const tooMany: HostReply = {
  ok: false,
  error: {
    type: "TooManyRequestsError",
    message: `the function's calls that wait for the answers of others have more than ${mostWaiting} characters of arguments`,
    status: 429,
    reason: "TooManyRequests",
  },
};
