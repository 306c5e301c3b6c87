// Hono answers with the global `Response` and its like. In a bundle the first look at them would load Node's own undici, for
// 13 MB and 30 ms. The transport has one in any case. `fetch` stays Node's: undici's own speaks HTTP/2 unasked.
import { CloseEvent, Headers, Request, Response } from "undici";

Object.assign(globalThis, { CloseEvent, Headers, Request, Response });
