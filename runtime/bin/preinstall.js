// Runs before the package is installed. With an older Node, npm would compile isolated-vm for a minute, in vain.
import { installedNode, isNewEnough, needed } from "./required-node.js";

if (!isNewEnough && !installedNode()) {
  process.stderr.write(needed);
  process.exitCode = 1;
}
