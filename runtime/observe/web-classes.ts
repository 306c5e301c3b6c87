// Sets the globals that Hono uses, such as `Response`. In a bundle their first use would load Node's own undici, which takes 13
// MB and 30 ms; the transport has loaded an undici in any case. `fetch` stays Node's, because undici's speaks HTTP/2 by default.
import { CloseEvent, Headers, Request, Response } from "undici";

Object.assign(globalThis, { CloseEvent, Headers, Request, Response });
