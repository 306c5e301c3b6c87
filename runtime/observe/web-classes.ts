// Hono answers with the global `Response` and its like. Node's own are a second undici inside Node, which takes 16 MB and
// 25 ms to load. The transport has undici in any case, and its classes are newer.
import { install } from "undici";

install();
