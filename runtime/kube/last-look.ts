import type { Dispatcher } from "undici";

/**
 * Called in the same turn in which a request is written to its connection; if it returns an error, the request rejects with it,
 * unsent.
 */
export type LastLook = () => Error | undefined;

/**
 * Wraps a dispatcher so that `look` is called for each request, after everything that a request may wait for: a token, a place in
 * the pool, a handshake. It is called again if the pool resends the request after a lost connection.
 */
export const withLastLook = (dispatcher: Dispatcher, look: LastLook): Dispatcher =>
  dispatcher.compose((dispatch) => (options, handler) => {
    const begin = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      const objection = look();
      // If the handler throws here, the pool fails the request before a byte of it is written.
      if (objection) throw objection;
      begin?.(controller, context);
    };
    return dispatch(options, handler);
  });
