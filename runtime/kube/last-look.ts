import type { Dispatcher } from "undici";

/** Asked in the same breath as a request is written to its connection; what it gives, the request rejects with, unsent. */
export type LastLook = () => Error | undefined;

/**
 * The dispatcher, with a last look at each request. That comes after all that a request may wait for: a token, a place
 * in the pool, a handshake. It comes again where a lost connection has the pool send it once more.
 */
export const withLastLook = (dispatcher: Dispatcher, look: LastLook): Dispatcher =>
  dispatcher.compose((dispatch) => (options, handler) => {
    const begin = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      const objection = look();
      // The pool fails a request whose handler throws here before it has written a byte of it.
      if (objection) throw objection;
      begin?.(controller, context);
    };
    return dispatch(options, handler);
  });
