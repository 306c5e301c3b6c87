// Before the package is installed: an older Node would make npm compile isolated-vm, for a minute, and in vain.
import { installedNode, isNewEnough, needed } from "./required-node.js";

if (!isNewEnough && !installedNode()) {
  process.stderr.write(needed);
  process.exitCode = 1;
}
