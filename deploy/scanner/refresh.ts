// npm run scanner: compiles runtime/informer/scan/wasm/ to the module that is checked in beside it.
import { writeFileSync } from "node:fs";
import { compiledFile, compiledModule } from "./compile.ts";

writeFileSync(compiledFile, compiledModule());
