// npm run scanner: compiles runtime/informer/scan/wasm/ to the module that is committed in the same folder.
import { writeFileSync } from "node:fs";
import { compiledFile, compiledModule } from "./compile.ts";

writeFileSync(compiledFile, compiledModule());
