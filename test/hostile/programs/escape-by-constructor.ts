// ends with: ok
// within: 900 ms
import type { Context } from "../../../sdk/index.ts";

export default (event: object, ctx: Context) => {
  const found: string[] = [];
  const make = (source: string) => (event.constructor.constructor as FunctionConstructor)(source)() as string;
  for (const name of ["process", "require", "module", "WebAssembly", "SharedArrayBuffer", "Atomics", "Deno"]) {
    if (make(`return typeof ${name}`) !== "undefined") found.push(name);
    if ((ctx.kube.get.constructor as FunctionConstructor)(`return typeof ${name}`)() !== "undefined")
      found.push(`ctx ${name}`);
  }
  if (new ArrayBuffer(1, { maxByteLength: 2 } as never).resizable) found.push("resizable ArrayBuffer");
  const again = new (ArrayBuffer.prototype.constructor as ArrayBufferConstructor)(1, { maxByteLength: 2 } as never);
  if (again.resizable) found.push("resizable by prototype");
  for (const name of Object.getOwnPropertyNames(globalThis)) if (name.includes("watchfire")) found.push(name);
  if (found.length > 0) throw new Error(found.join());
};
